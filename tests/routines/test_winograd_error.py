"""The error of Winograd convolutions against float64, as candidates state it, and the limits that it meets."""

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from onnx import TensorProto, helper

from tests.routines.pinning import TIERS, candidates, compile_pinned, rms
from tests.routines.test_winograd import (
    DIRECT,
    EVEN_FORM_SIZES,
    WINOGRAD,
    by_folded,
    by_form,
    by_strided,
    by_tier_of_many_registers,
    by_tile,
    folded_channels,
    form_sizes,
)


@by_folded
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_of_first_layers_holds(kernel, stride, tile, positive):
    size = 20 if any(-(-taps // stride) % 2 == 0 for taps in kernel) else 18
    for channels in folded_channels(tile):
        error, stated = check_stated_error(kernel, tile, channels, positive, size, (stride, stride))
        assert error >= (0.45 if positive else 0.7) * stated


@by_tier_of_many_registers
@pytest.mark.parametrize("channels", [16, 64, 256])
def test_the_stated_error_of_weights_as_taps_holds(tier, channels):
    error, stated = check_stated_error((3, 3), 4, channels, False, 16, tier=tier, form="raw=1 tile=4")
    assert error >= 0.6 * stated


def exact_conv(x, w, strides):
    """Convolution without padding in float64."""
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    taps = np.ndindex(*w.shape[2:])
    x, w = x.astype(np.float64), w.astype(np.float64)

    def read(i, j):
        return x[:, :, i : i + rows : strides[0], j : j + columns : strides[1]]

    return sum(np.einsum("nchw,kc->nkhw", read(i, j), w[:, :, i, j]) for i, j in taps)


def check_stated_error(kernel, tile, channels, positive, size, strides=(1, 1), tier=TIERS[-1], form=None):
    """The rms error against float64, in units of the direct method's, is what the candidate says or less."""
    random = np.random.default_rng(channels)
    sizes = [(size - 1) * strides[i] + kernel[i] for i in (0, 1)]
    x = random.standard_normal([1, channels, *sizes]).astype(np.float32)
    x = np.abs(x) if positive else x
    w = random.standard_normal([32, channels, *kernel]).astype(np.float32)
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", list(x.shape)), graph.add_constant("w", w)]
    graph.outputs = [graph.add_node("Conv", operands, ["conv"], {"strides": list(strides)}, "conv").outputs[0]]
    offered = candidates(graph, tier, "conv")
    found = [c for c in offered if c["routine"].startswith(WINOGRAD)]
    (candidate,) = [c for c in found if (form or f"tile={tile}") in c["routine"]]
    exact = exact_conv(x, w, strides)
    error = rms(compile_pinned(graph, tier, {"conv": candidate["routine"]})(x) - exact)
    # Sums of parts of the channels are more exact.
    at_once = next(r for r in (c["routine"] for c in offered) if r.startswith(DIRECT) and "{ic=" not in r)
    direct = rms(compile_pinned(graph, tier, {"conv": at_once})(x) - exact)
    assert 0 < error <= candidate["error"] * direct
    return error, candidate["error"] * direct


@by_tile
@pytest.mark.parametrize("channels", [16, 64, 256])
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_holds(tile, channels, positive):
    check_stated_error((3, 3), tile, channels, positive, 24)


@by_form
@pytest.mark.parametrize("channels", [32, 192])
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_of_other_kernels_holds(kernel, tile, channels, positive):
    check_stated_error(kernel, tile, channels, positive, 20 if form_sizes(kernel) is EVEN_FORM_SIZES else 18)


@by_strided
@pytest.mark.parametrize("channels", [32, 192])
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_of_strides_holds(kernel, strides, tile, channels, positive):
    check_stated_error(kernel, tile, channels, positive, 20, strides)


@by_strided
def test_the_stated_error_of_strides_is_not_far_above(kernel, strides, tile):
    error, stated = check_stated_error(kernel, tile, 128, False, 20, strides)
    assert error >= 0.7 * stated


@by_form
def test_the_stated_error_is_not_far_above(kernel, tile):
    size = 20 if form_sizes(kernel) is EVEN_FORM_SIZES else 18
    error, stated = check_stated_error(kernel, tile, 128, False, size)
    assert error >= 0.7 * stated


def conv_model(channels, size, kernel, strides=(1, 1)):
    random = np.random.default_rng(channels)
    depth = channels * kernel[0] * kernel[1]
    w = (random.standard_normal([channels, channels, *kernel]) / np.sqrt(depth)).astype(np.float32)
    dims = [1, channels, size, size]
    out = [1, channels, *(-(-size // stride) for stride in strides)]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv", strides=strides, pads=[n // 2 for n in kernel] * 2)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("kernel", "strides"), [(k, (1, 1)) for k in [(3, 3), (1, 7), (5, 1), (5, 5)]] + [((3, 3), (2, 2))], ids=str
)
def test_strict_accuracy_keeps_to_the_direct_method(kernel, strides):
    model = conv_model(64, 28 * strides[0], kernel, strides)

    def routines(**options):
        return [step.routine for step in neo.compile(model, **options).steps]

    assert any(r.startswith(WINOGRAD) for r in routines())
    assert not any(r.startswith(WINOGRAD) for r in routines(accuracy="strict"))


@pytest.mark.parametrize(
    ("kernel", "strides"), [(k, (1, 1)) for k in [(3, 3), (1, 7), (5, 5)]] + [((3, 3), (2, 2))], ids=str
)
def test_a_default_compile_keeps_the_limit_of_accuracy(kernel, strides):
    """The rule of docs/accuracy.md holds for the error of every tile, beside ONNX Runtime."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = conv_model(64, 28 * strides[0], kernel, strides)
    module = neo.compile(model)
    assert any(step.routine.startswith(WINOGRAD) for step in module.steps)
    neo.testing.assert_close(module, model)
