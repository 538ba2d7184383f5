"""Where the time of a call goes, from traces."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neo.report.table import render_sizes, render_table

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
    """

    node: str
    op: str
    routine: str
    time_us: float
    calls: int
    gflops: float
    gbps: float
    estimate_us: float


@dataclass(frozen=True)
class Event:
    """One execution of a step: its index in `Profile.steps`; begin and end in microseconds from the call's start."""

    step: int
    start_us: float
    end_us: float


@dataclass(frozen=True)
class Profile:
    """Step times of a module: a table when printed, data by :meth:`to_json`, a picture by :meth:`timeline`.

    Attributes
    ----------
    steps : tuple of StepTime
        In order of their first execution.
    events : tuple of Event
        The executions of one call, the one whose time is the median.
    total_us : float
        The median time of a call.
    estimate_us : float
        What selection expected of a call.
    threads : int
        Threads a call could use.
    estimate_sizes, measured_sizes : mapping of str to int
        The symbols of the inputs' shapes: what selection took them for, and what they were in the calls.
    """

    steps: tuple[StepTime, ...]
    events: tuple[Event, ...]
    total_us: float
    estimate_us: float
    threads: int
    estimate_sizes: Mapping[str, int] = field(default_factory=dict)
    measured_sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        traces: Sequence[Sequence[Mapping[str, Any]]],
        *,
        threads: int,
        estimate_us: float,
        estimate_sizes: Mapping[str, int] | None = None,
        measured_sizes: Mapping[str, int] | None = None,
    ) -> Profile:
        """From traces of the same plan, at least one; items of control flow count by the steps of their bodies."""
        calls = sorted(([e for e in trace if not _is_control(e)] for trace in traces), key=_duration_ns)
        median = sorted(calls[len(calls) // 2], key=_start_ns)
        begin = min(map(_start_ns, median), default=0)
        index: dict[tuple[str, str, str], int] = {}
        for e in (*median, *(e for call in calls for e in call)):
            index.setdefault(_key(e), len(index))
        steps = []
        for key in index:
            executions = [[e for e in call if _key(e) == key] for call in calls]
            present = [x for x in executions if x]
            us = statistics.median(sum(e["end_ns"] - e["start_ns"] for e in x) / 1e3 for x in present)
            count = statistics.median_high(len(x) for x in present)
            e = present[0][0]
            work = count / max(us, 1e-3) / 1e3
            steps.append(StepTime(*key, us, count, e["flops"] * work, e["bytes"] * work, e["estimate_us"]))
        events = tuple(
            Event(index[_key(e)], (e["start_ns"] - begin) / 1e3, (e["end_ns"] - begin) / 1e3) for e in median
        )
        return cls(
            tuple(steps),
            events,
            _duration_ns(median) / 1e3,
            estimate_us,
            threads,
            estimate_sizes or {},
            measured_sizes or {},
        )

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
        alike = self.estimate_sizes == self.measured_sizes
        return (
            f"{table}\n{len(self.steps)} steps, {self.total_us:.1f} us on {self.threads} threads"
            f"{render_sizes(self.measured_sizes)}; selection expected {self.estimate_us:.1f} us"
            f"{'' if alike else render_sizes(self.estimate_sizes)}"
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
        """One call over time: a row per step, a colour per operator; the slowest 60 steps. Needs matplotlib."""
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        slowest = sorted(range(len(self.steps)), key=lambda i: -self.steps[i].time_us)[:60]
        row_of = {step: row for row, step in enumerate(sorted(slowest))}
        figure = Figure(figsize=(12, 1.2 + 0.26 * len(row_of)), layout="constrained")
        axes = figure.subplots()
        ops = [op for op, _, _ in self.by_op() if any(self.steps[i].op == op for i in row_of)]
        colours = {op: f"C{i % 10}" for i, op in enumerate(ops)}
        bars: dict[int, list[tuple[float, float]]] = {step: [] for step in row_of}
        for e in self.events:
            if e.step in bars:
                bars[e.step].append((e.start_us, e.end_us - e.start_us))
        for step, row in row_of.items():
            axes.broken_barh(bars[step], (row - 0.4, 0.8), color=colours[self.steps[step].op])
        labels = [self.steps[step].node or self.steps[step].op for step in row_of]
        axes.set_yticks(range(len(labels)), [label[-40:] for label in labels], fontsize=8)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("microseconds")
        axes.set_title(f"one call: {self.total_us:.0f} us on {self.threads} thread{'s' if self.threads > 1 else ''}")
        axes.legend(handles=[Patch(color=colours[op], label=op) for op in ops], fontsize=8, loc="best")
        return figure


def _key(event: Mapping[str, Any]) -> tuple[str, str, str]:
    return event["node"], event["op"], event["routine"]


def _start_ns(event: Mapping[str, Any]) -> int:
    return int(event["start_ns"])


def _duration_ns(call: Sequence[Mapping[str, Any]]) -> int:
    return max((e["end_ns"] for e in call), default=0) - min(map(_start_ns, call), default=0)


def _is_control(event: Mapping[str, Any]) -> bool:
    return event["op"] in ("If", "Loop", "Scan")
