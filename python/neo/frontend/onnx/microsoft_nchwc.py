"""com.microsoft.nchwc: convolutions and pools over blocks of channels, as ONNX Runtime saves them at its highest level.

Here a tensor in blocks is the plain tensor whose channels fill whole blocks, those that were added being 0, and weights
are put back in ONNX's order. Where the operands of a sum or a product broadcast, ONNX Runtime writes a Reshape to
[batch, blocks, height, width, block] before it and one back behind it; plain tensors broadcast as they are. The size of
a block is that of the machine that saved the model: 16 with AVX-512 and on Arm, else 8. The file does not say it. It is
inferred from numbers of channels, and where they do not tell it is taken to be this machine's, as ONNX Runtime does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neo import _native
from neo.errors import ModelError
from neo.frontend.onnx.attention_parts import slice_axis
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.messages import DataType
from neo.frontend.onnx.microsoft_fused import activated
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import onnx

__all__ = ["block_size"]

_DOMAIN = "com.microsoft.nchwc"


def _round_up(count: int, block: int) -> int:
    return -(-count // block) * block


def _evidence(graph: onnx.GraphProto) -> Iterator[int]:
    """Sizes of a block that some node of the model could not have with the other size."""
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    shapes = {
        tensor.name: np.frombuffer(tensor.raw_data, "<i8").tolist()
        for tensor in graph.initializer
        if tensor.data_type == DataType.INT64 and list(tensor.dims) == [5] and len(tensor.raw_data) == 40
    }
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "Reshape" and node.domain == "" and len(node.input) > 1:
            split = _split_channels(shapes.get(node.input[1], ()))
            if split in (8, 16):
                yield split
        if node.domain != _DOMAIN:
            continue
        if node.op_type == "Conv" and len(node.input) > 1 and node.input[1] in weights:
            dims = weights[node.input[1]]
            if len(dims) < 2:
                continue
            maker = makers.get(node.input[0])
            # Inputs fill blocks, or are fewer than a block holds and plain.
            if dims[0] % 16 or (dims[1] > 16 and dims[1] % 16):
                yield 8
            elif 8 < dims[1] < 16 or (dims[1] == 8 and (maker is None or maker.op_type == "ReorderOutput")):
                yield 16
        elif node.op_type == "ReorderOutput":
            channels = next((a.i for a in node.attribute if a.name == "channels"), 0)
            maker = makers.get(node.input[0])
            if maker is None or maker.op_type != "Conv" or len(maker.input) < 2 or maker.input[1] not in weights:
                continue
            if _round_up(channels, 8) != _round_up(channels, 16):
                yield 16 if weights[maker.input[1]][0] == _round_up(channels, 16) else 8


def _split_channels(shape: Sequence[int]) -> int:
    """The block of a shape by which a Reshape takes channels apart, [0, blocks, 0, 0, block]; 0 for another shape."""
    return shape[4] if len(shape) == 5 and shape[0] == shape[2] == shape[3] == 0 and min(shape[1], shape[4]) > 0 else 0


def block_size(model: onnx.ModelProto) -> int:
    """Channels of a block: what the model's own numbers say, else what ONNX Runtime would take on this machine.

    0 where nothing is in blocks.
    """
    if all(node.domain != _DOMAIN for node in model.graph.node):
        return 0
    for size in _evidence(model.graph):
        return size
    return 8 if _native.host_isa() in ("avx2", "scalar") else 16


def _plain_weights(call: Call, weights: np.ndarray[Any, Any], block: int, groups: int) -> np.ndarray[Any, Any]:
    """Weights stored block by block as [outputs, inputs, window...]."""
    outputs, inputs, *window = weights.shape
    taps = int(np.prod(window))
    if outputs % block:
        msg = f"[{call.op}] the output channels must fill blocks of {block}. Got {outputs}"
        raise ModelError(msg)
    if inputs < block or (inputs == 1 and groups == outputs):
        parts = weights.reshape(outputs // block, inputs, taps, block).transpose(0, 3, 1, 2)
    else:
        if inputs % block:
            msg = f"[{call.op}] the input channels must fill blocks of {block}. Got {inputs}"
            raise ModelError(msg)
        blocked = weights.reshape(outputs // block, inputs // block, taps, block, block)
        parts = blocked.transpose(0, 4, 1, 3, 2)
    return np.ascontiguousarray(parts).reshape(weights.shape)


def _with_channels(call: Call, value: _native.Value, count: int) -> _native.Value:
    """A tensor with zeros behind its channels, or without those that are behind `count`."""
    shape = value.shape
    if shape is None or len(shape) < 2:
        raise call.refuse("the number of axes must be known")
    if not isinstance(shape[1], int):
        extra = call.add("Sub", [call.array([count]), call.add("Shape", [value], {"start": 1, "end": 2})])
        zeros = [call.array([0] * axes) for axes in (len(shape) + 1, len(shape) - 2)]
        pads = call.add("Concat", [zeros[0], extra, zeros[1]], {"axis": 0})
        sizes = call.array([0, count, *[0] * (len(shape) - 2)])
        value = call.add("Reshape", [call.add("Pad", [value, pads]), sizes])
    elif shape[1] > count:
        value = slice_axis(call, value, 1, 0, count)
    elif shape[1] < count:
        pads = [0] * (2 * len(shape))
        pads[len(shape) + 1] = count - shape[1]
        value = call.add("Pad", [value, call.array(pads)])
    return value


@register("ReorderInput", domain=_DOMAIN)
def _reorder_input(call: Call) -> Results:
    x, rank = call.need(0), call.rank(0)
    if call.attrs.get("channels_last", 0):
        x = call.add("Transpose", [x], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    channels = x.shape[1] if x.shape is not None else None
    if not isinstance(channels, int):
        return [x]  # what reads it knows how many there must be
    return [_with_channels(call, x, _round_up(channels, call.importer.channel_block))]


@register("ReorderOutput", domain=_DOMAIN)
def _reorder_output(call: Call) -> Results:
    rank = call.rank(0)
    y = _with_channels(call, call.need(0), int(call.attrs.get("channels", 0)))
    if call.attrs.get("channels_last", 0):
        y = call.add("Transpose", [y], {"perm": [0, *range(2, rank), 1]})
    return [y]


@register("Reshape", since=5)
def _reshape(call: Call) -> Results:
    block, sizes = call.importer.channel_block, call.constant(1)
    if block and sizes is not None and sizes.ndim == 1 and _split_channels(sizes.tolist()) == block:
        return [_with_channels(call, call.need(0), int(sizes[1]) * block)]
    return call.finish("Reshape", call.inputs, call.attrs)


@register("Conv", domain=_DOMAIN)
def _conv(call: Call) -> Results:
    weights = call.need_constant(1, "the weights")
    groups = int(call.attrs.get("group", 1))
    plain = call.array(_plain_weights(call, weights, call.importer.channel_block, groups), "float32")
    x = _with_channels(call, call.need(0), int(weights.shape[1]) * groups)
    own = {name: value for name, value in call.attrs.items() if not name.startswith("activation")}
    y = call.add("Conv", [x, plain, call.input(2)], own)
    if call.input(3) is not None:
        y = call.add("Add", [y, call.need(3)])
    return [activated(call, y, call.attrs.get("activation_params", ()))]


@register("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", domain=_DOMAIN)
def _pool(call: Call) -> Results:
    return call.finish(call.op, [call.need(0)], call.attrs)


@register("Upsample", domain=_DOMAIN)
def _upsample(call: Call) -> Results:
    attrs: dict[str, Any] = {
        "mode": call.attrs.get("mode", "nearest"),
        "coordinate_transformation_mode": call.attrs.get("coordinate_transformation_mode", "asymmetric"),
        "nearest_mode": "floor",
    }
    scales = call.array([float(s) for s in call.attrs.get("scales", ())], "float32")
    return call.finish("Resize", [call.need(0), None, scales], attrs)
