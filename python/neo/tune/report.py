"""How far estimates are from what was measured."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from neo.report.table import render_table
from neo.tune.database import Row
from neo.tune.machine import Context

__all__ = ["ratio_table", "regime"]

_CONV = re.compile(r"= Conv\(.*?\) \{(.*?)\}.* <- (.*)")
_SMALL_US = 20.0


def ratio_table(rows: Iterable[tuple[Context, str, str, Row]]) -> str:
    """Per routine and regime: how many times, and the quantiles of measured to estimated."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for _, workload, cache_level, row in rows:
        if row.time_us is None or row.estimate_us <= 0:
            continue
        ratios.setdefault((row.routine, regime(workload, cache_level, row)), []).append(row.time_us / row.estimate_us)
    table = [
        (routine, where, len(values), *(f"{q:.2f}" for q in np.quantile(values, [0.1, 0.5, 0.9])))
        for (routine, where), values in sorted(ratios.items())
    ]
    return render_table(
        ("routine", "regime", "times", "10 %", "measured / estimated", "90 %"), table, right=(2, 3, 4, 5)
    )


def regime(workload: str, cache_level: str, row: Row) -> str:
    """What kind of work a workload is, as far as estimates tell kinds apart."""
    words = [_conv_kind(workload)] if _CONV.search(workload) else []
    words.append("below 20 us" if row.estimate_us < _SMALL_US else "20 us and more")
    if cache_level == "memory":
        words.append("weights in memory")
    return ", ".join(w for w in words if w)


def _conv_kind(workload: str) -> str:
    match = _CONV.search(workload)
    assert match is not None
    attributes, operands = match[1], match[2]

    def pair(name: str, default: str) -> str:
        found = re.search(rf"\b{name}=\[(.*?)\]", attributes)
        return "x".join(found[1].split(", ")) if found else default

    weights = [m for m in re.finditer(r"k\d+: float32\[([\d,]+)\]", operands) if m[1].count(",") == 3]
    taps = "?" if not weights else "x".join(weights[0][1].split(",")[2:])
    group = re.search(r"\bgroup=(\d+)", attributes)
    kind = "" if group is None or group[1] == "1" else "grouped "
    strides = pair("strides", "1x1")
    return f"{kind}{taps}" + ("" if strides == "1x1" else f" stride {strides.partition('x')[0]}")
