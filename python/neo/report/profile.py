"""Where the time of a call goes, from traces."""

from __future__ import annotations

import bisect
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neo.report.compare import Comparison
from neo.report.estimates import FarStep, far_steps, render_far
from neo.report.explain import explained_data
from neo.report.page import plain, render_page
from neo.report.subject import Machine, Subject
from neo.report.table import counted, render_sizes, render_table
from neo.report.trace import trace_events
from neo.report.write import write_whole

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

__all__ = ["Event", "Profile", "Record", "Span", "StepTime"]


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
    flops, bytes : float
        Work of one execution.
    item : int
        The step's number in :attr:`Module.steps`.
    """

    node: str
    op: str
    routine: str
    time_us: float
    calls: int
    gflops: float
    gbps: float
    estimate_us: float
    flops: float = 0.0
    bytes: float = 0.0
    item: int = -1


@dataclass(frozen=True)
class Event:
    """One execution of a step: its index in `Profile.steps`; begin and end in microseconds from the call's start.

    `iteration` is that of the innermost loop, -1 outside of loops; `executor` is the number of the one that ran it.
    """

    step: int
    start_us: float
    end_us: float
    iteration: int = -1
    executor: int = 0


@dataclass(frozen=True)
class Span:
    """A stretch of one thread's work on a step; microseconds from the call's start. Thread 0 is the caller's."""

    thread: int
    step: int
    start_us: float
    end_us: float


