"""GroupQueryAttention and RotaryEmbedding of com.microsoft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.frontend.onnx.attention_parts import (
    Scores,
    add_values,
    attend,
    dims_of,
    join_heads,
    lowest,
    positions_of,
    rotate,
    slice_axis,
    split_heads,
    split_last,
)
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "com.microsoft"


@register("RotaryEmbedding", domain=_DOMAIN)
def _rotary_embedding(call: Call) -> Results:
    """Position ids may be one number, the position of the first token."""
    if call.attrs.get("is_packed_batching", 0):
        raise call.refuse("a packed batch is not supported")
    x, ids = call.need(0), call.need(1)
    rank = call.rank(0)
    if rank not in (3, 4):
        raise call.refuse(f"the input must have 3 or 4 axes. Got {rank}")
    heads = int(call.attrs.get("num_heads", 0))
    if rank == 3:
        if not heads:
            heads = call.size(0, 2, "the hidden size") // max(1, 2 * call.size(2, 1, "the width of the caches"))
        if heads < 1:
            msg = f"[{call.op}] the hidden size must be that of a head at least. Got {call.shape(0)[2]}"
            raise ModelError(msg)
        x = split_heads(call, x, heads)
    if call.rank(1) == 1:
        ids = call.add("Cast", [ids], {"to": 7})
        ids = call.add("Unsqueeze", [positions_of(call, dims_of(call, x, 2), ids), call.array([0])])
    y = rotate(call, x, call.need(2), call.need(3), ids, interleaved=bool(call.attrs.get("interleaved", 0)))
    return [join_heads(call, y) if rank == 3 else y]


@register("RotaryEmbedding", since=23)
def _onnx_rotary_embedding(call: Call) -> Results:
    """ONNX's own, in parts where its sizes are known."""
    x, cache, ids = call.need(0), call.need(1).shape, call.input(3)
    shape = x.shape
    rank = 0 if shape is None or x.dtype != "float32" else len(shape)
    heads = int(call.attrs.get("num_heads", 0)) if rank == 3 else 1
    width = shape[-1] if shape and rank in (3, 4) else 0
    size = width // heads if isinstance(width, int) and heads > 0 and width % heads == 0 else 0
    rotated = int(call.attrs.get("rotary_embedding_dim", 0)) or size
    known = cache is not None and len(cache) == (3 if ids is None else 2) and cache == call.need(2).shape
    if (
        not size
        or not cache
        or not known
        or not isinstance(cache[-1], int)
        or 2 * cache[-1] != rotated
        or not 0 < rotated <= size
    ):
        return call.finish("RotaryEmbedding", call.inputs, call.attrs)
    if rank == 3:
        x = split_heads(call, x, heads)
    y = rotate(call, x, call.need(1), call.need(2), ids, interleaved=bool(call.attrs.get("interleaved", 0)))
    return [join_heads(call, y) if rank == 3 else y]


class _Lengths:
    """Where the new tokens of each row stand: all values are int64.

    Attributes
    ----------
    total : Value
        Keys of each row after this call, [batch, 1].
    past : Value
        Keys of each row before it, [batch, 1].
    end : Value
        Where the keys of each row end in the present cache, those of padding included, [batch, 1].
    capacity : Value
        The length of the present cache, [1].
    """

    def __init__(self, call: Call, q: _native.Value) -> None:
        wide = call.add("Cast", [call.add("Reshape", [call.need(5), call.array([-1, 1])])], {"to": 7})
        self.total = call.add("Add", [wide, call.array([1])])
        longest = call.add("Cast", [call.add("Reshape", [call.need(6), call.array([1])])], {"to": 7})
        fresh = dims_of(call, q, 2)
        self.capacity = longest
        if call.input(3) is not None:
            self.capacity = call.add("Max", [longest, dims_of(call, call.need(3), 2)])
        self.end = self.total
        if call.input(16) is not None:
            used = call.add("Cast", [call.add("Reshape", [call.need(16), call.array([-1, 1])])], {"to": 7})
            self.past = call.add("Sub", [self.total, used])
        else:
            is_prompt = call.add("Equal", [fresh, longest])
            self.past = call.add("Where", [is_prompt, call.array([[0]]), call.add("Sub", [self.total, fresh])])
            self.end = call.add("Add", [self.past, fresh])


def _operands(call: Call, heads: int, shared: int) -> list[_native.Value]:
    if call.input(1) is None:
        width = call.size(0, 2, "the hidden size")
        size, rest = divmod(width, heads + 2 * shared)
        if rest:
            msg = f"[{call.op}] the hidden size must be a multiple of the heads. Got {width} and {heads + 2 * shared}"
            raise ModelError(msg)
        parts = split_last(call, call.need(0), [heads * size, shared * size, shared * size])
    else:
        parts = [call.need(0), call.need(1), call.need(2)]
    return [split_heads(call, part, n) for part, n in zip(parts, (heads, shared, shared), strict=True)]


