"""Attention of ONNX's own domain, in parts where it has caches, shared heads, windows, lengths or other dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neo.frontend.onnx.attention_parts import (
    Scores,
    append_heads,
    attend,
    dims_of,
    join_heads,
    positions_of,
    split_heads,
)
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_HIDDEN = float("-inf")
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def _heads_of(call: Call, index: int, attribute: str) -> int:
    """The number of heads of an operand; 0 where it is not known."""
    shape = call.need(index).shape
    if shape is None or len(shape) not in (3, 4):
        return 0
    heads = call.attrs.get(attribute, 0) if len(shape) == 3 else shape[1]
    if not isinstance(heads, int) or heads < 1 or not isinstance(shape[-1], int):
        return 0
    return heads if len(shape) == 4 or shape[2] % heads == 0 else 0


def _is_plain(call: Call, heads: int, shared: int) -> bool:
    """Whether `expand_attention` has parts for it, or nothing has."""
    scores_wanted, precision = call.wants(3), call.attrs.get("softmax_precision", 1)
    dtypes = {call.need(i).dtype for i in range(3)}
    if not heads or not shared or heads % shared or scores_wanted or precision != 1 or len(dtypes) > 1:
        return True
    mask, extra = call.input(3), [call.input(i) for i in (4, 5, 6)]
    if dtypes.pop() not in _FLOATS or (mask is not None and mask.shape is None):
        return True
    if any(v is not None and v.shape is None for v in extra):
        return True
    windows = [call.attrs.get(name, -1) for name in ("left_window_size", "right_window_size")]
    is_single = call.need(0).dtype == "float32"
    is_whole = not any(v is not None for v in extra) and not (call.wants(1) or call.wants(2))
    return is_whole and is_single and heads == shared and not call.attrs.get("softcap", 0.0) and windows == [-1, -1]


def _seen(call: Call, q: _native.Value, keys: _native.Value) -> _native.Value | None:
    """Which keys a query may see by their places, broadcast to [batch, heads, queries, keys]; None for all."""
    steps = positions_of(call, keys)
    past, lengths = call.input(4), call.input(6)
    queries = dims_of(call, q, 2)
    first = None if past is None else dims_of(call, past, 2)
    seen: Any = None
    if lengths is not None:
        lengths = call.add("Unsqueeze", [call.add("Cast", [lengths], {"to": 7}), call.array([1, 2, 3])])
        seen = call.add("Less", [steps, lengths])
        first = call.add("Sub", [lengths, queries])
    own = call.add("Unsqueeze", [positions_of(call, queries), call.array([1])])
    place = own if first is None else call.add("Add", [own, first])
    left, right = (int(call.attrs.get(name, -1)) for name in ("left_window_size", "right_window_size"))
    bounds = []
    if call.attrs.get("is_causal", 0) and not (past is not None and q.shape is not None and q.shape[2] == 1):
        bounds.append(call.add("LessOrEqual", [steps, place]))
    if left >= 0:
        bounds.append(call.add("GreaterOrEqual", [steps, call.add("Sub", [place, call.array([left])])]))
    if right >= 0:
        bounds.append(call.add("LessOrEqual", [steps, call.add("Add", [place, call.array([right])])]))
    for bound in bounds:
        seen = bound if seen is None else call.add("And", [seen, bound])
    return seen  # type: ignore[no-any-return]


def _bias(call: Call, q: _native.Value, k: _native.Value) -> _native.Value | None:
    """What is added to the scores, broadcast to [batch, heads, queries, keys]; None for nothing."""
    dtype = q.dtype
    zero, hidden = call.array(0.0, dtype), call.array(_HIDDEN, dtype)
    keys = dims_of(call, k, 2)
    seen = _seen(call, q, keys)
    bias: Any = None if seen is None else call.add("Where", [seen, zero, hidden])
    mask = call.input(3)
    if mask is None:
        return bias  # type: ignore[no-any-return]
    if mask.dtype == "bool":
        mask = call.add("Where", [mask, zero, hidden])
    assert mask.shape is not None
    if k.shape is None or mask.shape[-1] != k.shape[2]:
        # Keys behind the end of a mask are hidden.
        behind = call.add("Sub", [keys, dims_of(call, mask, len(mask.shape) - 1)])
        pads = call.add("Concat", [call.array([0] * (2 * len(mask.shape) - 1)), behind], {"axis": 0})
        mask = call.add("Pad", [mask, pads, hidden])
    return mask if bias is None else call.add("Add", [mask, bias])


@register("Attention", since=23)
def _attention(call: Call) -> Results:
    """Attention(Q, K, V, mask, past key, past value, valid lengths) -> Y, present key, present value, scores."""
    heads, shared = _heads_of(call, 0, "q_num_heads"), _heads_of(call, 1, "kv_num_heads")
    if _heads_of(call, 2, "kv_num_heads") != shared or _is_plain(call, heads, shared):
        return call.finish("Attention", call.inputs, call.attrs)
    ranks = [call.rank(i) for i in range(3)]
    q, k, v = (
        split_heads(call, call.need(i), n) if ranks[i] == 3 else call.need(i)
        for i, n in enumerate((heads, shared, shared))
    )
    k, v = (append_heads(call, call.input(i), fresh) for i, fresh in ((4, k), (5, v)))
    bias = _bias(call, q, k)
    scores = Scores(float(call.attrs.get("scale", 0.0)), float(call.attrs.get("softcap", 0.0)))
    y, _, _ = attend(call, q, k, v, bias, scores, groups=(heads, shared))
    may_hide_all = bias is not None and (call.input(3) is not None or call.input(6) is not None or _has_window(call))
    if may_hide_all:
        # A query that sees nothing gives zeros.
        most = call.add("ReduceMax", [bias, call.array([-1])], {"keepdims": 1})
        sees = call.add("Greater", [most, call.array(_HIDDEN, q.dtype)])
        y = call.add("Where", [sees, y, call.array(0.0, q.dtype)])
    return [join_heads(call, y) if ranks[0] == 3 else y, k, v][: len(call.outputs)]


def _has_window(call: Call) -> bool:
    return any(int(call.attrs.get(name, -1)) >= 0 for name in ("left_window_size", "right_window_size"))
