"""How far outputs are from others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["energy_ratio"]


def energy_ratio(found: Any, expected: Any) -> float:
    """Energy of the difference over that of what is expected; 0 where there are no floats to compare."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f" or not expected.size:
        return 0.0
    if not isinstance(found, np.ndarray) or found.shape != expected.shape:
        return math.inf
    wide = expected.astype(np.float64)
    same = found == expected
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, found.astype(np.float64) - wide)
    energy = float(np.square(wide[np.isfinite(wide)]).sum())
    error = float(np.square(difference).sum())
    if not math.isfinite(error):
        return math.inf
    return error / energy if energy else math.inf if error else 0.0
