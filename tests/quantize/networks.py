"""Float networks to quantize, and calls for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Net", "calls_for", "random_net", "small_net"]


class Net:
    """A float network in the making; values are names."""

    def __init__(self, seed: int = 0, opset: int = 17) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: np.ndarray) -> str:
        """An initializer."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, *inputs: str, name: str = "", outputs: int = 1, **attrs: Any) -> Any:
        """A node; its output, or several."""
        made = [f"v{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(
            helper.make_node(op, list(inputs), made, name=name or f"{op.lower()}{len(self.nodes)}", **attrs)
        )
        return made[0] if outputs == 1 else made

    def weights(self, *shape: int) -> str:
        """Normal weights that keep the scale of what they read."""
        depth = int(np.prod(shape[1:]))
        spread = np.exp(self.rng.normal(0, 0.5, (shape[0], *[1] * (len(shape) - 1))))
        return self.constant((self.rng.standard_normal(shape) * np.sqrt(2 / depth) * spread).astype(np.float32))

    def conv(
        self, x: str, src: int, dst: int, kernel: int = 1, *, bias: bool = True, name: str = "", **attrs: Any
    ) -> str:
        """A convolution that keeps the size, but for its stride."""
        groups, dilation = attrs.get("group", 1), attrs.get("dilations", [1])[0]
        inputs = [x, self.weights(dst, src // groups, kernel, kernel)]
        if bias:
            inputs.append(self.constant(self.rng.normal(0, 0.1, dst).astype(np.float32)))
        pad = dilation * (kernel - 1) // 2
        return self.node("Conv", *inputs, name=name, kernel_shape=[kernel] * 2, pads=[pad] * 4, **attrs)

    def dense(self, x: str, src: int, dst: int, *, name: str = "") -> str:
        """A Gemm with transposed weights and a bias."""
        bias = self.constant(self.rng.normal(0, 0.1, dst).astype(np.float32))
        return self.node("Gemm", x, self.weights(dst, src), bias, name=name, transB=1)

    def model(self, shape: list[int | str], *outputs: str) -> onnx.ModelProto:
        """The model, whose input is `x`."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def small_net(seed: int = 0) -> onnx.ModelProto:
    """Two convolutions with a residual, a pool and a dense layer: x [N, 3, 12, 12] to y [N, 10]."""
    net = Net(seed)
    a = net.node("Relu", net.conv("x", 3, 16, 3, name="first"))
    b = net.node("Relu", net.node("Add", net.conv(a, 16, 16, 3, name="second"), a, name="sum"))
    flat = net.node("Flatten", net.node("GlobalAveragePool", b))
    return net.model(["N", 3, 12, 12], net.dense(flat, 16, 10, name="last"))


def random_net(seed: int) -> tuple[onnx.ModelProto, list[int]]:
    """A few layers of every kind that placement knows, and the shape of its input."""
    net = Net(seed)
    rng = net.rng
    channels = int(rng.choice([3, 8, 17, 32]))
    size = int(rng.choice([7, 12, 13]))
    shape = [int(rng.integers(1, 3)), channels, size, size]
    x = "x"
    kinds = ["plain", "clip", "residual", "depthwise", "grouped", "maxpool", "average", "concat", "hardswish", "silu"]
    kinds += ["sigmoid", "branches", "scale", "leaky", "transposed", "softmax", "squeeze_excite", "split"]
    for kind in rng.choice(kinds, int(rng.integers(3, 8))):
        if kind in ("plain", "clip", "hardswish", "sigmoid", "leaky"):
            dst = int(rng.choice([4, 16, 19]))
            x = net.conv(x, channels, dst, int(rng.choice([1, 3])), bias=bool(rng.random() < 0.8))
            channels = dst
            if kind == "plain":
                x = net.node("Relu", x)
            elif kind == "clip":
                x = net.node("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(1.5)))
            else:
                x = net.node({"hardswish": "HardSwish", "sigmoid": "Sigmoid", "leaky": "LeakyRelu"}[kind], x)
        elif kind == "silu":
            x = net.conv(x, channels, channels, 3)
            x = net.node("Mul", x, net.node("Sigmoid", x))
        elif kind == "residual":
            made = net.conv(x, channels, channels, 3)
            x = net.node("Add", *((made, x) if rng.random() < 0.5 else (x, made)))
            x = net.node("Relu", x) if rng.random() < 0.5 else x
        elif kind == "depthwise":
            x = net.node(
                "Relu", net.conv(x, channels, channels, 3, group=channels, dilations=[int(rng.choice([1, 2]))] * 2)
            )
        elif kind == "grouped" and channels % 4 == 0:
            x = net.conv(x, channels, channels, 3, group=4)
        elif kind == "maxpool":
            x = net.node("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4)
        elif kind == "average":
            x = net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)
        elif kind == "concat":
            x = net.node("Concat", net.conv(x, channels, 8, 1), net.node("Relu", net.conv(x, channels, 5, 3)), axis=1)
            channels = 13
        elif kind == "branches":
            made = net.conv(x, channels, channels, 1)
            x = net.node("Add", net.node("Relu", made), net.node("Tanh", made))
        elif kind == "scale":
            x = net.node("Mul", net.conv(x, channels, channels, 1), net.constant(np.float32(0.5)))
        elif kind == "transposed":
            x = net.node("Transpose", net.conv(x, channels, channels, 1), perm=[0, 1, 3, 2])
        elif kind == "softmax":
            x = net.node("Softmax", net.conv(x, channels, channels, 1), axis=1)
        elif kind == "squeeze_excite":
            gate = net.node("Sigmoid", net.conv(net.node("GlobalAveragePool", x), channels, channels, 1))
            x = net.node("Mul", x, gate)
        elif kind == "split" and channels % 2 == 0:
            both = net.node("Split", net.conv(x, channels, channels, 1), outputs=2, num_outputs=2, axis=1)
            x = net.node("Concat", *both[::-1], axis=1)
    x = net.conv(x, channels, 16, 1, name="before_last")
    flat = net.node("Flatten", net.node("GlobalAveragePool", net.node("Relu", x)))
    net.opset = 18
    return net.model(["N", *shape[1:]], net.dense(flat, 16, 10)), shape


def calls_for(shape: list[int], count: int = 6, seed: int = 1) -> list[np.ndarray]:
    """Normal inputs."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(count)]
