"""A calibrated model, from which every plan is written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx

from neo.errors import DTypeError, ModelError
from neo.frontend.source import Source
from neo.module import Module
from neo.options import Options, Size
from neo.pipeline import compile_variant, estimate_variant
from neo.quantize.float_model import FloatModel
from neo.quantize.observe import Observations, observe, with_outputs
from neo.quantize.place import Layer, Placement, find_layers, matching, place
from neo.quantize.ranges import Grid, Histogram, choose_grid
from neo.quantize.samples import Samples
from neo.quantize.weights import Codes, quantize_weights
from neo.quantize.write import write_qdq
from neo.report.progress import LateProgress

__all__ = ["Builder", "Settings", "Study"]

#: Operators that run on codes with their weights; neither neo nor ONNX Runtime has integer routines for others.
PRODUCTS = ("Conv", "Gemm", "MatMul")
_METHODS = ("mse", "minmax", "percentile")


@dataclass(frozen=True)
class Settings:
    """How to quantize; :func:`neo.quantize` describes each."""

    ranges: str = "mse"
    symmetric: bool = False
    per_channel: bool = True
    weight_bits: int = 8
    correct_bias: bool = True
    equalize: bool = False
    skip: tuple[str, ...] = ()
    samples: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise where one of them is malformed."""
        if self.ranges not in _METHODS:
            msg = f"[quantize] ranges must be known. Got {self.ranges!r}, expected one of {', '.join(_METHODS)}"
            raise ModelError(msg)
        if not _is_whole(self.weight_bits) or not 2 <= self.weight_bits <= 8:
            msg = f"[quantize] weight_bits must be from 2 to 8. Got {self.weight_bits!r}"
            raise ModelError(msg)
        if self.samples is not None and (not _is_whole(self.samples) or self.samples < 1):
            msg = f"[quantize] samples must be a positive number. Got {self.samples!r}"
            raise ModelError(msg)
        if not _is_whole(self.seed) or self.seed < 0:
            msg = f"[quantize] seed must be a number of 0 or more. Got {self.seed!r}"
            raise ModelError(msg)
        if not all(isinstance(pattern, str) for pattern in self.skip):
            msg = "[quantize] skip must be names or patterns of nodes. Got something else, expected a list of str"
            raise DTypeError(msg)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


@dataclass(frozen=True)
class Builder:
    """Compiles variants of the model for one target."""

    options: Options

    def __call__(self, proto: onnx.ModelProto) -> Module:
        """Compile a model."""
        return compile_variant(Source(proto, None), self.options.targets[0], self.shapes, self.options)

    def estimate_us(self, proto: onnx.ModelProto) -> float:
        """Microseconds that a call is expected to take."""
        return estimate_variant(Source(proto, None), self.options.targets[0], self.shapes, self.options)

    @property
    def shapes(self) -> dict[str, Size]:
        """The sizes of symbols that are ranges: those that are numbers are written in the model by now."""
        return {name: size for name, size in self.options.shapes[0].items() if not isinstance(size, int)}


