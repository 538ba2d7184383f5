"""Time against error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neo.quantize.choose import best_layers, evaluate
from neo.quantize.gains import benchmark, price_layers
from neo.quantize.sensitivity import measure_sensitivities
from neo.quantize.study import Study
from neo.report.table import render_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Front", "Point", "measure_front"]

# The smallest error that is asked for, as a share of that with all layers quantized.
_SMALLEST = 1 / 64


@dataclass(frozen=True)
class Point:
    """One plan.

    Attributes
    ----------
    layers : int
        How many layers are quantized.
    error : float
        Energy of the outputs' difference from the float model's over that of the outputs.
    agreement : float or None
        The share of rows with the same largest element, for classifiers.
    time_ms : float
        Milliseconds of a call, measured in turns with all other plans.
    kept : frozenset of str
        The quantized layers.
    """

    layers: int
    error: float
    agreement: float | None
    time_ms: float
    kept: frozenset[str]


@dataclass(frozen=True)
class Front:
    """Plans in order of their time, none slower than one of less error; a table when printed, and a picture.

    Attributes
    ----------
    points : tuple of Point
    """

    points: tuple[Point, ...]

    def __str__(self) -> str:
        rows = [
            (p.layers, f"{p.time_ms:.3f}", f"{p.error:.2e}", "" if p.agreement is None else f"{p.agreement:.4f}")
            for p in self.points
        ]
        return render_table(("int8 layers", "ms", "error", "agreement"), rows, right=(0, 1, 2, 3))

    def plot(self) -> Figure:
        """Draw the points (needs matplotlib)."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        drawn = [p for p in self.points if p.error > 0]
        axes.plot([p.error for p in drawn], [p.time_ms for p in drawn], marker="o")
        axes.set_xscale("log")
        for p in self.points:
            if not p.error:
                axes.axhline(p.time_ms, linestyle="--", color="gray", label="float")
                axes.legend()
        axes.set_xlabel("error of the outputs (energy of the difference over theirs)")
        axes.set_ylabel("milliseconds of a call")
        axes.set_ylim(bottom=0)
        return figure


def measure_front(study: Study, points: int) -> Front:
    """Choose layers for errors from small to large, and measure them all."""
    every = frozenset(layer.name for layer in study.layers)
    errors = measure_sensitivities(study)
    whole = evaluate(study, every, None)
    _, gains = price_layers(study)
    total = sum(errors.values())
    plans = {whole.kept: whole}
    for i in range(1, points - 1):
        budget = total * _SMALLEST ** (i / (points - 2))
        kept = best_layers(gains, errors, budget)
        if kept and kept not in plans:
            plans[kept] = evaluate(study, kept, None)
    measured = list(plans.values())
    times = benchmark([study.float_module, *(plan.module for plan in measured)], study.calls[0])
    found = [Point(0, 0.0, None if whole.quality.agreement is None else 1.0, times[0], frozenset())]
    found += [
        Point(len(plan.kept), plan.quality.error, plan.quality.agreement, time, plan.kept)
        for plan, time in zip(measured, times[1:], strict=True)
    ]
    front: list[Point] = []
    for point in sorted(found, key=lambda p: (p.error, p.time_ms)):
        if not front or point.time_ms < front[-1].time_ms:
            front.append(point)
    return Front(tuple(sorted(front, key=lambda p: p.time_ms)))
