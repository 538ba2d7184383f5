"""Embeddings and biases by position of com.microsoft."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.frontend.onnx.attention_parts import dims_of, positions_of, slice_axis, split_heads, split_last
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.messages import DataType
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "com.microsoft"


def _embed(call: Call, tables: list[Any], norm: list[Any], mask: Any, position_ids: Any) -> Results:
    """The sum of the rows of words, positions and segments, normalized; the number of unmasked words; the sum."""
    ids, segments = call.need(0), call.input(1)
    words = call.add("Gather", [tables[0], ids])
    if position_ids is not None:
        positions = call.add("Gather", [tables[1], position_ids])
    else:
        positions = slice_axis(call, tables[1], 0, 0, dims_of(call, ids, 1))
    total = call.add("Add", [words, positions])
    if segments is not None and tables[2] is not None:
        total = call.add("Add", [total, call.add("Gather", [tables[2], segments])])
    attrs = {"axis": -1, "epsilon": float(call.attrs.get("epsilon", 1e-12))}
    results = [call.add("LayerNormalization", [total, *norm], attrs), None, total]
    if call.wants(1):
        if mask is not None:
            count = call.add("ReduceSum", [mask, call.array([1])], {"keepdims": 0})
            results[1] = call.add("Cast", [count], {"to": DataType.INT32})
        else:
            results[1] = call.add("Expand", [call.array([0], "int32"), dims_of(call, ids, 0)])
    return results[: len(call.outputs)]


@register("EmbedLayerNormalization", domain=_DOMAIN)
def _embed_layer_normalization(call: Call) -> Results:
    tables = [call.need(2), call.need(3), call.input(4)]
    return _embed(call, tables, [call.need(5), call.input(6)], call.input(7), call.input(8))


@register("QEmbedLayerNormalization", domain=_DOMAIN)
def _quantized_embed_layer_normalization(call: Call) -> Results:
    """The tables, scales and offsets are codes; each has one scale and one zero point."""

    def real(codes: int, number: int) -> Any:
        if call.input(codes) is None:
            return None
        return call.add("DequantizeLinear", [call.need(codes), call.need(8 + number), call.input(13 + number)])

    tables = [real(2, 0), real(3, 1), real(4, 2)]
    return _embed(call, tables, [real(5, 3), real(6, 4)], call.input(7), None)


@register("TorchEmbedding", domain=_DOMAIN)
def _torch_embedding(call: Call) -> Results:
    return call.finish("Gather", [call.need(0), call.need(1)])


@register("RelativePositionBias", domain=_DOMAIN)
def _relative_position_bias(call: Call) -> Results:
    """A bias by buckets of distance that grow with it; the table is stored one head after the other."""
    buckets, heads = (call.size(0, axis, "the size of the table") for axis in (0, 1))
    both_ways = bool(call.attrs.get("is_bidirectional", 0))
    count = buckets // 2 if both_ways else buckets
    exact = count // 2
    longest = int(call.attrs.get("max_distance", 0))
    if exact < 1 or longest <= exact:
        msg = f"[{call.op}] max_distance must be more than {exact}, half the buckets. Got {longest}"
        raise ModelError(msg)
    lengths = [call.add("Cast", [call.add("Reshape", [call.need(i), call.array([1])])], {"to": 7}) for i in (1, 2)]
    rows = call.add("Unsqueeze", [positions_of(call, lengths[0]), call.array([1])])
    back = call.add("Sub", [rows, positions_of(call, lengths[1])])
    zero = call.array(0)
    first: _native.Value | None = None
    if both_ways:
        first = call.add("Where", [call.add("Less", [back, zero]), call.array(count), zero])
        back = call.add("Abs", [back])
    else:
        back = call.add("Max", [back, zero])
    real = call.add("Cast", [call.add("Max", [back, call.array(1)])], {"to": 1})
    ratio = call.add("Log", [call.add("Div", [real, call.array(float(exact), "float32")])])
    steps = call.add("Div", [ratio, call.array(math.log(longest / exact), "float32")])
    steps = call.add("Mul", [steps, call.array(float(count - exact), "float32")])
    far = call.add("Add", [call.add("Cast", [steps], {"to": 7}), call.array(exact)])
    far = call.add("Min", [far, call.array(count - 1)])
    bucket = call.add("Where", [call.add("Less", [back, call.array(exact)]), back, far])
    if first is not None:
        bucket = call.add("Add", [bucket, first])
    by_head = call.add("Reshape", [call.need(0), call.array([heads, buckets])])
    return call.finish("Unsqueeze", [call.add("Gather", [by_head, bucket], {"axis": 1}), call.array([0])])


@register("GatedRelativePositionBias", domain=_DOMAIN)
def _gated_relative_position_bias(call: Call) -> Results:
    """A bias by position, scaled for each query by two gates that the query opens."""
    if call.input(6) is not None:
        raise call.refuse("queries without their padding (token_offset) are not supported")
    heads = int(call.attrs.get("num_heads", 0))
    if heads < 1:
        msg = f"[{call.op}] attribute 'num_heads' must be positive. Got {heads}"
        raise ModelError(msg)
    q = split_heads(call, call.add("Add", [call.need(0), call.need(1)]), heads)
    gates = call.add("Add", [call.add("MatMul", [q, call.need(3)]), call.need(4)])
    halves = [call.add("ReduceSum", [half, call.array([3])], {"keepdims": 1}) for half in split_last(call, gates, 2)]
    u, r = (call.add("Sigmoid", [half]) for half in halves)
    one, two = (call.array(n, q.dtype) for n in (1.0, 2.0))
    inner = call.add("Sub", [call.add("Mul", [r, call.need(5)]), one])
    return call.finish("Mul", [call.add("Add", [call.add("Mul", [u, inner]), two]), call.need(2)])


@register("WordConvEmbedding", domain=_DOMAIN)
def _word_conv_embedding(call: Call) -> Results:
    """Characters of words [words, characters] to vectors; characters are positive, and a word that begins with 0 has none.

    A word shorter than the window is looked at as if it filled the window; the places of the window that reach behind
    the end of a longer word are left out.
    """
    chars, kernel, bias, table = (call.need(i) for i in range(4))
    if call.rank(0) != 2:
        raise call.refuse(f"the characters must have 2 axes. Got {call.rank(0)}")
    window, width = (call.size(1, axis, "the window") for axis in (2, 3))
    used = call.add("Cast", [call.add("Greater", [chars, call.array(0, chars.dtype)])], {"to": 7})
    lengths = call.add("Mul", [call.add("ReduceSum", [used, call.array([1])]), slice_axis(call, used, 1, 0, 1)])
    vectors = call.add("Unsqueeze", [call.add("Gather", [table, chars]), call.array([1])])
    y = call.add("Conv", [vectors, kernel, bias], {"kernel_shape": [window, width]})
    y = call.add("Tanh", [call.add("Squeeze", [y, call.array([3])])])
    places = positions_of(call, dims_of(call, y, 2))
    longest = call.add("Max", [lengths, call.array(window)])
    seen = call.add("LessOrEqual", [call.add("Add", [places, call.array(window)]), longest])
    seen = call.add("Unsqueeze", [seen, call.array([1])])
    low = call.array(-1e12, "float32")
    best = call.add("ReduceMax", [call.add("Where", [seen, y, low]), call.array([2])], {"keepdims": 0})
    some = call.add("Greater", [lengths, call.array(0)])
    return call.finish("Where", [some, best, call.array(0.0, "float32")])
