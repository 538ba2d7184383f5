"""Infinities and not-a-numbers in a convolution's input: "strict" gives no more not-a-numbers than a direct sum."""

from __future__ import annotations

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper


def convolution(channels, out, kernel, size, strides=1, group=1):
    random = np.random.default_rng(channels + kernel)
    weight = random.standard_normal((out, channels // group, kernel, kernel)).astype(np.float32)
    pads = [kernel // 2] * 4
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=pads, strides=[strides] * 2, group=group)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, size, size])
    constants = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph([node], "g", [x], [onnx_output("y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), weight


def onnx_output(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def reached(bad, kernel, strides, out):
    """Where a direct sum reads a pixel of `bad`."""
    padded = np.pad(bad, kernel // 2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel))[::strides, ::strides]
    return np.broadcast_to(windows.any((-1, -2)), (out, *windows.shape[:2]))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    ("channels", "out", "kernel", "strides", "group"),
    [
        (64, 64, 3, 1, 1),
        (128, 64, 3, 1, 1),
        (32, 32, 5, 1, 1),
        (64, 64, 3, 2, 1),
        (3, 64, 7, 2, 1),
        (256, 256, 1, 1, 1),
        (32, 32, 3, 1, 32),
    ],
)
def test_strict_reaches_as_far_as_a_direct_sum(value, channels, out, kernel, strides, group):
    size = 33
    model, _ = convolution(channels, out, kernel, size, strides, group)
    x = np.random.default_rng(1).standard_normal((1, channels, size, size)).astype(np.float32)
    clean = neo.compile(model, threads=1, accuracy="strict")(x)
    bad = np.zeros((size, size), bool)
    bad[11, 14] = bad[0, 32] = True
    x[0, 0, bad] = value
    found = neo.compile(model, threads=1, accuracy="strict")(x)[0]
    allowed = reached(bad, kernel, strides, out)
    np.testing.assert_array_equal(found[~allowed], clean[0][~allowed])
    if group == 1:
        assert not np.isfinite(found[allowed]).any()


def test_default_may_reach_further_and_says_so():
    text = (__import__("pathlib").Path(__file__).parents[2] / "docs" / "accuracy.md").read_text()
    assert "not-a-number in the input of such a layer reaches a tile" in text.replace("\n", " ")
