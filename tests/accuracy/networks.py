"""Small seeded networks of the kinds that are checked: every node has a name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Builder:
    """Appends nodes with seeded weights; ``shape`` is that of the last value."""

    def __init__(self, seed: int, shape: tuple[int, ...]) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.input_shape = shape
        self.shape = shape
        self.last = "x"

    def constant(self, values: np.ndarray, stem: str) -> str:
        name = f"{stem}_{len(self.weights)}"
        self.weights[name] = values
        return name

    def normal(self, stem: str, *shape: int, scale: float = 1.0) -> str:
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32), stem)

    def add(self, op: str, inputs: list[str], outputs: int = 1, **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        made = [f"{name}_y{i or ''}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, made, name, **attributes))
        self.last = made[0]
        return self.last

    def conv(self, channels: int, kernel: int, *, stride: int = 1, depthwise: bool = False) -> None:
        n, c, h, w = self.shape
        groups = c if depthwise else 1
        channels = c if depthwise else channels
        taps = c // groups * kernel * kernel
        weight = self.normal("w", channels, c // groups, kernel, kernel, scale=(2 / taps) ** 0.5)
        bias = self.normal("b", channels, scale=0.1)
        self.add(
            "Conv", [self.last, weight, bias], pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups,
            kernel_shape=[kernel] * 2,
        )  # fmt: skip
        self.shape = (n, channels, -(-h // stride), -(-w // stride))

    def batch_norm(self) -> None:
        c = self.shape[1]
        scale = self.constant(self.random.uniform(0.5, 1.5, c).astype(np.float32), "gamma")
        shift, mean = self.normal("beta", c, scale=0.1), self.normal("mean", c, scale=0.1)
        variance = self.constant(self.random.uniform(0.5, 1.5, c).astype(np.float32), "variance")
        self.add("BatchNormalization", [self.last, scale, shift, mean, variance])

    def gemm(self, width: int) -> None:
        rows, depth = self.shape
        self.add("Gemm", [self.last, self.normal("w", depth, width, scale=depth**-0.5), self.normal("b", width)])
        self.shape = (rows, width)

    def head(self, classes: int) -> None:
        self.add("GlobalAveragePool", [self.last])
        self.add("Flatten", [self.last])
        self.shape = self.shape[:2]
        self.gemm(classes)
        self.add("Softmax", [self.last], axis=1)

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.input_shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, self.shape)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def residual(seed: int) -> onnx.ModelProto:
    """Convolutions with batch normalisation, and residual connections: those of 3x3 may be computed by Winograd."""
    b = _Builder(seed, (1, 3, 24, 24))
    b.conv(32, 3)
    b.batch_norm()
    b.add("Relu", [b.last])
    for _ in range(2):
        skip = b.last
        b.conv(32, 3)
        b.batch_norm()
        b.add("Relu", [b.last])
        b.conv(32, 3)
        b.batch_norm()
        b.add("Add", [b.last, skip])
        b.add("Relu", [b.last])
    b.add("MaxPool", [b.last], kernel_shape=[2, 2], strides=[2, 2])
    b.shape = (1, 32, 12, 12)
    b.head(10)
    return b.model()


def separable(seed: int) -> onnx.ModelProto:
    """Inverted residuals: pointwise, depthwise, pointwise, with clamps and a sigmoid gate."""
    b = _Builder(seed, (1, 3, 32, 32))
    b.conv(16, 3, stride=2)
    low, high = (b.constant(np.float32(limit), "limit") for limit in (0.0, 6.0))
    b.add("Clip", [b.last, low, high])
    for _ in range(2):
        skip = b.last
        b.conv(64, 1)
        b.add("Clip", [b.last, low, high])
        b.conv(64, 3, depthwise=True)
        b.batch_norm()
        gate = b.last
        b.add("Sigmoid", [gate])
        b.add("Mul", [gate, b.last])
        b.conv(16, 1)
        b.add("Add", [b.last, skip])
    b.head(7)
    return b.model()


def dense(seed: int) -> onnx.ModelProto:
    """Matrix products with activations of many kinds."""
    b = _Builder(seed, (3, 64))
    for op in ("Tanh", "Relu", "Elu", "Sigmoid", "Softplus"):
        b.gemm(48)
        b.add(op, [b.last])
    b.gemm(5)
    b.add("LogSoftmax", [b.last], axis=1)
    return b.model()


def recurrent(seed: int) -> onnx.ModelProto:
    """An LSTM and a GRU with a dense layer behind."""
    b = _Builder(seed, (12, 2, 16))
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        width, hidden = b.shape[2], 24
        weights = [
            b.normal("w", 1, gates * hidden, width, scale=width**-0.5),
            b.normal("r", 1, gates * hidden, hidden, scale=hidden**-0.5),
            b.normal("b", 1, 2 * gates * hidden, scale=0.1),
        ]
        b.add(op, [b.last, *weights], hidden_size=hidden)
        b.add("Squeeze", [b.last, b.constant(np.array([1], np.int64), "axes")])
        b.shape = (12, 2, hidden)
    b.add("ReduceMean", [b.last], axes=[0], keepdims=0)
    b.shape = (2, 24)
    b.gemm(6)
    return b.model()


def attention(seed: int) -> onnx.ModelProto:
    """Two heads of attention and a feed-forward layer, with layer normalisation."""
    b = _Builder(seed, (1, 10, 32))
    for _ in range(2):
        skip = b.last
        b.add(
            "LayerNormalization", [b.last, b.normal("scale", 32, scale=0.3), b.normal("shift", 32, scale=0.1)], axis=-1
        )
        normed = b.last
        parts = []
        for _ in range(3):
            b.add("MatMul", [normed, b.normal("w", 32, 32, scale=32**-0.5)])
            b.add("Reshape", [b.last, b.constant(np.array([1, 10, 2, 16], np.int64), "shape")])
            parts.append(b.add("Transpose", [b.last], perm=[0, 2, 3, 1] if len(parts) == 1 else [0, 2, 1, 3]))
        b.add("MatMul", parts[:2])
        b.add("Mul", [b.last, b.constant(np.float32(0.25), "factor")])
        b.add("Softmax", [b.last], axis=-1)
        b.add("MatMul", [b.last, parts[2]])
        b.add("Transpose", [b.last], perm=[0, 2, 1, 3])
        b.add("Reshape", [b.last, b.constant(np.array([1, 10, 32], np.int64), "shape")])
        b.add("MatMul", [b.last, b.normal("w", 32, 32, scale=32**-0.5)])
        skip = b.add("Add", [b.last, skip])
        b.add("MatMul", [b.last, b.normal("w", 32, 64, scale=32**-0.5)])
        b.add("Add", [b.last, b.normal("b", 64, scale=0.1)])
        b.add("Relu", [b.last])
        b.add("MatMul", [b.last, b.normal("w", 64, 32, scale=64**-0.5)])
        b.add("Add", [b.last, skip])
    return b.model()


def quantized(seed: int) -> onnx.ModelProto:
    """Convolutions between pairs of QuantizeLinear and DequantizeLinear, with quantized weights."""
    b = _Builder(seed, (1, 4, 16, 16))

    def quantize(step: float) -> None:
        scale, zero = b.constant(np.float32(step), "step"), b.constant(np.int8(0), "zero")
        b.add("QuantizeLinear", [b.last, scale, zero])
        b.add("DequantizeLinear", [b.last, scale, zero])

    quantize(0.03)
    for channels in (16, 16, 24):
        c = b.shape[1]
        weight = b.constant(b.random.integers(-127, 128, (channels, c, 3, 3)).astype(np.int8), "w")
        steps = b.constant((b.random.uniform(0.5, 1.5, channels) / (73 * (9 * c) ** 0.5)).astype(np.float32), "steps")
        zeros = b.constant(np.zeros(channels, np.int8), "zeros")
        data = b.last
        b.add("DequantizeLinear", [weight, steps, zeros], axis=0)
        b.add("Conv", [data, b.last], pads=[1] * 4, kernel_shape=[3, 3])
        b.shape = (1, channels, 16, 16)
        b.add("Relu", [b.last])
        quantize(0.025)
    b.head(5)
    return b.model()


NETWORKS: tuple[Callable[[int], onnx.ModelProto], ...] = (residual, separable, dense, recurrent, attention, quantized)
