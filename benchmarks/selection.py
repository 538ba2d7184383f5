"""How far other solvers are from the proven choice, and how long each takes: ``python -m benchmarks.selection``.

Every network's selection problem is solved with all candidates; the bound is checked by the checker of the tests, which
shares no code with the solver. Costs are estimates, so the gaps say what a solver would lose if the estimates were
true.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neo import _native
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import InfeasibleError, Problem, Solution, solve, uniform
from rich.console import Console

from benchmarks import environment, page, results
from benchmarks.results import Section
from benchmarks.suites import find_entries
from tests.select.certificate import check

#: The solvers of the table: what it calls them, and their name to ``neo.select.solve``.
SOLVERS = {"greedy": "greedy", "greedy + improve": "improve", "PBQP": "pbqp", "DPRS": "dprs"}
ALLOWED_GAP = 0.005

OTHER = "other"
_BLOCK = re.compile(r"[io]c_bn=\d+")


@dataclass
class Found:
    """What was found out about a network's problem; a gap is the share by which a total exceeds the best one."""

    network: str
    candidates: list[int]
    variables: int
    edges: int
    arrays_ms: float
    solve_ms: float
    solution: Solution
    check_s: float
    gaps: dict[str, float | None] = field(default_factory=dict)
    times_ms: dict[str, float] = field(default_factory=dict)
    fixed: str = ""

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        numbers = sorted(self.candidates)
        state = "optimum" if self.solution.proven else f"gap {self.solution.gap:.2%}"
        assert self.solution.certificate is not None
        proof = f"{state}, {self.solution.certificate.numbers} numbers"
        return [
            self.network,
            f"{len(numbers)}",
            f"{statistics.fmean(numbers):.1f} ({numbers[-1]})",
            f"{self.variables}, {self.edges}",
            f"{self.arrays_ms + self.solve_ms:.1f}",
            proof,
            *(_gap_text(self.gaps[name]) for name in (*SOLVERS, "fixed block")),
        ]


def _gap_text(gap: float | None) -> str:
    return "nothing allowed" if gap is None else f"{gap:.2%}"


def _best_ms(work: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times)


def blocks_of(nodes: Sequence[Any], sizes: Sequence[int]) -> list[list[str | None]]:
    """Return the group of every choice for `neo.select.uniform`: the block sizes of its convolution.

    A convolution's other choices are in a group of their own; what is no convolution is in every group.
    """

    def block(op: str, choice: Any) -> str | None:
        sizes = " ".join(_BLOCK.findall(choice.get("routine", "")))
        return sizes or (OTHER if op == "Conv" and "routine" in choice else None)

    groups = [[block(node["op"], choice) for choice in node["choices"]] for node in nodes]
    return groups + [[None] * n for n in sizes[len(groups) :]]


def commonest(groups: Sequence[Sequence[str | None]]) -> list[str]:
    """Return the block sizes that the most convolutions can have."""
    counts = Counter(g for parts in groups for g in dict.fromkeys(parts) if g not in (None, OTHER))
    most = max(counts.values(), default=0)
    return [str(g) for g, n in counts.items() if n == most] or [OTHER]


def find(network: str, path: Path, threads: int, repeat: int) -> Found:
    """Solve a network's problem in every way.

    Parameters
    ----------
    network : str
        Its name.
    path : Path
        An ONNX file.
    threads : int
        For which costs are estimated.
    repeat : int
        The time is the least of so many.
    """
    graph, _ = read_model(str(path))
    native = _native.build_problem(_native.run_passes(graph), "cpu", threads)
    problem = selection_arrays(native)
    arrays_ms = _best_ms(lambda: selection_arrays(native), repeat)
    solve_ms = _best_ms(lambda: solve(problem), repeat)
    solution = solve(problem, certify=True)
    start = time.perf_counter()
    check(problem, solution.certificate)
    check_s = time.perf_counter() - start
    nodes = native.nodes
    counts = [len(node["choices"]) for node in nodes]
    found = Found(network, counts, len(problem.sizes), len(problem.flat.pairs), arrays_ms, solve_ms, solution, check_s)

    def note(name: str, problem: Problem, choice: Sequence[int], seconds: float) -> None:
        total = problem.evaluate(choice)
        found.gaps[name] = total / solution.total - 1 if total < float("inf") else None
        found.times_ms[name] = seconds * 1e3

    for name, method in SOLVERS.items():
        other = solve(problem, method=method)
        note(name, problem, other.choice, other.seconds)
    start = time.perf_counter()
    try:
        groups = blocks_of(nodes, problem.sizes)
        group, fixed = uniform(problem, groups, commonest(groups))
    except InfeasibleError:
        found.gaps["fixed block"] = None
    else:
        note("fixed block", problem, fixed.choice, time.perf_counter() - start)
        found.fixed = str(group)
    return found


