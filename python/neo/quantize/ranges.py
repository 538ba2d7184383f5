"""The numbers that a value takes, counted in constant memory, and the scale and zero point that suit them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Grid", "Histogram", "choose_grid"]

_HALF = 4096
_SHRINKS = 48
#: Elements of one call that are counted; smallest and largest are of all of them.
_COUNTED = 1 << 15


@dataclass(frozen=True)
class Grid:
    """Codes from `low` to `high` that stand for (code - zero) * scale; scale is a float32."""

    scale: float
    zero: int
    low: int = 0
    high: int = 255

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the codes."""
        return np.dtype(np.int8 if self.low < 0 else np.uint8)

    def rounded(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The numbers that codes of these stand for."""
        codes = np.clip(np.rint(x / self.scale) + self.zero, self.low, self.high)
        real: np.ndarray[Any, Any] = (codes - self.zero) * self.scale
        return real


class Histogram:
    """Counts of numbers in equal bins from -reach to reach; reach doubles where a number lies beyond it.

    A doubling adds pairs of bins, so that nothing is counted anew. Zeros are counted apart, since every grid has 0.
    """

    def __init__(self) -> None:
        self.reach = 0.0
        self.low, self.high = math.inf, -math.inf
        self.zeros = 0
        self.not_finite = 0
        self._bins = np.zeros(2 * _HALF, np.int64)

    def add(self, x: np.ndarray[Any, Any]) -> None:
        """Count an array."""
        flat = np.ascontiguousarray(x, np.float32).reshape(-1)
        if not flat.size:
            return
        low, high = float(flat.min()), float(flat.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            kept = flat[np.isfinite(flat)]
            self.not_finite += flat.size - kept.size
            self.add(kept)
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._stretch(max(-low, high))
        # A step that shares no factor with the sizes leaves no channel or column out.
        step = max(1, flat.size // _COUNTED)
        while math.gcd(step, flat.size) > 1:
            step += 1
        counted = flat[::step]
        nonzero = counted[counted != 0]
        self.zeros += counted.size - nonzero.size
        if nonzero.size:
            places = ((nonzero.astype(np.float64) / self.reach + 1.0) * _HALF).astype(np.int64)
            self._bins += np.bincount(np.minimum(places, 2 * _HALF - 1), minlength=2 * _HALF)

    def _stretch(self, largest: float) -> None:
        if not self.reach and largest:
            self.reach = 2.0 ** math.ceil(math.log2(largest))
        while largest > self.reach:
            paired = self._bins.reshape(-1, 2).sum(axis=1)
            self._bins[:] = 0
            self._bins[_HALF // 2 : _HALF // 2 + _HALF] = paired
            self.reach *= 2

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """The counts of several together."""
        total = cls()
        for part in parts:
            total._stretch(part.reach)
            copy = cls()
            copy.reach, copy._bins = part.reach, part._bins.copy()
            copy._stretch(total.reach)
            total._bins += copy._bins
            total.low, total.high = min(total.low, part.low), max(total.high, part.high)
            total.zeros += part.zeros
            total.not_finite += part.not_finite
        return total

    def counted(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Middles of the bins that are not empty, and their counts; zeros are in neither."""
        places = np.flatnonzero(self._bins)
        middles = ((places + 0.5) / _HALF - 1.0) * self.reach
        return np.clip(middles, self.low, self.high), self._bins[places]

    def quantiles(self, tail: float) -> tuple[float, float]:
        """The numbers below and above which a share of `tail` lies."""
        middles, counts = self.counted()
        below = np.searchsorted(middles, 0.0)
        middles, counts = np.insert(middles, below, 0.0), np.insert(counts, below, self.zeros)
        total = np.cumsum(counts)
        first = np.searchsorted(total, tail * total[-1], side="right")
        last = np.searchsorted(total, (1 - tail) * total[-1], side="left")
        return float(middles[min(first, len(middles) - 1)]), float(middles[min(last, len(middles) - 1)])


def _grid(low: float, high: float, *, symmetric: bool) -> Grid:
    """The grid whose codes reach from `low` to `high`, 0 among them."""
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        scale = _scale(max(-low, high) / 127)
        return Grid(scale, 0, -128, 127)
    scale = _scale((high - low) / 255)
    return Grid(scale, min(255, max(0, round(-low / scale))))


def _scale(step: float) -> float:
    """A step as float32; 1 where all is 0 or the step is no number that a product can be divided by."""
    return float(np.float32(step)) if step > 1e-30 else 1.0


def choose_grid(counts: Histogram, method: str = "mse", *, symmetric: bool = False, tail: float = 1e-5) -> Grid:
    """The grid for a value.

    Parameters
    ----------
    counts : Histogram
        What the value was.
    method : {"mse", "minmax", "percentile"}
        The range: that of the least mean square error of rounding and clipping, as in Banner et al., 2019, section 3,
        found by trying; all that occurred; or all but a share of `tail` at either end.
    symmetric : bool
        int8 with a zero point of 0 in place of uint8 with any.
    """
    if not counts.reach:
        return _grid(0.0, 0.0, symmetric=symmetric)
    if method == "percentile":
        return _grid(*counts.quantiles(tail), symmetric=symmetric)
    full = _grid(counts.low, counts.high, symmetric=symmetric)
    if method == "minmax":
        return full
    middles, weights = counts.counted()

    def error(grid: Grid) -> float:
        return float(np.dot((grid.rounded(middles) - middles) ** 2, weights))

    best, least = full, error(full)
    low, high = min(counts.low, 0.0), max(counts.high, 0.0)
    if symmetric:
        low, high = -max(-low, high), max(-low, high)
    # One end at a time, the other where it was best; both together where they have to be alike.
    ends = [(True, True)] if symmetric else [(True, False), (False, True)] * (2 if low and high else 1)
    for is_low, is_high in ends:
        from_low, from_high = low, high
        for share in np.linspace(1.0, 0.25, _SHRINKS):
            tried = (from_low * share if is_low else from_low, from_high * share if is_high else from_high)
            grid = _grid(*tried, symmetric=symmetric)
            found = error(grid)
            if found < least * (1 - 1e-9):
                best, least, (low, high) = grid, found, tried
    return best
