"""What the check says, from Python and on the command line, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main
from neo.report import progress
from onnx import numpy_helper

from tests.accuracy.damages import wrong_routines
from tests.accuracy.networks import attention, dense, quantized, residual

PAGE = Path(__file__).resolve().parents[2] / "docs" / "debug_accuracy.md"


@pytest.fixture
def command(capfd):
    def run(*arguments):
        status = main(["check", *[str(a) for a in arguments]])
        return status, *capfd.readouterr()

    return run


@pytest.fixture
def saved(tmp_path):
    def save(model, name="model.onnx"):
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    return save


def perturbed(model, weight, at, by):
    """Return the model with one element of one weight changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    tensor = next(t for t in copy.graph.initializer if t.name == weight)
    values = numpy_helper.to_array(tensor).copy()
    values[at] += by
    tensor.CopyFrom(numpy_helper.from_array(values, weight))
    return copy


def with_wrong_winograd(model):
    """Return the model compiled with a convolution whose Winograd routine rounds to bfloat16, and that node."""
    extension = wrong_routines()
    if extension is None:
        pytest.skip("the extension that makes routines wrong was not built")
    right = neo.compile(model, threads=1)
    problem, choices = right._selection.problem, right._selection.choice
    nodes = problem.nodes
    chosen = [entry["choices"][choice] for entry, choice in zip(nodes, choices, strict=False)]
    found = [i for i, c in enumerate(chosen) if c.get("routine", "").startswith("cpu:float32/winograd")]
    if not found:
        pytest.skip("no convolution of this network is computed by Winograd on this machine")
    extension.make_wrong(problem, found[0], choices[found[0]], extension.Fault.rounded)
    native = problem.lower(choices, float(right._native.estimate_us), 1)
    wrong = right._with(native)
    return wrong, nodes[found[0]]["name"]


def test_a_row_says_what_a_node_adds_and_what_has_come_together():
    report = neo.check_accuracy(dense(0))
    rows = {row.node: row for row in report.nodes}
    assert report.passed
    assert rows["gemm0"].routine.startswith("cpu:float32/gemm")
    last = rows["logsoftmax11"]
    assert last.value == "logsoftmax11_y"
    assert 0 < last.local < 1e-6
    assert 0 < last.share < 1
    assert 0 < last.accumulated < 1e-5
    assert all(row.onnxruntime is None for row in report.nodes)
    table = str(report)
    assert re.search(r"node +op +routine +local error +of rounding +accumulated", table)
    assert "no wrong node: rounding explains the error of all" in table
    assert len(report.table(top=2).splitlines()) == 4


def test_nodes_inside_a_group_are_listed_without_figures():
    report = neo.check_accuracy(residual(0))
    rows = {row.node: row for row in report.nodes}
    assert rows["conv0"].local is None
    assert rows["conv0"].routine == rows["relu2"].routine
    assert rows["relu2"].group == ("conv0", "batchnormalization1", "relu2")


def test_onnxruntime_stands_beside_every_value():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    report = neo.check_accuracy(attention(0), against="onnxruntime")
    assert report.passed, report.summary()
    assert all(row.onnxruntime < 1e-5 for row in report.nodes if row.value)
    assert "onnxruntime" in report.table().splitlines()[0]


def test_a_weight_that_differs_from_the_trusted_model_is_named():
    trusted = residual(1)
    report = neo.check_accuracy(perturbed(trusted, "w_6", (4, 3, 2, 1), 0.5), against=trusted)
    assert not report.passed
    assert (report.cause.node, report.cause.kind) == ("conv3", "model")
    assert "1 of 9216 elements of 'w_6' differ" in report.cause.cause
    assert "at [4, 3, 2, 1]" in report.cause.cause
    assert not report.cause.pin


def test_a_quantized_weight_that_differs_is_named():
    trusted = quantized(1)
    report = neo.check_accuracy(perturbed(trusted, "w_2", (0, 0, 0, 0), 90), against=trusted)
    assert report.cause.node in ("dequantizelinear2", "conv3")
    assert "'w_2'" in report.cause.cause


def test_a_wrong_algorithm_is_named_with_the_pin_that_avoids_it_and_its_cost():
    model = residual(2)
    module, node = with_wrong_winograd(model)
    report = neo.check_accuracy(model, module=module, measure=True)
    cause = report.cause
    assert (cause.node, cause.kind) == (node, "algorithm")
    assert cause.routine.startswith("cpu:float32/winograd")
    assert list(cause.pin) == [node]
    assert "winograd" not in cause.pin[node]
    assert cause.cost_ms is not None
    assert cause.measured_ms is not None
    assert re.search(r"pin: routines=\{.*\}\n  cost: estimated [+-][\d.]+ ms, measured [+-][\d.]+ ms", str(report))
    assert neo.check_accuracy(model, routines=cause.pin).passed