def section(found: Sequence[Found], threads: int) -> Section:
    """Return the table: networks down, solvers across.

    Parameters
    ----------
    found : sequence of Found
        One per network.
    threads : int
        For which costs were estimated.
    """
    slowest = max(found, key=lambda f: f.solve_ms)
    reached = []
    for name in (*SOLVERS, "fixed block"):
        gaps = [f.gaps[name] for f in found]
        shares = [1 / (1 + gap) for gap in gaps if gap is not None]
        if not shares:
            continue
        none = f", nothing allowed on {gaps.count(None)}" if None in gaps else ""
        mean = page.geometric_mean(shares)
        reached.append(f"{name} {mean:.1%} (worst {min(shares):.1%}{none})")
    met = sum(f.solution.gap <= ALLOWED_GAP and f.solve_ms < 1e3 for f in found)
    text = (
        f"How much dearer than the proven choice other solvers' choices are, by estimates for {threads} thread"
        f"{'s' if threads > 1 else ''}, all candidates on. {met} of {len(found)} are solved in less than 1 s to the "
        f"optimum or a gap of at most {ALLOWED_GAP:.1%}; every bound was verified by a checker that shares no code with "
        f"the solver. The slowest is {slowest.network} with {slowest.solve_ms:.1f} ms; ms: the least of several, from "
        f"the compiler's arrays to the choice. Share of the optimum's speed that is reached, geometric mean: "
        f"{'; '.join(reached)}. PBQP is the heuristic that NeoCPU saw at 88 % or better; a fixed block is the best of "
        "the block sizes that the most convolutions can have, for all of them, with the rest chosen exactly."
    )
    head = ["network", "nodes", "candidates, mean (most)", "variables, edges", "ms", "proof"]
    head += [f"{name}: gap" for name in (*SOLVERS, "fixed block")]
    place = environment.place()
    notes = [f"Measured on {place}; commit {environment.commit()}.", "`python -m benchmarks.selection`"]
    return Section("Selection: gaps and times of the solvers", text, head, [f.cells for f in found], notes)


def main(words: list[str] | None = None) -> None:
    """Solve, check, print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description="Gaps and times of solvers.")
    parser.add_argument("--models", help="networks, separated by commas (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=7, help="how often each is solved (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    found = []
    for entry in find_entries("networks", arguments.models.split(",") if arguments.models else None):
        path, _ = entry.prepare(arguments.cache.resolve())
        one = find(entry.name, path, arguments.threads, arguments.repeat)
        found.append(one)
        gaps = ", ".join(f"{n} {_gap_text(g)} in {one.times_ms.get(n, 0):.1f} ms" for n, g in one.gaps.items())
        console.print(
            f"{one.network}: {one.solution.method}, arrays {one.arrays_ms:.2f} ms, solved in {one.solve_ms:.2f} ms, "
            f"bound checked in {one.check_s:.2f} s; {gaps} ({one.fixed})",
            highlight=False,
        )
        console.print(f"  candidates per node: {' '.join(map(str, one.candidates))}", highlight=False)
    made = section(found, arguments.threads)
    results.record_section("selection", made, results.json_beside(arguments.results), arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
