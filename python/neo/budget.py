"""How long tuning may measure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from neo.errors import ModelError

__all__ = ["Budget", "parse_budget"]

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)\s*")
# Seconds of a minute: the rest is for compiling and for the last comparison.
_DEFAULT_SECONDS = 50.0


@dataclass(frozen=True)
class Budget:
    """Measuring ends when either is spent, or when more of it would not pay."""

    seconds: float = math.inf
    trials: float = math.inf


def parse_budget(tune: object) -> Budget | None:
    """What ``tune=`` allows: None for False, most of a minute for True, a time for ``"60s"``, so many trials for a number.

    Raises
    ------
    neo.ModelError
        Anything else.
    """
    if isinstance(tune, bool):
        return Budget(seconds=_DEFAULT_SECONDS) if tune else None
    if isinstance(tune, int) and tune > 0:
        return Budget(trials=tune)
    match = _BUDGET.fullmatch(tune) if isinstance(tune, str) else None
    if match is None or float(match[1]) == 0:
        msg = (
            f"[compile] tune must be a bool, a time or a number of trials. Got {tune!r}, "
            "expected True, False, a budget such as '60s', or trials such as 500"
        )
        raise ModelError(msg)
    return Budget(seconds=float(match[1]) * _UNITS[match[2]])
