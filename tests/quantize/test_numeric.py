"""``neo check --numeric``: which scale of a quantized model is wrong."""

import json

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main
from onnx import TensorProto, helper, numpy_helper

from tests.quantize.networks import calls_for, small_net


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    for i, x in enumerate(calls_for([1, 3, 12, 12], 4)):
        np.save(tmp_path / "data" / f"{i}.npy", x)
    return tmp_path / "data"


def quantized_net() -> onnx.ModelProto:
    return neo.quantize(small_net(), calls_for([1, 3, 12, 12], 4)).model


def scaled(model: onnx.ModelProto, factor: float) -> tuple[onnx.ModelProto, str]:
    """The model with the scale of the first convolution's result multiplied; the node that rounds it."""
    node = [n for n in model.graph.node if n.op_type == "QuantizeLinear"][1]
    for tensor in model.graph.initializer:
        if tensor.name == node.input[1]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    return model, node.name


def check(capsys, tmp_path, model, *options):
    onnx.save(model, tmp_path / "q.onnx")
    status = main(["check", str(tmp_path / "q.onnx"), "--numeric", *map(str, options)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_a_good_model_passes(capsys, tmp_path, folder):
    status, text = check(capsys, tmp_path, quantized_net(), "--data", folder)
    assert status == 0
    assert "no scale is wrong on 4 samples" in text


@pytest.mark.parametrize(("factor", "word"), [(1 / 50, "overflow"), (60, "underflow")])
def test_a_wrong_scale_is_named_with_a_better_one(capsys, tmp_path, folder, factor, word):
    good = quantized_net()
    scales = {t.name: numpy_helper.to_array(t) for t in good.graph.initializer if t.name.endswith("/scale")}
    model, name = scaled(good, factor)
    status, text = check(capsys, tmp_path, model, "--data", folder, "--json", tmp_path / "r.json")
    assert status == 1
    assert f"{name}: {word}" in text
    first = json.loads((tmp_path / "r.json").read_text())["values"][0]
    assert first["node"] == name
    right = scales[next(n for n in model.graph.node if n.name == name).input[1]]
    assert first["better_scale"] == pytest.approx(float(right), rel=0.15)


def test_codes_that_end_at_zero_are_a_relu(capsys, tmp_path):
    linear = [numpy_helper.from_array(np.float32(6 / 255), "s"), numpy_helper.from_array(np.uint8(0), "z")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [1000])], [info("y", TensorProto.FLOAT, [1000])], linear
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    np.save(tmp_path / "x.npy", np.linspace(-9, 9, 1000, dtype=np.float32))
    status, text = check(capsys, tmp_path, model, "--input", f"x={tmp_path / 'x.npy'}")
    assert status == 0, text
    assert "0.00%" in text


def test_differences_are_written(capsys, tmp_path, folder):
    check(capsys, tmp_path, quantized_net(), "--data", folder, "--differences", tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 4
    with np.load(files[0]) as arrays:
        assert arrays["x"].shape == (1, 3, 12, 12)
        assert 0 < np.abs(arrays["x"]).max() < 0.2


def test_what_cannot_be_checked(capsys, tmp_path, folder):
    status, text = check(capsys, tmp_path, small_net(), "--data", folder)
    assert status == 1
    assert "[check] the model must round values by QuantizeLinear with constant scales. Got none" in text
    status, text = check(capsys, tmp_path, quantized_net())
    assert status == 1
    assert "--numeric must have values to look at" in text
