"""Graphs of a few nodes, run by the routines a test names and compared with every operator's reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from neo import _native
from neo.select import Flat, Problem, solve

# Float kernels know no difference between these two.
TIERS = [tier for tier in _native.host_tiers() if tier != "avx512_vnni"]
EPSILON = float(np.finfo(np.float32).eps)


def target_of(tier: str) -> str:
    """Return the target of a tier of this host; devices are targets by themselves."""
    return tier if tier in {"opencl", "cuda", "fake"} else f"cpu:{tier}"


@dataclass
class Pinned:
    """A compiled graph and the routine of each of its steps."""

    module: Any
    routines: dict[str, str]

    def __call__(self, *inputs: np.ndarray, threads: int = 1) -> np.ndarray:
        """Run; the first output."""
        module = self.module if threads == 1 else self.module.with_threads(threads)
        return module.call(list(inputs))[0]


def compile_pinned(
    graph: _native.Graph, tier: str, pins: Mapping[str, str], threads: int = 1, keeps_denormals: bool = False
) -> Pinned:
    """Compile with the nodes in ``pins`` run by the routine named there; "name" with any schedule, "name{}" with none."""

    def allow(node: str, routine: str) -> bool:
        pin = pins.get(node)
        return pin is None or routine == pin.removesuffix("{}") or routine.split("{")[0] == pin

    problem = _native.build_problem(graph, target_of(tier), threads, allow)
    solution = solve(Problem.from_flat(Flat(*problem.flat)))
    module = problem.lower(list(solution.choice), float(solution.total), threads, keeps_denormals=keeps_denormals)
    return Pinned(module, {step["node"]: step["routine"] for step in module.steps if step["op"] != "neo.Adapt"})


def candidates(graph: _native.Graph, tier: str, node: str, threads: int = 1) -> list[dict[str, Any]]:
    """Every candidate that executes a node."""
    entry = _entry(graph, tier, node, threads)
    return [choice for choice in entry["choices"] if "routine" in choice]


def rejections(graph: _native.Graph, tier: str, node: str) -> dict[str, str]:
    """Why routines do not take a node."""
    return dict(_entry(graph, tier, node)["rejections"])


def _entry(graph: _native.Graph, tier: str, node: str, threads: int = 1) -> dict[str, Any]:
    problem = _native.build_problem(graph, target_of(tier), threads)
    return next(entry for entry in problem.nodes if entry["name"] == node)


def assert_close(actual: np.ndarray, expected: np.ndarray, depth: int, where: object = "") -> None:
    """Equal up to the rounding of sums of ``depth`` products of numbers of about 1."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape, where
    if expected.size == 0:
        return
    tolerance = 4 * EPSILON * math.sqrt(depth) * max(1.0, float(np.abs(expected).max()))
    error = float(np.abs(actual - expected).max())
    assert error <= tolerance, f"{where}: error {error}, tolerance {tolerance}"


def floats(random: np.random.Generator, dims: Sequence[int]) -> np.ndarray:
    """Numbers between -1 and 1."""
    return random.uniform(-1, 1, tuple(dims)).astype(np.float32)


def pick(random: np.random.Generator, options: Sequence[Any]) -> Any:
    """Return one of the options."""
    return options[int(random.integers(len(options)))]


def rms(x: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(x))))
