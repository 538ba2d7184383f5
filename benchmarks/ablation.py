"""What each step of the way brings, after Table 3 of NeoCPU (USENIX ATC 2019): ``python -m benchmarks.ablation``.

Every variant solves the same selection problem with fewer candidates, and is lowered and run as usual. What the passes
fold (biases, batch norms, clamps) is folded in all of them; times are chosen by estimates.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from neo import _native
from neo.bench import median_interval
from neo.bench.worker import VARIANTS, vary
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import Problem, solve
from rich.console import Console

from benchmarks import environment, page, results
from benchmarks.results import Section
from benchmarks.suites import find_entries

NETWORKS = "resnet50,vgg19,densenet201,inception_v3,ssd_resnet50_512"

Choice = Mapping[str, Any]
_BLOCKED = re.compile(r":[A-Z]+\d+[a-z]")
_BLOCKED_CONVOLUTIONS = ("cpu:float32/direct_nchwc", "cpu:float32/depthwise_nchwc")


def is_alone(choice: Choice) -> bool:
    """Say whether a choice computes its node and no other, and is not computed by another."""
    return "nodes" in choice and len(choice["nodes"]) == 1


def is_plain(choice: Choice) -> bool:
    """Say whether a choice takes and gives dense row-major arrays."""
    schemas = [*choice["inputs"], *choice["outputs"]]
    return not any(schema is not None and _BLOCKED.search(schema) for schema in schemas)


def is_winograd(choice: Choice) -> bool:
    """Say whether a choice computes by Winograd's algorithm."""
    return "winograd" in choice.get("routine", "")


def _is_blocked_convolution(choice: Choice) -> bool:
    return choice["routine"].startswith(_BLOCKED_CONVOLUTIONS)


class FixedSchedule:
    """Blocked convolutions with the one schedule that most of a network's convolutions can have."""

    def __init__(self, nodes: list[Any]) -> None:
        counts: Counter[str] = Counter()
        for node in nodes:
            routines = {c["routine"] for c in node["choices"] if is_alone(c)}
            counts.update(sorted(name for name in routines if name.startswith(_BLOCKED_CONVOLUTIONS[0])))
        self.routine = max(counts, key=lambda name: (counts[name], name), default="")

    def allows(self, choice: Choice, others: list[Choice]) -> bool:
        """Say whether a choice has the schedule, or its node cannot have it and the choice is blocked all the same."""
        fixed = any(is_alone(other) and other["routine"] == self.routine for other in others)
        return choice["routine"] == self.routine if fixed else _is_blocked_convolution(choice)


@dataclass(frozen=True)
class Variant:
    """A row of the table; ``allows(op, choice, choices of the node, schedule)`` restricts the candidates.

    With ``transforms`` a view in the plain layout stands before each convolution, so that every convolution's input is
    converted from the plain layout and its output back. With ``expands`` inner graphs may compute a node.
    """

    name: str
    allows: Callable[[str, Choice, list[Choice], FixedSchedule], bool]
    transforms: bool = False
    expands: bool = False


VARIANTS_OF_TABLE = (
    Variant("plain NCHW", lambda _op, choice, _others, _fixed: is_alone(choice) and is_plain(choice)),
    Variant(
        "+ blocked convolution, transforms around each",
        lambda op, choice, others, fixed: (
            is_alone(choice) and (fixed.allows(choice, others) if op == "Conv" else is_plain(choice))
        ),
        transforms=True,
    ),
    Variant(
        "+ transforms eliminated, one schedule",
        lambda op, choice, others, fixed: is_alone(choice) and (op != "Conv" or fixed.allows(choice, others)),
    ),
    Variant("+ global selection", lambda _op, choice, _others, _fixed: is_alone(choice) and not is_winograd(choice)),
    Variant("+ Winograd", lambda _op, choice, _others, _fixed: is_alone(choice)),
    Variant("+ fusion", lambda _op, _choice, _others, _fixed: True, expands=True),
)


