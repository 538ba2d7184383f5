"""The rules for two arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["FLOAT_FACTOR", "UNKNOWN_DEPTH", "assert_arrays_close", "assert_quantized_close", "float_limit"]

#: ``k`` of the float rule.
FLOAT_FACTOR = 64.0

#: The longest reduction that is assumed where nothing tells it: the reference is arrays, and no ``depth`` is given.
UNKNOWN_DEPTH = 1024


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` is a floating-point type, complex ones and those of ml_dtypes (kind ``V``) included."""
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)


def epsilon_of(dtype: np.dtype[Any]) -> float:
    """Return the machine epsilon of a floating-point dtype, those of ml_dtypes included."""
    try:
        return float(np.finfo(dtype).eps)
    except ValueError:
        import ml_dtypes

        limits: Any = ml_dtypes.finfo
        return float(limits(dtype).eps)


def _kind(dtype: np.dtype[Any]) -> str:
    """Return what two dtypes must have in common: being floats, complex numbers, strings, or NumPy's kind."""
    if dtype.kind in "OUST":
        return "strings"
    return "floats" if dtype.kind != "c" and is_float(dtype) else dtype.kind


def _compare_form(actual: Any, expected: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays after checking that their shapes and kinds agree."""
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape:
        raise AssertionError(f"[{name}] shapes must agree. Got {list(left.shape)}, expected {list(right.shape)}")
    if _kind(left.dtype) != _kind(right.dtype):
        raise AssertionError(f"[{name}] dtypes must agree. Got {left.dtype}, expected {right.dtype}")
    return left, right


def _worst(name: str, rule: str, error: np.ndarray, actual: np.ndarray, expected: np.ndarray, limit: float = 0) -> str:
    """Describe the position of the largest error and how many are beyond the limit."""
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    beyond = f"{int(np.count_nonzero(error > limit))} of {error.size} {'beyond the limit' if limit else 'differ'}"
    return (
        f"[{name}] {rule}. Got {actual[position]}, expected {expected[position]} - at {list(position)} of shape "
        f"{list(actual.shape)} ({beyond})"
    )


def _assert_exact(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    different = np.asarray(actual != expected)
    if different.any():
        raise AssertionError(_worst(name, "values must be equal", different, actual, expected))


def _finite(actual: np.ndarray, expected: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return both in double precision with everything that is not finite, and agrees, set to zero."""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    left, right = actual.astype(wide), expected.astype(wide)
    special = ~np.isfinite(right)
    agree = np.where(special, (left == right) | (np.isnan(left) & np.isnan(right)), np.isfinite(left))
    if not agree.all():
        rule = "not-a-numbers and infinities must be at the same positions"
        raise AssertionError(_worst(name, rule, ~agree, actual, expected))
    return np.where(special, 0.0, left), np.where(special, 0.0, right)


def float_limit(expected: Any, *, depth: int = UNKNOWN_DEPTH, factor: float = FLOAT_FACTOR) -> float:
    """Return ``factor * eps * sqrt(depth) * max |expected|``, the largest error that the float rule allows.

    Parameters
    ----------
    expected : array_like
        Floating-point values; what is not finite does not count.
    depth : int
        The longest reduction on the way to the values.
    factor : float
        ``k`` of the float rule.

    Examples
    --------
    >>> float_limit(np.float32([0.5, -2.0]), depth=4) == 64 * 2.0**-23 * 2 * 2
    True
    """
    values = np.asarray(expected)
    wide = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    magnitude = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    return factor * epsilon_of(values.dtype) * math.sqrt(depth) * magnitude


def assert_arrays_close(
    actual: Any, expected: Any, *, depth: int = UNKNOWN_DEPTH, factor: float = FLOAT_FACTOR, name: str = "array"
) -> None:
    """Raise ``AssertionError`` unless ``actual`` agrees with ``expected`` by the float rule, or exactly if no float.

    Parameters
    ----------
    actual, expected : array_like
        The arrays; shapes and kinds of dtype must agree, and the coarser dtype gives the machine epsilon.
    depth : int
        The longest reduction on the way to the values.
    factor : float
        ``k`` of the float rule.
    name : str
        What the message calls the array.

    Examples
    --------
    >>> assert_arrays_close(np.float32([1.0, 2.0]), np.float32([1.0, 2.5]), depth=16)
    Traceback (most recent call last):
        ...
    AssertionError: [array] max |neo - ref| is 0.5, the limit 7.629e-05 = 64 * eps * sqrt(16) * 2.5. Got 2.0, expected \
2.5 - at [1] of shape [2] (1 of 2 beyond the limit)
    """
    __tracebackhide__ = True
    left, right = _compare_form(actual, expected, name)
    if not is_float(left.dtype):
        _assert_exact(left, right, name)
        return
    if not left.size:
        return
    exact_left, exact_right = _finite(left, right, name)
    error = np.abs(exact_left - exact_right)
    magnitude = float(np.abs(exact_right).max())
    limit = factor * max(epsilon_of(left.dtype), epsilon_of(right.dtype)) * math.sqrt(depth) * magnitude
    if float(error.max()) > limit:
        rule = (
            f"max |neo - ref| is {error.max():.4g}, the limit {limit:.4g} = "
            f"{factor:g} * eps * sqrt({depth}) * {magnitude:.4g}"
        )
        raise AssertionError(_worst(name, rule, error, left, right, limit))


def assert_quantized_close(
    actual: Any, expected: Any, *, step: float, steps: float = 1.0, margin: float = 0.0, name: str = "array"
) -> None:
    """Raise ``AssertionError`` unless every value is within one quantization step and each row has the same top-1.

    A row is what the last axis runs over; a top-1 is the same where the value that ``actual`` calls largest is, in
    ``expected``, as large as any, or within ``margin`` of it.

    Parameters
    ----------
    actual, expected : array_like
        The arrays: real values, or integers still on the grid, whose step is 1.
    step : float
        The scale of the grid the values lie on.
    steps : float
        How many steps are allowed.
    margin : float
        How far from the largest, in real values, a value counts as a tie with it: what the reference itself is sure of.
    name : str
        What the message calls the array.
    """
    __tracebackhide__ = True
    left, right = _compare_form(actual, expected, name)
    if not is_float(left.dtype) and left.dtype.kind not in "iu":
        _assert_exact(left, right, name)
        return
    if not left.size:
        return
    exact_left, exact_right = _finite(left, right, name)
    error = np.abs(exact_left - exact_right)
    if float(error.max()) > step * (steps + 1e-3):
        rule = f"outputs must be within {steps:.3g} step{'s' if steps > 1 else ''} of {step:.4g}, the worst is off by {error.max() / step:.2f}"
        raise AssertionError(_worst(name, rule, error, left, right, step * (steps + 1e-3)))
    if left.ndim == 0 or left.shape[-1] < 2:
        return
    rows_left, rows_right = exact_left.reshape(-1, left.shape[-1]), exact_right.reshape(-1, left.shape[-1])
    chosen = rows_left.argmax(-1)
    rows = np.arange(len(rows_left))
    wrong = rows_right[rows, chosen] < rows_right.max(-1) - margin
    if wrong.any():
        row = int(wrong.argmax())
        raise AssertionError(
            f"[{name}] the largest value must stay the largest. Got index {int(chosen[row])} "
            f"({rows_left[row, chosen[row]]:.6g}), expected {int(rows_right[row].argmax())} "
            f"({rows_right[row].max():.6g}) - at row {row} of {len(rows)} ({int(wrong.sum())} rows differ)"
        )
