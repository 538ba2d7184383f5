"""Where the time of a call goes, from traces."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neo.report.table import render_table

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

__all__ = ["Profile", "StepTime"]


@dataclass(frozen=True)
class StepTime:
    """One step of a plan.

    Attributes
    ----------
    node, op, routine : str
        The model's node, its operator, and the routine that runs it.
    time_us : float
        Microseconds per call, summed over iterations; the median over calls.
    calls : int
        Executions per call of the module.
    gflops : float
        10^9 floating point operations per second.
    gbps : float
        10^9 bytes per second, counting each operand once.
    estimate_us : float
        What selection expected of one execution.
    start_us : float
        Start of the first execution after the start of the call.
    """

    node: str
    op: str
    routine: str
    time_us: float
    calls: int
    gflops: float
    gbps: float
    estimate_us: float
    start_us: float


@dataclass(frozen=True)
class Profile:
    """Step times of a module: a table when printed, data by :meth:`to_json`, a picture by :meth:`timeline`."""

    steps: tuple[StepTime, ...]
    total_us: float
    estimate_us: float
    threads: int

    @classmethod
    def of(cls, traces: Sequence[Sequence[Mapping[str, Any]]], *, threads: int, estimate_us: float) -> Profile:
        """Medians over traces of the same plan; items of control flow contain the steps of their bodies."""
        totals = []
        times: dict[tuple[str, str, str], list[float]] = {}
        facts: dict[tuple[str, str, str], dict[str, float]] = {}
        for trace in traces:
            leaves = [e for e in trace if not e["routine"].startswith(("cpu/if", "cpu/loop", "cpu/scan"))]
            begin = min((e["start_ns"] for e in trace), default=0)
            totals.append((max((e["end_ns"] for e in trace), default=0) - begin) / 1e3)
            sums: dict[tuple[str, str, str], float] = {}
            counts: dict[tuple[str, str, str], int] = {}
            for e in leaves:
                key = (e["node"], e["op"], e["routine"])
                sums[key] = sums.get(key, 0.0) + (e["end_ns"] - e["start_ns"]) / 1e3
                counts[key] = counts.get(key, 0) + 1
                facts.setdefault(
                    key,
                    {
                        "flops": e["flops"],
                        "bytes": e["bytes"],
                        "estimate": e["estimate_us"],
                        "start": (e["start_ns"] - begin) / 1e3,
                    },
                )
            for key, total in sums.items():
                times.setdefault(key, []).append(total)
                facts[key]["calls"] = counts[key]
        steps = []
        for key, samples in times.items():
            us = statistics.median(samples)
            f = facts[key]
            work = f["calls"] / max(us, 1e-3) / 1e3
            steps.append(
                StepTime(*key, us, int(f["calls"]), f["flops"] * work, f["bytes"] * work, f["estimate"], f["start"])
            )
        steps.sort(key=lambda s: s.start_us)
        return cls(tuple(steps), statistics.median(totals) if totals else 0.0, estimate_us, threads)

    def by_op(self) -> list[tuple[str, int, float]]:
        """Operator, steps, microseconds; the slowest first."""
        groups: dict[str, list[float]] = {}
        for s in self.steps:
            groups.setdefault(s.op, []).append(s.time_us)
        return sorted(((op, len(t), sum(t)) for op, t in groups.items()), key=lambda g: -g[2])

    def table(self, limit: int | None = None) -> str:
        """Steps as text, the slowest first, at most `limit`."""
        ranked = sorted(self.steps, key=lambda s: -s.time_us)[:limit]
        rows = [
            (
                s.node or "-",
                s.op,
                s.routine,
                f"{s.time_us:.1f}",
                f"{100 * s.time_us / max(self.total_us, 1e-9):.1f}",
                f"{s.gflops:.1f}",
                f"{s.gbps:.1f}",
            )
            for s in ranked
        ]
        table = render_table(("node", "op", "routine", "us", "%", "GFLOP/s", "GB/s"), rows, right=(3, 4, 5, 6))
        return (
            f"{table}\n{len(self.steps)} steps, {self.total_us:.1f} us on {self.threads} threads; "
            f"selection expected {self.estimate_us:.1f} us"
        )

    def __str__(self) -> str:
        return self.table()

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The profile as JSON; written to `path` when one is given."""
        text = json.dumps(asdict(self), indent=1)
        if path is not None:
            target = Path(path)
            part = target.with_name(target.name + ".part")
            part.write_text(text)
            part.replace(target)
        return text

    def timeline(self) -> Figure:
        """Steps over time, one colour per operator. Needs matplotlib."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(12, 0.6 + 0.28 * min(len(self.steps), 60)), layout="constrained")
        axes = figure.subplots()
        ops = [op for op, _, _ in self.by_op()]
        colours = {op: f"C{i % 10}" for i, op in enumerate(ops)}
        shown = sorted(sorted(self.steps, key=lambda s: -s.time_us)[:60], key=lambda s: s.start_us)
        for row, s in enumerate(shown):
            axes.barh(row, s.time_us, left=s.start_us, color=colours[s.op], height=0.8)
        axes.set_yticks(range(len(shown)), [f"{s.node or s.op}"[-40:] for s in shown], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("microseconds")
        axes.set_title(f"{self.total_us:.0f} us on {self.threads} threads")
        present = [op for op in ops if any(s.op == op for s in shown)]
        handles = [axes.barh(0, 0, color=colours[op]) for op in present]
        axes.legend(handles, present, fontsize=8, loc="best")
        return figure
