"""The last word on a selection: the default, the tuned and other modules, timed against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neo import _native
from neo.errors import Error, UnsupportedError
from neo.tune.database import Verdict

__all__ = ["compare_modules", "synthetic_inputs", "time_module"]

_ROUNDS = 15
_SECONDS = 3.0
# Of a module that has no other beside it.
_ROUNDS_ALONE = 7
_SECONDS_ALONE = 0.5


def synthetic_inputs(inputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Arrays of the hints' sizes for a module's inputs; the same ones each time.

    Raises
    ------
    neo.UnsupportedError
        An input is no tensor of numbers and known rank.
    """
    random = np.random.default_rng(0)
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
    """Time all in turn on made-up inputs; why that is impossible, where it is."""
    try:
        arrays = synthetic_inputs(inputs)
        times = [us for us, _ in _native.benchmark_modules([default, tuned, *others], arrays, _ROUNDS, _SECONDS)]
    except Error as error:
        return str(error).partition("\n")[0]
    return Verdict(times[0], times[1], tuple(times[2:]))


def time_module(module: _native.Module, inputs: Sequence[Any]) -> float:
    """Microseconds of a call on made-up inputs; 0 where that is impossible."""
    try:
        return float(_native.benchmark_modules([module], synthetic_inputs(inputs), _ROUNDS_ALONE, _SECONDS_ALONE)[0][0])
    except Error:
        return 0.0
