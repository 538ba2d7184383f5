"""Why each node runs as it does: every routine with its cost or the reason against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from neo.errors import ModelError
from neo.report.estimates import FarStep, far_steps, render_far
from neo.report.page import plain, render_page
from neo.report.subject import Subject
from neo.report.table import counted, render_sizes, render_table
from neo.report.write import write_whole

__all__ = ["Bound", "Explanation", "Makespan", "NodeExplanation", "Option", "explained_data"]


@dataclass(frozen=True)
class Bound:
    """How good a selection is.

    Attributes
    ----------
    total_us : float
        Of the choices that were made.
    bound_us : float
        No other choices cost less, limits aside.
    method : str
        How the bound was obtained.
    proof : int
        How many numbers its certificate consists of.
    others_us : mapping of str to float
        What simpler solvers would have cost.
    """

    total_us: float
    bound_us: float
    method: str
    proof: int
    others_us: Mapping[str, float]

    @property
    def gap(self) -> float:
        """How much less other choices could cost at most, as a share of the total."""
        return max(0.0, self.total_us - self.bound_us) / max(abs(self.total_us), 1e-300)

    def __str__(self) -> str:
        what = "optimal for these costs" if self.gap <= 1e-9 else f"within {self.gap:.2%} of optimal"
        others = ", ".join(
            f"{name} {'nothing allowed' if math.isinf(us) else f'{us:.1f} us ({_dearer(us, self.total_us)})'}"
            for name, us in self.others_us.items()
        )
        return f"{what}: no choice is below {self.bound_us:.1f} us ({self.method}); {others}"


def _dearer(other: float, mine: float) -> str:
    return f"{other / mine - 1:+.1%}" if mine else "+0.0%"


@dataclass(frozen=True)
class Makespan:
    """What several executors, or fewer threads than selection was for, should take for a call.

    Attributes
    ----------
    executors : (int, int)
        Their number, and the threads of each.
    time_us : float
        Of a call, by scheduling the steps' estimates.
    bound_us : float
        No schedule of the same steps takes less: the longest way through the graph, or the work shared out evenly.
    """

    executors: tuple[int, int]
    time_us: float
    bound_us: float

    def __str__(self) -> str:
        count, each = self.executors
        where = f"{counted(count, 'executor')} of {counted(each, 'thread')}"
        return f"{where}: {self.time_us:.1f} us expected; no schedule of these steps is below {self.bound_us:.1f} us"


@dataclass(frozen=True)
class Option:
    """One routine for a node.

    Attributes
    ----------
    routine : str
        With its schedule; ``absorbed`` where the node is part of a group that ends elsewhere.
    status : {"chosen", "slower", "rejected"}
        ``slower`` as a part of the whole, though its own time may be less: conversions count, and which device the
        target names. Printed as ``other`` then.
    time_us : float or None
        Estimated or measured time of the routine alone, conversions aside; None where rejected.
    reason : str
        Why it was rejected, or what it takes and gives.
    measured : bool
        Whether `time_us` was measured on this machine.
    estimate_us : float or None
        What the routine itself expects.
    change_us : float or None
        What the selection's total would gain with this routine here, conversions chosen anew and the other nodes as
        they are; None where rejected, and where the others would have to change too.
    packed_bytes, workspace_bytes : float
        Packed constants, and scratch memory of a step.
    nodes : tuple of str
        The nodes that one step of the routine runs, this one last; empty where another node's step does.
    source : {"measured", "hinted", "estimated", ""}
        Where `time_us` comes from: it was measured on this machine; it is an estimate, and another machine or build
        measured the same (`reason` says what); it is an estimate that nobody checked; empty where there is none.
    """

    routine: str
    status: str
    time_us: float | None
    reason: str
    measured: bool = False
    estimate_us: float | None = None
    change_us: float | None = None
    packed_bytes: float = 0.0
    workspace_bytes: float = 0.0
    nodes: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class NodeExplanation:
    """All options of one node, the chosen one first; a node without a name goes by that of a value it makes.

    `place` says where it runs and why there; empty where there is the CPU alone.
    """

    node: str
    op: str
    options: tuple[Option, ...]
    place: str = ""

    def __str__(self) -> str:
        chosen_us = self.options[0].time_us if self.options else None
        rows = []
        for o in self.options:
            time = _time_text(o)
            status = o.status
            if o.time_us is not None and o.status == "slower" and chosen_us and o.nodes == self.options[0].nodes:
                time += f" ({o.time_us / chosen_us:.2f}x)"
                status = "slower" if o.time_us >= chosen_us else "other"
            rows.append((status, o.routine, time, o.reason))
        title = f"{self.node or '(unnamed)'}: {self.op}" + (f"\non {self.place}" if self.place else "")
        return title + "\n" + render_table(("", "routine", "us", ""), rows, right=(2,))


@dataclass(frozen=True)
class Explanation:
    """The selection of a module. Printing it gives the table of nodes; a single node prints all its options.

    Attributes
    ----------
    nodes : tuple of NodeExplanation
    estimate_us : float
        What selection expects of a call.
    measured_us : float or None
        What a call took, where inputs were given.
    estimate_sizes, measured_sizes : mapping of str to int
        The symbols of the inputs' shapes: what selection took them for, and what they were in the measured call.
    tuning : str
        What tuning did; empty where the module was compiled without.
    bound : Bound or None
        How good the selection is; None where the problem is not known, and for a single node.
    figures : str
        Of a target with a device: which device's figures the estimates are from.
    makespan : Makespan or None
        What the executors should take; None for one executor of the team size that selection was for.
    far : tuple of FarStep
        Steps that took twice as long as estimated, or half as long: in the measured call, or where tuning measured.
    """

    nodes: tuple[NodeExplanation, ...]
    estimate_us: float
    measured_us: float | None
    estimate_sizes: Mapping[str, int]
    measured_sizes: Mapping[str, int]
    tuning: str = ""
    bound: Bound | None = None
    figures: str = ""
    makespan: Makespan | None = None
    far: tuple[FarStep, ...] = ()
    _subject: Subject | None = field(default=None, repr=False, compare=False)
    _wanted: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        subject: Subject,
        wanted: str | None,
        estimate_us: float,
        measured_us: float | None,
        estimate_sizes: Mapping[str, int],
        measured_sizes: Mapping[str, int],
        *,
        tuning: str = "",
        bound: Bound | None = None,
        figures: str = "",
        far: tuple[FarStep, ...] = (),
        schedules: Callable[[str], Mapping[str, int]] | None = None,
        is_named: bool = False,
        makespan: Makespan | None = None,
    ) -> Explanation:
        """Of all nodes, or of the wanted one.

        `schedules` gives, for the text of a workload, how many schedules each routine has for it. `is_named`: nodes are
        on the device because the target names it, not by what was measured.
        """
        nodes = subject.nodes
        explained = []
        for v in _in_order(nodes, subject.choices):
            node, choice, changes = nodes[v], subject.choices[v], subject.changes[v]
            if _is_wanted(node, wanted) and (wanted is not None or _is_taken(node, choice)):
                explained.append(_explain(node, choice, changes, schedules, is_named=is_named))
        if wanted is not None and not explained:
            raise _unknown_node(wanted, [n["name"] for n in nodes])
        if measured_us is None:
            chosen = ((n.node, n.options[0]) for n in explained if n.options and n.options[0].measured)
            tuned = (FarStep(node, o.time_us or 0.0, o.estimate_us or 0.0) for node, o in chosen)
            far = far_steps(tuned, estimate_us)
        told = (estimate_us, measured_us, estimate_sizes, measured_sizes, tuning, bound, figures, makespan, far)
        return cls(tuple(explained), *told, subject, wanted)

    @property
    def data(self) -> dict[str, Any]:
        """All of it as dicts, lists, numbers and text: what the page shows (docs/profiling.md)."""
        data = explained_data(self._subject, self.estimate_us, self.estimate_sizes, self.tuning, self._wanted)
        bound = None if self.bound is None else asdict(self.bound) | {"text": str(self.bound)}
        told = {"total_us": self.measured_us, "measured_sizes": dict(self.measured_sizes), "bound": bound}
        return dict(plain(data | told))

    def html(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML file that shows the graph, the memory and the choices; with one node, that one first.

        The default title is the model's file name, or the graph's name. The file needs no network and runs no script but its own.
        """
        write_whole(path, render_page(self.data if title is None else self.data | {"model": title}))

    def __str__(self) -> str:
        text = self._nodes_text() + (f"\n{self.bound}" if self.bound else "") + render_far(self.far)
        text += f"\n{self._totals()}{self._devices()}"
        if self.makespan:
            text += f"\n{self.makespan}"
        sources = [o.source for n in self.nodes for o in n.options if o.source]
        if "measured" in sources:
            text += "\n* a measured time; the others are estimates"
        if "hinted" in sources:
            text += "\n~ an estimate; another machine or build measured the same"
        if set(sources) & {"measured", "hinted"}:
            text += f"\n{self._sources()}"
        return text + (f"\ntuning: {self.tuning}" if self.tuning else "")

    @property
    def devices(self) -> dict[str, int]:
        """Steps by the device that runs them; ``copies``: between it and the CPU."""
        counts: dict[str, int] = {}
        for item in [] if self._subject is None else self._subject.plan["items"]:
            device = "copies" if item["routine"].startswith("copy:") else str(item["device"])
            counts[device] = counts.get(device, 0) + 1
        return counts

    def _devices(self) -> str:
        counts = self.devices
        if set(counts) <= {"cpu"}:
            return ""
        text = "\nsteps: " + ", ".join(f"{n} {device}" for device, n in sorted(counts.items()))
        if not self.figures:
            return text
        measured = "" if self.measured_us is None else "; measured was the device that is here"
        return f"{text}\nestimates: {self.figures}{measured}"

    def _nodes_text(self) -> str:
        if len(self.nodes) == 1:
            return str(self.nodes[0])
        rows = []
        ops = {n.node: n.op for n in self.nodes}
        groups = [n.options[0].nodes for n in self.nodes if n.options[0].time_us is not None]
        holders = {name: group[-1] for group in groups for name in group[:-1] if name in ops}
        for n in self.nodes:
            first = n.options[0]
            # The same routine again differs by its layouts only, which a row has no room for; one that runs fewer
            # nodes has a time that says nothing here.
            others = [
                o
                for o in n.options
                if o.status == "slower"
                and o.time_us is not None
                and o.routine != first.routine
                and o.nodes == first.nodes
            ]
            best = min(others, key=lambda o: o.time_us or 0.0, default=None)
            against = f"{best.routine} {_time_text(best)}" if best else ""
            op = (
                " + ".join(dict.fromkeys(ops[name] for name in first.nodes if name in ops))
                if len(first.nodes) > 1
                else n.op
            )
            routine = f"in {holders[n.node]}" if n.node in holders else first.routine
            rows.append((n.node or "-", op, routine, _time_text(first), against, n.place))
        titles = ("node", "op", "chosen", "us", "best other, us", "where, and why")
        columns = len(titles) if any(n.place for n in self.nodes) else len(titles) - 1
        return render_table(titles[:columns], [row[:columns] for row in rows], right=(3,))

    def _sources(self) -> str:
        """Where the times of the chosen options come from."""
        chosen = [o.source for n in self.nodes for o in n.options if o.status == "chosen" and o.source]
        words = {"measured": "measured here", "hinted": "measured elsewhere only", "estimated": "estimated only"}
        told = ", ".join(f"{chosen.count(source)} {word}" for source, word in words.items() if source in chosen)
        return f"times of the chosen: {told}"

    def _totals(self) -> str:
        total = f"selection's total {self.estimate_us:.1f} us"
        if self.measured_us is None:
            return total + render_sizes(self.estimate_sizes)
        measured = f"measured {self.measured_us:.1f} us"
        if self.measured_sizes == self.estimate_sizes:
            ratio = self.measured_us / max(self.estimate_us, 1e-3)
            return f"{total}; {measured} ({ratio:.2f}x){render_sizes(self.estimate_sizes)}"
        return f"{total}{render_sizes(self.estimate_sizes)}; {measured}{render_sizes(self.measured_sizes)}"


