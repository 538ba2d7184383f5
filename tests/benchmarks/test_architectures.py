"""The families of networks of the benchmarks against onnxruntime, at sizes that nobody measures too."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from benchmarks.models.architectures import ARCHITECTURES, make


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_agrees_with_onnxruntime(kind: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    _, listed = ARCHITECTURES[kind]
    samples = [make(kind, sizes) for sizes in listed]
    if kind != "relative-positions":  # whose places are as many as the distances
        samples.append(make(kind, dict.fromkeys(listed[0], 7)))
    model = samples[0].model
    # Several threads of ONNX Runtime add to the same places in ScatterND, and lose sums.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    module = neo.compile(model, threads=2)
    for sample in samples:
        assert sample.model == model
        for found, wanted in zip(module.run(sample.feeds).values(), session.run(None, sample.feeds), strict=True):
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max(initial=0) <= 5e-4 * max(1, np.abs(wanted).max(initial=0)), sample.name
