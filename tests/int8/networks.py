"""Random networks of QuantizeLinear and DequantizeLinear around float operators, as ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Network", "random_network"]


class Network:
    """A network in the making: values are (name of codes, scale name, zero name, channels, rows and columns)."""

    def __init__(self, seed: int, *, signed: bool = False, opset: int = 19) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.int8 if signed else np.uint8
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[str] = []
        self._count = 0

    def name(self, stem: str) -> str:
        """A name that is not taken."""
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, stem: str, value: np.ndarray) -> str:
        """An initializer."""
        name = self.name(stem)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, inputs: list[str], **attrs: Any) -> str:
        """A node of one output."""
        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def grid(self, scale: float, zero: int | None = None) -> tuple[str, str]:
        """A scale and a zero point, at an end of the range now and then."""
        low, high = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
        if zero is None:
            zero = int(self.rng.choice([low, high, (low + high + 1) // 2, int(self.rng.integers(low, high + 1))]))
        return self.constant("scale", np.float32(scale)), self.constant("zero", self.dtype(zero))

    def quantize(self, value: str, grid: tuple[str, str]) -> str:
        """The value as codes and back."""
        codes = self.node("QuantizeLinear", [value, *grid])
        return self.node("DequantizeLinear", [codes, *grid])

    def weights(
        self, shape: tuple[int, ...], axis: int, *, per_channel: bool, unsigned: bool = False, largest: int = 127
    ) -> tuple[str, np.ndarray]:
        """Codes of weights, dequantized; and their scales."""
        count = shape[axis] if per_channel else 1
        depth = int(np.prod(shape)) // shape[axis]
        scales = (self.rng.uniform(0.008, 0.025, count) / np.sqrt(depth)).astype(np.float32)
        dtype = np.uint8 if unsigned else np.int8
        codes = self.rng.integers(-largest, largest + 1, shape)
        zeros = np.zeros(count, dtype)
        if unsigned:
            zeros = self.rng.integers(100, 156, count).astype(np.uint8)
            codes = self.rng.integers(0, 256, shape)
        if not per_channel:
            scales, zeros = scales.reshape(()), zeros.reshape(())
        inputs = [
            self.constant("w", codes.astype(dtype)),
            self.constant("w_scale", scales),
            self.constant("w_zero", zeros),
        ]
        return self.node("DequantizeLinear", inputs, axis=axis), np.broadcast_to(scales, (shape[axis],))

    def bias(self, channels: int, unit: np.ndarray) -> str:
        """A bias of int32 codes."""
        codes = self.rng.integers(-3000, 3000, channels).astype(np.int32)
        inputs = [
            self.constant("b", codes),
            self.constant("b_scale", unit.astype(np.float32)),
            self.constant("b_zero", np.zeros(channels, np.int32)),
        ]
        return self.node("DequantizeLinear", inputs, axis=0)

    def model(self, shape: list[int]) -> onnx.ModelProto:
        """The model, whose input is `x`."""
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 9
        return model


def random_network(seed: int, *, signed: bool = False, size: int = 13) -> onnx.ModelProto:
    """A few convolutions with residuals, depthwise ones, pools, concatenations and a dense layer at the end."""
    net = Network(seed, signed=signed)
    rng = net.rng
    channels = int(rng.choice([3, 16, 17, 30]))
    first = channels
    scale = 0.05
    value = net.quantize("x", net.grid(scale))
    plane = [size, int(rng.integers(size, size + 4))]
    shape = [1, channels, *plane]

    def conv(x: str, out: int, kernel: int, group: int = 1, stride: int = 1, dilation: int = 1) -> str:
        nonlocal plane
        per_channel = bool(rng.integers(2))
        unsigned = bool(rng.random() < 0.2)
        w, w_scale = net.weights(
            (out, channels // group, kernel, kernel), 0, per_channel=per_channel, unsigned=unsigned
        )
        inputs = [x, w]
        if rng.random() < 0.8:
            inputs.append(net.bias(out, np.float32(scale) * w_scale))
        pad = int(rng.integers(0, dilation * (kernel - 1) // 2 + 1)) if stride > 1 else dilation * (kernel - 1) // 2
        made = net.node(
            *("Conv", inputs),
            kernel_shape=[kernel, kernel],
            group=group,
            strides=[stride, stride],
            pads=[pad] * 4,
            dilations=[dilation, dilation],
        )
        plane = [(p + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for p in plane]
        return made

    for _ in range(int(rng.integers(3, 7))):
        kind = str(rng.choice(["plain", "residual", "depthwise", "pool", "concat", "grouped", "activation"]))
        if kind == "plain":
            out = int(rng.choice([8, 16, 17, 30, 33, 64]))
            made = conv(value, out, int(rng.choice([1, 3])), 1, int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2])))
            if rng.random() < 0.5:
                made = net.node("Relu", [made])
            channels = out
        elif kind == "residual":
            made = conv(value, channels, int(rng.choice([1, 3])))
            if rng.random() < 0.6:
                made = net.quantize(made, net.grid(0.08))
            made = net.node("Add", [made, value] if rng.random() < 0.5 else [value, made])
            if rng.random() < 0.5:
                made = net.node("Relu", [made])
        elif kind == "depthwise":
            made = conv(value, channels, int(rng.choice([3, 5])), channels, int(rng.choice([1, 2])))
            bounds = [net.constant("lo", np.float32(0)), net.constant("hi", np.float32(6))]
            made = net.node("Clip", [made, *bounds])
        elif kind == "pool":
            op = str(rng.choice(["MaxPool", "AveragePool"]))
            made = net.node(op, [value], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif kind == "concat":
            other = net.quantize(conv(value, 16, 1), net.grid(scale))
            made = net.node("Concat", [value, other], axis=1)
            channels += 16
        elif kind == "grouped":
            out = channels * 2
            group = next((g for g in (2, 3, 5) if channels % g == 0), 1)
            made = conv(value, out, 3, group)
            channels = out
        else:
            made = net.node(str(rng.choice(["Sigmoid", "HardSwish", "LeakyRelu"])), [value])
        scale = float(np.float32(rng.uniform(0.02, 0.12)))
        value = net.quantize(made, net.grid(scale))
        if min(plane) < 3:
            break
    net.outputs.append(value)
    pooled = net.quantize(net.node("GlobalAveragePool", [value]), net.grid(scale / 2))
    flat = net.node("Flatten", [pooled], axis=1)
    w, w_scale = net.weights((10, channels), 0, per_channel=bool(rng.integers(2)))
    dense = net.node("Gemm", [flat, w, net.bias(10, np.float32(scale / 2) * w_scale)], transB=1)
    net.outputs.append(net.quantize(dense, net.grid(0.05)))
    assert first == shape[1]
    return net.model(shape)