@dataclass(frozen=True)
class Record:
    """One call: its events in order of their end, (thread, start, end) where threads worked, sizes of its regions."""

    events: Sequence[Mapping[str, Any]]
    spans: Sequence[tuple[int, int, int]]
    regions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Profile:
    """Step times of a module: a table when printed, plain data, one HTML file, a trace for Perfetto, a timeline.

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
        Threads a call could use, of all executors.
    estimate_sizes, measured_sizes : mapping of str to int
        The symbols of the inputs' shapes: what selection took them for, and what they were in the calls.
    spans : tuple of Span
        When each thread worked in the call of `events`.
    machine : Machine or None
        What this machine can do at most with these threads.
    """

    steps: tuple[StepTime, ...]
    events: tuple[Event, ...]
    total_us: float
    estimate_us: float
    threads: int
    estimate_sizes: Mapping[str, int] = field(default_factory=dict)
    measured_sizes: Mapping[str, int] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    machine: Machine | None = None
    _controls: tuple[Event, ...] = field(default=(), repr=False)
    _subject: Subject | None = field(default=None, repr=False, compare=False)
    _regions: Sequence[Mapping[str, Any]] = field(default=(), repr=False, compare=False)
    _tuning: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        *,
        subject: Subject,
        machine: Machine | None,
        estimate_us: float,
        estimate_sizes: Mapping[str, int] | None = None,
        measured_sizes: Mapping[str, int] | None = None,
        tuning: str = "",
    ) -> Profile:
        """From records of calls of the same plan, at least one; control flow counts by the steps of its bodies."""
        control = {number for number, item in enumerate(subject.plan["items"]) if item["bodies"]}
        calls = sorted(([e for e in r.events if e["item"] not in control] for r in records), key=_duration_ns)
        chosen = calls[len(calls) // 2]
        record = next(r for r in records if chosen == [e for e in r.events if e["item"] not in control])
        median = sorted(chosen, key=_start_ns)
        begin = min(map(_start_ns, record.events), default=0)
        index: dict[int, int] = {}
        for e in (*median, *(e for call in calls for e in call)):
            index.setdefault(e["item"], len(index))
        executions: dict[int, list[list[Mapping[str, Any]]]] = {item: [] for item in index}
        for call in calls:
            of_call: dict[int, list[Mapping[str, Any]]] = {}
            for e in call:
                of_call.setdefault(e["item"], []).append(e)
            for item, found in of_call.items():
                executions[item].append(found)
        steps = []
        for item, present in executions.items():
            us = statistics.median(sum(e["end_ns"] - e["start_ns"] for e in x) / 1e3 for x in present)
            count = statistics.median_high(len(x) for x in present)
            e = present[0][0]
            work = count / max(us, 1e-3) / 1e3
            steps.append(
                StepTime(
                    e["node"],
                    e["op"],
                    e["routine"],
                    us,
                    count,
                    e["flops"] * work,
                    e["bytes"] * work,
                    e["estimate_us"],
                    e["flops"],
                    e["bytes"],
                    item,
                )
            )

        def event(step: int, e: Mapping[str, Any]) -> Event:
            return Event(
                step, (e["start_ns"] - begin) / 1e3, (e["end_ns"] - begin) / 1e3, e["iteration"], e["executor"]
            )

        events = tuple(event(index[e["item"]], e) for e in median)
        return cls(
            tuple(steps),
            events,
            _duration_ns(median) / 1e3,
            estimate_us,
            subject.threads,
            estimate_sizes or {},
            measured_sizes or {},
            _spans(
                events, [(t, (a - begin) / 1e3, (b - begin) / 1e3) for t, a, b in record.spans], subject.executors[1]
            ),
            machine,
            tuple(event(e["item"], e) for e in sorted(record.events, key=_start_ns) if e["item"] in control),
            subject,
            record.regions,
            tuning,
        )

    @property
    def executors(self) -> tuple[int, int]:
        """Their number, and the threads of each."""
        return (1, self.threads) if self._subject is None else self._subject.executors

    @property
    def busy(self) -> tuple[float, ...]:
        """The share of the call in which each executor ran a step."""
        worked = [0.0] * self.executors[0]
        for e in self.events:
            worked[e.executor] += e.end_us - e.start_us
        begin = min((e.start_us for e in self.events), default=0.0)
        lasted = max((e.end_us for e in self.events), default=0.0) - begin
        return tuple(w / lasted if lasted > 0 else 0.0 for w in worked)

    @property
    def data(self) -> dict[str, Any]:
        """All of it as dicts, lists, numbers and text: what the page shows, and JSON holds (docs/profiling.md)."""
        item_of = [s.item for s in self.steps]
        measured = {s.item: s for s in self.steps}
        data = explained_data(self._subject, self.estimate_us, self.estimate_sizes, self._tuning)
        for control in self._controls:
            step = data["steps"][control.step]
            step["time_us"] = (step["time_us"] or 0.0) + control.end_us - control.start_us
            step["calls"] += 1
        for step in data["steps"]:
            if (found := measured.get(step["id"])) is not None:
                step |= {"time_us": found.time_us, "calls": found.calls, "flops": found.flops, "bytes": found.bytes}
                step |= {"gflops": found.gflops, "gbps": found.gbps}
        events = [(item_of[e.step], e) for e in self.events] + [(e.step, e) for e in self._controls]
        events.sort(key=lambda pair: (pair[1].start_us, -pair[1].end_us))
        if self._subject is not None:
            data["memory"] = self._subject.memory(self._regions)
        machine = self.machine
        data |= {
            "total_us": self.total_us,
            "measured_sizes": dict(self.measured_sizes),
            "machine": None if machine is None else {"gflops": machine.gflops, "gbps": machine.gbps},
            "events": [
                {
                    "step": item,
                    "start_us": e.start_us,
                    "end_us": e.end_us,
                    "iteration": e.iteration,
                    "executor": e.executor,
                }
                for item, e in events
            ],
            "spans": [
                {"thread": s.thread, "step": item_of[s.step], "start_us": s.start_us, "end_us": s.end_us}
                for s in self.spans
            ],
        }
        return dict(plain(data))

    @property
    def far(self) -> tuple[FarStep, ...]:
        """Steps that took twice as long as estimated, or half as long; none where other sizes were estimated."""
        if self.estimate_sizes != self.measured_sizes:
            return ()
        steps = (FarStep(s.node, s.time_us / max(s.calls, 1), s.estimate_us) for s in self.steps)
        return far_steps(steps, self.total_us)

    def html(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML file that shows the graph, the timeline, the roofline, the memory and every choice.

        The default title is the model's file name, or the graph's name. The file needs no network and runs no script but its own.
        """
        write_whole(path, render_page(self.data if title is None else self.data | {"model": title}))

    def compare(self, other: Profile, names: tuple[str, str] = ("first", "second")) -> Comparison:
        """Both profiles by the nodes of the model: of two targets, before and after tuning, of a model and its quantized form."""
        return Comparison.of(self, other, names)

    def trace(self, path: str | PathLike[str]) -> None:
        """Write one call as a trace for Perfetto or chrome://tracing."""
        write_whole(path, json.dumps(plain(trace_events(self.data)), indent=1, allow_nan=False))

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
        where = counted(self.threads, "thread")
        if self.executors[0] > 1:
            busy = ", ".join(f"{share:.0%}" for share in self.busy)
            each = counted(self.executors[1], "thread")
            where = f"{self.executors[0]} executors of {each}, busy {busy} of the time"
        return (
            f"{table}{render_far(self.far)}\n{len(self.steps)} steps, {self.total_us:.1f} us on {where}"
            f"{render_sizes(self.measured_sizes)}; selection expected {self.estimate_us:.1f} us"
            f"{'' if alike else render_sizes(self.estimate_sizes)}"
        )

    def __str__(self) -> str:
        return self.table()

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """:attr:`data` as JSON; written to `path` when one is given."""
        text = json.dumps(self.data, indent=1, allow_nan=False)
        if path is not None:
            write_whole(path, text)
        return text

    def timeline(self) -> Figure:
        """One call over time: a row per step, a colour per operator; the slowest 60 steps. Needs matplotlib."""
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        slowest = sorted(range(len(self.steps)), key=lambda i: -self.steps[i].time_us)[:_MAX_ROWS]
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
        axes.set_yticks(range(len(labels)), [_shortened(label) for label in labels], fontsize=8)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel("microseconds")
        left_out = len(self.steps) - len(row_of)
        shown = f", the slowest {len(row_of)} of {len(self.steps)} steps" if left_out else ""
        threads = counted(self.threads, "thread")
        axes.set_title(f"one call: {self.total_us:.0f} us on {threads}{shown}")
        axes.legend(handles=[Patch(color=colours[op], label=op) for op in ops], fontsize=8, loc="best")
        return figure


# Rows of a timeline.
_MAX_ROWS = 60
_MAX_LABEL = 40


def _shortened(label: str) -> str:
    """A node's name, of a long one the end from a whole part on, which says most."""
    if len(label) <= _MAX_LABEL:
        return label
    parts = label[-_MAX_LABEL:]
    for separator in "/.":
        if separator in parts[:-1]:
            parts = parts.partition(separator)[2]
            break
    return f"...{parts}"


def _start_ns(event: Mapping[str, Any]) -> int:
    return int(event["start_ns"])


def _duration_ns(call: Sequence[Mapping[str, Any]]) -> int:
    return max((e["end_ns"] for e in call), default=0) - min(map(_start_ns, call), default=0)


def _spans(events: Sequence[Event], work: Sequence[tuple[int, float, float]], threads: int) -> tuple[Span, ...]:
    """The work of the threads, cut where steps end; a step that asked no other thread is its leader's own work.

    `threads` are those of one executor, whose steps follow each other.
    """
    own: dict[int, list[Event]] = {}
    for e in events:
        own.setdefault(e.executor, []).append(e)
    starts = {executor: [e.start_us for e in found] for executor, found in own.items()}
    spans = []
    shared = set()
    for thread, start, end in work:
        executor = thread // threads
        steps = own.get(executor, [])
        i = max(bisect.bisect_right(starts.get(executor, []), start) - 1, 0)
        while i < len(steps) and steps[i].start_us < end:
            lo, hi = max(start, steps[i].start_us), min(end, steps[i].end_us)
            if lo < hi:
                spans.append(Span(thread, steps[i].step, lo, hi))
                shared.add((executor, i))
            i += 1
    for executor, steps in own.items():
        alone = (e for i, e in enumerate(steps) if (executor, i) not in shared)
        spans += [Span(executor * threads, e.step, e.start_us, e.end_us) for e in alone]
    return tuple(sorted(spans, key=lambda s: (s.thread, s.start_us)))
