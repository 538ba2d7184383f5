"""Which steps take another time than was expected of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["FarStep", "far_steps", "render_far"]

#: How many times longer or shorter a step takes that is far from its estimate.
_FAR = 2.0
#: The least share of a call's time that the difference has.
_SHARE = 0.01
#: Named in one line.
_SHOWN = 3


@dataclass(frozen=True)
class FarStep:
    """A step with its measured and its estimated time of one execution, in microseconds."""

    node: str
    time_us: float
    estimate_us: float

    @property
    def ratio(self) -> float:
        """Measured over estimated time."""
        return self.time_us / max(self.estimate_us, 1e-3)


def far_steps(steps: Iterable[FarStep], total_us: float) -> tuple[FarStep, ...]:
    """Those that take twice as long as estimated, or half as long, and matter to a call; the largest difference first."""
    found = [
        s
        for s in steps
        if not 1 / _FAR <= s.ratio <= _FAR and abs(s.time_us - s.estimate_us) >= _SHARE * max(total_us, 1e-3)
    ]
    return tuple(sorted(found, key=lambda s: -abs(s.time_us - s.estimate_us)))


def render_far(steps: tuple[FarStep, ...]) -> str:
    """One line about them, with the line break before it; empty where there are none."""
    if not steps:
        return ""
    named = ", ".join(f"{s.node or '-'} {s.time_us:.1f} us for {s.estimate_us:.1f}" for s in steps[:_SHOWN])
    more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
    return f"\nfar from their estimates: {named}{more}; tuning measures them"
