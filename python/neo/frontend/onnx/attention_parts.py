"""Attention written out as its products, masks and softmax, the form that routines take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neo.frontend.onnx.call import Call

if TYPE_CHECKING:
    from neo import _native

__all__ = [
    "Scores",
    "add_values",
    "append_heads",
    "attend",
    "causal_bias",
    "dims_of",
    "join_heads",
    "key_bias",
    "lowest",
    "positions_of",
    "rotate",
    "slice_axis",
    "split_heads",
    "split_last",
]

_LOWEST = {"float16": -65504.0, "bfloat16": -3.3895313892515355e38, "float32": -3.4028234663852886e38}


@dataclass(frozen=True)
class Scores:
    """How scores become weights.

    Attributes
    ----------
    scale : float
        Factor of the scores; 0 for 1 / sqrt(size of a head).
    softcap : float
        Bound of the scores by a hyperbolic tangent; 0 for none.
    sinks : Value or None
        Scores of a key without a value, float32 [1, heads, 1, 1].
    """

    scale: float = 0.0
    softcap: float = 0.0
    sinks: Any = None


def lowest(dtype: str) -> float:
    """The score of a key that no softmax sees: the lowest number, which keeps differences of hidden scores finite."""
    return _LOWEST.get(dtype, _LOWEST["float32"])


def dims_of(call: Call, value: _native.Value, *axes: int) -> _native.Value:
    """The sizes of some axes as int64 [number of axes]."""
    parts = [call.add("Shape", [value], {"start": a, "end": a + 1}) for a in axes]
    joined: _native.Value = parts[0] if len(parts) == 1 else call.add("Concat", parts, {"axis": 0})
    return joined


def slice_axis(call: Call, value: _native.Value, axis: int, start: Any, end: Any) -> _native.Value:
    """A range of one axis; bounds are numbers or int64 [1]."""
    bounds = [call.array([b]) if isinstance(b, int) else b for b in (start, end)]
    result: _native.Value = call.add("Slice", [value, *bounds, call.array([axis])])
    return result


def split_last(call: Call, value: _native.Value, sizes: Sequence[int] | int) -> list[_native.Value]:
    """The parts of the last axis: of these sizes, or so many of equal size."""
    if isinstance(sizes, int):
        parts = call.add("Split", [value], {"axis": -1, "num_outputs": sizes}, outputs=sizes)
    else:
        parts = call.add("Split", [value, call.array(sizes)], {"axis": -1}, outputs=len(sizes))
    return list(parts)


def split_heads(call: Call, value: _native.Value, heads: int) -> _native.Value:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    shape = value.shape
    known = shape is not None and len(shape) == 3 and isinstance(shape[2], int) and shape[2] % heads == 0
    size = int(shape[2]) // heads if shape is not None and known else -1
    parts = call.add("Reshape", [value, call.array([0, 0, heads, size])])
    result: _native.Value = call.add("Transpose", [parts], {"perm": [0, 2, 1, 3]})
    return result


def join_heads(call: Call, value: _native.Value) -> _native.Value:
    """[batch, heads, length, size] as [batch, length, heads * size]."""
    shape = value.shape
    width = -1
    if shape is not None and isinstance(shape[1], int) and isinstance(shape[3], int):
        width = shape[1] * shape[3]
    turned = call.add("Transpose", [value], {"perm": [0, 2, 1, 3]})
    result: _native.Value = call.add("Reshape", [turned, call.array([0, 0, width])])
    return result


def append_heads(call: Call, past: _native.Value | None, fresh: _native.Value) -> _native.Value:
    """A cache [batch, heads, length, size] and what comes after it."""
    if past is None:
        return fresh
    result: _native.Value = call.add("Concat", [past, fresh], {"axis": 2})
    return result


def positions_of(call: Call, length: _native.Value, first: _native.Value | None = None) -> _native.Value:
    """The numbers from `first` (int64 [1], 0 where left out) on, as many as `length` (int64 [1]) says."""
    count = call.add("Squeeze", [length, call.array([0])])
    steps: _native.Value = call.add("Range", [call.array(0), count, call.array(1)])
    return steps if first is None else call.add("Add", [steps, first])


def _choose(call: Call, seen: _native.Value, hidden: float, dtype: str) -> _native.Value:
    result: _native.Value = call.add("Where", [seen, call.array(0.0, dtype), call.array(hidden, dtype)])
    return result


def causal_bias(
    call: Call, queries: _native.Value, keys: _native.Value, past: _native.Value | None, dtype: str
) -> _native.Value:
    """What hides later keys from earlier queries, [queries, keys]; `past` keys (int64 [1]) come before the first query."""
    rows = call.add("Unsqueeze", [positions_of(call, queries, past), call.array([1])])
    seen = call.add("GreaterOrEqual", [rows, positions_of(call, keys)])
    return _choose(call, seen, lowest(dtype), dtype)


def key_bias(
    call: Call,
    mask: _native.Value,
    like: _native.Value,
    keys: _native.Value,
    past: _native.Value | None,
    value: float,
) -> _native.Value:
    """What a mask of com.microsoft adds to the scores, broadcast to [batch, heads, queries, keys].

    Parameters
    ----------
    mask : Value
        Lengths [batch]; ends and starts [2 * batch]; lengths and offsets [3 * batch + 2]; flags of keys [batch, keys], of
        queries and keys [batch, queries, keys], or of all positions [batch, 1, longest, longest].
    like : Value
        The queries, [batch, heads, queries, size].
    keys, past : Value
        Their numbers, int64 [1].
    value : float
        The score of a key that is masked; one below the dtype's numbers is the lowest of them.
    """
    shape = mask.shape
    if shape is None or not 1 <= len(shape) <= 4:
        raise call.refuse("the mask must have 1 to 4 axes" + ("" if shape is None else f". Got {len(shape)}"))
    dtype = like.dtype
    value = max(value, lowest(dtype))
    if len(shape) == 1:
        return _choose(call, _seen_by_lengths(call, mask, like, keys), value, dtype)
    if len(shape) == 4:
        queries = dims_of(call, like, 2)
        start: Any = 0 if past is None else past
        end = queries if past is None else call.add("Add", [past, queries])
        mask = slice_axis(call, slice_axis(call, mask, 2, start, end), 3, 0, keys)
    else:
        mask = call.add("Unsqueeze", [mask, call.array([1, 2] if len(shape) == 2 else [1])])
    unseen = call.add("Equal", [mask, call.array(0, mask.dtype)])
    result: _native.Value = call.add("Where", [unseen, call.array(value, dtype), call.array(0.0, dtype)])
    return result


def _seen_by_lengths(call: Call, mask: _native.Value, like: _native.Value, keys: _native.Value) -> _native.Value:
    """Which keys lie before an end, and not before a start where there are starts: bool [batch, 1, 1, keys]."""
    sizes, batch = mask.shape, None if like.shape is None else like.shape[0]
    size = None if sizes is None else sizes[0]
    count = dims_of(call, like, 0)
    wide = call.add("Cast", [mask], {"to": 7})
    steps = positions_of(call, keys)

    def column(vector: Any) -> Any:
        return call.add("Unsqueeze", [vector, call.array([1])])

    if size is not None and size == batch:
        seen = call.add("Less", [steps, column(wide)])
    else:
        seen = call.add("Less", [steps, column(slice_axis(call, wide, 0, 0, count))])
        has_starts = isinstance(size, int) and isinstance(batch, int) and size == 2 * batch
        if has_starts or not (isinstance(size, int) and isinstance(batch, int)):
            twice = call.add("Mul", [count, call.array([2])])
            given = call.add("Cast", [call.add("Equal", [dims_of(call, mask, 0), twice])], {"to": 7})
            padded = call.add("Concat", [wide, call.add("Expand", [call.array([0]), count])], {"axis": 0})
            starts = call.add("Mul", [slice_axis(call, padded, 0, count, twice), given])
            seen = call.add("And", [seen, call.add("GreaterOrEqual", [steps, column(starts)])])
    result: _native.Value = call.add("Unsqueeze", [seen, call.array([1, 2])])
    return result


def add_values(call: Call, *values: _native.Value | None) -> _native.Value | None:
    """The sum of those that are there; None where none is."""
    total: _native.Value | None = None
    for value in values:
        if value is not None:
            total = value if total is None else call.add("Add", [total, value])
    return total


def _scaled(call: Call, q: _native.Value, scale: float) -> _native.Value:
    size = None if q.shape is None else q.shape[3]
    if scale or (isinstance(size, int) and size > 0):
        factor = call.array(scale or 1 / math.sqrt(int(size or 1)), q.dtype)
    else:
        wide = call.add("Cast", [dims_of(call, q, 3)], {"to": 1})
        factor = call.add("CastLike", [call.add("Reciprocal", [call.add("Sqrt", [wide])]), q])
    result: _native.Value = call.add("Mul", [q, factor])
    return result


def attend(
    call: Call,
    q: _native.Value,
    k: _native.Value,
    v: _native.Value,
    bias: _native.Value | None,
    scores: Scores,
    *,
    groups: tuple[int, int] = (1, 1),
) -> tuple[_native.Value, _native.Value, _native.Value]:
    """The values weighted by a softmax of the products of queries and keys.

    Parameters
    ----------
    q, k, v : Value
        [batch, heads, queries, size], [batch, key heads, keys, size], [batch, key heads, keys, value size].
    bias : Value or None
        Added to the scores, broadcast to [batch, heads, queries, keys].
    groups : pair of int
        The heads of the queries and of the keys, where they differ.

    Returns
    -------
    tuple of Value
        The result [batch, heads, queries, value size]; the scores with what was added to them, and the weights, each
        [batch, heads, queries, keys].
    """
    heads, shared = groups
    q = _scaled(call, q, scores.scale)
    if heads != shared:
        q = call.add("Reshape", [q, call.array([0, shared, -1, 0])])
    product = call.add("MatMul", [q, call.add("Transpose", [k], {"perm": [0, 1, 3, 2]})])
    if heads != shared:
        product = call.add("Reshape", [product, call.array([0, heads, -1, 0])])
    if scores.softcap:
        cap = call.array(scores.softcap, q.dtype)
        product = call.add("Mul", [call.add("Tanh", [call.add("Div", [product, cap])]), cap])
    if bias is not None:
        product = call.add("Add", [product, bias])
    weights = _weigh(call, product, scores.sinks)
    shares = weights
    if heads != shared:
        shares = call.add("Reshape", [weights, call.array([0, shared, -1, 0])])
    y = call.add("MatMul", [shares, v])
    if heads != shared:
        y = call.add("Reshape", [y, call.array([0, heads, -1, 0])])
    return y, product, weights


def _weigh(call: Call, product: _native.Value, sinks: _native.Value | None) -> _native.Value:
    if sinks is None:
        plain: _native.Value = call.add("Softmax", [product], {"axis": -1})
        return plain
    shape = call.add("Concat", [call.add("Shape", [product], {"end": -1}), call.array([1])], {"axis": 0})
    column = call.add("Expand", [sinks, shape])
    wide = call.add("Softmax", [call.add("Concat", [product, column], {"axis": -1})], {"axis": -1})
    return slice_axis(call, wide, 3, 0, dims_of(call, product, 3))


def rotate(
    call: Call,
    x: _native.Value,
    cosines: _native.Value,
    sines: _native.Value,
    positions: _native.Value | None,
    *,
    interleaved: bool,
) -> _native.Value:
    """Rotary positions of [batch, heads, length, size].

    The caches are [positions, half] for positions that are integers [batch or 1, length], else [batch or 1, length, half].
    Elements behind twice the width of the caches stay as they are.
    """
    size, cache = None if x.shape is None else x.shape[3], cosines.shape
    if cache is None or not isinstance(cache[-1], int):
        raise call.refuse("the width of the caches must be known")
    half = int(cache[-1])
    if half < 1 or (isinstance(size, int) and 2 * half > size):
        raise call.refuse(f"the caches must be half as wide as the heads at most. Got {half} and {size}")
    tables = [t if positions is None else call.add("Gather", [t, positions]) for t in (cosines, sines)]
    cos, sin = (call.add("Unsqueeze", [table, call.array([1])]) for table in tables)
    has_rest = size != 2 * half  # of a size that is not known: none, or any number of elements
    if interleaved:
        lead = slice_axis(call, x, 3, 0, 2 * half)
        pairs = call.add("Reshape", [lead, call.array([0, 0, 0, half, 2])])
        a, b = (call.add("Squeeze", [slice_axis(call, pairs, 4, i, i + 1), call.array([4])]) for i in (0, 1))
        rest = [slice_axis(call, x, 3, 2 * half, dims_of(call, x, 3))] if has_rest else []
    elif not isinstance(size, int):
        behind = call.add("Sub", [dims_of(call, x, 3), call.array([2 * half])])
        sizes = call.add("Concat", [call.array([half, half]), behind], {"axis": 0})
        a, b, *rest = call.add("Split", [x, sizes], {"axis": -1}, outputs=3)
    else:
        a, b, *rest = split_last(call, x, [half, half, size - 2 * half] if has_rest else [half, half])
    real = call.add("Sub", [call.add("Mul", [a, cos]), call.add("Mul", [b, sin])])
    imaginary = call.add("Add", [call.add("Mul", [a, sin]), call.add("Mul", [b, cos])])
    if interleaved:
        columns = [call.add("Unsqueeze", [part, call.array([4])]) for part in (real, imaginary)]
        pairs = call.add("Concat", columns, {"axis": 4})
        turned = [call.add("Reshape", [pairs, call.array([0, 0, 0, 2 * half])])]
    else:
        turned = [real, imaginary]
    parts = [*turned, *rest]
    result: _native.Value = parts[0] if len(parts) == 1 else call.add("Concat", parts, {"axis": 3})
    return result
