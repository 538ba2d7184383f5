"""Graphi's experiments on training iterations: ``python -m benchmarks.graphi``.

For each graph every configuration of executors is measured, in turn, beside what list scheduling in virtual time makes of
the step times that were measured on one executor (the paper's Figs. 5 and 6). The same schedule then stands for machines
of more cores, critical path first beside first in first out (Table 2): these figures are simulated and say so. A step's
time on t threads is extrapolated from those on one and on all threads here; what steps that run beside each other take
from each other's caches and memory is not in it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import neo
import numpy as np
from neo import _native
from rich.console import Console
from rich.table import Table

from benchmarks.models.training import TRAINING, Training

Executors = tuple[int, int]


@dataclass(frozen=True)
class StepTimes:
    """Microseconds of the steps of a module on one executor, of one thread and of more."""

    alone: list[float]
    together: list[float]
    threads: int  # of ``together``

    def on(self, threads: int) -> list[float]:
        """Return the times on so many threads: a part of each step is shared by them, the rest is not."""
        times = []
        for alone, together in zip(self.alone, self.together, strict=True):
            gained = max(0.0, alone - together)
            shared = min(alone, gained * self.threads / (self.threads - 1)) if self.threads > 1 else 0.0
            times.append(alone - shared + shared / threads)
        return times

    @property
    def speed_up(self) -> float:
        """All steps' time on one thread by that on more."""
        return sum(self.alone) / max(1e-9, sum(self.together))


def _profiled(module: neo.Module, feeds: dict[str, np.ndarray], repeat: int) -> list[float]:
    """Microseconds of each step of the outermost block."""
    outermost = [i for i, step in enumerate(module._native.steps) if step["depth"] == 0]
    times = dict.fromkeys(outermost, 0.0)
    for step in module.profile(feeds, repeat=repeat).steps:
        if step.item in times:
            times[step.item] += step.time_us
    return list(times.values())


def _simulated(module: neo.Module, executors: int, times: Sequence[float], first_in_first_out: bool = False) -> float:
    return module._native.simulated_makespan(executors, list(times), first_in_first_out)[0]


def _configurations(cores: int) -> list[Executors]:
    """Return the symmetric configurations of all cores, and of one."""
    found = [(k, cores // k) for k in range(1, cores + 1) if cores % k == 0]
    return [(1, 1), *(e for e in found if e != (1, 1))]


def _measured(modules: Sequence[neo.Module], feeds: dict[str, np.ndarray], rounds: int) -> list[float]:
    """Return the least microseconds of a call of each, which take turns."""
    taken: list[list[float]] = [[] for _ in modules]
    for _ in range(rounds + 1):
        for times, module in zip(taken, modules, strict=True):
            start = time.perf_counter()
            module.run(feeds)
            times.append((time.perf_counter() - start) * 1e6)
    return [min(times[1:]) for times in taken]  # the first call prepares


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else math.nan


def _look_at(entry: Training, options: argparse.Namespace, console: Console) -> list[float]:
    """Print a graph's tables, and return simulated by measured time of the configurations of several threads."""
    model, feeds = entry.make()
    module = neo.compile(model, threads=options.threads, executors=(1, options.threads))
    configurations = _configurations(options.threads)
    modules = [module.with_executors(*e) for e in configurations]
    measured = _measured(modules, feeds, options.rounds)
    steps = StepTimes(
        _profiled(module.with_executors(1, 1), feeds, options.rounds),
        _profiled(module, feeds, options.rounds),
        options.threads,
    )
    table = Table(
        title=f"{entry.name}: {len(steps.alone)} steps, {steps.speed_up:.2f}x by {options.threads} threads at each"
    )
    for heading in ("executors", "measured ms", "simulated ms", "simulated / measured", "of 1 x n"):
        table.add_column(heading, justify="right")
    ratios, whole = [], measured[configurations.index((1, options.threads))]
    for (k, t), took in zip(configurations, measured, strict=True):
        expected = _simulated(module, k, steps.on(t))
        ratios += [expected / took] if k * t > 1 else []
        cells = (
            f"{k} x {t}",
            f"{took / 1e3:.2f}",
            f"{expected / 1e3:.2f}",
            f"{expected / took:.2f}",
            f"{whole / took:.2f}x",
        )
        table.add_row(*cells)
    console.print(table)
    table = Table(title=f"{entry.name}, simulated for {options.cores} cores")
    for heading in ("executors", "critical path first ms", "first in, first out ms", "ratio", "of one executor"):
        table.add_column(heading, justify="right")
    one = _simulated(module, 1, steps.on(options.cores))
    for k, t in _configurations(options.cores)[1:]:
        first, naive = (_simulated(module, k, steps.on(t), fifo) for fifo in (False, True))
        table.add_row(
            f"{k} x {t}", f"{first / 1e3:.2f}", f"{naive / 1e3:.2f}", f"{first / naive:.2f}", f"{one / first:.2f}x"
        )
    console.print(table)
    return ratios


def main() -> None:
    """Print the tables of each graph, and how far the simulation lies from what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphi", description=__doc__)
    parser.add_argument("--models", help="beginnings of names, separated by commas (default: all)")
    parser.add_argument("--threads", type=int, default=_native.default_threads(), help="of this machine (default: all)")
    parser.add_argument("--cores", type=int, default=64, help="of the simulated machine (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="calls of each configuration (default: %(default)s)")
    options = parser.parse_args()
    wanted = tuple(options.models.split(",")) if options.models else ("",)
    entries = [entry for entry in TRAINING if entry.name.startswith(wanted)]
    if not entries:
        parser.error(f"no graph is called {options.models!r}, expected beginnings of {[e.name for e in TRAINING]}")
    console = Console()
    ratios = [ratio for entry in entries for ratio in _look_at(entry, options, console)]
    if ratios:
        apart = [max(ratio, 1 / ratio) - 1 for ratio in ratios]
        console.print(
            f"simulated / measured: geometric mean {_geometric_mean(ratios):.3f}, median distance "
            f"{statistics.median(apart):.1%}, largest {max(apart):.1%}",
            highlight=False,
        )


if __name__ == "__main__":
    main()
