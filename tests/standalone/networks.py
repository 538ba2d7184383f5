"""Networks that exports are tested with, of random weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["depthwise", "mobilenet_v2", "recurrent"]

# MobileNet v2: expansion, channels, blocks, stride of the first.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class _Builder:
    def __init__(self) -> None:
        self.random = np.random.default_rng(3)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, shape: tuple[int, ...], scale: float) -> str:
        name = f"w{len(self.weights)}"
        values = self.random.standard_normal(shape) * scale
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(self, op: str, inputs: list[str], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def conv(
        self, x: str, src: int, dst: int, kernel: int, *, stride: int = 1, group: int = 1, clip: bool = True
    ) -> str:
        weight = self.weight((dst, src // group, kernel, kernel), (2 / (src // group * kernel**2)) ** 0.5)
        pads, strides = [kernel // 2] * 4, [stride] * 2
        x = self.node(
            "Conv",
            [x, weight, self.weight((dst,), 0.1)],
            group=group,
            kernel_shape=[kernel] * 2,
            pads=pads,
            strides=strides,
        )
        return self.node("Clip", [x, "zero", "six"]) if clip else x

    def model(self, inputs: list[tuple[str, list[int]]], outputs: list[str]) -> bytes:
        self.weights += [numpy_helper.from_array(np.float32(v), n) for n, v in (("zero", 0), ("six", 6))]
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        return bytes(model.SerializeToString())


def mobilenet_v2() -> bytes:
    """The network of the paper at 224 x 224, batch norms folded."""
    b = _Builder()
    x, src = b.conv("x", 3, 32, 3, stride=2), 32
    for expansion, dst, blocks, stride in _STAGES:
        for block in range(blocks):
            skip, wide = x, src * expansion
            step = stride if block == 0 else 1
            if expansion > 1:
                x = b.conv(x, src, wide, 1)
            x = b.conv(x, wide, wide, 3, stride=step, group=wide)
            x = b.conv(x, wide, dst, 1, clip=False)
            if step == 1 and src == dst:
                x = b.node("Add", [x, skip])
            src = dst
    x = b.node("Flatten", [b.node("GlobalAveragePool", [b.conv(x, src, 1280, 1)])])
    y = b.node("Gemm", [x, b.weight((1280, 1000), 0.03), b.weight((1000,), 0.1)])
    return b.model([("x", [1, 3, 224, 224])], [y])


def depthwise(width: int, stride: int, dilation: int) -> bytes:
    """A depthwise convolution of one kernel form between elementwise operators."""
    b = _Builder()
    x = b.node("Softplus", [b.node("Mul", ["x", b.weight((1, 24, 1, 1), 1.0)])])
    x = b.node(
        "Conv",
        [x, b.weight((24, 1, 3, width), 0.3), b.weight((24,), 0.1)],
        group=24,
        strides=[1, stride],
        dilations=[1, dilation],
    )
    return b.model([("x", [1, 24, 9, 41])], [b.node("Elu", [b.node("Abs", [x])])])


def recurrent() -> bytes:
    """An LSTM of two directions over steps of any number, and a GRU behind it."""
    b = _Builder()
    weights = [b.weight(shape, 0.2) for shape in ((2, 96, 16), (2, 96, 24), (2, 192))]
    states = b.node("LSTM", ["x", *weights], hidden_size=24, direction="bidirectional")
    joined = b.node("Reshape", [b.node("Transpose", [states], perm=[0, 2, 1, 3]), "shape"])
    gates = [b.weight(shape, 0.2) for shape in ((1, 60, 48), (1, 60, 20), (1, 120))]
    y = b.node("GRU", [joined, *gates], hidden_size=20, linear_before_reset=1)
    b.weights.append(numpy_helper.from_array(np.array([0, 0, 48]), "shape"))
    return b.model([("x", ["T", 3, 16])], [y])  # type: ignore[list-item]
