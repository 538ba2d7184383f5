"""The module that a report is about, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neo.report.graph import drawn_graph
from neo.report.memory import memory_over_steps
from neo.report.plan_graph import drawn_plan, planned_nodes

__all__ = ["Machine", "Subject"]


@dataclass(frozen=True)
class Machine:
    """What the machine can do at most with the threads of a module.

    Attributes
    ----------
    threads : int
    gflops : float
        Measured peak of float32 multiply-adds, 10^9 operations per second.
    gbps : float
        Measured reading from memory, 10^9 bytes per second.
    """

    threads: int
    gflops: float
    gbps: float


@dataclass(frozen=True)
class Subject:
    """A compiled model's selection and plan.

    Attributes
    ----------
    model, target : str
        The model's file or the graph's name; what it was compiled for.
    executors : (int, int)
        Their number, and the threads of each.
    graph : mapping or None
        The compiled graph by values and variables; None where only the plan is left.
    nodes : sequence of mapping
        The selection's variables.
    choices : sequence of int
        The choice of each variable.
    changes : sequence of sequence of float
        What each choice would add to the selection's total, by variable.
    plan : mapping
        Blocks and items.
    regions : sequence of mapping
        Where buffers lie at the hints.
    """

    model: str
    target: str
    executors: tuple[int, int]
    graph: Mapping[str, Any] | None
    nodes: Sequence[Mapping[str, Any]]
    choices: Sequence[int]
    changes: Sequence[Sequence[float]]
    plan: Mapping[str, Any]
    regions: Sequence[Mapping[str, Any]]

    @property
    def threads(self) -> int:
        """Of all executors."""
        return self.executors[0] * self.executors[1]

    @classmethod
    def of_plan(
        cls,
        model: str,
        target: str,
        executors: tuple[int, int],
        plan: Mapping[str, Any],
        regions: Sequence[Mapping[str, Any]],
    ) -> Subject:
        """A module without its selection problem: every item has the one choice that was made."""
        nodes = planned_nodes(plan)
        return cls(model, target, executors, None, nodes, [0] * len(nodes), [[0.0]] * len(nodes), plan, regions)

    def drawing(self) -> dict[str, Any]:
        """What the page draws: nodes, edges, blocks."""
        if self.graph is None:
            return drawn_plan(self.plan)
        return drawn_graph(self.graph, self.nodes, self.choices, self.plan)

    def memory(self, regions: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """Who holds which memory when; at the hints, or in the regions of a call."""
        packed = sum(
            node["choices"][choice].get("packed_bytes", 0)
            for node, choice in zip(self.nodes, self.choices, strict=False)
        )
        return memory_over_steps(self.plan, self.regions if regions is None else regions, packed)

    def steps(self) -> list[dict[str, Any]]:
        """The items of the plan in depth-first order."""
        holder = {b: i for i, item in enumerate(self.plan["items"]) for b in item["bodies"].values()}
        parents = [holder.get(item["block"], -1) for item in self.plan["items"]]
        return [
            {
                "id": number,
                "node": item["node"],
                "op": item["op"],
                "routine": item["routine"],
                "parent": parent,
                "control": bool(item["bodies"]),
                "estimate_us": item["estimate_us"],
                "flops": item["flops"],
                "bytes": item["bytes"],
            }
            for number, (item, parent) in enumerate(zip(self.plan["items"], parents, strict=True))
        ]
