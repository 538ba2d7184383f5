"""Stateful models of the zoo, window after window, with the state they gave carried into the next call."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from . import tasks, zoo
from .conftest import each_model, require
from .engines import OnnxRuntime, assert_agrees, source_of


@each_model(lambda model: model.stream is not None)
def test_stream_agrees_with_onnxruntime(tier: str, model: zoo.Model) -> None:
    """Each engine carries its own state: errors may not pile up."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    runtime = OnnxRuntime(source_of(require(model)))
    module = neo.compile(source_of(model), target=f"cpu:{tier}")
    expected = list(zoo.stream_steps(model, runtime.run, 100))
    actual = list(zoo.stream_steps(model, module.run, 100))
    assert len(actual) == len(expected) == 100
    for (feeds, right), (_, left) in zip(expected, actual, strict=True):
        assert_agrees(model, feeds, left, right)


@each_model(lambda model: model.name in ("silero-vad", "silero-vad-16k", "silero-vad-ifless"))
def test_speech_is_heard_where_it_is(tier: str, model: zoo.Model) -> None:
    module = neo.compile(str(require(model).path), target=f"cpu:{tier}")
    heard = [float(outputs["output"][0, 0]) for _, outputs in zoo.stream_steps(model, module.run, 400)]
    np.testing.assert_allclose(heard[: len(tasks.SPEECH_FIRST)], tasks.SPEECH_FIRST, atol=6e-5)
    assert sum(value > 0.5 for value in heard) == tasks.SPEECH_WINDOWS


def test_both_rates_share_one_module() -> None:
    """The two branches of the If, in turn, with the states apart."""
    wide, narrow = require(zoo.BY_NAME["silero-vad"]), zoo.BY_NAME["silero-vad-8k"]
    module = neo.compile(str(wide.path))
    apart = [[out["output"] for _, out in zoo.stream_steps(model, module.run, 30)] for model in (wide, narrow)]
    streams = zip(*[zoo.stream_steps(model, module.run, 30) for model in (wide, narrow)], strict=True)
    together = [(first["output"], second["output"]) for (_, first), (_, second) in streams]
    for index, (first, second) in enumerate(together):
        np.testing.assert_array_equal(first, apart[0][index])
        np.testing.assert_array_equal(second, apart[1][index])
