"""The decoders of the benchmarks against onnxruntime."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from benchmarks.models.decoders import DECODERS

FRAMES = 23  # of the length that is a symbol


@pytest.mark.parametrize("name", DECODERS)
def test_agrees_with_onnxruntime(name: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = DECODERS[name]()
    dims = [d.dim_value or FRAMES for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    module = neo.compile(model, threads=2)
    (found,) = module.run({"x": x}).values()
    assert found.shape == expected.shape
    # Sums of thousands of products, many layers after each other, which a tanh may steepen.
    assert np.abs(found - expected).max() <= 5e-4 * np.abs(expected).max()
    assert not [s.node for s in module.steps if s.op == "ConvTranspose" and s.routine == "cpu/reference"]
