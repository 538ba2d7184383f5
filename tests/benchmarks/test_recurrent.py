"""The generator of recurrent layers, and neo beside ONNX Runtime on what it makes."""

import neo
import numpy as np
import pytest

from benchmarks.models.recurrent import FORMS, random_layer

onnxruntime = pytest.importorskip("onnxruntime")


def test_layers_are_of_every_form():
    layers = [random_layer(seed) for seed in range(200)]
    assert set(FORMS) == set().union(*(layer.forms for layer in layers))
    assert {layer.op for layer in layers} == {"LSTM", "GRU", "RNN"}


@pytest.mark.parametrize("seed", range(60))
def test_random_layers_beside_onnx_runtime(seed):
    """ONNX Runtime has no layout 1, does not clip what the last function of an LSTM takes, and its results of unbounded
    functions overflow at other places."""
    layer = random_layer(seed)
    forms = layer.forms - {"layout", "activations"}
    if layer.op == "LSTM":
        forms -= {"clip"}
    layer.forms = frozenset(forms)
    model, feeds = layer.build()
    module = neo.compile(model)
    assert [step.routine.split("{")[0] for step in module.steps if step.op == layer.op] == ["cpu:float32/recurrent"]
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    found = module.run(feeds)
    for output, e in zip(session.get_outputs(), expected, strict=True):
        np.testing.assert_allclose(found[output.name], e, rtol=1e-4, atol=2e-5, err_msg=layer.name)
