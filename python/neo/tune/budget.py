"""How long tuning may measure."""

from __future__ import annotations

import math
import re

from neo.errors import ModelError

__all__ = ["parse_budget"]

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)\s*")


def parse_budget(tune: object) -> float | None:
    """Seconds that ``tune=`` allows: None for False, infinity for True, 60.0 for ``"60s"``.

    Raises
    ------
    neo.ModelError
        Anything else.
    """
    if isinstance(tune, bool):
        return math.inf if tune else None
    match = _BUDGET.fullmatch(tune) if isinstance(tune, str) else None
    if match is None or float(match[1]) == 0:
        msg = f"[compile] tune must be a bool or a time. Got {tune!r}, expected True, False or a budget such as '60s'"
        raise ModelError(msg)
    return float(match[1]) * _UNITS[match[2]]
