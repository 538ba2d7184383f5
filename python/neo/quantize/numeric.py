"""Overflow and underflow of the values of a quantized model, and the scales that are wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from neo.errors import ModelError, ResourceError
from neo.frontend.onnx.load import load_model
from neo.quantize.float_model import FloatModel
from neo.quantize.observe import with_outputs
from neo.quantize.ranges import Histogram, choose_grid
from neo.quantize.samples import Samples, read_samples
from neo.quantize.study import Builder
from neo.report.progress import LateProgress
from neo.report.table import render_table
from neo.report.write import write_whole

__all__ = ["NumericReport", "RoundedValue", "check_numeric"]

# A value is reported where more of its elements than this are cut off, more become 0, or fewer of its codes are used;
# the first two only where rounding changes more than this share of the elements' energy.
_CUT, _LOST, _USED, _CHANGED = 1e-2, 0.5, 1 / 8, 1e-3
# Codes that end at 0 are a Relu of what they round, codes that end here a Relu6: nothing overflows there.
_SIX, _NEAR_SIX = 6.0, 0.05


@dataclass(frozen=True)
class RoundedValue:
    """One QuantizeLinear of a model, over all samples.

    Attributes
    ----------
    node, value : str
        The QuantizeLinear, and what it rounds.
    dtype : str
        That of the codes.
    scale, zero : float
        Its own; the first of several.
    low, high : float
        The smallest and the largest element.
    cut : float
        The share of elements beyond the first or last code, which become that code: overflow.
    lost : float
        The share of elements that are not 0 and become 0: underflow.
    used : float
        The range of the elements that is not cut off, as a share of the range of the codes.
    error : float
        Energy of what rounding changes over that of the elements.
    problem : str
        What is wrong with the scale; empty where nothing is.
    better_scale, better_zero : float or None
        Those of least mean square error, where there is one scale for all and something is wrong with it.
    """

    node: str
    value: str
    dtype: str
    scale: float
    zero: float
    low: float
    high: float
    cut: float
    lost: float
    used: float
    error: float
    problem: str = ""
    better_scale: float | None = None
    better_zero: int | None = None


@dataclass(frozen=True)
class NumericReport:
    """Every rounded value, those with a problem first, then by error.

    Attributes
    ----------
    values : tuple of RoundedValue
    samples : int
    """

    values: tuple[RoundedValue, ...]
    samples: int

    @property
    def passed(self) -> bool:
        """Whether no scale is wrong."""
        return not any(v.problem for v in self.values)

    def table(self, rows: int | None = None) -> str:
        """A line for each value, or for the first so many."""
        header = ("node", "scale", "zero", "values", "cut off", "made 0", "range used", "error", "problem")
        lines = [
            (
                v.node,
                f"{v.scale:.4g}",
                f"{v.zero:g}",
                f"{v.low:.4g} to {v.high:.4g}",
                f"{v.cut:.2%}",
                f"{v.lost:.2%}",
                f"{v.used:.0%}",
                f"{v.error:.1e}",
                v.problem,
            )
            for v in self.values[:rows]
        ]
        return render_table(header, lines, right=(1, 2, 4, 5, 6, 7))

    def summary(self) -> str:
        """The wrong scales, each with a better one."""
        bad = [v for v in self.values if v.problem]
        if not bad:
            return f"{len(self.values)} rounded values, no scale is wrong on {self.samples} samples"
        lines = [f"{len(bad)} of {len(self.values)} scales are wrong on {self.samples} samples"]
        for v in bad:
            better = ""
            if v.better_scale is not None:
                better = f"; scale {v.better_scale:.6g} with zero point {v.better_zero} has the least error"
            lines.append(f"  {v.node}: {v.problem}{better}")
        return "\n".join(lines)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return everything as JSON, and write it where a path is given; numbers that JSON has no word for are null."""
        rows = [
            {k: None if isinstance(x, float) and not math.isfinite(x) else x for k, x in asdict(v).items()}
            for v in self.values
        ]
        text = json.dumps({"samples": self.samples, "values": rows}, indent=1)
        if path is not None:
            write_whole(path, text + "\n")
        return text

    def __str__(self) -> str:
        return f"{self.table()}\n{self.summary()}"


