"""Makes ONNX graphs node by node, with seeded random weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Builder", "Shape"]

Shape = Sequence[int | str]


class Builder:
    """A graph in the making: nodes in order, initializers by name."""

    def __init__(self, seed: int, prefix: str = "") -> None:
        self._rng = np.random.default_rng(seed)
        self._prefix = prefix  # of the names in a body, which must differ from those around it
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._count = 0

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        name = f"{self._prefix}k{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        values = self._rng.standard_normal(shape, dtype=np.float32)
        return self.constant(values * np.float32((2 / max(1, fan_in)) ** 0.5))

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._prefix}v{self._count}"
        self._count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{name}", **attributes))
        return name

    def add_all(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        names = [f"{self._prefix}v{self._count + i}" for i in range(outputs)]
        self._count += outputs
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{names[0]}", **attributes))
        return names

    def model(self, inputs: dict[str, Shape], outputs: Sequence[str]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "generated",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.initializers,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
