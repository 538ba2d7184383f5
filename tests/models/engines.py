"""ONNX Runtime as the reference of the zoo, and what each model must keep to beside it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from neo import testing

from . import answers, zoo
from .inputs import Feeds


class OnnxRuntime:
    """A session with the names of its outputs: ``run`` takes and gives arrays by name.

    Where ``fused`` is false, a QDQ model is computed as its text says, between every Q and DQ in float. onnxruntime's
    fused integer kernels round at other places: on mobilenet-v2-qdq they end up to 11 steps from its own plain mode.
    """

    def __init__(self, source: str | bytes, *, threads: int = 1, fused: bool = True) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        if not fused:
            options.add_session_config_entry("session.disable_quant_qdq", "1")
        self.session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the outputs by name."""
        return dict(zip(self.names, self.session.run(self.names, dict(feeds)), strict=True))


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
    runtime = OnnxRuntime(source_of(model), fused=model.kind != "qdq")
    return tuple((case.name, case.feeds, runtime.run(case.feeds)) for case in model.cases())


@functools.lru_cache(maxsize=1)
def steps_of(model: zoo.Model) -> dict[str, float]:
    """Return the quantization step of each output of a quantized model, nothing for the others."""
    return testing.output_steps(source_of(model)) if model.quantized else {}


@functools.lru_cache(maxsize=1)
def steps_apart(model: zoo.Model) -> float:
    """Return how many output steps onnxruntime's fused and plain modes are apart, at least 1.

    A value within rounding of a tie goes either way, and a deep network makes many steps of one: both answers follow
    the text. What a whole network must keep to is therefore what onnxruntime keeps to itself.
    """
    stored = answers.folder()
    if stored is not None:
        return answers.load(stored, model)[1]
    if model.kind != "qdq":
        return 1.0
    fused = OnnxRuntime(source_of(model))
    apart = 1.0
    for _, feeds, plain in expected_of(model):
        for name, value in fused.run(feeds).items():
            if name in steps_of(model):
                apart = max(apart, float(np.abs(value - plain[name]).max()) / steps_of(model)[name])
    return float(np.ceil(apart))


def assert_agrees(model: zoo.Model, feeds: Feeds, actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise ``AssertionError`` unless every expected output is met by the rule of the model's kind."""
    assert set(expected) <= set(actual), f"outputs {sorted(set(expected) - set(actual))} are missing"
    depth = testing.longest_reduction(source_of(model), {name: np.shape(value) for name, value in feeds.items()})
    steps = steps_of(model)
    for name, right in expected.items():
        if name in steps:
            testing.assert_quantized_close(actual[name], right, step=steps[name] * steps_apart(model), name=name)
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