class _Rounding:
    """One QuantizeLinear and what it has seen."""

    def __init__(self, model: FloatModel, node: onnx.NodeProto) -> None:
        self.node, self.value = node.name, node.input[0]
        scale = model.array(node.input[1]).astype(np.float64)
        has_zero = len(node.input) > 2 and bool(node.input[2])
        zero = model.array(node.input[2]) if has_zero else np.zeros(scale.shape, np.uint8)
        self.dtype = zero.dtype
        self.scale, self.zero = scale, zero.astype(np.float64)
        self.axis = int(model.attribute(node, "axis", 1))
        self.counts = Histogram()
        self.elements = self.cut = self.lost = 0
        self.energy = self.changed = 0.0

    def _along(self, numbers: np.ndarray[Any, Any], rank: int) -> np.ndarray[Any, Any]:
        if numbers.size == 1:
            return numbers.reshape(())
        shape = [1] * rank
        shape[self.axis] = numbers.size
        return numbers.reshape(shape)

    def add(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Take in a value; gives what its codes stand for."""
        limits = np.iinfo(self.dtype)
        scale, zero = self._along(self.scale, x.ndim), self._along(self.zero, x.ndim)
        if (self.zero == limits.min).all():
            x = np.maximum(x, 0)
        if (np.abs((limits.max - self.zero) * self.scale - _SIX) < _NEAR_SIX).all():
            x = np.minimum(x, np.float32(_SIX))
        with np.errstate(all="ignore"):
            codes = np.rint(x / scale) + zero
            kept = np.clip(np.nan_to_num(codes), limits.min, limits.max)
            real: np.ndarray[Any, Any] = (kept - zero) * scale
        self.counts.add(x)
        self.elements += x.size
        self.cut += int(((codes < limits.min) | (codes > limits.max)).sum())
        self.lost += int(((x != 0) & (real == 0)).sum())
        finite = np.isfinite(x)
        self.energy += float(np.square(x[finite], dtype=np.float64).sum())
        self.changed += float(np.square(real[finite] - x[finite], dtype=np.float64).sum())
        return real

    def result(self) -> RoundedValue:
        """Judge it."""
        limits = np.iinfo(self.dtype)
        scale, zero = float(self.scale.reshape(-1)[0]), float(self.zero.reshape(-1)[0])
        ends = (limits.min - zero) * scale, (limits.max - zero) * scale
        low, high = (self.counts.low, self.counts.high) if self.counts.low <= self.counts.high else (0.0, 0.0)
        inside = min(high, ends[1]) - max(low, ends[0])
        used = max(0.0, inside / (ends[1] - ends[0])) if ends[1] > ends[0] else 0.0
        count = max(1, self.elements)
        cut, lost = self.cut / count, self.lost / count
        error = self.changed / self.energy if self.energy else 0.0
        problem = ""
        if not (np.isfinite(self.scale) & (self.scale > 0)).all():
            problem = "the scale is no positive number"
        elif self.counts.not_finite:
            problem = "the value has infinities or not-a-numbers"
        elif cut > _CUT and error > _CHANGED:
            problem = f"overflow: the scale is too small, {cut:.1%} of the elements are cut off"
        elif lost > _LOST and error > _CHANGED:
            problem = f"underflow: the scale is too large, {lost:.1%} of the elements become 0"
        elif self.scale.size == 1 and used < _USED and high > low:
            problem = f"underflow: the scale is too large, {used:.1%} of the range of the codes are used"
        better = None
        if problem and self.scale.size == 1 and limits.bits == 8 and not self.counts.not_finite:
            better = choose_grid(self.counts, symmetric=self.dtype == np.int8)
        return RoundedValue(
            self.node,
            self.value,
            str(self.dtype),
            scale,
            zero,
            low,
            high,
            cut,
            lost,
            used,
            error,
            problem,
            None if better is None else better.scale,
            None if better is None else better.zero,
        )


def check_numeric(
    model: Any, data: Any, build: Builder, *, samples: int | None = None, differences: str | PathLike[str] | None = None
) -> NumericReport:
    """Run a quantized model and look at every value that is rounded in it.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        A model with QuantizeLinear in its main graph, by constant scales.
    data : iterable or path
        Samples as for :func:`neo.quantize`.
    build : Builder
        Compiles the model.
    samples : int, optional
        At most so many samples.
    differences : path, optional
        A folder for every element's change by rounding: an .npz file for each sample, by value.

    Raises
    ------
    neo.ModelError
        The model rounds nothing, or the samples do not fit.
    neo.ResourceError
        The folder cannot be written.
    """
    proto = load_model(model, whole=True).proto
    named = onnx.ModelProto()
    named.CopyFrom(proto)
    for i, node in enumerate(named.graph.node):
        node.name = node.name or next((name for name in node.output if name), f"{node.op_type}_{i}")
    graph = FloatModel(named)
    _take_constants(graph)
    nodes = [n for n in graph.nodes if n.op_type == "QuantizeLinear" and _is_constant(graph, n)]
    roundings = [_Rounding(graph, n) for n in nodes]
    roundings = [r for r in roundings if r.dtype.kind in "iu" and r.value not in graph.constants]
    if not roundings:
        msg = "[check] the model must round values by QuantizeLinear with constant scales. Got none"
        raise ModelError(msg)
    module = build(with_outputs(graph, list(dict.fromkeys(r.value for r in roundings))))
    calls = Samples(read_samples(data), module, samples, 0)
    folder = None if differences is None else Path(differences)
    with LateProgress("checking", calls.expected) as progress:
        for index, call in enumerate(calls):
            made = {**call, **module.run(call)}
            found = {r.value: (r.add(made[r.value]), made[r.value]) for r in roundings}
            if folder is not None:
                _write(folder / f"{index:04}.npz", {name: real - x for name, (real, x) in found.items()})
            progress.advance(1)
    values = sorted((r.result() for r in roundings), key=lambda v: (not v.problem, -v.error))
    return NumericReport(tuple(values), calls.count)


def _take_constants(graph: FloatModel) -> None:
    """Let constants that are nodes count as constants."""
    for node in graph.nodes:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            graph.constants[node.output[0]] = node.attribute[0].t


def _is_constant(graph: FloatModel, node: onnx.NodeProto) -> bool:
    return all(name in graph.constants for name in node.input[1:] if name)


def _write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        named: dict[str, Any] = {name.replace("/", "."): np.asarray(x, np.float32) for name, x in arrays.items()}
        np.savez_compressed(path, **named)
    except OSError as error:
        msg = f"[check] the file must be written. Got {error.strerror or error} - at {str(path)!r}"
        raise ResourceError(msg) from error
