"""The last word on a selection: the default, the tuned and other modules, timed against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neo import _native
from neo.errors import Error, UnsupportedError
from neo.tune.database import Verdict

__all__ = ["compare_modules", "is_below_one", "synthetic_inputs", "time_module"]

_ROUNDS = 15
_SECONDS = 3.0
# A lead over the default of less than this share may be chance: the two are called in so many pairs, for so many seconds
# at most, and the median of their ratios must be below 1 with this many standard deviations to spare.
_SURE_LEAD = 0.05
_PAIRS = 41
_PAIR_SECONDS = 2.0
_DEVIATIONS = 2.0
# Rounds of a module that has no other beside it.
_ROUNDS_ALONE = 7
_SECONDS_ALONE = 0.5


def synthetic_inputs(inputs: Sequence[Any], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Arrays of the hints' sizes for a module's inputs; the same ones each time for a seed.

    Raises
    ------
    neo.UnsupportedError
        An input is no tensor of numbers and known rank.
    """
    random = np.random.default_rng(seed)
    arrays = []
    for spec in inputs:
        if spec.hints is None or spec.dtype == "string":
            msg = f"[tune] an input must be a tensor of numbers and known rank. Got {spec}"
            raise UnsupportedError(msg)
        if spec.dtype.startswith(("float", "complex")):
            arrays.append(random.standard_normal(spec.hints).astype(spec.dtype))
            continue
        try:
            arrays.append(random.integers(0, 2, spec.hints).astype(spec.dtype))
        except TypeError as error:
            msg = f"[tune] an input must be of a dtype of NumPy's. Got {spec}"
            raise UnsupportedError(msg) from error
    return arrays


def compare_modules(
    default: _native.Module, tuned: _native.Module, inputs: Sequence[Any], *others: _native.Module
) -> Verdict | str:
    """Time all in turn on synthetic inputs; why that is impossible, where it is.

    A module that is not surely faster than the default one counts as equal to it.
    """
    modules = [default, tuned, *others]
    try:
        arrays = synthetic_inputs(inputs)
        times = [us for us, _ in _native.benchmark_modules(modules, arrays, _ROUNDS, _SECONDS)]
        while (best := times.index(min(times))) != 0 and times[best] > (1 - _SURE_LEAD) * times[0]:
            if is_below_one(_native.paired_ratios(default, modules[best], arrays, _PAIRS, _PAIR_SECONDS)):
                break
            times[best] = times[0]
    except Error as error:
        return str(error).partition("\n")[0]
    return Verdict(times[0], times[1], tuple(times[2:]))


def is_below_one(ratios: Sequence[float]) -> bool:
    """Whether the median of what ratios are drawn from is surely below 1.

    The sign test: of `n` ratios with a median of 1, half are expected below it, give or take half the root of `n`.
    """
    below = sum(ratio < 1 for ratio in ratios)
    return below > (len(ratios) + _DEVIATIONS * math.sqrt(len(ratios))) / 2


def time_module(module: _native.Module, inputs: Sequence[Any]) -> float:
    """Microseconds of a call on synthetic inputs; 0 where that is impossible."""
    try:
        return float(_native.benchmark_modules([module], synthetic_inputs(inputs), _ROUNDS_ALONE, _SECONDS_ALONE)[0][0])
    except Error:
        return 0.0
