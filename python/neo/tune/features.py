"""What the cost model sees of a point: the loops that a schedule makes, the routine, and where constants lie."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from neo import _native

__all__ = [
    "DEVICE_FEATURES",
    "ROUTINES",
    "SpaceBench",
    "device_point_features",
    "feature_names",
    "point_features",
]

# Those that have a space; the model tells them apart.
ROUTINES = (
    "cpu:float32/direct_nchwc",
    "cpu:float32/direct_nchw",
    "cpu:float32/direct_rows",
    "cpu:float32/depthwise_nchwc",
    "cpu:float32/im2col",
    "cpu:float32/winograd",
    "cpu:float32/gemm",
)
# A schedule of a device is seen as it is written: the estimate, which its routine makes from a model of the device, and
# the values of so many parameters.
_MOST_PARAMETERS = 16
DEVICE_FEATURES = ("estimate", *(f"parameter {i}" for i in range(_MOST_PARAMETERS)), "routine")
_CACHE_LEVELS = {"private": 0.0, "shared": 1.0, "memory": 2.0}


class SpaceBench(Protocol):
    """What features need of ``_native.Bench``."""

    def features(self, space: int, points: Sequence[int], cache_level: str) -> NDArray[Any]:
        """What the routine says of the points."""
        ...

    def values(self, space: int, points: Sequence[int]) -> NDArray[Any]:
        """The values of the parameters at the points."""
        ...


def feature_names() -> list[str]:
    """One name per column."""
    return [*_native.loop_feature_names(), *(r.rpartition("/")[2] for r in ROUTINES), "cache_level"]


def point_features(
    bench: SpaceBench, space: int, routine: str, cache_level: str, points: Sequence[int]
) -> NDArray[np.float32]:
    """A row per point of a space."""
    loops = np.asarray(bench.features(space, list(points), cache_level), np.float32)
    rest = np.zeros((len(points), len(ROUTINES) + 1), np.float32)
    if routine in ROUTINES:
        rest[:, ROUTINES.index(routine)] = 1
    rest[:, -1] = _CACHE_LEVELS[cache_level]
    return np.hstack([loops, rest])


def device_point_features(
    bench: SpaceBench, space: int, routine: str, cache_level: str, points: Sequence[int]
) -> NDArray[np.float32]:
    """The same of a routine of a device: one number tells its routine from others."""
    estimates = np.asarray(bench.features(space, list(points), cache_level), np.float32)
    values = np.asarray(bench.values(space, list(points)), np.float32)[:, :_MOST_PARAMETERS]
    rows = np.zeros((len(points), len(DEVICE_FEATURES)), np.float32)
    rows[:, 0] = estimates[:, _native.loop_feature_names().index("estimate")]
    rows[:, 1 : 1 + values.shape[1]] = np.log2(1 + values)
    rows[:, -1] = zlib.crc32(routine.encode()) % 4096
    return rows
