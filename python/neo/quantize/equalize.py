"""Evening out the channels between two convolutions before they are quantized."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from neo.quantize.float_model import FloatModel
from neo.quantize.place import Layer, find_layers

__all__ = ["equalize"]

_ROUNDS = 20
_LARGEST = 1e3


def equalize(model: FloatModel) -> FloatModel:
    """Scale the channels between two convolutions until the weights before and behind have equal ranges.

    Cross-layer equalization (Nagel et al., 2019, section 4.1): between convolutions with nothing but a Relu in between,
    channel c is divided by ``sqrt(r1 * r2) / r2`` before and multiplied by it behind, with r1 and r2 the largest weights
    of that channel on either side. The model computes the same, up to rounding.
    """
    layers, _ = find_layers(model, ("Conv",))
    pairs = _pairs(model, layers)
    used = [w for pair in pairs for layer in pair for w in (layer.w, layer.bias) if w]
    names = [name for node in model.nodes for name in node.input]
    pairs = [(a, b) for a, b in pairs if all(names.count(w) == 1 for w in (a.w, a.bias, b.w) if w)]
    arrays = {name: model.array(name).astype(np.float64) for name in used}
    for _ in range(_ROUNDS):
        for first, second in pairs:
            a, b = arrays[first.w], arrays[second.w]
            groups = model.attribute(model.nodes[second.node], "group", 1)
            # The weights behind, by the channel that they read.
            read = np.abs(b).reshape(groups, -1, *b.shape[1:]).max(axis=1).reshape(a.shape[0], -1).max(axis=1)
            made = np.abs(a).reshape(a.shape[0], -1).max(axis=1)
            usable = (read > 0) & (made > 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = np.where(usable, np.clip(np.sqrt(made / read), 1 / _LARGEST, _LARGEST), 1.0)
            a /= scale.reshape(-1, *[1] * (a.ndim - 1))
            if first.bias:
                arrays[first.bias] /= scale.reshape(arrays[first.bias].shape)
            by_read = np.repeat(scale.reshape(groups, 1, -1), b.shape[0] // groups, axis=1).reshape(
                b.shape[0], b.shape[1]
            )
            b *= by_read.reshape(*by_read.shape, *[1] * (b.ndim - 2))
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for tensor in proto.graph.initializer:
        if tensor.name in arrays:
            tensor.CopyFrom(numpy_helper.from_array(arrays[tensor.name].astype(np.float32), tensor.name))
    return FloatModel(proto)


def _pairs(model: FloatModel, layers: list[Layer]) -> list[tuple[Layer, Layer]]:
    """Convolutions with nothing but a Relu in between."""
    by_node = {layer.node: layer for layer in layers}
    found = []
    for first in layers:
        value = first.y
        for _ in range(2):
            readers = model.readers.get(value, [])
            if len(readers) != 1 or value in model.outputs:
                break
            if readers[0] in by_node and by_node[readers[0]].x == value:
                found.append((first, by_node[readers[0]]))
                break
            if model.nodes[readers[0]].op_type != "Relu":
                break
            value = model.nodes[readers[0]].output[0]
    return found
