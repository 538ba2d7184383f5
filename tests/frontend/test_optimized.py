"""Networks that ONNX Runtime's optimizer saved to a file, at each of its levels."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static

from .models import node_model
from .networks import NETWORKS
from .peer import Random

RANDOM = Random(42)
LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"]


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("name", NETWORKS)
def test_saved_at_each_level(name: str, opset: int, fixed: bool, tmp_path: Path) -> None:
    model, feeds = NETWORKS[name](opset, fixed, 1)
    for level in LEVELS:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(tmp_path / f"{level}.onnx")
        options.log_severity_level = 4
        want = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
        got = list(neo.compile(options.optimized_model_filepath).run(feeds).values())
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4, err_msg=level)


_FORMATS = {"operators": QuantFormat.QOperator, "pairs": QuantFormat.QDQ}


class _Once(CalibrationDataReader):
    """One set of inputs to find the ranges of all values with."""

    def __init__(self, feeds: dict[str, np.ndarray]) -> None:
        self.rest = [feeds]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.rest.pop() if self.rest else None


@pytest.mark.parametrize("form", ["dynamic", "operators", "pairs"])
@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_and_saved(name: str, form: str, tmp_path: Path) -> None:
    """Quantized by ONNX Runtime's tools and then optimized; a rounding of its own operators may differ by a step.

    Weights have seven bits: of eight, ONNX Runtime's sums of pairs saturate on processors without VNNI.
    """
    model, feeds = NETWORKS[name](13, True, 1)
    onnx.save(model, tmp_path / "float.onnx")
    paths = (str(tmp_path / "float.onnx"), str(tmp_path / "codes.onnx"))
    if form == "dynamic":
        quantize_dynamic(*paths, reduce_range=True)
    else:
        quantize_static(*paths, _Once(feeds), _FORMATS[form], reduce_range=True)
    for level in LEVELS:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(tmp_path / f"{level}.onnx")
        options.log_severity_level = 4
        want = onnxruntime.InferenceSession(paths[1], options).run(None, feeds)
        got = list(neo.compile(options.optimized_model_filepath).run(feeds).values())
        for g, w in zip(got, want, strict=True):
            assert np.abs(g - w).max() <= 0.08 * np.abs(w).max(), level


def blocked(weights: np.ndarray, block: int, *, is_direct: bool) -> np.ndarray:
    """Weights as ONNX Runtime stores them in com.microsoft.nchwc, in the shape of the plain ones."""
    outputs, inputs, *window = weights.shape
    if is_direct:
        parts = weights.reshape(outputs // block, block, inputs, *window)
        order = [0, 2, *range(3, parts.ndim), 1]
    else:
        parts = weights.reshape(outputs // block, block, inputs // block, block, *window)
        order = [0, 2, *range(4, parts.ndim), 3, 1]
    return np.ascontiguousarray(parts.transpose(order)).reshape(weights.shape)


@pytest.mark.parametrize("block", [8, 16])
def test_channels_in_blocks_of_either_size(block: int) -> None:
    """The number of output channels tells the size: 24 fill 3 blocks of 8, and need 32 with blocks of 16."""
    x, first, second = RANDOM.normal(1, 3, 6, 6), RANDOM.normal(24, 3, 3, 3), RANDOM.normal(24, 24, 1, 1)
    padded = -(-24 // block) * block
    grown = np.zeros((padded, 3, 3, 3), np.float32)
    grown[:24] = first
    wide = np.zeros((padded, padded, 1, 1), np.float32)
    wide[:24, :24] = second
    domain = "com.microsoft.nchwc"
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], domain=domain, kernel_shape=[3, 3], activation="Relu"),
        helper.make_node("Conv", ["p", "b"], ["q"], domain=domain, kernel_shape=[1, 1]),
        helper.make_node("ReorderOutput", ["q"], ["y"], domain=domain, channels=24, channels_last=1),
    ]
    arrays = {"a": blocked(grown, block, is_direct=True), "b": blocked(wide, block, is_direct=False)}
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])
    plain = neo.compile(node_model("Conv", [x, first], {"kernel_shape": [3, 3]}, opset=17, constants=(1,))[0])(x)
    want = np.einsum("oi,nihw->nhwo", second[:, :, 0, 0], np.maximum(plain, 0))
    np.testing.assert_allclose(neo.compile(model)(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("block", "inputs"), [(8, 3), (16, 3), (16, 9), (16, 12), (16, 15)])
@pytest.mark.parametrize("outputs", [16, 32])
def test_blocks_that_broadcast(block: int, inputs: int, outputs: int) -> None:
    """Channels scale by their own means: blocks are an axis of their own before the product, and none behind it."""
    x, weights = RANDOM.normal(2, inputs, 5, 6), RANDOM.normal(outputs, inputs, 1, 1)
    domain = "com.microsoft.nchwc"
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["p"], domain=domain, kernel_shape=[1, 1]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"], domain=domain),
        helper.make_node("Reshape", ["p", "apart"], ["p5"]),
        helper.make_node("Reshape", ["g", "apart"], ["g5"]),
        helper.make_node("Mul", ["g5", "p5"], ["m5"]),
        helper.make_node("Reshape", ["m5", "together"], ["m"]),
        helper.make_node("ReorderOutput", ["m"], ["y"], domain=domain, channels=outputs),
    ]
    arrays = {
        "w": blocked(weights, block, is_direct=True),
        "apart": np.array([0, outputs // block, 0, 0, block]),
        "together": np.array([0, outputs, 0, 0]),
    }
    graph = helper.make_graph(
        nodes,
        "scaled",
        [helper.make_tensor_value_info("x", 1, ["n", inputs, "h", "w"])],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])
    plain = np.einsum("oi,nihw->nohw", weights[:, :, 0, 0], x)
    np.testing.assert_allclose(neo.compile(model)(x), plain * plain.mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [4, 8])
def test_channels_that_only_a_call_tells(channels: int) -> None:
    """Behind sizes that are computed, the weights say how many channels a block must have."""
    x, weights = RANDOM.normal(1, channels, 5, 6), RANDOM.normal(24, 8, 1, 1)
    weights[:, channels:] = 0
    domain = "com.microsoft.nchwc"
    nodes = [
        helper.make_node("ReorderInput", ["x"], ["p"], domain=domain),
        helper.make_node("MaxPool", ["p"], ["q"], domain=domain, kernel_shape=[2, 2]),
        helper.make_node("Conv", ["q", "w"], ["r"], domain=domain, kernel_shape=[1, 1]),
        helper.make_node("ReorderOutput", ["r"], ["y"], domain=domain, channels=20),
    ]
    graph = helper.make_graph(
        nodes,
        "channels",
        [helper.make_tensor_value_info("x", 1, [1, "C", 5, 6])],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(blocked(weights, 8, is_direct=False), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])
    most = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3)).max(axis=(4, 5))
    want = np.einsum("oi,nihw->nohw", weights[:20, :channels, 0, 0], most)
    np.testing.assert_allclose(neo.compile(model)(x), want, rtol=1e-4, atol=1e-4)
