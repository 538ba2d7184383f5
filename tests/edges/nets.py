"""A graph in the making, whose axes have names, and how a routine is reached by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from neo import _native

__all__ = ["Net", "Spec"]


class Net:
    """A graph in the making. Axes are letters, one per axis: ``NCHW``; digits are sizes."""

    def __init__(self, sizes: Mapping[str, int], symbols: str = "") -> None:
        self.graph = _native.Graph()
        self.sizes = sizes
        self.symbols = symbols
        self.inputs: list[np.ndarray] = []
        self.fixed: set[str] = set()  # axes of constants, which no symbol can stand for
        self.pinned: list[str] = []
        self._random = np.random.default_rng(0)

    def dims(self, axes: str) -> list[int]:
        """Sizes of axes."""
        return [int(a) if a.isdigit() else self.sizes[a] for a in axes]

    def input(self, axes: str, dtype: str = "float32", below: int | None = None) -> Any:
        """An input: floats of about 1, or integers of 0 to `below` - 1."""
        name = f"x{len(self.inputs)}"
        value = self._array(axes, below).astype(dtype)
        self.inputs.append(value)
        dims = [a if a in self.symbols else size for a, size in zip(axes, value.shape, strict=True)]
        return self.graph.add_input(name, dtype, dims)

    def constant(self, axes: str, scale: float = 1.0, dtype: str = "float32") -> Any:
        """A constant of numbers up to `scale`."""
        self.fixed.update(a for a in axes if not a.isdigit())
        return self.array((self._array(axes, None) * np.float32(scale)).astype(dtype))

    def array(self, value: np.ndarray) -> Any:
        """A constant."""
        return self.graph.add_constant("k", np.asarray(value))

    def node(self, op: str, operands: Sequence[Any], outputs: int = 1, pin: bool = True, **attrs: Any) -> Any:
        """A node and its outputs; `pin`: the routine under test takes it."""
        name = f"n{len(self.graph.nodes)}"
        if pin:
            self.pinned.append(name)
        made = self.graph.add_node(op, list(operands), [f"{name}.{i}" for i in range(outputs)], attrs, name).outputs
        return made[0] if outputs == 1 else made

    def _array(self, axes: str, below: int | None) -> np.ndarray:
        dims = self.dims(axes)
        if below is not None:
            return self._random.integers(0, max(below, 1), dims)
        return self._random.uniform(-1, 1, dims).astype(np.float32)


@dataclass(frozen=True)
class Spec:
    """How a routine is reached: sizes of the axes, and what makes the graph and returns its outputs."""

    sizes: Mapping[str, int]
    build: Callable[[Net], Any]
    fixed: str = ""  # axes whose sizes the routine must know

    def net(self, sizes: Mapping[str, int] | None = None, symbols: str = "") -> Net:
        """The graph with some sizes changed and some axes as symbols of their own names."""
        net = Net({**self.sizes, **(sizes or {})}, symbols)
        net.fixed.update(self.fixed)
        outputs = self.build(net)
        net.graph.outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        return net
