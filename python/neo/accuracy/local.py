"""The error that one node adds, and how much of it rounding explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neo.accuracy.exact import ExactGraph, terms, to_dtype
from neo.testing.arrays import FLOAT_FACTOR, epsilon_of, is_float

__all__ = ["LocalError", "local_error", "relative_error"]

#: ``k`` of the bound on the root mean square of the errors of a node; ``FLOAT_FACTOR`` bounds the largest.
RMS_FACTOR = 8.0

# Larger values stand for minus or plus infinity in a mask; they are compared by themselves.
_HUGE = 1e30
_JITTERS = 4
_ROUNDED_SHARE = 1e-3
# Least normal numbers that flushing two operands and their result may move it by.
_FLUSHED = 4.0


@dataclass(frozen=True)
class LocalError:
    """How far a value is from what its node makes of the same inputs in double precision.

    Attributes
    ----------
    error : float
        Largest difference over the largest value; for integers in steps of one.
    ratio : float
        The error over its bound: beyond 1 rounding does not explain it.
    reason : str
        What is beyond the bound; empty where nothing is.
    """

    error: float
    ratio: float
    reason: str = ""

    @property
    def bad(self) -> bool:
        """Whether rounding does not explain the error."""
        return self.ratio > 1.0


def relative_error(found: Any, exact: Any) -> float:
    """Largest difference over the largest value that is expected; infinite where they cannot be compared."""
    if not isinstance(found, np.ndarray) or not isinstance(exact, np.ndarray) or found.shape != exact.shape:
        return math.inf
    if not found.size or exact.dtype.kind in "OUS":
        return 0.0 if np.array_equal(found, exact) else math.inf
    wide = np.complex128 if exact.dtype.kind == "c" else np.float64
    left, right = found.astype(wide), exact.astype(wide)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(right) & (np.abs(right) < _HUGE)
        special = ~finite & ~((left == right) | (np.isnan(left) & np.isnan(right)) | (np.abs(left) >= _HUGE))
    if special.any() or not np.isfinite(left[finite]).all():
        return math.inf
    error = float(np.abs(left[finite] - right[finite]).max(initial=0.0))
    scale = float(np.abs(right[finite]).max(initial=0.0))
    return error / scale if scale else error


def local_error(
    graph: ExactGraph, name: str, found: Any, exact: Any, known: Mapping[str, Any], segment: Sequence[int]
) -> LocalError:
    """Compare a value of a run with what its nodes make of the run's own values.

    Parameters
    ----------
    graph : ExactGraph
        The graph of the model.
    name : str
        The value.
    found, exact : array
        As the run has it, and in double precision.
    known : mapping of arrays
        The values of the run.
    segment : sequence of int
        The nodes between known values and this one.
    """
    if not isinstance(found, np.ndarray) or not isinstance(exact, np.ndarray):
        return LocalError(0.0, 0.0)
    if found.shape != exact.shape:
        if _is_unstable(graph, name, exact, known, segment):
            return LocalError(0.0, 0.0)
        return LocalError(math.inf, math.inf, f"the shape is {list(found.shape)}, expected {list(exact.shape)}")
    if not found.size:
        return LocalError(0.0, 0.0)
    if not is_float(found.dtype):
        return _whole_error(graph, name, found, exact, known, segment)
    return _float_error(graph, name, found, exact, known, segment)


def _epsilon(graph: ExactGraph, found: np.ndarray[Any, Any], segment: Sequence[int]) -> float:
    """The machine epsilon of the coarsest float that the model computes these nodes in."""
    largest = epsilon_of(found.dtype)
    for index in segment:
        for name in graph.outputs[index]:
            dtype = to_dtype(graph.dtypes.get(name or "", "float64"))
            if is_float(dtype):
                largest = max(largest, epsilon_of(dtype))
    return largest


def _depth(graph: ExactGraph, made: Mapping[str, Any], known: Mapping[str, Any], segment: Sequence[int]) -> int:
    values = {**known, **made}
    total = 0
    for index in segment:
        operands = graph.operands(index, values)
        total += terms(graph.nodes[index].op, operands, [made[n] for n in graph.outputs[index] if n in made]) - 1
    return 1 + total


def _float_error(
    graph: ExactGraph,
    name: str,
    found: np.ndarray[Any, Any],
    exact: np.ndarray[Any, Any],
    known: Mapping[str, Any],
    segment: Sequence[int],
) -> LocalError:
    error = relative_error(found, exact)
    if error == 0.0:
        return LocalError(0.0, 0.0)
    wide = exact.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(exact) & (np.abs(exact) < _HUGE)
    if math.isinf(error):
        # A dtype may overflow where double precision does not.
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = exact.astype(found.dtype).astype(wide)
        error = relative_error(found, rounded)
        if math.isinf(error):
            return LocalError(math.inf, math.inf, "not-a-numbers or infinities where there must be none, or none there")
        exact, usable = rounded, usable & np.isfinite(rounded)
    left, right = found.astype(wide)[usable], exact[usable]
    difference = np.abs(left - right)
    # Numbers nearer to 0 than any normal one of the dtype are zeros during a call: docs/accuracy.md.
    difference[difference <= _FLUSHED * _least_normal(found.dtype)] = 0.0
    worst, mean = float(difference.max(initial=0.0)), _rms(difference)
    if worst == 0.0:
        return LocalError(error, 0.0)
    epsilon = _epsilon(graph, found, segment)
    cheap = _bounds(epsilon, 1, right, [])
    if worst <= cheap[0] and mean <= cheap[1]:
        return LocalError(error, max(worst / cheap[0], mean / cheap[1]))
    made = graph.run_segment(segment, known)
    depth = _depth(graph, made, known, segment)
    limits = _bounds(epsilon, depth, right, [])
    if worst > limits[0] or mean > limits[1]:
        moves = []
        for seed in range(_JITTERS):
            amount = RMS_FACTOR * epsilon * math.sqrt(depth)
            other = graph.run_segment(segment, known, jitter=amount, seed=seed)[name]
            if isinstance(other, np.ndarray) and other.shape == exact.shape:
                with np.errstate(invalid="ignore"):
                    moves.append(np.nan_to_num(np.abs(other[usable] - right), nan=0.0, posinf=0.0))
        limits = _bounds(epsilon, depth, right, moves)
    ratios = worst / limits[0] if limits[0] else math.inf, mean / limits[1] if limits[1] else math.inf
    ratio = max(ratios)
    if ratio <= 1.0:
        return LocalError(error, ratio)
    kind = "largest" if ratios[0] >= ratios[1] else "mean square"
    bound = limits[0] if ratios[0] >= ratios[1] else limits[1]
    size = worst if ratios[0] >= ratios[1] else mean
    return LocalError(error, ratio, f"the {kind} error is {size:.3g}, rounding explains {bound:.3g}")


def _least_normal(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).tiny) if dtype in (np.float32, np.float64) else 0.0


def _bounds(
    epsilon: float, depth: int, exact: np.ndarray[Any, Any], moves: Sequence[np.ndarray[Any, Any]]
) -> tuple[float, float]:
    """The largest error that rounding explains, and the largest root mean square."""
    root = epsilon * math.sqrt(depth)
    largest = FLOAT_FACTOR * root * float(np.abs(exact).max(initial=0.0))
    mean = RMS_FACTOR * root * _rms(exact)
    for move in moves:
        largest = max(largest, FLOAT_FACTOR / RMS_FACTOR * float(move.max(initial=0.0)))
        # Chance moves half of the results at a jump, as ties of a quantization are: rounding may move all.
        mean = max(mean, math.sqrt(2.0) * _rms(move))
    return largest, mean


def _rms(values: np.ndarray[Any, Any]) -> float:
    if not values.size:
        return 0.0
    scale = float(np.abs(values).max())
    return scale * math.sqrt(float(np.mean(np.square(np.abs(values) / scale)))) if scale else 0.0


def _whole_error(
    graph: ExactGraph,
    name: str,
    found: np.ndarray[Any, Any],
    exact: np.ndarray[Any, Any],
    known: Mapping[str, Any],
    segment: Sequence[int],
) -> LocalError:
    different = np.asarray(found != exact)
    if not different.any():
        return LocalError(0.0, 0.0)
    numeric = found.dtype.kind in "iu" and exact.dtype.kind in "iu"
    steps = float(np.abs(found.astype(np.float64) - exact.astype(np.float64)).max()) if numeric else 1.0
    last = graph.nodes[graph.producer[name]]
    if last.op == "QuantizeLinear" and numeric and steps <= 1.0:
        different &= ~_on_edge(graph, known, segment)
    elif last.op.startswith(("QLinear", "DynamicQuantize", "com.microsoft.QLinear")) and numeric and steps <= 1.0:
        if np.count_nonzero(different) <= max(1.0, _ROUNDED_SHARE * different.size):
            return LocalError(steps, 0.5)
    elif _is_unstable(graph, name, exact, known, segment, different):
        return LocalError(steps, 0.5)
    count = int(np.count_nonzero(different))
    if not count:
        return LocalError(steps, 0.5)
    reason = f"{count} of {found.size} elements differ, by up to {steps:g}"
    return LocalError(steps, math.inf if steps > 1 else 1.0 + count, reason)


def _on_edge(graph: ExactGraph, known: Mapping[str, Any], segment: Sequence[int]) -> np.ndarray[Any, Any]:
    """Where a quantized element lies so near the edge between two integers that either is right."""
    made = graph.run_segment(segment, known)
    depth = _depth(graph, made, known, segment)
    epsilon = float(np.finfo(np.float32).eps)
    amount = RMS_FACTOR * epsilon * math.sqrt(depth)

    def in_steps(values: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        x, scale, *_ = graph.operands(segment[-1], values)
        scale = np.asarray(scale, np.float64)
        axis = int(graph.nodes[segment[-1]].attrs.get("axis", 1))
        if scale.ndim == 1 and scale.size > 1:
            scale = scale.reshape([-1 if i == axis % np.ndim(x) else 1 for i in range(np.ndim(x))])
        elif scale.ndim > 1:
            size = np.shape(x)[axis]
            scale = np.repeat(scale, -(-size // scale.shape[axis]), axis).take(range(size), axis)
        steps: np.ndarray[Any, Any] = np.asarray(x, np.float64) / (scale.reshape(()) if scale.size == 1 else scale)
        return steps

    plain = in_steps({**known, **made})
    room = RMS_FACTOR * epsilon * np.abs(plain) + 1e-6
    for seed in range(_JITTERS):
        moved = graph.run_segment(segment, known, jitter=amount, seed=seed)
        room = np.maximum(room, 2.0 * np.abs(in_steps({**known, **moved}) - plain))
    from_edge = np.abs(np.abs(plain - np.floor(plain)) - 0.5)
    return np.asarray(from_edge <= room)


def _is_unstable(
    graph: ExactGraph,
    name: str,
    exact: np.ndarray[Any, Any],
    known: Mapping[str, Any],
    segment: Sequence[int],
    different: np.ndarray[Any, Any] | None = None,
) -> bool:
    """Whether the last digits of the inputs decide the elements that differ."""
    made = graph.run_segment(segment, known)
    depth = _depth(graph, made, known, segment)
    left = None if different is None else different.copy()
    for seed in range(_JITTERS):
        amount = RMS_FACTOR * float(np.finfo(np.float32).eps) * math.sqrt(depth)
        other = graph.run_segment(segment, known, jitter=amount, seed=seed).get(name)
        if not isinstance(other, np.ndarray) or other.shape != exact.shape:
            return True
        if left is not None:
            left &= ~np.asarray(other != exact)
    return left is not None and not left.any()