def with_views(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with a reshape to the same sizes before each convolution."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    shape = onnx.numpy_helper.from_array(np.zeros(4, np.int64), "plain_shape")
    changed.graph.initializer.append(shape)
    nodes = []
    for index, node in enumerate(changed.graph.node):
        if node.op_type == "Conv":
            name = f"plain_{index}"
            nodes.append(onnx.helper.make_node("Reshape", [node.input[0], shape.name], [name], name=name))
            node.input[0] = name
        nodes.append(node)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


#: Passes that would take the views out again.
_SIMPLIFICATIONS = ("remove_identities", "eliminate_reshapes")


class Compiler:
    """A model on its way, with and without views before its convolutions; each is read once for all variants."""

    def __init__(self, path: Path, threads: int) -> None:
        self._model = onnx.load(path)
        self._threads = threads
        self._problems: dict[bool, tuple[_native.Problem, list[Any], Problem]] = {}

    def _problem(self, transforms: bool) -> tuple[_native.Problem, list[Any], Problem]:
        if transforms not in self._problems:
            graph, _ = read_model(with_views(self._model) if transforms else self._model)
            names = [name for name in _native.pass_names() if not transforms or name not in _SIMPLIFICATIONS]
            problem = _native.build_problem(_native.run_passes(graph, names), "cpu", self._threads)
            self._problems[transforms] = problem, problem.nodes, selection_arrays(problem)
        return self._problems[transforms]

    def compile(self, variant: Variant) -> _native.Module:
        """Return the module of a variant; a node without an allowed choice keeps those of its own."""
        problem, nodes, arrays = self._problem(variant.transforms)
        fixed = FixedSchedule(nodes)
        costs = list(arrays.costs)
        for index, node in enumerate(nodes):
            choices = node["choices"]
            if node.get("inner") and not variant.expands:
                allowed = [choice.get("left_out", False) for choice in choices]
            else:
                allowed = [variant.allows(node["op"], choice, choices, fixed) for choice in choices]
            if not any(allowed):
                allowed = [is_alone(choice) for choice in choices]
            if any(allowed):
                costs[index] = np.where(allowed, costs[index], np.inf)
        solution = solve(Problem(costs, arrays.edges, []))
        return problem.lower(list(solution.choice), float(solution.total), self._threads)


def _inputs(path: Path) -> list[list[Any]]:
    model = onnx.load(path, load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    rng = np.random.default_rng(0)
    feeds = {
        value.name: rng.standard_normal([dim.dim_value for dim in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
        if value.name not in constants
    }
    return [list(vary(feeds, variant).values()) for variant in range(VARIANTS)]


def measure_variants(path: Path, threads: int, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return the median times of each round, in milliseconds, of each variant of a network.

    Parameters
    ----------
    path : Path
        An ONNX file of fixed shapes.
    threads : int
        Threads of every call.
    rounds : int
        How often each variant is measured, in turn.
    seconds : float
        How long each is measured in a round; three calls at least.
    """
    import time

    compiler = Compiler(path, threads)
    modules = {variant.name: compiler.compile(variant) for variant in VARIANTS_OF_TABLE}
    inputs = _inputs(path)
    expected: list[Any] | None = None
    for name, module in modules.items():
        found = module.call(inputs[0])
        expected = found if expected is None else expected
        for left, right in zip(found, expected, strict=True):
            if not np.allclose(left, right, rtol=1e-2, atol=1e-2 * float(np.abs(right).max())):
                raise ValueError(f"{name!r} computes something else")
    medians: dict[str, list[float]] = {name: [] for name in modules}
    calls = 0
    for _ in range(rounds):
        for name, module in modules.items():
            times: list[float] = []
            stop = time.perf_counter() + seconds
            while len(times) < 4 or time.perf_counter() < stop:
                calls += 1
                start = time.perf_counter()
                module.call(inputs[calls % VARIANTS])
                times.append((time.perf_counter() - start) * 1e3)
            medians[name].append(statistics.median(times[1:]))
    return medians


def section(found: dict[str, dict[str, list[float]]], threads: int, rounds: int) -> Section:
    """Return the table: variants down, networks across.

    Parameters
    ----------
    found : dict
        Times of each round by network and variant.
    threads, rounds : int
        How they were measured.
    """
    rows = []
    for variant in VARIANTS_OF_TABLE:
        row = [variant.name]
        for times in found.values():
            first, mine = times[VARIANTS_OF_TABLE[0].name], times[variant.name]
            ratio = median_interval([a / b for a, b in zip(first, mine, strict=True)])
            text = f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
            row.append(f"{text}, {page.number(statistics.median(mine))} ms")
        rows.append(row)
    text = (
        f"After Table 3 of NeoCPU: how many times faster than neo's routines on plain NCHW, with the 95 % interval of "
        f"{rounds} interleaved rounds, and the time; {threads} thread{'s' if threads > 1 else ''}. Each row adds to the one "
        "above it. Biases, batch norms and clamps are folded in all rows; neo has one physical block per instruction "
        "set, so global selection chooses routines, schedules and layouts. Choices are made by estimates."
    )
    notes = [environment.measured()]
    return Section(f"Ablation: {threads} thread" + ("s" if threads > 1 else ""), text, ["", *found], rows, notes)


def main(words: list[str] | None = None) -> None:
    """Measure the variants and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description="What each step brings.")
    parser.add_argument("--models", default=NETWORKS, help="networks, separated by commas (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice", type=float, default=0.3, help="seconds per variant and round (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    found: dict[str, dict[str, list[float]]] = {}
    for entry in find_entries("networks", arguments.models.split(",")):
        path, _ = entry.prepare(arguments.cache.resolve())
        with console.status(f"{entry.name}: compile and measure"):
            found[entry.name] = measure_variants(path, arguments.threads, arguments.rounds, arguments.slice)
        parts = [f"{name} {statistics.median(times):.3f} ms" for name, times in found[entry.name].items()]
        console.print(f"{entry.name}: {', '.join(parts)}", highlight=False)
        made = section(found, arguments.threads, arguments.rounds)
        key = f"ablation-{arguments.threads}"
        results.record_section(key, made, results.json_beside(arguments.results), arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
