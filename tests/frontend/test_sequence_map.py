"""SequenceMap, with and without what onnx's own builder of its function relies on."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from .models import model_of, value_info

X = [np.float32([1, -2, 3]), np.float32([[4], [5]]), np.float32([-6])]


def sequence_info(name: str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, kind, None)


def tensor_info(name: str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None)


def mapped(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto], names: list[str]
) -> onnx.NodeProto:
    """Return a SequenceMap of a body over the values of these names."""
    body = helper.make_graph(nodes, "body", inputs, outputs)
    return helper.make_node("SequenceMap", names, [f"y{i}" for i in range(len(outputs))], "map", body=body)


def run(node: onnx.NodeProto, inputs: list[onnx.ValueInfoProto], feeds: dict[str, Any], **parts: Any) -> Any:
    return neo.compile(model_of([node], inputs, list(node.output), **parts)).run(feeds)


@pytest.mark.parametrize("declared", [True, False])
def test_each_element_is_mapped(declared: bool) -> None:
    node = mapped(
        [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Shape", ["x"], ["s"])],
        [tensor_info("x")],
        [tensor_info("a"), tensor_info("s", TensorProto.INT64)]
        if declared
        else [onnx.ValueInfoProto(name=n) for n in "as"],
        ["xs"],
    )
    results = run(node, [sequence_info("xs")], {"xs": X})
    for result, x in zip(results["y0"], X, strict=True):
        np.testing.assert_array_equal(result, np.abs(x), strict=True)
    for result, x in zip(results["y1"], X, strict=True):
        np.testing.assert_array_equal(result, np.int64(x.shape), strict=True)


def test_tensors_and_values_around_it_are_the_same_for_each_element() -> None:
    node = mapped(
        [
            helper.make_node("Mul", ["x", "factor"], ["m"]),
            helper.make_node("Add", ["m", "z"], ["n"]),
            helper.make_node("Add", ["n", "around"], ["k"]),
            helper.make_node("Sub", ["k", "fixed"], ["r"]),
        ],
        [tensor_info("x"), tensor_info("factor"), tensor_info("z")],
        [tensor_info("r")],
        ["xs", "t", "zs"],
    )
    two, half = np.float32(2), np.float32(0.5)
    zs = [np.float32([i]) for i in range(3)]
    inputs = [sequence_info("xs"), value_info("t", two), sequence_info("zs"), value_info("around", half)]
    feeds = {"xs": X, "t": two, "zs": zs, "around": half}
    fixed = numpy_helper.from_array(np.float32(8), "fixed")
    results = run(node, inputs, feeds, initializers=[fixed])["y0"]
    for result, x, z in zip(results, X, zs, strict=True):
        np.testing.assert_array_equal(result, x * two + z + half - np.float32(8), strict=True)


def test_no_elements() -> None:
    node = mapped(
        [helper.make_node("Shape", ["x"], ["s"])], [tensor_info("x")], [onnx.ValueInfoProto(name="s")], ["xs"]
    )
    assert run(node, [sequence_info("xs")], {"xs": []}) == {"y0": []}


@pytest.mark.parametrize(
    ("inputs", "outputs", "names", "message"),
    [
        ([], ["s"], ["xs"], "the body must take an element of each input. Got 0 inputs, expected 1"),
        (["x", "z"], ["s"], ["xs"], "the body must take an element of each input. Got 2 inputs, expected 1"),
        (["x"], ["s"], ["t"], "the first input must be a sequence"),
        (["x"], ["s"], [], "SequenceMap"),
    ],
)
def test_bodies_that_do_not_fit_are_refused(
    inputs: list[str], outputs: list[str], names: list[str], message: str
) -> None:
    nodes = [helper.make_node("Shape", ["x" if inputs else "t"], ["s"])]
    node = mapped(nodes, [tensor_info(n) for n in inputs], [onnx.ValueInfoProto(name=n) for n in outputs], names)
    with pytest.raises(neo.Error, match=message):
        run(node, [sequence_info("xs"), tensor_info("t")], {})


def test_a_body_that_gives_too_little_is_refused() -> None:
    node = mapped([helper.make_node("Abs", ["x"], ["a"])], [tensor_info("x")], [tensor_info("a")], ["xs"])
    node.output.append("more")
    with pytest.raises(neo.ModelError, match="the body must give each output of the node. Got 1, expected 2 - at "):
        run(node, [sequence_info("xs")], {})


def test_a_node_without_its_body_is_refused() -> None:
    node = helper.make_node("SequenceMap", ["xs"], ["y"], "map")
    with pytest.raises(neo.ModelError, match="body"):
        run(node, [sequence_info("xs")], {})


@pytest.mark.parametrize("inputs", [0, 1, 5])
@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_another_operator_with_a_malformed_body_is_refused(inputs: int, outputs: int) -> None:
    names = [f"a{i}" for i in range(inputs)]
    body = helper.make_graph(
        [helper.make_node("Abs", ["q"], [f"b{i}"]) for i in range(outputs)],
        "body",
        [onnx.ValueInfoProto(name=n) for n in names],
        [onnx.ValueInfoProto(name=f"b{i}") for i in range(outputs + 1)],
    )
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=body)
    q = np.ones((1, 2, 3, 4), np.float32)
    model = model_of([node], [value_info(n, q) for n in "qkv"], ["y"], opset=26, domains={"ai.onnx.preview": 1})
    with pytest.raises(neo.Error):
        neo.compile(model)
