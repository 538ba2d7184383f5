"""A group of nodes in the making, as exporters write them: inputs, constants and nodes, from one seed."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["Group"]


class Group:
    """Inputs, constants and nodes so far, in one dtype of numbers."""

    def __init__(self, seed: int, kind: str) -> None:
        self.random = np.random.default_rng([43, seed, zlib.crc32(kind.encode())])
        self.dtype = self.one(("float32",) * 6 + ("float16", "float64"))
        self.is_open = self.flag(0.25)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}

    def number(self, low: int, high: int) -> int:
        """Return a number of [low, high], small ones as likely as large ones."""
        return (
            int(np.exp(self.random.uniform(np.log(low), np.log(high + 1))))
            if low > 0
            else int(self.random.integers(low, high + 1))
        )

    def one(self, of: tuple[Any, ...]) -> Any:
        return of[int(self.random.integers(len(of)))]

    def flag(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def input(self, *dims: int, dtype: str = "", low: float = -1, high: float = 1, values: Any = None) -> str:
        """Return an input; its first size is open where the group's are."""
        name = f"x{len(self.inputs)}"
        dtype = dtype or self.dtype
        if values is None:
            shape = self.random.uniform(low, high, dims)
            values = shape > 0 if dtype == "bool" else shape
        self.feeds[name] = np.asarray(values).astype(dtype)
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        sizes: list[int | str] = list(self.feeds[name].shape)
        if self.is_open and sizes:
            sizes[0] = f"N{sizes[0]}"
        self.inputs.append(helper.make_tensor_value_info(name, element, sizes))
        return name

    def constant(self, values: Any, dtype: str = "") -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values).astype(dtype or self.dtype), name))
        return name

    def weight(self, *dims: int) -> str:
        return self.constant(self.random.uniform(-1, 1, dims) / max(1.0, float(np.prod(dims[1:]))) ** 0.5)

    def ints(self, *values: int) -> str:
        return self.constant(values, "int64")

    def index(self, value: int) -> str:
        return self.constant(value, "int64")

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.add_all(op, 1, *inputs, **attributes)[0]

    def add_all(self, op: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"n{len(self.nodes)}", **attributes))
        return names

    def cast(self, x: str, dtype: str = "") -> str:
        return self.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype or self.dtype)))

    def size(self, x: str, axis: int) -> str:
        """Return the size of an axis, a scalar."""
        return self.add("Gather", self.add("Shape", x), self.index(axis), axis=0)

    def joined(self, *sizes: str | int) -> str:
        """Return a list of sizes, some of which are computed."""
        parts = [self.ints(s) if isinstance(s, int) else self.add("Unsqueeze", s, self.ints(0)) for s in sizes]
        return self.add("Concat", *parts, axis=0)

    def part(self, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
        return self.add("Slice", x, self.ints(begin), self.ints(end), self.ints(axis), self.ints(step))

    def mean(self, x: str, *axes: int) -> str:
        return self.add("ReduceMean", x, self.ints(*axes), keepdims=1)

    def silu(self, x: str) -> str:
        return self.add("Mul", x, self.add("Sigmoid", x))
