"""How much a model multiplies and reads, from its graph: the ground under the limits of ``benchmarks.limits``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

RECURRENT = ("LSTM", "GRU", "RNN")
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm", *RECURRENT)


@dataclass(frozen=True)
class Product:
    """One convolution, matrix product or recurrent layer: multiply-adds, and bytes of weights.

    A recurrent layer reads ``swept_bytes`` of its weights in every one of ``sweeps`` steps, which follow each other, for
    ``swept_macs`` in all. ``fast`` has the multiply-adds and bytes of weights of each fast algorithm for it, without
    what these transform and add.
    """

    name: str
    op: str
    macs: int
    weight_bytes: int
    sweeps: int = 0
    swept_bytes: int = 0
    swept_macs: int = 0
    fast: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Work:
    """The products of a model. ``complete`` is false where a shape stayed unknown, so that the sum is a lower bound."""

    products: tuple[Product, ...]
    complete: bool

    @property
    def gmac(self) -> float:
        """Return the multiply-adds, in 10**9."""
        return sum(product.macs for product in self.products) / 1e9

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of all weights of products."""
        return sum(product.weight_bytes for product in self.products)


Shape = tuple[int, ...]


def _shape(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    return tuple(dim.dim_value for dim in tensor.shape.dim)


def _attribute(node: onnx.NodeProto, name: str, default: int | bytes) -> int | bytes:
    for attribute in node.attribute:
        if attribute.name == name:
            value: int | bytes = onnx.helper.get_attribute_value(attribute)
            return value
    return default


def _macs(node: onnx.NodeProto, shapes: Mapping[str, Shape]) -> int | None:
    """Return the multiply-adds of a node, 0 where it multiplies no matrices, None where a shape is unknown."""
    known = [shapes.get(name) for name in node.input]
    output = shapes.get(node.output[0])
    if node.op_type in ("Conv", "ConvTranspose"):
        weight, source = known[1], known[0]
        if weight is None or source is None or output is None:
            return None
        if node.op_type == "Conv":
            return math.prod(output) * math.prod(weight[1:])
        return math.prod(source) * math.prod(weight[1:])
    if node.op_type in ("MatMul", "Gemm"):
        left = known[0]
        if left is None or output is None:
            return None
        inner = left[0] if node.op_type == "Gemm" and _attribute(node, "transA", 0) else left[-1]
        return math.prod(output) * inner
    if node.op_type in RECURRENT:
        source, weight, recurrent = known[0], known[1], known[2]
        if source is None or weight is None or recurrent is None:
            return None
        return source[0] * source[1] * (math.prod(weight) + math.prod(recurrent))
    return 0


#: Outputs along an axis of a tile of Winograd's algorithm.
_TILES = (2, 4, 6)


def _tile_products(size: int, kernel: int, stride: int, tile: int) -> tuple[int, int]:
    """Return the products of an axis of ``size`` outputs in tiles of Winograd's algorithm, and the weights of a tile.

    A last tile of fewer outputs takes fewer.
    """
    if kernel == 1:
        return size, 1

    def products(outputs: int) -> int:
        # Of stride 2 the outer taps are F(m, 2), and the samples between pass through: 2 m + 1 products.
        return outputs + kernel - 1 if stride == 1 else 2 * outputs + 1

    whole, rest = divmod(size, tile)
    # What passes through meets the same weights.
    return whole * products(tile) + (products(rest) if rest else 0), products(tile) if stride == 1 else tile + 2


def _fast(node: onnx.NodeProto, shapes: Mapping[str, Shape]) -> tuple[tuple[int, int], ...]:
    """Return what fast algorithms take for a convolution of known shapes: Winograd's, and Strassen's of one tap."""
    weight, output = shapes[node.input[1]], shapes[node.output[0]]
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    kernel, sizes = weight[2:], output[2:]
    strides = attributes.get("strides", [1] * len(kernel))
    if attributes.get("group", 1) != 1 or any(d != 1 for d in attributes.get("dilations", [])):
        return ()
    pairs = weight[0] * weight[1]
    if math.prod(kernel) == 1:
        return ((output[0] * math.prod(sizes) * pairs * 7 // 8, pairs * 4 * 7 // 4),)
    if any(k > 1 and s != 1 and (s, k) != (2, 3) for k, s in zip(kernel, strides, strict=True)):
        return ()
    found = []
    for tile in _TILES:
        axes = [_tile_products(*axis, tile) for axis in zip(sizes, kernel, strides, strict=True)]
        products, weights = (math.prod(values) for values in zip(*axes, strict=True))
        if tile == 4 and (*kernel, *strides) == (3, 3, 1, 1):
            weights = 9  # as taps, which are transformed beside the products
        found.append((output[0] * products * pairs, weights * pairs * 4))
    return tuple(found)


def _swept(node: onnx.NodeProto, shapes: Mapping[str, Shape]) -> tuple[int, int, int]:
    """Return steps, bytes that each reads and multiply-adds of all, of a layer whose shapes are known."""
    steps, batch = shapes[node.input[0]][:2]
    recurrent = math.prod(shapes[node.input[2]])
    return steps, 4 * recurrent, steps * batch * recurrent


def _products(graph: onnx.GraphProto, shapes: dict[str, Shape], sizes: Mapping[str, int]) -> Iterator[Product | None]:
    shapes = dict(shapes)
    for value in [*graph.input, *graph.value_info, *graph.output]:
        shape = _shape(value)
        if shape is not None:
            shapes[value.name] = shape
    shapes.update({tensor.name: tuple(tensor.dims) for tensor in graph.initializer})
    shapes.update(
        {node.output[0]: tuple(node.attribute[0].t.dims) for node in graph.node if node.op_type == "Constant"}
    )
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH and node.op_type != "If":
                yield from _products(attribute.g, shapes, sizes)
        macs = _macs(node, shapes)
        if macs is None:
            yield None
        elif macs:
            weights = sum(4 * math.prod(shapes[name]) for name in node.input[1:3] if name in sizes)
            swept = _swept(node, shapes) if node.op_type in RECURRENT else (0, 0, 0)
            fast = _fast(node, shapes) if node.op_type == "Conv" else ()
            yield Product(node.name or node.output[0], node.op_type, macs, weights, *swept, fast)
        branches = [
            list(_products(attribute.g, shapes, sizes))
            for attribute in node.attribute
            if attribute.type == onnx.AttributeProto.GRAPH and node.op_type == "If"
        ]
        yield from max(branches, key=lambda branch: sum(item.macs for item in branch if item), default=[])


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield every constant tensor of a graph and of the bodies in it."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and node.op_type == "Constant":
                yield node.output[0], attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from _tensors(attribute.g)


def _shapes_by_running(path: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, Shape]:
    """Return the shapes of what the products of the outermost graph take and give, from one run of onnxruntime."""
    import onnxruntime

    model = onnx.load(path)
    products = [node for node in model.graph.node if node.op_type in PRODUCTS]
    constants = {tensor.name for tensor in model.graph.initializer}
    names = sorted(
        {name for node in products for name in (*node.input, node.output[0]) if name} - constants - set(inputs)
    )
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(names, dict(inputs))
    return {name: value.shape for name, value in zip(names, found, strict=True)}


def count_work(path: Path, inputs: Mapping[str, np.ndarray]) -> Work:
    """Return the work of one call with the given inputs; of an ``If``, its larger branch.

    Shapes come from shape inference; where that does not tell them all, onnxruntime runs the model once, if it is
    installed.

    Parameters
    ----------
    path : Path
        The model.
    inputs : mapping
        The input arrays.
    """
    model = onnx.load(path, load_external_data=False)
    for value in model.graph.input:
        if value.name in inputs:
            del value.type.tensor_type.shape.dim[:]
            for size in inputs[value.name].shape:
                value.type.tensor_type.shape.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    sizes = {}
    for name, tensor in _tensors(model.graph):
        sizes[name] = math.prod(tensor.dims)
        if sizes[name] > 4096:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    found = list(_products(inferred.graph, {}, sizes))
    if None in found:
        with contextlib.suppress(Exception):
            found = list(_products(inferred.graph, _shapes_by_running(path, inputs), sizes))
    return Work(tuple(item for item in found if item), None not in found)
