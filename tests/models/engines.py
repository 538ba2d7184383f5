"""ONNX Runtime as the reference of the zoo, and what each model must keep to beside it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from neo import testing

from . import answers, zoo
from .inputs import Feeds
from .ranking import align


class OnnxRuntime:
    """A session with the names of its outputs: ``run`` takes and gives arrays by name.

    Where ``plain`` is true, the graph is computed as its text says, node by node: a QDQ model in float between every Q
    and DQ. Otherwise onnxruntime fuses them to integer kernels, which round at other places.
    """

    def __init__(self, source: str | bytes, *, threads: int = 1, plain: bool = False) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        if plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the outputs by name."""
        return dict(zip(self.names, self.session.run(self.names, dict(feeds)), strict=True))


@dataclass(frozen=True)
class Spread:
    """How far onnxruntime's fused kernels are from the graph's text, in steps of the output.

    A value next to a rounding edge goes either way, and a deep network makes many steps of one: on mobilenet-v2-qdq the
    two are up to 18 steps apart, although every layer is within one (``test_layers``). What a whole network must keep to
    is therefore what onnxruntime keeps to itself, or one step where that is nearer; its top-1 may differ only where
    onnxruntime's two largest values are closer than its two ways of computing them.

    Attributes
    ----------
    worst : float
        The largest difference of any value.
    rms : float
        The root of the mean square of the differences of one run, for the run where it is largest.
    """

    worst: float = 0.0
    rms: float = 0.0

    #: How much further than onnxruntime's from each other neo's values may be: both are samples of the same noise.
    ALLOWANCE = 1.25

    @classmethod
    def between(
        cls, left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]], steps: Mapping[str, float]
    ) -> Spread:
        """Return how far the runs of ``left`` are from those of ``right``."""
        apart = [(a[name] - b[name]) / step for a, b in zip(left, right, strict=True) for name, step in steps.items()]
        worst = max((float(np.abs(item).max()) for item in apart), default=0.0)
        return cls(worst, max((_rms(item) for item in apart), default=0.0))

    def assert_holds(self, actual: Any, expected: Any, *, step: float, name: str) -> None:
        """Raise ``AssertionError`` where an output is further from the graph's text than the spread allows."""
        steps = max(1.0, self.worst * self.ALLOWANCE)
        testing.assert_quantized_close(actual, expected, step=step, steps=steps, margin=self.worst * step, name=name)
        if steps > 1:
            rms, limit = _rms((actual - expected) / step), max(0.5, self.rms * self.ALLOWANCE)
            assert rms <= limit, f"[{name}] differences of {rms:.2f} steps (rms). Expected at most {limit:.2f}"


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


@functools.lru_cache(maxsize=1)
def source_of(model: zoo.Model) -> str | bytes:
    """Return ``zoo.load(model)``; the last one is kept, because the weights of the largest take seconds to draw."""
    return zoo.load(model)


@functools.lru_cache(maxsize=1)
def expected_of(model: zoo.Model) -> tuple[answers.Answer, ...]:
    """Return name, inputs and onnxruntime's outputs of every case."""
    stored = answers.folder()
    if stored is not None:
        return answers.load(stored, model)[0]
    runtime = OnnxRuntime(source_of(model), plain=model.quantized)
    return tuple((case.name, case.feeds, runtime.run(case.feeds)) for case in model.cases())


@functools.lru_cache(maxsize=1)
def steps_of(model: zoo.Model) -> dict[str, float]:
    """Return the quantization step of each output of a quantized model, nothing for the others."""
    return testing.output_steps(source_of(model)) if model.quantized else {}


def fused_of(model: zoo.Model) -> tuple[dict[str, Any], ...]:
    """Return the outputs of onnxruntime's fused kernels of every case of ``expected_of``."""
    stored = answers.folder()
    if stored is not None:
        return answers.load(stored, model)[1]
    runtime = OnnxRuntime(source_of(model))
    return tuple(runtime.run(feeds) for _, feeds, _ in expected_of(model))


@functools.lru_cache(maxsize=1)
def spread_of(model: zoo.Model) -> Spread:
    """Return the spread over the model's cases; none for a model that quantizes nothing."""
    if not model.quantized:
        return Spread()
    return Spread.between(fused_of(model), [plain for *_, plain in expected_of(model)], steps_of(model))


def assert_agrees(
    model: zoo.Model,
    feeds: Feeds,
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
    spread: Spread | None = None,
) -> None:
    """Raise ``AssertionError`` unless every expected output is met by the rule of the model's kind."""
    assert set(expected) <= set(actual), f"outputs {sorted(set(expected) - set(actual))} are missing"
    depth = testing.longest_reduction(source_of(model), {name: np.shape(value) for name, value in feeds.items()})
    steps = steps_of(model)
    if model.ranked:
        score = expected[model.ranked[0]]
        testing.assert_arrays_close(actual[model.ranked[0]], score, depth=depth, name=model.ranked[0])
        actual, expected = align(model.ranked, actual, expected, testing.float_limit(score, depth=depth))
    for name, right in expected.items():
        if name in steps:
            (spread or spread_of(model)).assert_holds(actual[name], right, step=steps[name], name=name)
        else:
            testing.assert_arrays_close(actual[name], right, depth=depth, name=name)


def assert_meets_reference(
    model: zoo.Model, reference: zoo.Reference, feeds: Feeds, actual: Mapping[str, Any], expected: Feeds
) -> None:
    """Raise ``AssertionError`` unless the outputs meet stored tensors by the reference's own rule."""
    if reference.rule == "float":
        assert_agrees(model, feeds, actual, expected)
        return
    for name, right in expected.items():
        left = np.asarray(actual[name])
        assert left.shape == right.shape
        assert left.argmax(-1).tolist() == right.argmax(-1).tolist(), f"top-1 of {name}"
