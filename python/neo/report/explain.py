"""Why each node runs as it does: every routine with its cost or the reason against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neo.errors import ModelError
from neo.report.table import render_sizes, render_table

__all__ = ["Explanation", "NodeExplanation", "Option", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of a plan: the model's node and operator, its routine, expected time, work, and depth of nesting."""

    node: str
    op: str
    routine: str
    estimate_us: float
    flops: float
    bytes: float
    depth: int


@dataclass(frozen=True)
class Option:
    """One routine for a node.

    Attributes
    ----------
    routine : str
        With its schedule; ``absorbed`` where the node is part of a group that ends elsewhere.
    status : {"chosen", "slower", "rejected"}
    time_us : float or None
        Estimated or measured time of the routine alone, conversions aside; None where rejected.
    reason : str
        Why it was rejected, or what it takes and gives.
    measured : bool
        Whether `time_us` was measured on this machine.
    estimate_us : float or None
        What the routine itself expects.
    """

    routine: str
    status: str
    time_us: float | None
    reason: str
    measured: bool = False
    estimate_us: float | None = None


@dataclass(frozen=True)
class NodeExplanation:
    """All options of one node, the chosen one first; a node without a name goes by that of a value it makes."""

    node: str
    op: str
    options: tuple[Option, ...]

    def __str__(self) -> str:
        chosen_us = self.options[0].time_us if self.options else None
        rows = []
        for o in self.options:
            time = _time_text(o)
            if o.time_us is not None and o.status == "slower" and chosen_us:
                time += f" ({o.time_us / chosen_us:.2f}x)"
            rows.append((o.status, o.routine, time, o.reason))
        title = f"{self.node or '(unnamed)'}: {self.op}"
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
    """

    nodes: tuple[NodeExplanation, ...]
    estimate_us: float
    measured_us: float | None
    estimate_sizes: Mapping[str, int]
    measured_sizes: Mapping[str, int]
    tuning: str = ""

    @classmethod
    def of(
        cls,
        nodes: Sequence[Mapping[str, Any]],
        choices: Sequence[int],
        wanted: str | None,
        estimate_us: float,
        measured_us: float | None,
        estimate_sizes: Mapping[str, int],
        measured_sizes: Mapping[str, int],
        *,
        tuning: str = "",
        sizes: Callable[[str], Mapping[str, int]] | None = None,
    ) -> Explanation:
        """From a problem's nodes and the choice of each variable.

        `sizes` gives, for the text of a workload, how many schedules each routine has for it.
        """
        explained = []
        for node, choice in zip(nodes, choices, strict=False):
            if wanted is not None and wanted != node["name"] and wanted not in node["outputs"]:
                continue
            explained.append(_explain(node, choice, sizes))
        if wanted is not None and not explained:
            names = [repr(n["name"]) for n in nodes if n["name"]]
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            msg = f"[explain] node must be in the compiled graph. Got {wanted!r}, expected one of {listed}"
            raise ModelError(msg)
        return cls(tuple(explained), estimate_us, measured_us, estimate_sizes, measured_sizes, tuning)

    def __str__(self) -> str:
        text = f"{self._nodes_text()}\n{self._totals()}"
        if any(o.measured for n in self.nodes for o in n.options):
            text += "\n* a measured time; the others are estimates"
        return text + (f"\ntuning: {self.tuning}" if self.tuning else "")

    def _nodes_text(self) -> str:
        if len(self.nodes) == 1:
            return str(self.nodes[0])
        rows = []
        for n in self.nodes:
            first = n.options[0]
            # The same routine again differs by its layouts only, which a row has no room for.
            others = [
                o for o in n.options if o.status == "slower" and o.time_us is not None and o.routine != first.routine
            ]
            best = min(others, key=lambda o: o.time_us or 0.0, default=None)
            against = f"{best.routine} {_time_text(best)}" if best else ""
            rows.append((n.node or "-", n.op, first.routine, _time_text(first), against))
        return render_table(("node", "op", "chosen", "us", "best other, us"), rows, right=(3,))

    def _totals(self) -> str:
        total = f"selection's total {self.estimate_us:.1f} us"
        if self.measured_us is None:
            return total + render_sizes(self.estimate_sizes)
        measured = f"measured {self.measured_us:.1f} us"
        if self.measured_sizes == self.estimate_sizes:
            ratio = self.measured_us / max(self.estimate_us, 1e-3)
            return f"{total}; {measured} ({ratio:.2f}x){render_sizes(self.estimate_sizes)}"
        return f"{total}{render_sizes(self.estimate_sizes)}; {measured}{render_sizes(self.measured_sizes)}"


def _time_text(option: Option) -> str:
    if option.time_us is None:
        return ""
    return f"{option.time_us:.2f}{'*' if option.measured else ''}"


def _explain(node: Mapping[str, Any], choice: int, sizes: Callable[[str], Mapping[str, int]] | None) -> NodeExplanation:
    options = []
    known: dict[str, Mapping[str, int]] = {}
    for i, c in enumerate(node["choices"]):
        status = "chosen" if i == choice else "slower"
        if "routine" in c:
            takes = ", ".join(s for s in c["inputs"] if s)
            schedules = ""
            if sizes is not None:
                if c["workload"] not in known:
                    known[c["workload"]] = sizes(c["workload"])
                count = known[c["workload"]].get(c["routine"].split("{")[0], 1)
                schedules = f"; one of {count} schedules" if count > 1 else ""
            together = f"; with {', '.join(c['nodes'][:-1])}" if len(c["nodes"]) > 1 else ""
            options.append(
                Option(
                    c["routine"],
                    status,
                    c["time_us"],
                    f"{takes} -> {', '.join(c['outputs'])}{together}{schedules}",
                    c["measured"],
                    c["estimate_us"],
                )
            )
        elif c["absorbed_by"] is None:
            options.append(Option("block", status, None, "control flow: lowered to a block of the plan"))
        else:
            options.append(Option("absorbed", status, None, f"part of {c['absorbed_by']}"))
    options.sort(key=lambda o: (o.status != "chosen", o.time_us if o.time_us is not None else float("inf")))
    options += [Option(name, "rejected", None, reason) for name, reason in node["rejections"]]
    return NodeExplanation(node["name"] or _first(node["outputs"]), node["op"], tuple(options))


def _first(outputs: Sequence[str]) -> str:
    return next((name for name in outputs if name), "")
