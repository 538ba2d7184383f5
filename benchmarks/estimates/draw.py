"""A network in the making whose choices a seed takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.models.builder import Builder

__all__ = ["Draw"]


class Draw:
    """A network in the making, and the choices of its seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.b = Builder(seed)
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[str] = []

    def pick(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, small ones as often as large ones."""
        return round(float(np.exp(self.random.uniform(np.log(low), np.log(high)))))

    def width(self, low: int, high: int) -> int:
        """A number of channels, which is often a multiple of eight."""
        n = self.integer(low, high)
        return max(8, n // 8 * 8) if self.random.random() < 0.7 else n

    def input(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.b.add(op, *inputs, **attributes)

    def ml(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.b.add(op, *inputs, domain="ai.onnx.ml", **attributes)

    def numbers(self, count: int) -> list[float]:
        return [float(x) for x in self.random.normal(size=count)]

    def weight(self, *shape: int) -> str:
        return self.b.weight(*shape)

    def ints(self, *values: int) -> str:
        return self.b.constant(list(values), np.int64)

    def scalar(self, value: float) -> str:
        return self.b.constant(np.float32(value))

    def conv(
        self, x: str, ic: int, oc: int, kernel: int, stride: int = 1, group: int = 1, dilation: int = 1, rank: int = 2
    ) -> str:
        pads = [(kernel - 1) * dilation // 2] * (2 * rank)
        weight, bias = self.weight(oc, ic // group, *[kernel] * rank), self.weight(oc)
        window = {"strides": [stride] * rank, "pads": pads, "group": group, "dilations": [dilation] * rank}
        return self.add("Conv", x, weight, bias, **window)

    def activation(self, x: str) -> str:
        """One of the usual ones, as exporters write it."""
        kind = self.pick("relu", "relu", "clip", "leaky", "sigmoid", "tanh", "silu", "swish", "gelu", "elu", "none")
        if kind == "clip":
            return self.add("Clip", x, self.scalar(0), self.scalar(6))
        if kind == "silu":
            return self.add("Mul", x, self.add("Sigmoid", x))
        if kind == "gelu":
            scaled = self.add("Add", self.add("Erf", self.add("Mul", x, self.scalar(2**-0.5))), self.scalar(1))
            return self.add("Mul", self.add("Mul", x, scaled), self.scalar(0.5))
        ops = {
            "relu": "Relu",
            "leaky": "LeakyRelu",
            "sigmoid": "Sigmoid",
            "tanh": "Tanh",
            "swish": "HardSwish",
            "elu": "Elu",
        }
        return self.add(ops[kind], x) if kind in ops else x

    def dense(self, x: str, rows: int, columns: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def layer_norm(self, x: str, width: int) -> str:
        return self.add("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1)

    def model(self) -> bytes:
        outputs = [helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(self.outputs)]
        graph = helper.make_graph(self.b.nodes, "drawn", self.inputs, outputs, self.b.initializers)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        return bytes(data)
