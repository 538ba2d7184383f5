"""How far a plan's outputs are from the float model's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neo.difference import energy_ratio
from neo.errors import DTypeError, ModelError
from neo.module import Module

__all__ = ["Limit", "Quality", "compare", "is_classifier"]

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Quality:
    """A plan's outputs beside the float model's, on the same samples.

    Attributes
    ----------
    error : float
        Energy of the difference over that of the outputs (the square of the relative error), of the worst output.
    agreement : float or None
        The share of rows whose largest element is at the same place; None for models that do not classify.
    metric : float or None
        What the user's metric says.
    """

    error: float
    agreement: float | None = None
    metric: float | None = None


def is_classifier(module: Module) -> bool:
    """Whether the model has one output: rows of floats, of a fixed number of 2 or more."""
    outputs = module.outputs
    if len(outputs) != 1 or outputs[0].dtype not in _FLOATS or len(outputs[0].shape or ()) != 2:
        return False
    columns = (outputs[0].shape or ())[1]
    return isinstance(columns, int) and columns > 1


def compare(
    reference: Module, module: Module, calls: Sequence[dict[str, Any]], advance: Callable[[int], None]
) -> Quality:
    """Run both modules on the same calls."""
    totals: dict[str, float] = {}
    same = rows = 0
    classifies = is_classifier(reference)
    for call in calls:
        expected, found = reference.run(call), module.run(call)
        for name, y in expected.items():
            totals[name] = totals.get(name, 0.0) + energy_ratio(found[name], y) / len(calls)
        if classifies:
            y, z = next(iter(expected.values())), next(iter(found.values()))
            same += int((y.argmax(axis=-1) == z.argmax(axis=-1)).sum())
            rows += len(y)
        advance(1)
    return Quality(max(totals.values(), default=0.0), same / rows if classifies and rows else None)


@dataclass(frozen=True)
class Limit:
    """A bound on the error of a plan.

    Attributes
    ----------
    accuracy : float or None
        The least agreement of a classifier, else the least ``1 - error``.
    drop : float or None
        How much worse than the float model's the metric may be.
    metric : callable or None
        A module to a number, the larger the better.
    """

    accuracy: float | None = None
    drop: float | None = None
    metric: Callable[[Module], float] | None = None

    @classmethod
    def of(cls, accuracy: Any, drop: Any, metric: Any) -> Limit | None:
        """Check the arguments; None where there is no limit."""
        if accuracy is None and drop is None and metric is None:
            return None
        if accuracy is not None:
            if drop is not None or metric is not None:
                msg = "[quantize] there must be one limit. Got accuracy beside drop or metric"
                raise ModelError(msg)
            if not _is_number(accuracy) or not 0 <= accuracy <= 1:
                msg = f"[quantize] accuracy must be a number from 0 to 1. Got {accuracy!r}"
                raise ModelError(msg)
            return cls(accuracy=float(accuracy))
        if not callable(metric):
            msg = f"[quantize] metric must be a function of a module. Got {metric!r} with drop={drop!r}"
            raise DTypeError(msg)
        if not _is_number(drop) or not 0 <= drop < math.inf:
            msg = f"[quantize] drop must be a number of 0 or more beside a metric. Got {drop!r}"
            raise ModelError(msg)
        return cls(drop=float(drop), metric=metric)

    def score(self, module: Module) -> float | None:
        """Ask the user's metric about a module; its exceptions are not caught.

        Raises
        ------
        neo.ModelError
            It is no number.
        """
        if self.metric is None:
            return None
        found = self.metric(module)
        try:
            score = float(found)
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            msg = f"[quantize] the metric must give a finite number. Got {found!r}"
            raise ModelError(msg)
        return score

    def is_met(self, quality: Quality, reference: float | None) -> bool:
        """Whether a plan keeps to it; `reference` is the float model's score."""
        if self.drop is not None:
            assert quality.metric is not None
            assert reference is not None
            return reference - quality.metric <= self.drop
        assert self.accuracy is not None
        return (1 - quality.error if quality.agreement is None else quality.agreement) >= self.accuracy

    def __str__(self) -> str:
        return f"drop {self.drop:g}" if self.drop is not None else f"accuracy {self.accuracy:g}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and not isinstance(value, bool)