def _unknown_node(wanted: str, known: Sequence[str]) -> ModelError:
    names = [repr(name) for name in known if name]
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return ModelError(f"[explain] node must be in the compiled graph. Got {wanted!r}, expected one of {listed}")


# Behind a time, by where it comes from.
_MARKS = {"measured": "*", "hinted": "~"}


def _time_text(option: Option) -> str:
    if option.time_us is None:
        return ""
    return f"{option.time_us:.2f}{_MARKS.get(option.source, '')}"


def explained_data(
    subject: Subject | None,
    estimate_us: float,
    estimate_sizes: Mapping[str, int],
    tuning: str,
    wanted: str | None = None,
) -> dict[str, Any]:
    """What a page shows of a module that nobody has called; docs/profiling.md says what each key is."""
    if subject is None:
        msg = (
            "[report] a page must be of a module. Got a report made by hand, expected Module.profile or Module.explain"
        )
        raise ModelError(msg)
    drawing = subject.drawing()
    drawn = {v: n["id"] for n in drawing["nodes"] for v in n["variables"]}
    choices = []
    for i, (node, choice, changes) in enumerate(zip(subject.nodes, subject.choices, subject.changes, strict=False)):
        if not _is_taken(node, choice):
            continue
        explained = _explain(node, choice, changes)
        options = [{name: getattr(o, name) for name in _OPTION_KEYS} for o in explained.options]
        entry = {"id": i, "node": explained.node, "op": explained.op, "drawn": drawn.get(i, -1)}
        choices.append(entry | {"wanted": _is_wanted(node, wanted), "options": options})
    return {
        "format": 1,
        "model": subject.model,
        "target": subject.target,
        "threads": subject.threads,
        "executors": list(subject.executors),
        "tuning": tuning,
        "estimate_us": estimate_us,
        "total_us": None,
        "estimate_sizes": dict(estimate_sizes),
        "measured_sizes": {},
        "machine": None,
        "wanted": wanted,
        "steps": [s | {"time_us": None, "calls": 0, "gflops": None, "gbps": None} for s in subject.steps()],
        "events": [],
        "spans": [],
        "graph": drawing,
        "memory": subject.memory(),
        "choices": choices,
    }


