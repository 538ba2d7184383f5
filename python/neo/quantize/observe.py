"""Counts of a model's values on calibration data: one pass, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from neo.module import Module
from neo.quantize.float_model import FloatModel
from neo.quantize.place import Layer
from neo.quantize.ranges import Histogram

__all__ = ["Observations", "observe", "with_outputs"]


@dataclass
class Observations:
    """Counts and means.

    Attributes
    ----------
    counts : dict of str to Histogram
        Of each observed value.
    means : dict of str to array
        The mean of each channel that a layer reads, by value, in double precision.
    """

    counts: dict[str, Histogram] = field(default_factory=dict)
    means: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    _calls: int = 0

    def add(self, values: dict[str, Any], channel_axes: dict[str, int]) -> None:
        """Take in the values of one call."""
        self._calls += 1
        for name, value in values.items():
            self.counts.setdefault(name, Histogram()).add(value)
        for name, axis in channel_axes.items():
            value = values[name]
            if not value.size:
                continue
            others = tuple(a for a in range(value.ndim) if a != axis % value.ndim)
            before = self.means.get(name)
            with np.errstate(over="ignore", invalid="ignore"):  # nobody asks for means of what is not finite
                mean = value.mean(axis=others, dtype=np.float64)
                self.means[name] = mean if before is None else before + (mean - before) / self._calls


def with_outputs(model: FloatModel, names: Sequence[str]) -> onnx.ModelProto:
    """The model with values as outputs beside its own, so that no group of nodes hides them."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    present = {*model.outputs, *model.inputs}
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in present)
    return proto


def observe(
    module: Module,
    names: Sequence[str],
    layers: Sequence[Layer],
    calls: Iterable[dict[str, Any]],
    advance: Callable[[int], None],
) -> Observations:
    """Run a module of :func:`with_outputs` on calls and count the named values."""
    seen = Observations()
    axes = {layer.x: 1 if layer.op.startswith("Conv") else -1 for layer in layers if layer.bias}
    for call in calls:
        made = {**call, **module.run(call)}
        seen.add({name: made[name] for name in names}, {k: v for k, v in axes.items() if k in made})
        del made  # before the next call makes as much again
        advance(1)
    return seen
