"""Points of several spaces of one workload, as a search moves among them and a cost model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from neo.tune.anneal import Point
from neo.tune.features import SpaceBench, device_point_features, point_features

__all__ = ["PointSpaces", "PointsBench"]


class PointsBench(SpaceBench, Protocol):
    """What moving among points needs of ``_native.Bench``."""

    def space_size(self, space: int) -> int:
        """How many points a space has."""
        ...

    def mutate(self, space: int, points: Sequence[int], seed: int) -> list[int]:
        """A random neighbour of each point."""
        ...


class PointSpaces:
    """Spaces of one workload.

    Parameters
    ----------
    bench : PointsBench
    routines : mapping of int to str
        By number of the space.
    cache_level : str
        Where constants lie.
    on_device : bool
        Whether they are spaces of a device.
    """

    def __init__(
        self, bench: PointsBench, routines: Mapping[int, str], cache_level: str, *, on_device: bool = False
    ) -> None:
        self._bench = bench
        self._routines = dict(routines)
        self._cache_level = cache_level
        self._features_of = device_point_features if on_device else point_features

    def features(self, points: Sequence[Point]) -> NDArray[np.float32]:
        """A row per point."""
        parts = []
        places: list[int] = []
        for space in sorted({s for s, _ in points}):
            at = [k for k, p in enumerate(points) if p[0] == space]
            numbers = [points[k][1] for k in at]
            parts.append(self._features_of(self._bench, space, self._routines[space], self._cache_level, numbers))
            places += at
        rows = np.vstack(parts)
        return rows[np.argsort(places)]

    def mutate(self, points: Sequence[Point], random: np.random.Generator) -> list[Point]:
        """A random neighbour of each."""
        moved = list(points)
        for space in {s for s, _ in points}:
            at = [k for k, p in enumerate(points) if p[0] == space]
            seed = int(random.integers(1 << 62))
            for k, point in zip(at, self._bench.mutate(space, [points[k][1] for k in at], seed), strict=True):
                moved[k] = (space, point)
        return moved

    def sample(self, random: np.random.Generator) -> Point:
        """A random point of a random space."""
        spaces = list(self._routines)
        space = spaces[int(random.integers(len(spaces)))]
        return space, int(random.integers(self._bench.space_size(space)))
