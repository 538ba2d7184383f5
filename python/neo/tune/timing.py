"""What a benchmark tells of a candidate."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Timing"]


class Timing(NamedTuple):
    """Microseconds or None, how many rounds, why there is no time, and from the lower to the upper quartile."""

    time_us: float | None
    rounds: int
    failure: str = ""
    spread_us: float = 0.0
