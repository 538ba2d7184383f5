"""check_sequence_lengths."""

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from onnx import helper

from benchmarks.models.recurrent import Layer


def after(steps, lengths, *, layout=0, constant=True, **attrs):
    """The nodes of a layer of three sequences."""
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [3, steps, 2] if layout else [steps, 3, 2])
    given = np.asarray(lengths, np.int32)
    lens = graph.add_constant("lens", given) if constant else graph.add_input("lens", "int32", [3])
    w = graph.add_constant("w", np.full((1, 4, 2), 0.1, np.float32))
    r = graph.add_constant("r", np.full((1, 4, 4), 0.1, np.float32))
    attrs |= {"hidden_size": 4, "layout": layout}
    graph.outputs = [graph.add_node("RNN", [x, w, r, None, lens], ["y"], attrs, "rnn").outputs[0]]
    graph.infer()
    result = _native.run_passes(graph, ["check_sequence_lengths"])
    result.verify()
    return result, [line.strip() for line in str(result).splitlines() if " = " in line and "constant" not in line]


@pytest.mark.parametrize("layout", [0, 1])
def test_whole_sequences_have_no_lengths(layout):
    _, lines = after(5, [5, 5, 5], layout=layout)
    assert len(lines) == 1
    assert "RNN(x, w, r, -, -)" in lines[0]


def test_constant_lengths_that_fit_are_left():
    _, lines = after(5, [5, 0, 2])
    assert len(lines) == 1
    assert "RNN(x, w, r, -, lens)" in lines[0]
    assert "checked_lengths=1" in lines[0]


@pytest.mark.parametrize("lengths", [[5, 6, 1], [-1, 2, 2]])
def test_constant_lengths_that_do_not_fit_are_looked_at(lengths):
    _, lines = after(5, lengths)
    assert "neo.SequenceLengths(lens, x)" in lines[0]


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("steps", [5, "t"])
def test_lengths_of_a_call_are_looked_at(layout, steps):
    graph, lines = after(steps, [1, 2, 3], layout=layout, constant=False)
    assert len(lines) == 2
    assert "neo.SequenceLengths(lens, x)" in lines[0]
    assert "RNN(x, w, r, -, lens.checked)" in lines[1] or "RNN(x, w, r, -," in lines[1]
    x = np.ones((3, 5, 2) if layout else (5, 3, 2), np.float32)
    y = graph.evaluate([x, np.array([1, 5, 3], np.int32)])[0]
    assert np.count_nonzero(np.abs(y).sum(axis=-1)) == 9
    with pytest.raises(neo.ShapeError, match="a sequence must not be longer than X. Got 6, expected 0 to 5"):
        graph.evaluate([x, np.array([1, 6, 3], np.int32)])


@pytest.mark.parametrize("wrong", [6, -1])
def test_a_module_refuses_lengths_that_do_not_fit(wrong):
    model, feeds = Layer("LSTM", 5, 2, 3, 4, forms=frozenset({"lengths"}), symbols=True).build()
    module = neo.compile(model)
    feeds["lengths"] = np.array([5, wrong], np.int32)
    with pytest.raises(neo.ShapeError, match=f"a sequence must not be longer than X. Got {wrong}, expected 0 to 5"):
        module.run(feeds)
    feeds["lengths"] = np.array([5, 0], np.int32)
    assert module.run(feeds)["y"].shape == (5, 1, 2, 4)


def test_an_attribute_alone_is_not_believed():
    _, lines = after(5, [1, 2, 9], constant=False, checked_lengths=1)
    assert "neo.SequenceLengths(lens, x)" in lines[0]
    _, lines = after(5, [1, 2, 9], checked_lengths=1)
    assert "neo.SequenceLengths(lens, x)" in lines[0]


def test_what_is_written_is_onnx(tmp_path):
    model, _ = Layer("GRU", 5, 2, 3, 4, forms=frozenset({"lengths"})).build()
    neo.optimize(model, tmp_path / "written.onnx")
    written = onnx.load(tmp_path / "written.onnx")
    assert [node.op_type for node in written.graph.node] == ["GRU"]
    assert helper.get_node_attr_value(written.graph.node[0], "hidden_size") == 4
