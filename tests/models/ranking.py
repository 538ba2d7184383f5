"""Outputs whose rows TopK has put in order: near ties may change places, so rows are compared as a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def align(
    names: Sequence[str], actual: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both with the rows of ``actual`` in the order of ``expected``.

    A row is what the outputs ``names`` hold at one place, and the first of them is the score. A row may stand at
    another place only where the score that is expected there is within ``tolerance`` of its own; integers must be
    equal. Rows within ``tolerance`` of the last place may be others altogether, because what they tie with was not
    kept: these are zero in both.

    Parameters
    ----------
    names : sequence of str
        Outputs of shape ``[batch, places, ...]``, the score first.
    actual, expected : mapping of arrays
        The outputs.
    tolerance : float
        How much two scores may differ.
    """
    scores, *others = names
    found = {name: np.array(value) for name, value in actual.items()}
    right = {name: np.array(value) for name, value in expected.items()}
    for batch, wanted in enumerate(np.asarray(expected[scores], np.float64)):
        cost = np.abs(wanted[:, None] - np.asarray(actual[scores], np.float64)[batch])
        cost[cost > tolerance] = np.inf
        for name in others:
            left, of = (np.asarray(side[name][batch]).reshape(len(wanted), -1) for side in (actual, expected))
            apart = np.abs(of[:, None].astype(np.float64) - left).sum(-1)
            cost += apart if left.dtype.kind == "f" else np.where(apart > 0, np.inf, 0.0)
        for place, score in enumerate(wanted):
            row = int(cost[place].argmin())
            kept = bool(np.isfinite(cost[place, row]))
            if not kept and score - wanted[-1] > tolerance:
                raise AssertionError(f"[{scores}] no row is that of place {place} of batch {batch}, score {score:.6g}")
            for name in names:
                found[name][batch, place] = actual[name][batch, row] if kept else 0
                right[name][batch, place] = expected[name][batch, place] if kept else 0
            if kept:
                cost[:, row] = np.inf
    return found, right