def _present(call: Call, past: _native.Value | None, fresh: _native.Value, lengths: _Lengths) -> _native.Value:
    """A cache of the full length: the old elements of each row, the new ones behind them, and zeros."""
    sizes = call.add("Shape", [fresh])
    lead, size = slice_axis(call, sizes, 0, 0, 2), slice_axis(call, sizes, 0, 3, 4)
    old_length = call.array([0]) if past is None else dims_of(call, past, 2)
    fresh_length = dims_of(call, fresh, 2)
    # A row of zeros stands for every position that is neither old nor new.
    zeros = call.add(
        "Expand", [call.array(0.0, fresh.dtype), call.add("Concat", [lead, call.array([1]), size], {"axis": 0})]
    )
    parts = [fresh, zeros] if past is None else [past, fresh, zeros]
    joined = call.add("Concat", parts, {"axis": 2})
    steps = call.add("Unsqueeze", [positions_of(call, lengths.capacity), call.array([0])])
    is_old = call.add("Less", [steps, lengths.past])
    is_used = call.add("Less", [steps, lengths.end])
    moved = call.add("Add", [call.add("Sub", [steps, lengths.past]), old_length])
    nothing = call.add("Add", [old_length, fresh_length])
    at = call.add("Where", [is_used, call.add("Where", [is_old, steps, moved]), nothing])
    picked = call.add("Unsqueeze", [at, call.array([1, 3])])
    shape = call.add("Concat", [lead, lengths.capacity, size], {"axis": 0})
    result: _native.Value = call.add("GatherElements", [joined, call.add("Expand", [picked, shape])], {"axis": 2})
    return result


def _hidden_keys(call: Call, q: _native.Value, lengths: _Lengths) -> _native.Value:
    """What hides keys behind the end of a row, later than the query or further back than the window."""
    steps = positions_of(call, lengths.capacity)
    steps = call.add("Unsqueeze", [steps, call.array([0, 1])])
    own = call.add("Unsqueeze", [positions_of(call, dims_of(call, q, 2)), call.array([0])])
    at = call.add("Unsqueeze", [call.add("Add", [lengths.past, own]), call.array([2])])
    if call.attrs.get("causal", 1):
        seen = call.add("LessOrEqual", [steps, at])
    else:
        seen = call.add("Less", [steps, call.add("Unsqueeze", [lengths.total, call.array([2])])])
    window = int(call.attrs.get("local_window_size", -1))
    if window > 0:
        seen = call.add("And", [seen, call.add("Greater", [steps, call.add("Sub", [at, call.array([window])])])])
    chosen = call.add("Where", [seen, call.array(0.0, q.dtype), call.array(lowest(q.dtype), q.dtype)])
    result: _native.Value = call.add("Unsqueeze", [chosen, call.array([1])])
    return result


def _normalized(call: Call, x: _native.Value, weight: _native.Value | None, name: str) -> _native.Value:
    if weight is None:
        return x
    epsilon = float(call.attrs.get(name, call.attrs.get("qk_norm_epsilon", 1e-6)))
    result: _native.Value = call.add("RMSNormalization", [x, weight], {"axis": -1, "epsilon": epsilon})
    return result


def _sinks(call: Call, heads: int, dtype: str) -> Any:
    if call.input(11) is not None:
        return call.add("Reshape", [call.need(11), call.array([1, heads, 1, 1])])
    if call.attrs.get("smooth_softmax", 0):
        return call.array(0.0, dtype)
    return None


@register("GroupQueryAttention", domain=_DOMAIN)
def _group_query_attention(call: Call) -> Results:
    for name in ("k_quant_type", "v_quant_type"):
        if call.attrs.get(name, "NONE") != "NONE":
            raise call.refuse(f"a quantized cache is not supported. Got {name} = {call.attrs[name]}")
    if call.attrs.get("sliding_window_cache", 0):
        raise call.refuse("a cache of the window's size is not supported. Got sliding_window_cache = 1")
    heads, shared = call.positive("num_heads"), call.positive("kv_num_heads")
    if heads % shared:
        msg = f"[{call.op}] num_heads must be a multiple of kv_num_heads. Got {heads} and {shared}"
        raise ModelError(msg)
    q, k, v = _operands(call, heads, shared)
    lengths = _Lengths(call, q)
    q = _normalized(call, q, call.input(14), "q_norm_epsilon")
    k = _normalized(call, k, call.input(15), "k_norm_epsilon")
    if call.attrs.get("do_rotary", 0):
        own = call.add("Unsqueeze", [positions_of(call, dims_of(call, q, 2)), call.array([0])])
        at = call.need(9) if call.input(9) is not None else call.add("Add", [lengths.past, own])
        interleaved = bool(call.attrs.get("rotary_interleaved", 0))
        q, k = (rotate(call, x, call.need(7), call.need(8), at, interleaved=interleaved) for x in (q, k))
    key = _present(call, call.input(3), k, lengths)
    value = _present(call, call.input(4), v, lengths)
    bias = call.input(10)
    if bias is not None:
        # Behind the total length there is no bias to add, and no key to see.
        pad = call.add("Sub", [lengths.capacity, dims_of(call, bias, 3)])
        pads = call.add("Concat", [call.array([0] * 7), pad], {"axis": 0})
        bias = call.add("Pad", [bias, pads])
    added = add_values(call, _hidden_keys(call, q, lengths), bias)
    scores = Scores(
        float(call.attrs.get("scale", 0.0)), float(call.attrs.get("softcap", 0.0)), _sinks(call, heads, q.dtype)
    )
    y, products, weights = attend(call, q, key, value, added, scores, groups=(heads, shared))
    kept = weights if int(call.attrs.get("qk_output", 0)) == 2 else products
    return [join_heads(call, y), key, value, kept][: len(call.outputs)]
