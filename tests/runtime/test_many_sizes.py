"""Calls and loops of more sizes than a module keeps bindings for."""

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper

SIZES = 300


def compiled(nodes: list, inputs: list, outputs: list) -> neo.Module:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return neo.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


def test_calls_of_many_sizes_in_turn() -> None:
    module = compiled(
        [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("ReduceSum", ["e"], ["y"], keepdims=0)],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    for size in [*range(1, SIZES), 7, *range(1, SIZES), *range(SIZES, 1, -1)]:
        x = np.full((size, 2), 0.5, np.float32)
        np.testing.assert_allclose(module.run({"x": x})["y"], 2 * size * np.exp(np.float32(0.5)), rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 31, 33, SIZES])
def test_a_loop_that_appends(steps: int) -> None:
    """Every iteration appends the number of elements that there are."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Shape", ["s"], ["n"]),
            helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Concat", ["s", "f"], ["t"], axis=0),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "b",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, ["M"])],
        [info("on", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, ["K"])],
    )
    module = compiled(
        [helper.make_node("Loop", ["n", "", "s"], ["y"], body=body)],
        [info("n", TensorProto.INT64, []), info("s", TensorProto.FLOAT, ["N"])],
        [info("y", TensorProto.FLOAT, ["K"])],
    )
    for start in (0, 3, 0, 5):
        feeds = {"n": np.array(steps, np.int64), "s": np.full(start, -1, np.float32)}
        expected = [*[-1] * start, *range(start, start + steps)]
        np.testing.assert_array_equal(module.run(feeds)["y"], np.array(expected, np.float32))
