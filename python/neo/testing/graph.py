"""What the rules need to know of a graph: its longest reduction, and the grids its outputs lie on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["longest_reduction", "output_steps", "quantizes"]

Shape = Sequence["int | None"]
_ShapeOf = Callable[[str], "Shape | None"]


def _load_graph(model: Any) -> onnx.ModelProto:
    """Return a copy of the model, from a path, bytes or a ModelProto, without the contents of its large weights."""
    import onnx

    source = model
    if isinstance(source, str | Path):
        source = onnx.load(source, load_external_data=False)
    elif isinstance(source, bytes):
        source = onnx.load_from_string(source)
    slim = onnx.ModelProto()
    slim.CopyFrom(source)
    for tensor in slim.graph.initializer:
        if math.prod(tensor.dims) > 1024:
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
                tensor.ClearField(field)
    return slim


def _product(dims: Sequence[int | None] | None) -> int:
    """Return the product of the known dims."""
    return math.prod(dim for dim in dims or () if dim)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    import onnx

    for attribute in node.attribute:
        if attribute.name == name:
            return onnx.helper.get_attribute_value(attribute)
    return default


def _axis_lengths(node: onnx.NodeProto, shape: Shape | None, constants: Mapping[str, np.ndarray]) -> int:
    """Return the number of elements that a reduction with axes (an attribute or an input) sums."""
    if shape is None:
        return 1
    axes = _attribute(node, "axes", None)
    if axes is None and len(node.input) > 1 and node.input[1] in constants:
        axes = constants[node.input[1]].reshape(-1).tolist()
    if axes is None:
        return _product(shape)
    return _product([shape[axis] for axis in axes if -len(shape) <= axis < len(shape)])


def _terms(node: onnx.NodeProto, shape_of: _ShapeOf, constants: Mapping[str, np.ndarray], opset: int) -> int:
    """Return how many values one output element of ``node`` sums; 1 where it sums none, or it is unknown."""
    op = node.op_type
    shapes = [shape_of(name) if name else None for name in node.input]
    first = shapes[0] if shapes else None
    if op in ("Conv", "FusedConv", "ConvInteger", "DeformConv"):
        return _product((shapes[1] or ())[1:])
    if op == "QLinearConv":
        return _product((shapes[3] or ())[1:])
    if op == "ConvTranspose":
        weight = shapes[1] or (1, 1)
        return max(1, _product([weight[0], *weight[2:]]) // int(_attribute(node, "group", 1)))
    if op == "Gemm":
        return _product((shapes[1] or ())[1:] if _attribute(node, "transB", 0) else (shapes[1] or ())[:1])
    if op in ("MatMul", "MatMulInteger", "FusedMatMul", "QLinearMatMul", "MatMulNBits"):
        right = shapes[3 if op == "QLinearMatMul" else 1] if len(shapes) > 1 else None
        return max(_product((first or ())[-1:]), _product((right or ())[-2:][:1]))
    if op in ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"):
        return _product((shapes[1] or ())[-1:]) + _product((shapes[2] or ())[-1:])
    if op in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"):
        return _axis_lengths(node, first, constants)
    if op in ("GlobalAveragePool", "GlobalLpPool", "InstanceNormalization"):
        return _product((first or ())[2:])
    if op in ("AveragePool", "LpPool", "QLinearAveragePool"):
        return math.prod(_attribute(node, "kernel_shape", [1]))
    if op in ("LayerNormalization", "RMSNormalization", "SkipLayerNormalization"):
        return _product((first or ())[int(_attribute(node, "axis", -1)) :])
    if op in ("Softmax", "LogSoftmax"):
        axis = int(_attribute(node, "axis", -1 if opset >= 13 else 1))
        return _product((first or ())[axis:][: 1 if opset >= 13 else None])
    if op in ("GroupNormalization", "MeanVarianceNormalization"):
        return _product((first or ())[1:])
    if op == "LRN":
        return int(_attribute(node, "size", 1))
    if op in ("Einsum", "Attention", "MultiHeadAttention", "CumSum", "DFT", "STFT"):
        return max((dim or 1 for shape in shapes if shape for dim in shape), default=1)
    return 1


def _walk(graph: onnx.GraphProto, outer: Mapping[str, Shape], constants: Mapping[str, np.ndarray], opset: int) -> int:
    """Return the longest reduction of a graph and of the bodies in it."""
    import onnx
    from onnx import numpy_helper

    shapes, known = dict(outer), dict(constants)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            shapes[value.name] = [dim.dim_value or None for dim in tensor.shape.dim]
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    tensors += [
        (node.output[0], attribute.t)
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    ]
    for name, tensor in tensors:
        shapes[name] = list(tensor.dims)
        if math.prod(tensor.dims) <= 8 and not tensor.external_data:
            known[name] = numpy_helper.to_array(tensor)
    longest = 1
    for node in graph.node:
        longest = max(longest, _terms(node, shapes.get, known, opset))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                longest = max(longest, _walk(attribute.g, shapes, known, opset))
    return longest


def longest_reduction(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Return the largest number of terms that one output element of any node sums.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    shapes : mapping, optional
        Shapes of inputs whose dims are symbols; reductions over a dim that stays unknown are left out.
    """
    import onnx

    slim = _load_graph(model)
    for value in slim.graph.input:
        if shapes and value.name in shapes:
            del value.type.tensor_type.shape.dim[:]
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    del slim.graph.value_info[:]
    for value in slim.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(slim, check_type=False, strict_mode=False, data_prop=True)
    opset = max((entry.version for entry in slim.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    return _walk(inferred.graph, {}, {}, opset)


_GRID_KEEPING = (
    "Identity",
    "Reshape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Flatten",
    "Slice",
    "Gather",
    "Cast",
    "Dropout",
)


def output_steps(model: Any) -> dict[str, float]:
    """Return the quantization step of every output that lies on a grid, up to an added constant.

    An output lies on a grid where it comes out of a ``DequantizeLinear`` through nothing but moves of elements and sums
    with constants; one that is still quantized has the step 1. Where what was quantized is the softmax of values that lie on a grid themselves, half a step of that
    grid is added: so much does one step in the logits change a probability. Models that quantize nothing give an empty
    dict.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    """
    from onnx import numpy_helper

    graph = _load_graph(model).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    producers: dict[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}

    def scale(name: str) -> float:
        return float(np.max(numpy_helper.to_array(tensors[name]))) if name in tensors else 0.0

    def find_source(name: str) -> onnx.NodeProto | None:
        """Return the node that computed the elements of a value."""
        node = producers.get(name)
        while node is not None:
            varying = [item for item in node.input if item and item not in tensors]
            follow = node.op_type in _GRID_KEEPING or (node.op_type in ("Add", "Sub") and len(varying) == 1)
            if not follow or not varying:
                return node
            node = producers.get(varying[0])
        return None

    def step(name: str) -> float:
        node = find_source(name)
        if node is not None and (node.op_type == "QuantizeLinear" or node.op_type.startswith("QLinear")):
            return 1.0
        if node is None or node.op_type != "DequantizeLinear":
            return 0.0
        grid = scale(node.input[1])
        quantized = find_source(node.input[0])
        if quantized is not None and quantized.op_type == "QLinearSoftmax":
            return grid + scale(quantized.input[1]) / 2
        softmax = find_source(quantized.input[0]) if quantized and quantized.op_type == "QuantizeLinear" else None
        return grid + step(softmax.input[0]) / 2 if softmax is not None and softmax.op_type == "Softmax" else grid

    steps = {output.name: step(output.name) for output in graph.output}
    return {name: value for name, value in steps.items() if value > 0}


def quantizes(model: Any) -> bool:
    """Return whether a node of the model quantizes what is computed."""
    ops = {node.op_type for node in _load_graph(model).graph.node}
    return any(op in ("QuantizeLinear", "DynamicQuantizeLinear") or op.startswith("QLinear") for op in ops)