_OPTION_KEYS = (
    *("routine", "status", "time_us", "measured", "estimate_us", "change_us"),
    *("packed_bytes", "workspace_bytes", "nodes", "reason", "source"),
)


def _is_wanted(node: Mapping[str, Any], wanted: str | None) -> bool:
    return wanted is None or wanted == node["name"] or wanted in node["outputs"]


def _explain(
    node: Mapping[str, Any],
    choice: int,
    changes: Sequence[float],
    schedules: Callable[[str], Mapping[str, int]] | None = None,
    *,
    is_named: bool = False,
) -> NodeExplanation:
    options = []
    known: dict[str, Mapping[str, int]] = {}
    for i, c in enumerate(node["choices"]):
        change = changes[i] if math.isfinite(changes[i]) else None
        status = "chosen" if i == choice else "slower"
        if "routine" in c:
            takes = ", ".join(s for s in c["inputs"] if s)
            note = f"; {c['note']}" if "note" in c else ""
            if schedules is not None:
                if c["workload"] not in known:
                    known[c["workload"]] = schedules(c["workload"])
                count = known[c["workload"]].get(c["routine"].split("{")[0], 1)
                note += f"; one of {count} schedules" if count > 1 else ""
            hint = c.get("hint")
            if hint is not None:
                note += f"; {hint.time_us:.2f} us on {hint.context}"
            together = f"; with {', '.join(c['nodes'][:-1])}" if len(c["nodes"]) > 1 else ""
            options.append(
                Option(
                    c["routine"],
                    status,
                    c["time_us"],
                    f"{takes} -> {', '.join(c['outputs'])}{together}{note}",
                    c["measured"],
                    c["estimate_us"],
                    change,
                    c["packed_bytes"],
                    c["workspace_bytes"],
                    tuple(c["nodes"]),
                    "measured" if c["measured"] else "estimated" if hint is None else "hinted",
                )
            )
        elif "expansion" in c:
            options.append(_expansion(c, status, change))
        elif c["left_out"] and node.get("inner"):
            options.append(Option("not taken", status, None, "part of another way to compute a node"))
        elif c["left_out"]:
            options.append(Option("left out", status, None, "a constant, or computed by each of its readers"))
        elif c["absorbed_by"] is None:
            options.append(Option("block", status, None, "control flow: lowered to a block of the plan"))
        else:
            options.append(Option("absorbed", status, None, f"part of {c['absorbed_by']}"))
    options.sort(key=lambda o: (o.status != "chosen", o.time_us if o.time_us is not None else float("inf")))
    options += [Option(name, "rejected", None, reason) for name, reason in node["rejections"]]
    name = node["name"] or _first(node["outputs"])
    return NodeExplanation(name, node["op"], tuple(options), _place(node, choice, changes, is_named))


