"""Resizes with target "opencl" against the CPU and onnxruntime."""

import neo
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.routines.gpu.programs import need_device


def compare(model, rtol):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    need_device("opencl")
    random = np.random.default_rng(0)
    feeds = {}
    for x in session.get_inputs():
        dims = [d if isinstance(d, int) else 1 for d in x.shape]
        feeds[x.name] = random.random(dims, dtype=np.float32)
    expected = session.run(None, feeds)
    compiled = neo.compile(model, target="opencl")
    actual = compiled.run(feeds)
    for a, y in zip(actual.values() if isinstance(actual, dict) else actual, expected, strict=True):
        np.testing.assert_allclose(a, y, rtol=rtol, atol=rtol * np.abs(y).max())
    return str(compiled.explain())


@pytest.mark.parametrize(
    ("mode", "attrs"),
    [
        ("nearest", {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        ("linear", {}),
        ("cubic", {"coordinate_transformation_mode": "align_corners"}),
    ],
)
def test_resize(mode, attrs):
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, **attrs)
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [4], [2, 3, 13, 8])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 6, 11])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 13, 8])
    model = helper.make_model(
        helper.make_graph([node], "resize", [x], [y], [sizes]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    assert "gpu:float32/resize" in compare(model.SerializeToString(), 1e-5)
