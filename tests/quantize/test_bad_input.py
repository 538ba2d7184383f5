"""What cannot be quantized: one clear line each, or a documented rule."""

import neo
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.quantize.networks import Net, calls_for, small_net

DATA = calls_for([1, 3, 12, 12], 3)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([], neo.ModelError, "must hold a call or more. Got none"),
        ((x for x in ()), neo.ModelError, "must hold a call or more"),
        (DATA[0], neo.DTypeError, "must be an iterable of calls. Got one array"),
        ({"x": DATA[0]}, neo.DTypeError, "must be an iterable of calls. Got dict"),
        (7, neo.DTypeError, "must be an iterable of calls. Got int"),
        ([DATA[0][0]], neo.ShapeError, "in calibration sample 0"),
        ([DATA[0], DATA[0][:, :, :5]], neo.ShapeError, "in calibration sample 1"),
        ([DATA[0].astype(np.complex64)], neo.DTypeError, "in calibration sample 0"),
        ([(DATA[0], DATA[0])], neo.ModelError, "an array for each input. Got 2, expected 1 - in calibration sample 0"),
        ([{"y": DATA[0]}], neo.ModelError, "in calibration sample 0"),
        ([DATA[0], np.full_like(DATA[0], np.nan)], neo.ModelError, "must be finite. Got not-a-number in 'x' - in calibration sample 1"),
        ([np.full_like(DATA[0], np.inf)], neo.ModelError, "Got infinity in 'x'"),
        ("no such folder", neo.ResourceError, "Got nothing of that name"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else None,
)  # fmt: skip
def test_data(data, error, words):
    with pytest.raises(error, match=r"^\[") as caught:
        neo.quantize(small_net(), data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value).replace("\nHint:", "")


def test_a_folder_of_files(tmp_path):
    for i, x in enumerate(DATA):
        np.save(tmp_path / f"{i}.npy", x)
    np.savez(tmp_path / "9.npz", x=DATA[0])
    quantized = neo.quantize(small_net(), tmp_path)
    assert quantized.report.samples == 4
    (tmp_path / "5.npy").write_bytes(b"no array")
    with pytest.raises(neo.ResourceError, match=r"\[quantize\] calibration data must be readable.*5\.npy"):
        neo.quantize(small_net(), tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(neo.ResourceError, match="Got none"):
        neo.quantize(small_net(), tmp_path / "empty")


def test_a_generator_that_fails_or_ends_early():
    def failing():
        yield DATA[0]
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="the disk is gone"):
        neo.quantize(small_net(), failing())
    assert neo.quantize(small_net(), (x for x in DATA), samples=50).report.samples == 3


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"accuracy": 1.5}, neo.ModelError, "accuracy must be a number from 0 to 1. Got 1.5"),
        ({"accuracy": "high"}, neo.ModelError, "accuracy must be a number"),
        ({"accuracy": float("nan")}, neo.ModelError, "accuracy must be a number"),
        ({"accuracy": 0.9, "drop": 1}, neo.ModelError, "there must be one limit"),
        ({"drop": 0.5}, neo.DTypeError, "metric must be a function"),
        ({"metric": len}, neo.ModelError, "drop must be a number of 0 or more"),
        ({"drop": -1, "metric": len}, neo.ModelError, "drop must be a number of 0 or more"),
        ({"ranges": "entropy"}, neo.ModelError, "ranges must be known. Got 'entropy'"),
        ({"weight_bits": 1}, neo.ModelError, "weight_bits must be from 2 to 8. Got 1"),
        ({"weight_bits": 4.0}, neo.ModelError, "weight_bits must be from 2 to 8"),
        ({"samples": 0}, neo.ModelError, "samples must be a positive number"),
        ({"seed": -1}, neo.ModelError, "seed must be a number of 0 or more"),
        ({"skip": "first"}, neo.DTypeError, "skip must be names or patterns"),
        ({"skip": ["third"]}, neo.ModelError, "a pattern must match a node. Got 'third'"),
        ({"skip": [3]}, neo.DTypeError, "skip must be names or patterns"),
        ({"threads": 0}, neo.ModelError, "threads"),
        ({"shapes": {"N": [1, 2]}}, neo.ModelError, "one target and one set of sizes. Got 2 variants"),
    ],
    ids=str,
)
def test_arguments(options, error, words):
    with pytest.raises(error) as caught:
        neo.quantize(small_net(), DATA, **options)
    assert words in str(caught.value)


def test_metrics_that_raise_or_give_no_number():
    def raises(module):
        raise KeyError("labels")

    with pytest.raises(KeyError, match="labels"):
        neo.quantize(small_net(), DATA, drop=1, metric=raises)
    for wrong in (float("nan"), float("inf"), None, "good", [1, 2]):
        with pytest.raises(neo.ModelError, match=r"\[quantize\] the metric must give a finite number"):
            neo.quantize(small_net(), DATA, drop=1, metric=lambda module, wrong=wrong: wrong)


