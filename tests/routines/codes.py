"""Two graphs of the same numbers, around a float operator and of operators on codes, for tests of routines of codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import compile_pinned

on_vnni = pytest.mark.skipif("avx512_vnni" not in _native.host_tiers(), reason="not on this processor: it has no VNNI")

__all__ = ["Codes", "by_tier", "dequantize", "pick", "weights_of"]

by_tier = pytest.mark.parametrize("tier", list(_native.host_tiers()))


def pick(random: np.random.Generator, options: Any) -> Any:
    return options[int(random.integers(len(options)))]


class Codes:
    """Two graphs of the same numbers: around a float operator, and of operators on codes, which say what is right."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.float = _native.Graph()
        self.whole = _native.Graph()
        self.inputs: list[np.ndarray] = []

    def codes(self, dtype: str, dims: list[int]) -> np.ndarray:
        """Codes of the whole range."""
        info = np.iinfo(dtype)
        return self.random.integers(info.min, info.max + 1, dims).astype(dtype)

    def input(self, dtype: str, dims: list[int]) -> tuple[Any, Any]:
        """An input of both graphs."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(self.codes(dtype, dims))
        return self.float.add_input(name, dtype, dims), self.whole.add_input(name, dtype, dims)

    def constant(self, value: Any) -> tuple[Any, Any]:
        """A constant of both graphs."""
        array = np.asarray(value)
        return self.float.add_constant("k", array), self.whole.add_constant("k", array)

    def grid(self, dtype: str, scale: float | None = None) -> tuple[Any, Any]:
        """A scale and a zero point, at an end of the range now and then."""
        info = np.iinfo(dtype)
        zero = pick(self.random, [info.min, info.max, (info.min + info.max + 1) // 2, self.codes(dtype, [1])[0]])
        scale = float(self.random.uniform(0.01, 0.2)) if scale is None else scale
        return self.constant(np.float32(scale)), self.constant(np.array(zero, dtype))

    def add(self, graph: Any, op: str, inputs: list[Any], name: str, **attrs: Any) -> Any:
        """A node; its only output."""
        return graph.add_node(op, inputs, [f"{name}.y"], attrs, name).outputs[0]

    def finish(self, result: Any, expected: Any) -> None:
        """Take these as the results."""
        for graph, value in ((self.float, result), (self.whole, expected)):
            graph.outputs = [value]
            graph.infer()

    def apply(self, ops: str, grid: tuple[Any, Any]) -> None:
        """Put a function of one code behind the results, which ends in a node "f"; `grid`: of the results so far."""
        to = self.grid(pick(self.random, ["uint8", "int8"]), 0.7)
        for i, graph in enumerate((self.float, self.whole)):
            value = self.add(graph, "DequantizeLinear", [graph.outputs[0], *(g[i] for g in grid)], "d0")
            for j, op in enumerate(ops.split()):
                value = self.add(graph, op, [value], f"d{j + 1}")
            graph.outputs = [self.add(graph, "QuantizeLinear", [value, *(g[i] for g in to)], "f")]
            graph.infer()

    def check(self, tier: str, pins: dict[str, str]) -> None:
        """The pinned routines give the numbers of the operators on codes, on teams of one and of three."""
        graph = _native.run_passes(self.float, ["fold_constants"])
        pinned = compile_pinned(graph, tier, pins)
        for node, routine in pins.items():
            assert pinned.routines[node].split("{")[0] == routine
        expected = self.whole.evaluate(self.inputs)[0]
        for threads in (1, 3):
            np.testing.assert_array_equal(pinned(*self.inputs, threads=threads), expected)


def weights_of(case: Codes, shape: list[int], axis: int) -> tuple[list[tuple[Any, Any]], int]:
    """Codes, scales and zero points of weights."""
    random = case.random
    dtype = pick(random, ["int8", "int8", "uint8"])
    count = shape[axis] if random.random() < 0.6 else 1
    scale = random.uniform(0.001, 0.02, count).astype(np.float32)
    zero = np.zeros(count, dtype)
    if dtype == "uint8" or random.random() < 0.2:
        zero = case.codes(dtype, [count])
    codes = case.codes(dtype, shape)
    if count == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    return [case.constant(codes), case.constant(scale), case.constant(zero)], count


def dequantize(case: Codes, value: Any, grid: tuple[Any, Any], name: str) -> Any:
    return case.add(case.float, "DequantizeLinear", [value, grid[0][0], grid[1][0]], name)
