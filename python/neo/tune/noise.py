"""Whether other programs ran while this machine was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from neo.tune.timing import Timing

__all__ = ["Noise"]

# The spread of so many rounds says something; more of it than this share of the time is no property of what runs.
_ROUNDS = 5
_SPREAD = 0.25
# Outliers in fewer benchmarks than this share, or this number, pass.
_OFTEN = 0.1
_SOME = 3


class Noise:
    """Counts benchmarks in which most candidates took now this long, now that: each alone would be its own fault."""

    def __init__(self) -> None:
        self.benchmarks = 0
        self.disturbed = 0

    def add(self, timings: Iterable[Timing]) -> None:
        """Look at a benchmark."""
        spreads = [
            t.spread_us / t.time_us for t in timings if t.time_us is not None and t.time_us > 0 and t.rounds >= _ROUNDS
        ]
        if not spreads:
            return
        self.benchmarks += 1
        self.disturbed += statistics.median(spreads) > _SPREAD

    @property
    def note(self) -> str:
        """What to say of it; empty where there is nothing to say."""
        if self.disturbed < _SOME or self.disturbed <= _OFTEN * self.benchmarks:
            return ""
        return (
            f"the machine was disturbed in {self.disturbed} of {self.benchmarks} benchmarks, so the times are uncertain: "
            "tune again when nothing else runs"
        )
