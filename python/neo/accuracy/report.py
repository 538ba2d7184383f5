"""What an accuracy check found, as data and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from neo.report.table import render_table
from neo.report.write import write_whole

__all__ = ["AccuracyCause", "AccuracyReport", "NodeAccuracy"]


@dataclass(frozen=True)
class NodeAccuracy:
    """One node of the model.

    Attributes
    ----------
    node, op : str
        Its name (that of its first output where it has none) and operator.
    value : str
        The value that was compared; empty where the run does not have it, because the node is inside a group.
    routine : str
        What wrote the value.
    group : tuple of str
        The nodes between the values before and this one, this node last.
    local : float or None
        The error that the group adds to its own inputs, over the largest value.
    share : float or None
        That error over what rounding explains: beyond 1 the node is wrong.
    accumulated : float or None
        The error against the whole model in double precision, over the largest value.
    onnxruntime : float or None
        The difference from ONNX Runtime's run of the whole model, over the largest value.
    """

    node: str
    op: str
    value: str
    routine: str
    group: tuple[str, ...]
    local: float | None
    share: float | None
    accumulated: float | None
    onnxruntime: float | None = None


@dataclass(frozen=True)
class AccuracyCause:
    """The first wrong node.

    Attributes
    ----------
    node, op, value : str
        The node, its operator, and the value that is wrong.
    group : tuple of str
        The nodes of the model that could not be told apart, `node` among them.
    routine : str
        What computed it.
    reason : str
        How wrong it is.
    kind : {"algorithm", "precision", "fusion", "layout", "rewriting", "model", "operator"}
    cause : str
        In words.
    pin : mapping of str to str
        What to give ``neo.compile(routines=...)`` to avoid it; empty where no pin helps.
    cost_ms : float or None
        What selection expects the pin to cost.
    measured_ms : float or None
        What it costs, both modules timed in turn.
    """

    node: str
    op: str
    value: str
    group: tuple[str, ...]
    routine: str
    reason: str
    kind: str
    cause: str
    pin: Mapping[str, str] = field(default_factory=dict)
    cost_ms: float | None = None
    measured_ms: float | None = None

    def __str__(self) -> str:
        lines = [f"first wrong node: {self.node!r} ({self.op}): {self.reason} - at value {self.value!r}"]
        if len(self.group) > 1:
            lines.append(f"  group: {', '.join(self.group)}")
        lines.append(f"  cause: {self.kind}: {self.cause}")
        if self.pin:
            lines.append(f"  pin: routines={json.dumps(dict(self.pin))}")
        if self.cost_ms is not None:
            measured = "" if self.measured_ms is None else f", measured {self.measured_ms:+.3f} ms"
            lines.append(f"  cost: estimated {self.cost_ms:+.3f} ms{measured}")
        return "\n".join(lines)


@dataclass(frozen=True)
class AccuracyReport:
    """Every node of a model beside double precision. Printing it gives the table and the first wrong node.

    Attributes
    ----------
    nodes : tuple of NodeAccuracy
        In the model's order.
    cause : AccuracyCause or None
        The first node whose error rounding does not explain; None where there is none.
    against : str
        What the model was compared with.
    samples : int
        How many sets of inputs were run.
    seconds : float
        How long the check took.
    """

    nodes: tuple[NodeAccuracy, ...]
    cause: AccuracyCause | None
    against: str
    samples: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether rounding explains the error of every node."""
        return self.cause is None

    def growth(self, count: int = 3) -> tuple[NodeAccuracy, ...]:
        """The nodes at which the accumulated error is larger than ever before by the largest factor."""
        seen, jumps = 0.0, []
        for row in self.nodes:
            if row.accumulated is None or row.accumulated <= seen:
                continue
            jumps.append((row.accumulated / seen if seen else math.inf, row))
            seen = row.accumulated
        jumps = [jump for jump in jumps if jump[0] < math.inf]
        return tuple(row for _, row in sorted(jumps, key=lambda jump: -jump[0])[:count])

    def table(self, top: int | None = None) -> str:
        """The nodes as text: all of them, or the ``top`` ones that take the largest share of what rounding explains."""
        rows = list(self.nodes)
        if top is not None:
            compared = sorted((r for r in rows if r.share is not None), key=lambda r: -(r.share or 0.0))[:top]
            rows = [r for r in rows if any(r is c for c in compared)]
        engine = any(r.onnxruntime is not None for r in self.nodes)
        header = ["node", "op", "routine", "local error", "of rounding", "accumulated"]
        cells = [
            [
                r.node,
                r.op,
                r.routine.split("{")[0],
                _number(r.local),
                "" if r.share is None else f"{r.share:.0%}" if r.share < 10 else f"{r.share:.3g}x",
                _number(r.accumulated),
                *([_number(r.onnxruntime)] if engine else []),
            ]
            for r in rows
        ]
        if engine:
            header.append("onnxruntime")
        return render_table(header, cells, right=tuple(range(3, len(header))))

    def __str__(self) -> str:
        return f"{self.table()}\n{self.summary()}"

    def summary(self) -> str:
        """The first wrong node; or that there is none, and where the accumulated error grows."""
        if self.cause is not None:
            return str(self.cause)
        compared = sum(r.value != "" for r in self.nodes)
        text = f"no wrong node: rounding explains the error of all {compared} values compared"
        worst = max((r.accumulated for r in self.nodes if r.accumulated is not None), default=0.0)
        grown = ", ".join(f"{r.node!r} (to {r.accumulated:.2g})" for r in self.growth())
        return f"{text}; accumulated error at most {worst:.2g}" + (f", grows most at {grown}" if grown else "")

    def to_json(self, path: str | Path | None = None) -> str:
        """Return everything as JSON, and write it where a path is given."""
        text = json.dumps(_plain(asdict(self)), indent=1)
        if path is not None:
            write_whole(path, text)
        return text


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _plain(data: Any) -> Any:
    """JSON has no infinities: they become text."""
    if isinstance(data, dict):
        return {k: _plain(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(v) for v in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data