def _expansion(choice: Mapping[str, Any], status: str, change: float | None) -> Option:
    """An inner graph, by the best routines for its nodes."""
    steps = choice.get("steps", [])
    is_measured = bool(steps) and all(s["measured"] or s["kind"] == "view" for s in steps)
    names = [f"{s['nodes'][-1].rpartition('/')[2]} by {s['routine']}" for s in steps]
    together = f"; with {', '.join(choice['nodes'][:-1])}" if len(choice["nodes"]) > 1 else ""
    return Option(
        choice["expansion"],
        status,
        sum(s["time_us"] for s in steps) if steps else None,
        f"{', '.join(names)}{together}" if steps else "no selection has it",
        is_measured,
        sum(s["estimate_us"] for s in steps) if steps else None,
        change,
        sum(s["packed_bytes"] for s in steps),
        max((s["workspace_bytes"] for s in steps), default=0.0),
        tuple(choice["nodes"]),
        "measured" if is_measured else "estimated",
    )


def _in_order(nodes: Sequence[Mapping[str, Any]], choices: Sequence[int]) -> list[int]:
    """The variables of nodes, those of an inner graph behind the node that it computes."""
    order = []
    for v, node in enumerate(nodes):
        if not node.get("inner"):
            order.append(v)
            chosen = node["choices"][choices[v]]
            order += [n["variable"] for n in chosen["graph"]["nodes"]] if "expansion" in chosen else []
    behind = set(order)
    return order + [v for v in range(len(nodes)) if v not in behind]