def test_errors_that_grow_are_told_from_errors_that_nodes_add():
    report = neo.check_accuracy(residual(3))
    grown = report.growth()
    assert grown
    assert all(row.accumulated is not None for row in grown)
    assert f"grows most at {grown[0].node!r}" in report.summary()


def test_the_report_is_data(tmp_path):
    trusted = residual(1)
    report = neo.check_accuracy(perturbed(trusted, "w_6", (0, 0, 0, 0), np.float32(np.inf)), against=trusted)
    report.to_json(tmp_path / "report.json")
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["cause"]["node"] == "conv3"
    assert len(data["nodes"]) == len(report.nodes)


def test_the_command_prints_the_table_and_succeeds(command, saved, tmp_path):
    path = saved(dense(0))
    np.savez(tmp_path / "x.npz", x=np.ones((3, 64), np.float32))
    status, out, err = command(path, "--accuracy", "--input", tmp_path / "x.npz", "--json", tmp_path / "r.json")
    assert (status, err) == (0, "")
    assert "gemm0" in out
    assert "no wrong node" in out
    assert (tmp_path / "r.json").exists()


def test_the_command_fails_where_a_node_is_wrong(command, saved):
    trusted = residual(1)
    right, wrong = saved(trusted, "right.onnx"), saved(perturbed(trusted, "w_6", (4, 3, 2, 1), 0.5), "wrong.onnx")
    status, out, _ = command(wrong, "--accuracy", "--against", right, "--samples", 2, "--top", 3)
    assert status == 1
    assert "first wrong node: 'conv3' (Conv)" in out


def test_a_bar_appears_on_a_terminal_only_when_it_takes_long(monkeypatch, capfd):
    neo.check_accuracy(dense(0))
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    neo.check_accuracy(dense(0))
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    neo.check_accuracy(dense(0))
    assert "checking" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"against": "tensorflow"}, "against must be an engine or a model. Got 'tensorflow'"),
        ({"samples": 0}, "samples must be a positive int. Got 0"),
        ({"inputs": []}, "there must be something to run"),
        ({"inputs": {}}, "every input must be given. Got none for 'x'"),
        ({"inputs": {"y": np.zeros((3, 64), np.float32)}}, "input names must be the model's. Got 'y', expected 'x'"),
        ({"inputs": {"x": np.zeros((3, 64), np.float64)}}, "dtype must be the input's. Got float64"),
        ({"inputs": {"x": np.zeros((3, 5), np.float32)}}, "shape must be the input's"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments, words):
    with pytest.raises(neo.ModelError) as caught:
        neo.check_accuracy(dense(0), **arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value).partition("\nHint: ")[0]


def test_a_trusted_model_must_have_the_same_inputs():
    other = dense(0)
    other.graph.input[0].name = "z"
    other.graph.node[0].input[0] = "z"
    with pytest.raises(neo.ModelError, match="the trusted model must have the model's inputs. Got z, expected x"):
        neo.check_accuracy(dense(0), against=other)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--against", "caffe"), "against must be an engine or a model"),
        (("--input", "none.npz"), "the file of an input must be readable. Got No such file or directory - at none.npz"),
        (("--top", "0"), "--top must be positive"),
    ],
)
def test_the_command_refuses_in_one_line(command, saved, arguments, words):
    status, out, err = command(saved(dense(0)), "--accuracy", *arguments)
    assert (status, out) == (1, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_a_file_that_lacks_an_input_is_refused(command, saved, tmp_path):
    np.savez(tmp_path / "x.npz", y=np.ones(3, np.float32))
    status, _, err = command(saved(dense(0)), "--accuracy", "--input", tmp_path / "x.npz")
    assert status == 1
    assert "input names must be the model's. Got 'y', expected 'x'" in err


def test_the_commands_of_the_page_run(command, saved, tmp_path, monkeypatch):
    saved(dense(0))
    saved(dense(0), "trusted.onnx")
    np.savez(tmp_path / "x.npz", x=np.ones((3, 64), np.float32))
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^\$ neo check (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        if "onnxruntime" in line:
            pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        status, out, err = command(*shlex.split(line, comments=True))
        assert (status, err) == (0, ""), line
        assert "no wrong node" in out


def test_the_examples_of_the_page_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    given = {"neo": neo, "model": dense(0), "x": np.ones((3, 64), np.float32)}
    blocks[0] = blocks[0].replace('"input"', '"x"')
    exec(blocks[0], given)
    assert given["report"].passed
    given["report"] = SimpleNamespace(cause=SimpleNamespace(pin={"gemm0": "cpu/reference"}))
    exec(blocks[1], given)
    assert next(step.routine for step in given["module"].steps if step.node == "gemm0") == "cpu/reference"
