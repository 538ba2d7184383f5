"""Sizes as exporters write them, and shapes that a file declares and does not have."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main
from onnx import TensorProto, helper

from tests.frontend.models import model_of


def two_inputs(size: int | str) -> onnx.ModelProto:
    """Two inputs of one size by its text, whose sizes differ in a call, joined."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, 2]) for name in ("a", "b")]
    return model_of([helper.make_node("Concat", ["a", "b"], ["y"], axis=0)], infos, ["y"])


@pytest.mark.parametrize("size", [-1, -7, "", "?", "None", "unk", "-1", "*"])
def test_a_size_without_a_name_is_one_of_its_own(size: int | str) -> None:
    module = neo.compile(two_inputs(size))
    a, b = np.ones((1, 2), np.float32), np.zeros((3, 2), np.float32)
    np.testing.assert_array_equal(module(a, b), np.concatenate([a, b]))


def test_a_name_is_one_size() -> None:
    with pytest.raises(neo.ShapeError, match="one size has one value"):
        neo.compile(two_inputs("rows"))(np.ones((1, 2), np.float32), np.zeros((3, 2), np.float32))


def stale(output: list[int | str], hidden: list[int]) -> onnx.ModelProto:
    """x[n, 4] -> Relu -> Flatten; what the file says of the results is given."""
    model = model_of(
        [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Flatten", ["h"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        ["y"],
    )
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, output))
    model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, hidden))
    return model


@pytest.mark.parametrize("output", [["n", 5], [1, 4], [1, 4, 1, 1], ["n", 4]])
def test_proven_shapes_win_over_declared_ones(
    output: list[int | str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = stale(output, [7, 7])
    module = neo.compile(model)
    assert module.outputs[0].shape == ("n", 4)
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(module(x), x)
    onnx.save(model, tmp_path / "m.onnx")
    assert main(["check", str(tmp_path / "m.onnx")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "neo runs every node of this model",
        "note: 'h' is declared as [7,7] and has the shape [n,4]; neo uses the latter",
    ]
    assert any(line.startswith("note: 'y' is declared") for line in lines) == (output != ["n", 4])


def test_check_says_what_compiling_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model whose nodes are all known and which no size fits."""
    model = model_of(
        [
            helper.make_node("NonZero", ["x"], ["i"]),
            helper.make_node("Shape", ["i"], ["s"]),
            helper.make_node("Concat", ["s", "s"], ["y"], axis=0),
            helper.make_node("Unsqueeze", ["c", "c"], ["z"]),
        ],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        ["y", "z"],
        initializers=[helper.make_tensor("c", TensorProto.INT64, [1], [9])],
    )
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(neo.Error) as caught:
        neo.compile(model)
    assert main(["check", str(tmp_path / "m.onnx")]) == 1
    printed = capsys.readouterr()
    assert str(caught.value).splitlines()[0] in printed.out + printed.err