def _is_taken(node: Mapping[str, Any], choice: int) -> bool:
    """Whether a node is the graph's, or one of an inner graph that was chosen."""
    return not (node.get("inner") and node["choices"][choice].get("left_out"))


def _place(node: Mapping[str, Any], choice: int, changes: Sequence[float], is_named: bool) -> str:
    """Where a node runs, and what speaks against the other device."""
    chosen = node["choices"][choice]
    reasons = [f"{name}: {reason}" for name, reason in node["rejections"] if name.startswith("gpu")]
    places = [_device(c) for c in node["choices"]]
    if not reasons and set(places) <= {"", "cpu"}:
        return ""
    if "routine" not in chosen:
        return f"{chosen['absorbed_by']}'s device" if chosen.get("absorbed_by") else ""
    here = places[choice]
    others = {place for place in places if place not in ("", here)}
    if not others:
        why = reasons[0] if reasons and here == "cpu" else "no routine of another device takes it"
        return f"{here}: {why}"
    if is_named and here != "cpu":
        return f"{here}: the target names it, and not both devices were measured"
    change = min(changes[i] for i, place in enumerate(places) if place in others)
    against = f"{change:+.1f} us" if math.isfinite(change) else "another node would have to go along"
    return f"{here}: on {' or '.join(sorted(others))} {against}"


def _device(choice: Mapping[str, Any]) -> str:
    return str(choice["outputs"][0]).partition(":")[0] if choice.get("outputs") else ""


def _first(outputs: Sequence[str]) -> str:
    return next((name for name in outputs if name), "")
