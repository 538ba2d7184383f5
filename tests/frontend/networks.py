"""Small transformers of random weights, written out as exporters write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["NETWORKS", "Builder"]


class Builder:
    """Nodes and initializers of one graph; names are numbers after the operator's name."""

    def __init__(self, opset: int, seed: int) -> None:
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.count = 0

    def add(self, op: str, inputs: Sequence[str], *, outputs: int = 1, **attrs: Any) -> Any:
        self.count += 1
        names = [f"{op}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"{op}_{self.count}", **attrs))
        return names[0] if outputs == 1 else names

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        self.count += 1
        name = f"constant_{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(numbers, np.int64)

    def weights(self, *dims: int) -> str:
        return self.constant(self.random.standard_normal(dims) / math.sqrt(dims[0]))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        return self.add("Add", [self.add("MatMul", [x, self.weights(inputs, outputs)]), self.weights(outputs)])

    def axes(self, op: str, x: str, *axes: int) -> str:
        """Squeeze or Unsqueeze as the opset writes it."""
        if self.opset < 13:
            return self.add(op, [x], axes=list(axes))
        return self.add(op, [x, self.ints(*axes)])

    def mean(self, x: str) -> str:
        if self.opset < 18:
            return self.add("ReduceMean", [x], axes=[-1])
        return self.add("ReduceMean", [x, self.ints(-1)])

    def layer_norm(self, x: str, width: int) -> str:
        scale, shift = self.constant(1 + 0.1 * self.random.standard_normal(width)), self.weights(width)
        if self.opset >= 17:
            return self.add("LayerNormalization", [x, scale, shift], axis=-1, epsilon=1e-5)
        centred = self.add("Sub", [x, self.mean(x)])
        square = self.mean(self.add("Pow", [centred, self.constant(2.0)]))
        root = self.add("Sqrt", [self.add("Add", [square, self.constant(1e-5)])])
        return self.add("Add", [self.add("Mul", [self.add("Div", [centred, root]), scale]), shift])

    def rms_norm(self, x: str, width: int) -> str:
        square = self.mean(self.add("Pow", [x, self.constant(2.0)]))
        root = self.add("Sqrt", [self.add("Add", [square, self.constant(1e-6)])])
        inverse = self.add("Div", [self.constant(1.0), root])
        return self.add(
            "Mul", [self.constant(1 + 0.1 * self.random.standard_normal(width)), self.add("Mul", [x, inverse])]
        )

    def gelu(self, x: str) -> str:
        error = self.add("Erf", [self.add("Div", [x, self.constant(math.sqrt(2))])])
        return self.add("Mul", [self.add("Mul", [x, self.add("Add", [error, self.constant(1.0)])]), self.constant(0.5)])

    def fast_gelu(self, x: str) -> str:
        cube = self.add("Mul", [self.add("Pow", [x, self.constant(3.0)]), self.constant(0.044715)])
        inner = self.add("Mul", [self.add("Add", [x, cube]), self.constant(math.sqrt(2 / math.pi))])
        grown = self.add("Add", [self.add("Tanh", [inner]), self.constant(1.0)])
        return self.add("Mul", [self.add("Mul", [x, self.constant(0.5)]), grown])

    def heads(self, x: str, heads: int, size: int, perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        return self.add("Transpose", [self.add("Reshape", [x, self.ints(0, 0, heads, size)])], perm=list(perm))

    def attention(self, q: str, k: str, v: str, size: int, mask: str | None) -> str:
        """Of queries [batch, heads, length, size], keys [batch, heads, size, length] and values."""
        scores = self.add("Div", [self.add("MatMul", [q, k]), self.constant(math.sqrt(size))])
        if mask is not None:
            scores = self.add("Add", [scores, mask])
        return self.add("MatMul", [self.add("Softmax", [scores], axis=-1 if self.opset >= 13 else 3), v])

    def merge(self, x: str, width: int) -> str:
        return self.add("Reshape", [self.add("Transpose", [x], perm=[0, 2, 1, 3]), self.ints(0, 0, width)])

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "network", list(inputs), list(outputs), self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def _info(name: str, dtype: int, dims: Sequence[Any] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def _sizes(fixed: bool, batch: int, length: int) -> tuple[Any, Any]:
    return (batch, length) if fixed else ("batch", "length")


def bert(opset: int, fixed: bool, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """An encoder of two layers over words, segments and a mask."""
    b = Builder(opset, seed)
    heads, size, width, words, longest = 2, 8, 16, 50, 32
    batch, length = _sizes(fixed, 2, 8)
    embedded = b.add("Gather", [b.weights(words, width), "input_ids"])
    if fixed:
        steps = b.constant([range(8)], np.int64)
    else:
        count = b.axes(
            "Unsqueeze", b.add("Gather", [b.add("Shape", ["input_ids"]), b.constant(1, np.int64)], axis=0), 0
        )
        steps = b.add("Slice", [b.constant([range(longest)], np.int64), b.ints(0), count, b.ints(1)])
    positions = b.add("Gather", [b.weights(longest, width), steps])
    segments = b.add("Gather", [b.weights(2, width), "token_type_ids"])
    x = b.layer_norm(b.add("Add", [b.add("Add", [embedded, positions]), segments]), width)
    mask = b.axes("Unsqueeze", b.axes("Unsqueeze", "attention_mask", 1), 2)
    mask = b.add("Sub", [b.constant(1.0), b.add("Cast", [mask], to=TensorProto.FLOAT)])
    mask = b.add("Mul", [mask, b.constant(-10000.0)])
    for _ in range(2):
        q, k, v = (b.linear(x, width, width) for _ in range(3))
        y = b.attention(
            b.heads(q, heads, size), b.heads(k, heads, size, (0, 2, 3, 1)), b.heads(v, heads, size), size, mask
        )
        x = b.layer_norm(b.add("Add", [b.linear(b.merge(y, width), width, width), x]), width)
        y = b.linear(b.gelu(b.linear(x, width, 32)), 32, width)
        x = b.layer_norm(b.add("Add", [y, x]), width)
    first = b.add("Gather", [x, b.constant(0, np.int64)], axis=1)
    pooled = b.add("Tanh", [b.add("Gemm", [first, b.weights(width, width), b.weights(width)], transB=1)])
    names = ["input_ids", "token_type_ids", "attention_mask"]
    model = b.model(
        [_info(n, TensorProto.INT64, [batch, length]) for n in names],
        [_info(x, TensorProto.FLOAT, [batch, length, width]), _info(pooled, TensorProto.FLOAT, [batch, width])],
    )
    mask_of = np.ones((2, 8), np.int64)
    mask_of[1, 5:] = 0
    ids = b.random.integers(0, words, (2, 8))
    return model, {"input_ids": ids, "token_type_ids": ids % 2, "attention_mask": mask_of}


def gpt2(opset: int, fixed: bool, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A decoder of two layers with the keys and values of earlier tokens."""
    b = Builder(opset, seed)
    heads, size, width, words, longest = 2, 8, 16, 50, 32
    batch, length = _sizes(fixed, 2, 3)
    past = 5 if fixed else "past"
    total = 8 if fixed else "total"
    x = b.add(
        "Add",
        [
            b.add("Gather", [b.weights(words, width), "input_ids"]),
            b.add("Gather", [b.weights(longest, width), "position_ids"]),
        ],
    )
    mask = b.axes("Unsqueeze", b.axes("Unsqueeze", "attention_mask", 1), 2)
    mask = b.add("Mul", [b.add("Sub", [b.constant(1.0), mask]), b.constant(-10000.0)])
    triangle = b.constant(np.tril(np.ones((1, 1, longest, longest))), np.bool_)
    presents = []
    for layer in range(2):
        y = b.layer_norm(x, width)
        flat = b.add("Reshape", [y, b.ints(-1, width)])
        flat = b.add("Gemm", [flat, b.weights(width, 3 * width), b.weights(3 * width)])
        y = b.add("Reshape", [flat, _like(b, y, 3 * width)])
        q, k, v = _split(b, y, width)
        q, v = b.heads(q, heads, size), b.heads(v, heads, size)
        k = b.heads(k, heads, size, (0, 2, 3, 1))
        old_k = b.add("Transpose", [b.axes("Squeeze", _pick(b, f"past_{layer}", 0), 0)], perm=[0, 1, 3, 2])
        old_v = b.axes("Squeeze", _pick(b, f"past_{layer}", 1), 0)
        k, v = b.add("Concat", [old_k, k], axis=-1), b.add("Concat", [old_v, v], axis=-2)
        flipped = b.add("Transpose", [k], perm=[0, 1, 3, 2])
        present = b.add("Concat", [b.axes("Unsqueeze", flipped, 0), b.axes("Unsqueeze", v, 0)], axis=0)
        presents.append(present)
        scores = b.add("Div", [b.add("MatMul", [q, k]), b.constant(math.sqrt(size))])
        keys = _size(b, scores, -1)
        start = b.add("Sub", [keys, _size(b, scores, -2)])
        seen = b.add("Slice", [triangle, start, keys, b.ints(2), b.ints(1)])
        seen = b.add("Slice", [seen, b.ints(0), keys, b.ints(3), b.ints(1)])
        scores = b.add("Where", [seen, scores, b.constant(-10000.0)])
        scores = b.add("Softmax", [b.add("Add", [scores, mask])], axis=-1 if opset >= 13 else 3)
        y = b.merge(b.add("MatMul", [scores, v]), width)
        flat = b.add("Gemm", [b.add("Reshape", [y, b.ints(-1, width)]), b.weights(width, width), b.weights(width)])
        x = b.add("Add", [x, b.add("Reshape", [flat, _like(b, y, width)])])
        y = b.layer_norm(x, width)
        x = b.add("Add", [x, b.linear(b.fast_gelu(b.linear(y, width, 32)), 32, width)])
    x = b.layer_norm(x, width)
    logits = b.add("MatMul", [x, b.weights(width, words)])
    cache = [2, batch, heads, past, size]
    model = b.model(
        [
            _info("input_ids", TensorProto.INT64, [batch, length]),
            _info("position_ids", TensorProto.INT64, [batch, length]),
            _info("attention_mask", TensorProto.FLOAT, [batch, total]),
            *(_info(f"past_{i}", TensorProto.FLOAT, cache) for i in range(2)),
        ],
        [
            _info(logits, TensorProto.FLOAT, [batch, length, words]),
            *(_info(p, TensorProto.FLOAT, [2, batch, heads, total, size]) for p in presents),
        ],
    )
    mask_of = np.ones((2, 8), np.float32)
    mask_of[1, :2] = 0
    feeds = {"input_ids": b.random.integers(0, words, (2, 3)), "position_ids": np.array([[5, 6, 7], [3, 4, 5]])}
    feeds["attention_mask"] = mask_of
    for i in range(2):
        feeds[f"past_{i}"] = b.random.standard_normal((2, 2, heads, 5, size)).astype(np.float32)
    return model, feeds


def _pick(b: Builder, x: str, index: int) -> str:
    return b.add("Slice", [x, b.ints(index), b.ints(index + 1), b.ints(0), b.ints(1)])


def _size(b: Builder, x: str, axis: int) -> str:
    return b.add(
        "Slice", [b.add("Shape", [x]), b.ints(axis), b.ints(axis + 1 if axis != -1 else 1 << 60), b.ints(0), b.ints(1)]
    )


def _like(b: Builder, x: str, width: int) -> str:
    shape = b.add("Shape", [x])
    sizes = [b.axes("Unsqueeze", b.add("Gather", [shape, b.constant(i, np.int64)], axis=0), 0) for i in (0, 1)]
    return b.add("Concat", [*sizes, b.ints(width)], axis=0)


def _split(b: Builder, x: str, width: int) -> Any:
    if b.opset < 13:
        return b.add("Split", [x], outputs=3, axis=2, split=[width] * 3)
    return b.add("Split", [x, b.ints(width, width, width)], outputs=3, axis=2)


def vit(opset: int, fixed: bool, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Patches of images by a convolution, a class token, two layers, a classifier."""
    b = Builder(opset, seed)
    heads, size, width = 2, 8, 16
    batch: Any = 2 if fixed else "batch"
    patches = b.add(
        "Conv", ["pixels", b.weights(width, 3, 4, 4), b.weights(width)], kernel_shape=[4, 4], strides=[4, 4]
    )
    x = b.add("Transpose", [b.add("Reshape", [patches, b.ints(0, width, -1)])], perm=[0, 2, 1])
    shape = b.add("Concat", [_size(b, "pixels", 0), b.ints(1, width)], axis=0)
    token = b.add("Expand", [b.weights(1, 1, width), shape])
    x = b.add("Add", [b.add("Concat", [token, x], axis=1), b.weights(1, 17, width)])
    for _ in range(2):
        y = b.layer_norm(x, width)
        q, k, v = (b.linear(y, width, width) for _ in range(3))
        y = b.attention(
            b.heads(q, heads, size), b.heads(k, heads, size, (0, 2, 3, 1)), b.heads(v, heads, size), size, None
        )
        x = b.add("Add", [b.linear(b.merge(y, width), width, width), x])
        y = b.linear(b.gelu(b.linear(b.layer_norm(x, width), width, 32)), 32, width)
        x = b.add("Add", [y, x])
    first = b.add("Gather", [b.layer_norm(x, width), b.constant(0, np.int64)], axis=1)
    y = b.add("Gemm", [first, b.weights(10, width), b.weights(10)], transB=1)
    model = b.model(
        [_info("pixels", TensorProto.FLOAT, [batch, 3, 16, 16])], [_info(y, TensorProto.FLOAT, [batch, 10])]
    )
    return model, {"pixels": b.random.standard_normal((2, 3, 16, 16)).astype(np.float32)}


def llama(opset: int, fixed: bool, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A decoder with rotary positions, shared keys and values, root mean squares and gated layers."""
    b = Builder(opset, seed)
    heads, shared, size, width, words = 4, 2, 8, 32, 50
    batch, length = _sizes(fixed, 2, 6)
    x = b.add("Gather", [b.weights(words, width), "input_ids"])
    angles = np.arange(32)[:, None] / 10000 ** (np.arange(size // 2) * 2 / size)
    both = np.concatenate([angles, angles], axis=1)
    cos, sin = (
        b.axes("Unsqueeze", b.add("Gather", [b.constant(f(both)), "position_ids"]), 1) for f in (np.cos, np.sin)
    )
    mask = b.add(
        "Where", [b.constant(np.tril(np.ones((1, 1, 32, 32))), np.bool_), b.constant(0.0), b.constant(-10000.0)]
    )
    count = _size(b, "input_ids", 1)
    for axis in (2, 3):
        mask = b.add("Slice", [mask, b.ints(0), count, b.ints(axis), b.ints(1)])

    def rotate(value: str) -> str:
        low = b.add("Slice", [value, b.ints(0), b.ints(size // 2), b.ints(3), b.ints(1)])
        high = b.add("Slice", [value, b.ints(size // 2), b.ints(1 << 60), b.ints(3), b.ints(1)])
        turned = b.add("Concat", [b.add("Neg", [high]), low], axis=-1)
        return b.add("Add", [b.add("Mul", [value, cos]), b.add("Mul", [turned, sin])])

    def repeat(value: str) -> str:
        wide = b.add("Tile", [b.axes("Unsqueeze", value, 2), b.ints(1, 1, heads // shared, 1, 1)])
        return b.add("Reshape", [wide, b.ints(0, heads, -1, size)])

    for _ in range(2):
        y = b.rms_norm(x, width)
        q = rotate(b.heads(b.add("MatMul", [y, b.weights(width, heads * size)]), heads, size))
        k = rotate(b.heads(b.add("MatMul", [y, b.weights(width, shared * size)]), shared, size))
        v = b.heads(b.add("MatMul", [y, b.weights(width, shared * size)]), shared, size)
        k = b.add("Transpose", [repeat(k)], perm=[0, 1, 3, 2])
        y = b.attention(q, k, repeat(v), size, mask)
        x = b.add("Add", [x, b.add("MatMul", [b.merge(y, width), b.weights(width, width)])])
        y = b.rms_norm(x, width)
        gate = b.add("MatMul", [y, b.weights(width, 48)])
        gate = b.add("Mul", [gate, b.add("Sigmoid", [gate])])
        y = b.add("Mul", [gate, b.add("MatMul", [y, b.weights(width, 48)])])
        x = b.add("Add", [x, b.add("MatMul", [y, b.weights(48, width)])])
    logits = b.add("MatMul", [b.rms_norm(x, width), b.weights(width, words)])
    model = b.model(
        [_info(n, TensorProto.INT64, [batch, length]) for n in ("input_ids", "position_ids")],
        [_info(logits, TensorProto.FLOAT, [batch, length, words])],
    )
    return model, {"input_ids": b.random.integers(0, words, (2, 6)), "position_ids": np.tile(np.arange(6), (2, 1))}


def convnet(opset: int, fixed: bool, seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Convolutions with batch norms, activations and sums, depthwise ones, pools, an upsampling, a classifier."""
    b = Builder(opset, seed)
    batch: Any = 2 if fixed else "batch"

    def conv(x: str, inputs: int, outputs: int, size: int, group: int = 1, stride: int = 1) -> str:
        y = b.add(
            "Conv",
            [x, b.weights(outputs, inputs // group, size, size), b.weights(outputs)],
            kernel_shape=[size, size],
            pads=[size // 2] * 4,
            strides=[stride, stride],
            group=group,
        )
        scale, variance = (b.constant(1 + 0.1 * b.random.random(outputs)) for _ in range(2))
        return b.add("BatchNormalization", [y, scale, b.weights(outputs), b.weights(outputs), variance])

    x = b.add("Relu", [conv("pixels", 3, 16, 3, stride=2)])
    x = b.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    y = b.add("Relu", [conv(x, 16, 16, 3)])
    x = b.add("Relu", [b.add("Add", [conv(y, 16, 16, 1), x])])
    x = b.add("Clip", [conv(x, 16, 16, 3, group=16), b.constant(0.0), b.constant(6.0)])
    x = b.add("LeakyRelu", [conv(x, 16, 32, 1)], alpha=0.2)
    gate = b.add("Sigmoid", [conv(b.add("GlobalAveragePool", [x]), 32, 32, 1)])
    x = b.add("Mul", [x, gate])
    x = b.add("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    grown = b.add(
        "Resize",
        [x, b.constant([]), b.constant([1, 1, 2, 2])],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    x = b.add("HardSigmoid", [conv(b.add("Concat", [grown, grown], axis=1), 64, 24, 3)], alpha=0.2, beta=0.5)
    x = b.add("Tanh", [conv(x, 24, 12, 3, group=3)])
    flat = b.add("Flatten", [b.add("GlobalMaxPool", [x])])
    y = b.add("Relu", [b.add("Gemm", [flat, b.weights(10, 12), b.weights(10)], transB=1)])
    model = b.model(
        [_info("pixels", TensorProto.FLOAT, [batch, 3, 32, 32])],
        [_info(y, TensorProto.FLOAT, [batch, 10]), _info(x, TensorProto.FLOAT, [batch, 12, "h", "w"])],
    )
    return model, {"pixels": b.random.standard_normal((2, 3, 32, 32)).astype(np.float32)}


NETWORKS = {"bert": bert, "gpt2": gpt2, "vit": vit, "llama": llama, "convnet": convnet}
