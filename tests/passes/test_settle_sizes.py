"""Sizes that a node needs to be a number."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

from tests.passes.rewriting import after, parsed


def test_the_channels_of_an_input_are_those_of_the_weights():
    text = 'graph "g" (x: float32[N,C,H,W], w: float32[8,3,3,3]) -> (y) {\n  y = Conv(x, w)\n}'
    graph = after(text, "settle_sizes")
    assert graph.inputs[0].shape == ("N", 3, "H", "W")


def test_a_size_that_only_data_tells_is_a_number_where_it_begins():
    text = """graph "g" (x: float32[M], shape: int64[4], w: float32[8,3,3,3]) -> (y) {
  v = Reshape(x, shape)
  y = Conv(v, w)
}"""
    graph = _native.run_passes(parsed(text), ["settle_sizes"])
    assert graph.nodes[0].outputs[0].shape[1] == 3


def _model(nodes, inputs, constants):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, dtype, dims) for name, dtype, dims in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


WEIGHTS = np.random.default_rng(5).standard_normal((8, 3, 3, 3), dtype=np.float32)
X = ("x", TensorProto.FLOAT, ["n", "c", "h", "w"])


def _routines(model: onnx.ModelProto) -> list[str]:
    return [step.routine for step in neo.compile(model).steps]


@pytest.mark.parametrize("dims", [["n", "c", "h", "w"], [None] * 4, None], ids=["symbols", "open", "no rank"])
def test_a_convolution_of_open_channels_has_a_routine(dims):
    model = _model([helper.make_node("Conv", ["x", "k"], ["y"])], [("x", TensorProto.FLOAT, dims)], {"k": WEIGHTS})
    assert "cpu/reference" not in _routines(model)
    module = neo.compile(model)
    for shape in ((1, 3, 9, 8), (2, 3, 3, 5), (0, 3, 4, 4)):
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        plain = neo.compile(_model([helper.make_node("Conv", ["x", "k"], ["y"])], [(*X[:2], shape)], {"k": WEIGHTS}))
        np.testing.assert_allclose(module(x), plain(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(neo.ShapeError, match=r"Got \[1,4,9,9\]"):
        module(np.zeros((1, 4, 9, 9), np.float32))


def test_channels_that_are_computed_are_checked_when_the_call_knows_them():
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["v"]), helper.make_node("Conv", ["v", "k"], ["y"])]
    inputs = [("x", TensorProto.FLOAT, ["m"]), ("shape", TensorProto.INT64, [4])]
    model = _model(nodes, inputs, {"k": WEIGHTS})
    assert not any(step.op == "Conv" and step.routine == "cpu/reference" for step in neo.compile(model).steps)
    module = neo.compile(model)
    assert module(np.ones(3 * 25, np.float32), np.array([1, 3, 5, 5])).shape == (1, 8, 3, 3)
    with pytest.raises(neo.ShapeError):
        module(np.ones(100, np.float32), np.array([1, 4, 5, 5]))


def test_what_a_branch_needs_says_nothing_of_the_graph_around_it():
    def branch(op, *inputs):
        made = helper.make_node(op, list(inputs), ["z"])
        return helper.make_graph([made], op, [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])

    choose = helper.make_node(
        "If", ["is3"], ["y"], then_branch=branch("Conv", "x", "k"), else_branch=branch("Neg", "x")
    )
    module = neo.compile(_model([choose], [X, ("is3", TensorProto.BOOL, [])], {"k": WEIGHTS}))
    five = np.ones((1, 5, 4, 4), np.float32)
    np.testing.assert_array_equal(module(five, np.array(False)), -five)
    assert module(np.ones((1, 3, 4, 4), np.float32), np.array(True)).shape == (1, 8, 2, 2)
    with pytest.raises(neo.Error):
        module(five, np.array(True))


@pytest.mark.parametrize("carried", [False, True], ids=["captured", "carried"])
@pytest.mark.parametrize("what", ["Shape", "Size"])
def test_a_body_follows_sizes_that_are_found_out_later(what, carried):
    """The sizes of a ConstantOfShape are known once its operand is folded; the body has named them by then."""
    find = [helper.make_node("Shape", ["v"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["k"])]
    body = helper.make_graph(
        [
            *(find if what == "Shape" else [helper.make_node("Size", ["v"], ["k"])]),
            helper.make_node("Mod", ["i", "k"], ["m"]),
            helper.make_node("Add", ["c", "m"], ["c1"]),
            helper.make_node("Identity", ["go"], ["go1"]),
            *([helper.make_node("Relu", ["v"], ["v1"])] if carried else []),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("c", TensorProto.INT64, []),
            *([helper.make_tensor_value_info("v", TensorProto.FLOAT, None)] if carried else []),
        ],
        [onnx.ValueInfoProto(name=name) for name in ("go1", "c1", *(["v1"] if carried else []))],
    )
    loop = helper.make_node(
        "Loop", ["count", "", "zero", *(["t"] if carried else [])], ["n", *(["w"] if carried else [])], body=body
    )
    nodes = [
        helper.make_node("Shape", ["x"], ["xs"]),
        helper.make_node("ScatterElements", ["xs", "places", "three"], ["ts"]),
        helper.make_node("ConstantOfShape", ["ts"], ["t" if carried else "v"]),
        loop,
        helper.make_node("Cast", ["n"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"places": np.array([0]), "three": np.array([3]), "zero": np.array(0), "count": np.array(7)}
    module = neo.compile(_model(nodes, [("x", TensorProto.FLOAT, [2, 2])], constants))
    size = 3 if what == "Shape" else 6
    assert module(np.zeros((2, 2), np.float32)) == sum(i % size for i in range(7))
