"""Modules of one model against each other: time, error, memory and file size."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neo import _native
from neo.module import Module
from neo.report.table import render_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Front", "FrontModule", "Point", "measure_front"]

# Rounds of calls in turn, and the seconds that they may take for each module; the least of several such times counts, since
# other programs only add to it.
_ROUNDS, _SECONDS, _TIMES = 5, 0.1, 5
# A shorter time counts as shorter from this share on.
_SHORTER = 0.01
_MB = 1e6


@dataclass(frozen=True)
class FrontModule:
    """A module that may be a point.

    Attributes
    ----------
    module : Module
    error : float
        Of the outputs, as in `Point`.
    arguments : dict
        What asks for it.
    agreement : float or None
    kept : frozenset of str
        The layers that are quantized.
    """

    module: Module
    error: float
    arguments: Mapping[str, Any]
    agreement: float | None = None
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Point:
    """One module.

    Attributes
    ----------
    time_ms : float
        Milliseconds of a call, measured in turns with the modules of all other points.
    error : float
        Energy of the outputs' distance from those of direct methods in float32, over that of the outputs.
    memory : int
        Bytes of the module and a call, as ``neo.compile(memory=)`` limits them.
    file_bytes : int
        Bytes of the saved module.
    estimate_ms, bound_ms : float
        What estimates expect of a call, and what by them no selection of this model within these limits stays below.
    layers : int
        How many layers are quantized.
    agreement : float or None
        The share of rows with the same largest element, for classifiers that were run on data.
    arguments : dict
        Arguments of :func:`neo.compile` that ask for such a module; for one with quantized layers those of
        :func:`neo.quantize`.
    kept : frozenset of str
        The quantized layers.
    """

    time_ms: float
    error: float
    memory: int
    file_bytes: int
    estimate_ms: float
    bound_ms: float
    layers: int = 0
    agreement: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()

    def is_dominated_by(self, other: Point) -> bool:
        """Whether the other one is surely no worse in any respect, and better in one."""
        ours, theirs = self._sizes(), other._sizes()
        if other.time_ms > self.time_ms or any(b > a for a, b in zip(ours, theirs, strict=True)):
            return False
        return other.time_ms < (1 - _SHORTER) * self.time_ms or theirs != ours

    def _sizes(self) -> tuple[float, ...]:
        return self.error, self.memory, self.file_bytes


@dataclass(frozen=True)
class Front:
    """Modules in order of their time, none of which another one beats in every respect; a table when printed.

    Attributes
    ----------
    points : tuple of Point
    """

    points: tuple[Point, ...]

    def __str__(self) -> str:
        has_agreement = any(p.agreement is not None for p in self.points)
        rows = [
            (
                f"{p.time_ms:.3f}",
                f"{p.estimate_ms:.3f}",
                f"{p.bound_ms:.3f}",
                f"{p.error:.2e}",
                f"{p.memory / _MB:.2f}",
                f"{p.file_bytes / _MB:.2f}",
                p.layers,
                *(("" if p.agreement is None else f"{p.agreement:.4f}",) if has_agreement else ()),
            )
            for p in self.points
        ]
        head = ["ms", "estimated", "bound", "error", "memory MB", "file MB", "int8 layers"]
        head += ["agreement"] if has_agreement else []
        return render_table(head, rows, right=tuple(range(len(head))))

    def to_json(self) -> list[dict[str, Any]]:
        """Each point as plain data."""
        return [asdict(p) | {"kept": sorted(p.kept), "arguments": dict(p.arguments)} for p in self.points]

    def plot(self) -> Figure:
        """Draw time against error, memory and file size (needs matplotlib)."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(12, 4), layout="constrained")
        errors, memory, file = figure.subplots(1, 3, sharey=True)
        times = [p.time_ms for p in self.points]
        colors = [p.layers for p in self.points]
        # An error of 0 has no place on a logarithmic axis: it stands left of the least of the others.
        least = min((p.error for p in self.points if p.error > 0), default=1.0)
        errors.scatter([p.error or least / 10 for p in self.points], times, c=colors)
        errors.set_xscale("log")
        errors.set_xlabel("error of the outputs (energy of the difference over theirs)")
        errors.set_ylabel("milliseconds of a call")
        memory.scatter([p.memory / _MB for p in self.points], times, c=colors)
        memory.set_xlabel("MB of the module and a call")
        drawn = file.scatter([p.file_bytes / _MB for p in self.points], times, c=colors)
        file.set_xlabel("MB of the saved module")
        figure.colorbar(drawn, label="int8 layers")
        errors.set_ylim(bottom=0)
        return figure


def measure_front(candidates: Sequence[FrontModule], call: Mapping[str, Any]) -> Front:
    """Measure modules of the same inputs in turns, and keep those that no other one beats in every respect."""
    arrays = [call[spec.name] for spec in candidates[0].module.inputs]
    natives = [c.module._native for c in candidates]
    seconds = _SECONDS * len(natives)
    runs = [_native.benchmark_modules(natives, arrays, _ROUNDS, seconds) for _ in range(_TIMES)]
    times = [min(us for us, _ in of_module) for of_module in zip(*runs, strict=True)]
    found = [_point(c, us / 1e3) for c, us in zip(candidates, times, strict=True)]
    kept = [p for p in found if not any(p.is_dominated_by(other) for other in found)]
    return Front(tuple(sorted(kept, key=lambda p: p.time_ms)))


def _point(candidate: FrontModule, time_ms: float) -> Point:
    module, selection = candidate.module, candidate.module._selection
    assert selection is not None
    with tempfile.TemporaryDirectory(prefix="neo-") as folder:
        path = Path(folder, "module.neo")
        module.save(path)
        file_bytes = path.stat().st_size
    return Point(
        time_ms,
        candidate.error,
        module.memory.bound,
        file_bytes,
        selection.total_us / 1e3,
        selection.bound_us / 1e3,
        len(candidate.kept),
        candidate.agreement,
        candidate.arguments,
        candidate.kept,
    )
