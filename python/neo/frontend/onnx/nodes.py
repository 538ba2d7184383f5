"""ONNX nodes for operators that are written out as a graph of ONNX's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["Nodes"]


class Nodes:
    """A list of nodes that grows; names are numbers behind a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.protos: list[onnx.NodeProto] = []

    def many(self, op: str, inputs: Sequence[str], outputs: int, *, domain: str = "", **attrs: Any) -> list[str]:
        """Append a node; the names of its outputs."""
        names = [f"{self.prefix}.{op.rpartition('.')[2]}{len(self.protos)}_{i}" for i in range(outputs)]
        self.protos.append(helper.make_node(op, list(inputs), names, domain=domain, **attrs))
        return names

    def __call__(self, op: str, *inputs: str, **attrs: Any) -> str:
        """Append a node of one output; its name."""
        return self.many(op, inputs, 1, **attrs)[0]

    def constant(self, elements: Any, dtype: Any) -> str:
        """A constant."""
        return self("Constant", value=numpy_helper.from_array(np.asarray(elements, dtype)))

    def ints(self, *numbers: int) -> str:
        """A constant int64 [length]."""
        return self.constant(numbers, np.int64)

    def as_int(self, name: str) -> str:
        """One number of any shape as int64 [1]."""
        return self("Cast", self("Reshape", name, self.ints(1)), to=onnx.TensorProto.INT64)

    def size(self, name: str, axis: int) -> str:
        """A size as int64 [1]."""
        return self("Shape", name, start=axis, end=axis + 1) if axis != -1 else self("Shape", name, start=-1)

    def repeat(self, name: str, times: str) -> str:
        """[batch, length] as [batch, times, length]."""
        shape = self("Concat", self.size(name, 0), times, self.size(name, 1), axis=0)
        return self("Expand", self("Unsqueeze", name, self.ints(1)), shape)