def test_a_limit_without_data():
    with pytest.raises(neo.ModelError, match="a limit must have calibration data"):
        neo.quantize(small_net(), accuracy=0.9)


def test_a_model_that_is_quantized():
    quantized = neo.quantize(small_net(), DATA)
    with pytest.raises(neo.ModelError, match=r"\[quantize\] the model must not be quantized. Got \d+ nodes"):
        neo.quantize(quantized.model, DATA)


def test_the_float_half_of_a_model_is_quantized():
    half = neo.quantize(small_net(), DATA, skip=["second"])
    again = neo.quantize(half.model, DATA)
    assert {layer.name: layer.precision for layer in again.report.layers}["second"] == "int8"
    onnx.checker.check_model(again.model, full_check=True)
    x = DATA[0]
    whole = neo.compile(small_net())(x)
    assert np.abs(again.compile()(x) - whole).max() < 0.05 * np.abs(whole).max()


def test_half_precision():
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, [1, 4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT16, [1, 4])
    w = numpy_helper.from_array(np.eye(4, dtype=np.float16), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(
        neo.ModelError, match=r"\[quantize\] the model must compute in float32. Got half precision in 'x'"
    ):
        neo.quantize(model, [np.ones((1, 4), np.float16)])


@pytest.mark.parametrize("data", [None, [np.ones((1, 4), np.float32)]])
def test_nothing_to_quantize(data):
    net = Net()
    model = net.model([1, 4], net.node("Softmax", "x"))
    with pytest.raises(neo.ModelError, match=r"\[quantize\] there must be a Conv.*Got none"):
        neo.quantize(model, data)


def one_conv(weights: np.ndarray, bias: np.ndarray | None = None) -> onnx.ModelProto:
    net = Net()
    inputs = ["x", net.constant(weights.astype(np.float32))]
    if bias is not None:
        inputs.append(net.constant(bias.astype(np.float32)))
    a = net.node("Relu", net.node("Conv", *inputs, kernel_shape=[3, 3], pads=[1] * 4, name="conv"))
    return net.model(["N", 3, 8, 8], net.conv(a, weights.shape[0], 4, 1, name="next"))


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize(
    ("weights", "bias"),
    [
        (np.zeros((8, 3, 3, 3)), None),
        (np.zeros((8, 3, 3, 3)), normal(8)),
        (normal(8, 3, 3, 3) * np.array([0, 1, 1, 0, 1, 1, 1, 1]).reshape(8, 1, 1, 1), normal(8) * 100),
        (normal(8, 3, 3, 3) * 1e30, None),
        (normal(8, 3, 3, 3) * 1e-30, normal(8)),
        (normal(8, 3, 3, 3) * 1e-38, normal(8) * 1e30),
        (normal(8, 3, 3, 3) * 1e-6, normal(8) * 1e6),
    ],
    ids=["zeros", "zeros and a bias", "dead channels", "1e30", "1e-30", "tiny beside a bias of 1e30", "large bias"],
)
def test_odd_weights(weights, bias):
    model, data = one_conv(weights, bias), calls_for([1, 3, 8, 8], 3)
    quantized = neo.quantize(model, data)
    onnx.checker.check_model(quantized.model, full_check=True)
    y, whole = quantized.compile()(data[0]), neo.compile(model)(data[0])
    assert np.isfinite(y).all()
    assert np.abs(y - whole).max() <= 0.05 * np.abs(whole).max() + 1e-30


def test_weights_that_are_not_finite_stay_float():
    weights = normal(8, 3, 3, 3)
    weights[0, 0, 0, 0] = np.nan
    quantized = neo.quantize(one_conv(weights), calls_for([1, 3, 8, 8], 2))
    reasons = {layer.name: layer.reason for layer in quantized.report.layers}
    assert reasons["conv"] == "its weights are not finite"


def test_values_that_overflow_inside_stay_float():
    net = Net()
    a = net.conv("x", 3, 8, 1, name="a")
    large = net.node("Exp", net.node("Mul", a, net.constant(np.float32(1e4))))
    b = net.conv(large, 8, 8, 1, name="b")
    y = net.conv(net.node("Sigmoid", b), 8, 4, 1, name="c")
    quantized = neo.quantize(net.model([1, 3, 6, 6], y), calls_for([1, 3, 6, 6], 2))
    layers = {layer.name: layer for layer in quantized.report.layers}
    assert layers["b"].precision == "float32"
    assert layers["a"].precision == "int8"


def test_constant_inputs_and_one_sample():
    for x in (np.zeros((1, 3, 12, 12), np.float32), np.full((1, 3, 12, 12), -2, np.float32)):
        quantized = neo.quantize(small_net(), [x])
        assert quantized.report.samples == 1
        assert quantized.report.error < 1e-3


def test_samples_without_elements():
    quantized = neo.quantize(small_net(), [np.zeros((0, 3, 12, 12), np.float32), *DATA])
    assert quantized.report.error < 0.01
    with pytest.raises(neo.Error, match=r"^\["):
        neo.quantize(small_net(), [np.zeros((0, 3, 12, 12), np.float32)]).compile()(1)