@dataclass
class Study:
    """A model with its layers and what calibration saw.

    Attributes
    ----------
    model : FloatModel
    layers : list of Layer
        Those that can be quantized and are not skipped.
    reasons : dict of str to str
        Nodes with weights that stay float in every plan, and why.
    seen : Observations
    settings : Settings
    build : Builder
    calls : list of dict
        Calibration samples that plans are compared on.
    count : int
        How many samples calibration ran on.
    """

    model: FloatModel
    layers: list[Layer]
    reasons: dict[str, str]
    seen: Observations
    settings: Settings
    build: Builder
    calls: list[dict[str, Any]]
    count: int
    _skipped: set[str] = field(default_factory=set)
    _codes: dict[tuple[str, Grid], Codes] = field(default_factory=dict)
    _grids: dict[frozenset[str], Grid] = field(default_factory=dict)
    _float: Module | None = None

    @classmethod
    def calibrated(cls, model: FloatModel, data: Iterable[Any], settings: Settings, build: Builder) -> Study:
        """Run the model on calibration data.

        Raises
        ------
        neo.ModelError
            There is nothing to quantize, no data, or data that are not finite or do not fit the model.
        """
        layers, reasons = find_layers(model, PRODUCTS)
        skipped = matching(model, settings.skip)
        reasons |= {layer.name: "it is skipped" for layer in layers if layer.name in skipped}
        layers = [layer for layer in layers if layer.name not in skipped]
        if not layers:
            why = "".join(f"\n  {name}: {reason}" for name, reason in reasons.items())
            msg = f"[quantize] there must be a Conv, MatMul or Gemm of constant float32 weights. Got none{why}"
            raise ModelError(msg)
        rounded = place(model, layers, skipped).rounded
        module = build(with_outputs(model, list(rounded)))
        samples = Samples(data, module, settings.samples, settings.seed)
        with LateProgress("calibrating", samples.expected) as progress:
            seen = observe(module, list(rounded), layers, samples, progress.advance)
        kept = []
        for layer in layers:
            counts = seen.counts[layer.x]
            reason = ""
            if counts.not_finite:
                reason = "its input has infinities or not-a-numbers"
            elif counts.low > counts.high:
                reason = "its input has no elements"
            elif not max(-counts.low, counts.high) < 1e30:
                reason = "its input is beyond 1e30"
            if reason:
                reasons[layer.name] = reason
            else:
                kept.append(layer)
        return cls(model, kept, reasons, seen, settings, build, samples.kept, samples.count, skipped)

    @property
    def float_module(self) -> Module:
        """The float model, compiled once."""
        if self._float is None:
            self._float = self.build(self.model.proto)
        return self._float

    def placement(self, kept: Collection[str]) -> Placement:
        """Place the rounding if only some layers are quantized."""
        others = {layer.name for layer in self.layers if layer.name not in kept}
        return place(self.model, self.layers, self._skipped | others | self._unfit)

    @property
    def _unfit(self) -> set[str]:
        """Nodes that read or make what no grid can hold."""
        bad = {name for name, counts in self.seen.counts.items() if counts.not_finite or counts.low > counts.high}
        bad |= {name for name, counts in self.seen.counts.items() if not max(-counts.low, counts.high, 0.0) < 1e30}
        layers = {layer.node for layer in self.layers}
        return {
            node.name
            for i, node in enumerate(self.model.nodes)
            if i not in layers and bad.intersection((*node.input, *node.output))
        }

    def grids(self, placement: Placement) -> dict[str, Grid]:
        """The grid of each value that `placement.rounded` names, from what all values that share it were."""
        members: dict[str, list[str]] = {}
        for value, owner in placement.rounded.items():
            members.setdefault(owner, []).append(value)
        return {owner: self._grid(frozenset(values)) for owner, values in members.items()}

    def _grid(self, values: frozenset[str]) -> Grid:
        if values not in self._grids:
            counts = [self.seen.counts[name] for name in sorted(values)]
            merged = counts[0] if len(counts) == 1 else Histogram.merged(counts)
            self._grids[values] = choose_grid(merged, self.settings.ranges, symmetric=self.settings.symmetric)
        return self._grids[values]

    def codes(self, layer: Layer, grid: Grid) -> Codes:
        """A layer's weights and bias as codes."""
        key = layer.name, grid
        if key not in self._codes:
            means = self.seen.means.get(layer.x) if self.settings.correct_bias else None
            bits, per_channel = self.settings.weight_bits, self.settings.per_channel
            self._codes[key] = quantize_weights(
                self.model, layer, grid, bits=bits, per_channel=per_channel, means=means
            )
        return self._codes[key]

    def written(self, kept: Collection[str]) -> onnx.ModelProto:
        """The model with some of its layers quantized."""
        placement = self.placement(kept)
        grids = self.grids(placement)
        codes = {layer.name: self.codes(layer, grids[placement.rounded[layer.x]]) for layer in placement.layers}
        return write_qdq(self.model, placement, grids, codes, self.note(kept))

    def note(self, kept: Collection[str]) -> Mapping[str, str]:
        """The file's metadata: the settings, and the layers that stay float."""
        left = {layer.name: "chosen" for layer in self.layers if layer.name not in kept} | self.reasons
        facts = {"settings": asdict(self.settings), "samples": self.count, "float": left}
        return {"neo.quantize": json.dumps(facts, sort_keys=True)}
