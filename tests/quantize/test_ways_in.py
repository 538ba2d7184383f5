"""Quantizing without data, within compile, and on the command line."""

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main

from tests.quantize.networks import Net, calls_for, small_net
from tests.quantize.test_networks import run_peer


def dense_net() -> onnx.ModelProto:
    net = Net(6)
    a = net.node("Relu", net.dense("x", 24, 32, name="first"))
    return net.model(["N", 24], net.node("Softmax", net.node("MatMul", a, net.weights(32, 5), name="last")))


def test_dynamic_products(tmp_path):
    model, x = dense_net(), calls_for([4, 24], 1)[0]
    quantized = neo.quantize(model)
    assert {n.op_type for n in quantized.model.graph.node} >= {"DynamicQuantizeLinear", "MatMulInteger"}
    onnx.checker.check_model(quantized.model, full_check=True)
    y, whole = quantized.compile()(x), neo.compile(model)(x)
    np.testing.assert_allclose(y, whole, atol=0.02)
    np.testing.assert_allclose(y, run_peer(quantized.model, x), atol=1e-5)
    assert "2 products compute the scales of what they read when they run" in str(quantized)
    with pytest.raises(neo.ModelError, match="calibration data"):
        quantized.pareto()


def test_convolutions_without_data_have_weights_as_codes():
    model, x = small_net(), calls_for([2, 3, 12, 12], 1)[0]
    quantized = neo.quantize(model)
    precisions = {layer.name: layer.precision for layer in quantized.report.layers}
    assert precisions == {"first": "int8 weights", "second": "int8 weights", "last": "int8"}
    assert quantized.report.quantized_bytes < 0.6 * quantized.report.float_bytes
    whole = neo.compile(model)(x)
    assert np.abs(quantized.compile()(x) - whole).max() < 0.05 * np.abs(whole).max()


def test_transposed_convolutions_without_data():
    net = Net(8)
    w = net.constant(net.rng.standard_normal((6, 4, 3, 3)).astype(np.float32))
    bias = net.constant(np.arange(8, dtype=np.float32))
    model = net.model([1, 6, 5, 5], net.node("ConvTranspose", "x", w, bias, group=2, strides=[2, 2], name="up"))
    quantized = neo.quantize(model)
    onnx.checker.check_model(quantized.model, full_check=True)
    x = calls_for([1, 6, 5, 5], 1)[0]
    whole = neo.compile(model)(x)
    assert np.abs(quantized.compile()(x) - whole).max() < 0.02 * np.abs(whole).max()


def test_skipping_without_data():
    quantized = neo.quantize(dense_net(), skip=["first"])
    assert [layer.precision for layer in quantized.report.layers] == ["float32", "int8"]


def test_compile_with_calibration():
    model, data = small_net(), calls_for([1, 3, 12, 12])
    module = neo.compile(model, calibration=data, threads=2)
    assert any(step.routine.startswith("cpu:int8/") for step in module.steps)
    np.testing.assert_array_equal(module(data[0]), neo.quantize(model, data, threads=2).compile()(data[0]))
    tight, whole = neo.compile(model, calibration=data, accuracy=1.0), neo.compile(model)
    assert all(tight(x).argmax() == whole(x).argmax() for x in data)


def test_compile_with_calibration_and_sizes():
    module = neo.compile(small_net(), calibration=calls_for([2, 3, 12, 12]), shapes={"N": 2})
    assert module.inputs[0].shape == (2, 3, 12, 12)
    ranged = neo.compile(small_net(), calibration=calls_for([2, 3, 12, 12]), shapes={"N": (1, 4)})
    assert ranged(calls_for([3, 3, 12, 12], 1)[0]).shape == (3, 10)


def test_compile_refuses_what_does_not_go_together():
    data = calls_for([1, 3, 12, 12], 1)
    with pytest.raises(neo.ModelError, match=r"calibration must be of a model that is trusted"):
        neo.compile(small_net(), calibration=data, limits=neo.Limits())
    with pytest.raises(neo.ModelError, match=r"accuracy must be a number from 0 to 1. Got 'strict'"):
        neo.compile(small_net(), calibration=data, accuracy="strict")


def test_the_command(tmp_path, capsys):
    onnx.save(small_net(), tmp_path / "net.onnx")
    (tmp_path / "data").mkdir()
    for i, x in enumerate(calls_for([1, 3, 12, 12])):
        np.save(tmp_path / "data" / f"{i}.npy", x)
    command = ["quantize", str(tmp_path / "net.onnx"), str(tmp_path / "data")]
    assert main([*command, "--threads", "1"]) == 0
    printed = capsys.readouterr().out
    assert "3 of 3 layers quantized" in printed
    assert f"written to {tmp_path / 'net-int8.onnx'}" in printed
    onnx.checker.check_model(tmp_path / "net-int8.onnx", full_check=True)
    assert main([*command, "-o", str(tmp_path / "other.onnx"), "--skip", "sec*", "--ranges", "minmax"]) == 0
    assert "it is skipped" in capsys.readouterr().out
    assert main([*command, "--weight-bits", "9"]) == 1
    assert "weight_bits must be from 2 to 8. Got 9" in capsys.readouterr().err
    assert main(["quantize", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "dynamic.onnx")]) == 0
    assert "Nothing was calibrated" in capsys.readouterr().out


def test_saving_to_a_folder_that_is_not_there(tmp_path):
    quantized = neo.quantize(small_net(), calls_for([1, 3, 12, 12], 1))
    with pytest.raises(neo.ResourceError, match=r"\[quantize\] the file must be written. Got No such file"):
        quantized.save(tmp_path / "none" / "m.onnx")
    with pytest.raises(neo.DTypeError, match="path must be a path. Got int"):
        quantized.save(3)


def test_the_report_is_text_and_html():
    net = Net()
    model = net.model([1, 3, 6, 6], net.conv(net.conv("x", 3, 4, name="<b>"), 4, 4, name="second"))
    quantized = neo.quantize(model, calls_for([1, 3, 6, 6]))
    assert "relative error of the outputs" in str(quantized)
    page = quantized._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert repr(quantized).startswith("<neo.Quantized: 2 of 2 layers quantized")


def test_the_file_says_how_it_was_made():
    import json

    quantized = neo.quantize(small_net(), calls_for([1, 3, 12, 12], 2), skip=["first"], seed=5)
    facts = json.loads({p.key: p.value for p in quantized.model.metadata_props}["neo.quantize"])
    assert facts["float"] == {"first": "it is skipped"}
    assert (facts["samples"], facts["settings"]["seed"]) == (2, 5)
