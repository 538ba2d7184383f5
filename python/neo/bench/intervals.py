"""Medians and ratios of medians with 95 % intervals, by order statistics: no assumption about how times spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Interval", "median_interval", "ratio_interval"]

#: Chance that the true median lies outside the interval, where there are enough values.
_MISS = 0.05


@dataclass(frozen=True)
class Interval:
    """A median and what it lies between."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median with the narrowest pair of order statistics that holds the true median in 95 % of cases.

    Fewer than six values cannot promise that; then it is their range.

    Parameters
    ----------
    values : sequence of float
        At least one.

    Examples
    --------
    >>> median_interval([float(i) for i in range(1, 16)])
    Interval(median=8.0, low=4.0, high=12.0)
    """
    ordered = sorted(values)
    count = len(ordered)
    misses, left_out = 0.0, 0
    for index in range(count):
        misses += 2 * math.comb(count, index) / 2**count
        if misses > _MISS:
            break
        left_out = index
    return Interval(statistics.median(ordered), ordered[left_out], ordered[count - 1 - left_out])


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Return the median over rounds of ``above / below`` of the same round, with its interval."""
    return median_interval([a / b for a, b in zip(above, below, strict=True)])
