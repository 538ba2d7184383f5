"""One step of a plan, as users see it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """One step of a plan: the model's node and operator, its routine, expected time, work, depth of nesting, device."""

    node: str
    op: str
    routine: str
    estimate_us: float
    flops: float
    bytes: float
    depth: int
    device: str = "cpu"
