"""Operators that run by their references, the plain loops that stand in where there is no faster routine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neo.report.step import Step

__all__ = ["fallback_line", "fallback_shares"]

_REFERENCE = "cpu/reference"
# The share of the estimated time below which a fallback is not worth a word.
_NOTABLE_SHARE = 0.1
# A step that takes less would gain little by a faster routine, in microseconds.
_NOTABLE_US = 10.0
# How often the steps of a body are taken to run; what selection takes where nobody knows.
_TRIPS = 10


def fallback_shares(steps: Iterable[Step]) -> dict[str, float]:
    """Share of the estimated time, between 0 and 1, by operator that runs by its reference, the largest first.

    Steps of less than 10 us do not count.
    """
    times: dict[str, float] = {}
    total = 0.0
    for step in steps:
        time = step.estimate_us * _TRIPS**step.depth
        total += time
        if step.routine.split("{")[0].strip() == _REFERENCE and step.estimate_us >= _NOTABLE_US:
            times[step.op] = times.get(step.op, 0.0) + time
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return {op: time / total for op, time in ordered} if total > 0 else {}


def fallback_line(shares: Mapping[str, float]) -> str:
    """A sentence that names the operators; empty where they take no more than a tenth of the estimated time."""
    total = sum(shares.values())
    if total <= _NOTABLE_SHARE:
        return ""
    named = ", ".join(f"{op} {share:.0%}" for op, share in shares.items() if share >= 0.005) or ", ".join(shares)
    return f"operators without a fast routine take {total:.0%} of the estimated time: {named}"
