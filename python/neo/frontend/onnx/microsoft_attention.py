"""Attention of com.microsoft with the products, masks and caches that ONNX Runtime's optimizer gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.frontend.onnx.attention_parts import (
    Scores,
    add_values,
    append_heads,
    attend,
    causal_bias,
    dims_of,
    join_heads,
    key_bias,
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
_MASKED = -10000.0


def _heads(call: Call) -> int:
    heads = int(call.attrs.get("num_heads", 0))
    if heads < 1:
        msg = f"[{call.op}] attribute 'num_heads' must be positive. Got {heads}"
        raise ModelError(msg)
    return heads


class _Cache:
    """Keys and values of earlier calls: two tensors, or one of both; growing, or of a fixed length and filled in.

    Attributes
    ----------
    key, value : Value or None
        [batch, heads, length, size].
    filled : Value or None
        How much of a cache of fixed length is filled, int64 [1].
    rows : Value or None
        Where each position of each row lies, int64 [batch, length, 2], for caches that beams share.
    """

    def __init__(self, call: Call, key: Any, value: Any, filled: Any = None) -> None:
        self.call = call
        self.key = key
        self.value = value
        self.filled = None
        self.rows: Any = None
        if key is not None and filled is not None:
            self.filled = call.add("Cast", [call.add("Reshape", [filled, call.array([1])])], {"to": 7})

    def share(self, beams: Any, indirection: _native.Value | None) -> None:
        """Read the past of each beam from where `indirection`, [batch, beams, length], says it came from."""
        if indirection is None or self.key is None:
            return
        call = self.call
        shape = indirection.shape
        if shape is None or len(shape) != 3:
            raise call.refuse("cache_indirection must have 3 axes")
        size = dims_of(call, indirection, 2)
        beam = call.add("Cast", [indirection], {"to": 7})
        batch, width = dims_of(call, indirection, 0), dims_of(call, indirection, 1)
        if beams is not None:
            width = call.add("Cast", [call.add("Reshape", [beams, call.array([1])])], {"to": 7})
        groups = call.add("Range", [call.array(0), call.add("Squeeze", [batch, call.array([0])]), call.array(1)])
        first = call.add("Unsqueeze", [call.add("Mul", [groups, width]), call.array([1, 2])])
        rows = call.add(
            "Reshape", [call.add("Add", [beam, first]), call.add("Concat", [call.array([-1]), size], {"axis": 0})]
        )
        count = call.add("Squeeze", [size, call.array([0])])
        steps = call.add("Range", [call.array(0), count, call.array(1)])
        steps = call.add("Expand", [steps, call.add("Shape", [rows])])
        pairs = [call.add("Unsqueeze", [part, call.array([2])]) for part in (rows, steps)]
        self.rows = call.add("Concat", pairs, {"axis": 2})

    def length(self) -> _native.Value | None:
        """Keys before the first query, int64 [1]; None for none."""
        if self.key is None:
            return None
        return self.filled if self.filled is not None else dims_of(self.call, self.key, 2)

    def extend(self, past: Any, fresh: _native.Value) -> tuple[_native.Value, _native.Value]:
        """The present cache, and what of it is attended to."""
        if past is None:
            return fresh, fresh
        call = self.call
        if self.filled is None:
            present = append_heads(call, past, fresh)
            return present, present if self.rows is None else self._gather(past, fresh)
        at = call.add("Expand", [self.filled, dims_of(call, past, 0)])
        present = call.add("TensorScatter", [past, fresh, at], {"axis": 2})
        old = self._pick(past) if self.rows is not None else past
        return present, append_heads(call, slice_axis(call, old, 2, 0, self.filled), fresh)

    def _gather(self, past: _native.Value, fresh: _native.Value) -> _native.Value:
        return append_heads(self.call, self._pick(past), fresh)

    def _pick(self, past: _native.Value) -> _native.Value:
        call = self.call
        by_position = call.add("Transpose", [past], {"perm": [0, 2, 1, 3]})
        length = dims_of(call, past, 2)
        rows = slice_axis(call, self.rows, 1, 0, length)
        picked = call.add("GatherND", [by_position, rows])
        result: _native.Value = call.add("Transpose", [picked], {"perm": [0, 2, 1, 3]})
        return result


def _finish(
    call: Call,
    q: _native.Value,
    keys: tuple[_native.Value, _native.Value],
    cache: _Cache,
    mask: Any,
    bias: Any,
    *,
    is_causal: bool,
) -> tuple[_native.Value, _native.Value, _native.Value, _native.Value]:
    """The result, the present keys and values, and the scores."""
    present_key, k = cache.extend(cache.key, keys[0])
    present_value, v = cache.extend(cache.value, keys[1])
    total, past = dims_of(call, k, 2), cache.length()
    added = None
    if mask is not None:
        value = float(call.attrs.get("mask_filter_value", _MASKED))
        added = key_bias(call, mask, q, total, past, value)
    if is_causal:
        added = add_values(call, added, causal_bias(call, dims_of(call, q, 2), total, past, q.dtype))
    y, scores, _ = attend(call, q, k, v, add_values(call, added, bias), Scores(float(call.attrs.get("scale", 0.0))))
    return join_heads(call, y), present_key, present_value, scores


def _from_product(
    call: Call, product: _native.Value, *, mask: int, past: int, bias: int, filled: int | None
) -> Results:
    """Attention to queries, keys and values that one product gave; numbers are those of the inputs."""
    if call.attrs.get("do_rotary", 0):
        raise call.refuse(f"attribute do_rotary is not supported. Got {call.attrs['do_rotary']}")
    heads = _heads(call)
    sizes = call.attrs.get("qkv_hidden_sizes")
    parts = split_last(call, product, [int(s) for s in sizes] if sizes else 3)
    q, k, v = (split_heads(call, part, heads) for part in parts)
    halves: list[Any] = [None, None]
    if call.input(past) is not None:
        both = call.add("Split", [call.need(past)], {"axis": 0, "num_outputs": 2}, outputs=2)
        halves = [call.add("Squeeze", [half, call.array([0])]) for half in both]
    shares = bool(call.attrs.get("past_present_share_buffer", 0)) and filled is not None
    cache = _Cache(call, halves[0], halves[1], call.input(filled) if shares and filled is not None else None)
    if call.op == "DecoderMaskedSelfAttention":
        cache.share(call.input(7), call.input(8))
    added = call.input(bias) if bias >= 0 else None
    is_causal = bool(call.attrs.get("unidirectional", 0))
    y, key, value, _ = _finish(call, q, (k, v), cache, call.input(mask), added, is_causal=is_causal)
    results: list[Any] = [y]
    if call.wants(1):
        both = [call.add("Unsqueeze", [half, call.array([0])]) for half in (key, value)]
        results.append(call.add("Concat", both, {"axis": 0}))
    return results


@register("Attention", "DecoderMaskedSelfAttention", domain=_DOMAIN)
def _attention(call: Call) -> Results:
    """One product gives queries, keys and values."""
    product = call.add("MatMul", [call.need(0), call.need(1)])
    if call.input(2) is not None:
        product = call.add("Add", [product, call.need(2)])
    return _from_product(call, product, mask=3, past=4, bias=5, filled=6)


@register("QAttention", domain=_DOMAIN)
def _quantized_attention(call: Call) -> Results:
    """The product is one of codes; all else is float."""
    inputs = [call.need(0), call.need(1), call.need(3), call.need(4), call.input(6), call.input(7), call.input(2)]
    product = call.add(f"{_DOMAIN}.MatMulIntegerToFloat", inputs)
    return _from_product(call, product, mask=5, past=8, bias=-1, filled=None)


def _with_bias(call: Call, parts: list[_native.Value], bias: _native.Value | None) -> list[_native.Value]:
    """Queries, keys and values [batch, length, hidden], with their parts of a bias added."""
    if bias is None:
        return parts
    widths = [call.add("Shape", [part], {"start": -1}) for part in parts]
    if len(parts) == 1:
        return [call.add("Add", [parts[0], slice_axis(call, bias, 0, 0, widths[0])])]
    sizes = call.add("Concat", widths, {"axis": 0})
    pieces = call.add("Split", [bias, sizes], {"axis": 0}, outputs=len(parts))
    return [call.add("Add", [part, piece]) for part, piece in zip(parts, pieces, strict=True)]


def _unpack(call: Call, value: _native.Value, count: int) -> list[_native.Value]:
    """[batch, length, heads, count, size] as `count` values [batch, length, heads * size]."""
    parts = call.add("Split", [value], {"axis": 3, "num_outputs": count}, outputs=count)
    shape = value.shape
    width = -1
    if shape is not None and isinstance(shape[2], int) and isinstance(shape[4], int):
        width = shape[2] * shape[4]
    return [call.add("Reshape", [part, call.array([0, 0, width])]) for part in parts]


def _operands(call: Call, bias: _native.Value | None, heads: int) -> list[_native.Value]:
    """Queries, keys and values as [batch, heads, length, size], from whichever form they are packed in."""
    query, key, value = call.need(0), call.input(1), call.input(2)
    if key is None:
        rank = call.rank(0)
        if rank not in (3, 5):
            raise call.refuse(f"packed queries, keys and values must have 3 or 5 axes. Got {rank}")
        parts = _unpack(call, query, 3) if rank == 5 else split_last(call, query, 3)
    elif call.rank(1) == 5:
        parts = [query, *_unpack(call, key, 2)]
    elif call.rank(1) == 4:
        [q] = _with_bias(call, [query], bias)
        return [split_heads(call, q, heads), key, call.need(2)]
    else:
        if value is None:
            raise call.refuse("values must be given where keys have 3 axes")
        parts = [query, key, value]
    return [split_heads(call, part, heads) for part in _with_bias(call, parts, bias)]


@register("MultiHeadAttention", domain=_DOMAIN)
def _multi_head_attention(call: Call) -> Results:
    q, k, v = _operands(call, call.input(3), _heads(call))
    cache = _Cache(call, call.input(6), call.input(7), call.input(8))
    cache.share(None, call.input(9))
    is_causal = bool(call.attrs.get("unidirectional", 0))
    made = _finish(call, q, (k, v), cache, call.input(4), call.input(5), is_causal=is_causal)
    return made[: len(call.outputs)]


@register("DecoderMaskedMultiHeadAttention", domain=_DOMAIN)
def _decoder_masked_attention(call: Call) -> Results:
    """One query per row; the cache has a fixed length, and beams may share it."""
    q, k, v = _operands(call, call.input(10), _heads(call))
    shares = bool(call.attrs.get("past_present_share_buffer", 0))
    cache = _Cache(call, call.input(5), call.input(6), call.input(7) if shares else None)
    cache.share(call.input(8), call.input(9))
    made = _finish(call, q, (k, v), cache, call.input(3), call.input(4), is_causal=False)
    return made[: len(call.outputs)]
