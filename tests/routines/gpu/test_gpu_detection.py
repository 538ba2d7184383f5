"""Detectors whose post-processing lies in the graph run on the device from their input to their output."""

import neo
import numpy as np
import onnxruntime
import pytest

from tests.routines.gpu.detectors import ssd, yolo
from tests.routines.gpu.programs import need_device

ON_DEVICE = {"Conv *": "gpu:float32/conv_tiled", "*": "gpu*"}  # the first that matches


@pytest.mark.parametrize("make", [ssd, yolo])
def test_runs_with_no_step_on_the_cpu(make):
    need_device("opencl")
    text = make().SerializeToString()
    module = neo.compile(text, target="opencl", routines=ON_DEVICE)
    # The input there, the two results back.
    devices = module.explain().devices
    assert devices == {"opencl": devices["opencl"], "copies": 3}
    session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
    x = session.get_inputs()[0]
    feed = np.random.default_rng(2).standard_normal(x.shape).astype("f4")
    expected = session.run(None, {x.name: feed})
    assert len(expected[0]) > 1
    for y, right in zip(module(feed), expected, strict=True):
        np.testing.assert_allclose(y, right, rtol=1e-3, atol=1e-4)
