"""One case per message about a model: it names the rule and the place, and nothing else happens."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx import check_model
from onnx import TensorProto, helper, numpy_helper

from tests.errors.models import FLOAT, RELU, changed, constant, info, model, node


def set_dim(value: int) -> Callable[[onnx.ModelProto], None]:
    def change(m: onnx.ModelProto) -> None:
        m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = value

    return change


def branch(name: str, nodes: list[onnx.NodeProto], outputs: list[str], inputs: tuple[str, ...] = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [info(n) for n in inputs], [info(n) for n in outputs])


def if_model(then_branch: onnx.GraphProto, else_branch: onnx.GraphProto) -> onnx.ModelProto:
    choice = node("If", ["c"], ["y"], name="choice", then_branch=then_branch, else_branch=else_branch)
    return model([choice], inputs=[info("x"), info("c", (), TensorProto.BOOL)])


ONE = branch("one", [node("Relu", ["x"], ["a"])], ["a"])


def loop_model(body: onnx.GraphProto) -> onnx.ModelProto:
    loop = node("Loop", ["", "", "x"], ["y"], name="loop", body=body)
    return model([loop])


def scan_model(**attrs: Any) -> onnx.ModelProto:
    body = branch("body", [node("Relu", ["a"], ["b"])], ["b"], ("a",))
    return model([node("Scan", ["x"], ["y"], name="scan", body=body, **attrs)])


def calls(depth: int, per_level: int) -> onnx.ModelProto:
    """Functions that call each other, `per_level` times each."""
    functions = []
    for level in range(depth):
        inner = [
            node(f"F{level + 1}", ["a"], [f"b{i}"], domain="local")
            if level + 1 < depth
            else node("Relu", ["a"], [f"b{i}"])
            for i in range(per_level)
        ]
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
        functions.append(helper.make_function("local", f"F{level}", ["a"], ["b0"], inner, imports))
    return model([node("F0", ["x"], ["y"], domain="local")], functions=functions)


def recursive() -> onnx.ModelProto:
    imports = [helper.make_opsetid("local", 1)]
    inner = node("F", ["a"], ["b"], domain="local")
    function = helper.make_function("local", "F", ["a"], ["b"], [inner], imports)
    return model([node("F", ["x"], ["y"], domain="local")], functions=[function])


def nested(depth: int) -> onnx.ModelProto:
    """Bodies within bodies, written in place: protobuf itself copies only shallow ones."""
    result = if_model(onnx.GraphProto(), ONE)
    graph = result.graph.node[0].attribute[1].g
    for _ in range(depth):
        inner = graph.node.add(op_type="If", input=["c"], output=["a"])
        inner.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g.CopyFrom(ONE)
        graph.output.add(name="a")
        graph = inner.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    graph.CopyFrom(ONE)
    return result


def function_without_output() -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 21)]
    function = helper.make_function("local", "F", ["a"], ["b"], [node("Relu", ["a"], ["c"])], imports)
    return model([node("F", ["x"], ["y"], domain="local", name="call")], functions=[function])


def function_of(count: int) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 21)]
    function = helper.make_function("local", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], imports)
    return model([node("F", ["x"] * count, ["y"], domain="local", name="call")], functions=[function])


def set_type(m: onnx.ModelProto, elem_type: int) -> None:
    m.graph.input[0].type.tensor_type.elem_type = elem_type


def map_input(m: onnx.ModelProto) -> None:
    m.graph.input[0].type.map_type.key_type = TensorProto.INT64
    m.graph.input[0].type.map_type.value_type.sequence_type.elem_type.tensor_type.elem_type = FLOAT


def deep_type(m: onnx.ModelProto) -> None:
    proto = m.graph.input[0].type
    for _ in range(20):
        proto = proto.sequence_type.elem_type
    proto.tensor_type.elem_type = FLOAT


def twice(attribute: str) -> Callable[[onnx.ModelProto], None]:
    def change(m: onnx.ModelProto) -> None:
        m.graph.node[0].attribute.append(copy.deepcopy(m.graph.node[0].attribute[0]))
        assert m.graph.node[0].attribute[0].name == attribute

    return change


def wrong_type(m: onnx.ModelProto) -> None:
    m.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("axis", 1.5))


def sparse(indices: Any, dims: list[int]) -> onnx.ModelProto:
    values = numpy_helper.from_array(np.ones(len(indices), np.float32), "w")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(np.asarray(indices, np.int64), "at"), dims)
    return changed(lambda m: m.graph.sparse_initializer.append(tensor), model([node("Add", ["x", "w"], ["y"])]))


CONCAT = model([node("Concat", ["x", "x"], ["y"], name="join", axis=0)])
SUM = [node("Add", ["x", "b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two")]

# name: (model, words of the message, class)
CASES: dict[str, tuple[Any, str, type[Exception]]] = {
    "not a model": (3, "model must be a path, bytes or an onnx.ModelProto. Got int", neo.DTypeError),
    "no file": ("nowhere/model.onnx", "the model file must be readable. Got nowhere", neo.ResourceError),
    "a null in the path": ("a\0b.onnx", "the model file must be readable", neo.ResourceError),
    "another format": ("model.tflite", "the model must be ONNX. Got model.tflite", neo.ModelError),
    "OpenVINO's format": ("model.xml", "the model must be ONNX. Got model.xml\nHint: convert it first", neo.ModelError),
    "a file that Git LFS has not fetched": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "the model must be a whole ONNX file. Got a pointer of Git LFS - at the bytes given\nHint: git lfs pull",
        neo.ModelError,
    ),
    "no bytes": (b"", "the model must hold a graph. Got none", neo.ModelError),
    "other bytes": (b"\x89PNG\r\n\x1a\n", "the model must be a whole ONNX file. Got 8 bytes", neo.ModelError),
    "half a file": (model([RELU]).SerializeToString()[:40], "must be a whole ONNX file. Got 40 bytes", neo.ModelError),
    "no graph": (onnx.ModelProto(), "the model must hold a graph", neo.ModelError),
    "no outputs": (changed(lambda m: m.graph.ClearField("output")), "the graph must have an output", neo.ModelError),
    "an output nobody makes": (model([RELU], ("y", "z")), "an output must be defined. Got 'z'", neo.ModelError),
    "an input twice": (
        changed(lambda m: m.graph.input.append(m.graph.input[0])),
        "an input must have a name of its own. Got 'x'",
        neo.ModelError,
    ),
    "an input without a name": (
        changed(lambda m: setattr(m.graph.input[0], "name", "")),
        "an input must have a name of its own. Got ''",
        neo.ModelError,
    ),
    "a value nobody makes": (
        model([node("Relu", ["w"], ["y"], name="first")]),
        "an input must be defined. Got 'w', which no node makes - at node \"first\"",
        neo.ModelError,
    ),
    "a value twice": (
        model([RELU, node("Abs", ["x"], ["y"], name="second")]),
        "a value must be defined once. Got 'y' again - at node \"second\"",
        neo.ModelError,
    ),
    "a value that is an input": (
        model([node("Relu", ["x"], ["x"], name="first"), node("Relu", ["x"], ["y"])]),
        "a value must be defined once. Got 'x' again",
        neo.ModelError,
    ),
    "a cycle": (model(SUM, ("b",)), 'the graph must not have cycles. Got one through node "', neo.ModelError),
    "a node that reads itself": (
        model([node("Add", ["x", "y"], ["y"], name="loop")]),
        'the graph must not have cycles. Got one through node "loop" (Add)',
        neo.ModelError,
    ),
    "an opset of the future": (model([RELU], opset=1000), "opset must be known. Got 1000 of ai.onnx", neo.ModelError),
    "no opset": (model([RELU], opset=0), "opset must be known. Got 0 of ai.onnx", neo.ModelError),
    "a domain that is not imported": (
        model([node("Foo", ["x"], ["y"], domain="com.example", name="first")]),
        "the model must import the domain of each node. Got 'com.example' - at node \"first\"",
        neo.ModelError,
    ),
    "an unknown operator": (
        model([node("Foo", ["x"], ["y"], name="first")]),
        'Foo (opset 21, float32): opset 21 has no such operator - at node "first"',
        neo.UnsupportedError,
    ),
    "an operator of a later opset": (
        model([node("Gelu", ["x"], ["y"], name="first")], opset=19),
        "Gelu (opset 19, float32): opset 19 has no such operator",
        neo.UnsupportedError,
    ),
    "too few inputs": (
        model([node("Add", ["x"], ["y"], name="sum")]),
        '[Add] the number of inputs must be the operator\'s. Got 1, expected 2 - at node "sum"',
        neo.ModelError,
    ),
    "too many inputs": (
        model([node("Relu", ["x", "x"], ["y"])]),
        "[Relu] the number of inputs must be the operator's. Got 2, expected 1",
        neo.ModelError,
    ),
    "too many outputs": (
        model([node("Relu", ["x"], ["y", "z"])]),
        "[Relu] the number of outputs must be the operator's. Got 2, expected 1",
        neo.ModelError,
    ),
    "an input that may not be left out": (model([node("Add", ["", "x"], ["y"])]), "[Add] ", neo.ModelError),
    "an unknown attribute": (
        model([node("Relu", ["x"], ["y"], name="first", slope=1.0)]),
        "[Relu] attributes must be those of version 14. Got 'slope', expected none - at node \"first\"",
        neo.ModelError,
    ),
    "an attribute of a later version": (
        model([node("Clip", ["x"], ["y"], min=0.0)]),
        "[Clip] attributes must be those of version 13. Got 'min'",
        neo.ModelError,
    ),
    "an attribute of another type": (
        changed(wrong_type, CONCAT),
        "[Concat] attribute 'axis' must have its type. Got FLOAT, expected INT - at node \"join\"",
        neo.DTypeError,
    ),
    "a missing attribute": (
        changed(lambda m: m.graph.node[0].ClearField("attribute"), CONCAT),
        "[Concat] attribute 'axis' is required. Got none - at node \"join\"",
        neo.ModelError,
    ),
    "an attribute twice": (
        changed(twice("axis"), CONCAT),
        "an attribute must be given once. Got 'axis'",
        neo.ModelError,
    ),
    "a shape that does not fit": (
        model([node("MatMul", ["x", "x"], ["y"], name="product")]),
        "[MatMul] ",
        neo.ShapeError,
    ),
    "a dtype that does not fit": (
        model([node("Not", ["x"], ["y"], name="first")]),
        "[Not] ",
        neo.ModelError,
    ),
    "an axis that does not exist": (
        model([node("Concat", ["x", "x"], ["y"], name="join", axis=7)]),
        "[Concat] ",
        neo.ModelError,
    ),
    "a huge size": (
        changed(set_dim(1 << 60)),
        "sizes must be between 0 and 2^46. Got 1152921504606846976",
        neo.ModelError,
    ),
    "an unknown element type": (
        changed(lambda m: set_type(m, 99)),
        "the element type must be known. Got 99 - at input 'x'",
        neo.ModelError,
    ),
    "no element type": (
        changed(lambda m: set_type(m, 0)),
        "the element type must be known. Got 0 - at input 'x'",
        neo.ModelError,
    ),
    "a map of sequences": (
        changed(map_input),
        "the values of a map must be numbers or strings. Got sequence_type - at input 'x'",
        neo.ModelError,
    ),
    "no type": (
        changed(lambda m: m.graph.input[0].ClearField("type")),
        "a value must be a tensor, a sequence, an optional or a map. Got no type - at input 'x'",
        neo.ModelError,
    ),
    "a deep type": (changed(deep_type), "types may nest 8 deep. Got more - at input 'x'", neo.ModelError),
    "an initializer without a name": (
        changed(lambda m: setattr(m.graph.initializer[0], "name", ""), constant(dims=[3], float_data=[1.0, 2.0, 3.0])),
        "an initializer must have a name",
        neo.ModelError,
    ),
    "an initializer that a node makes too": (
        changed(lambda m: m.graph.initializer.append(onnx.TensorProto(name="y", data_type=1, dims=[0]))),
        "a value must be defined once. Got 'y' again - at",
        neo.ModelError,
    ),
    "too little data": (
        constant(dims=[2, 3], raw_data=b"\0" * 20),
        "a tensor's data must match its type and sizes. Got sizes [2, 3]",
        neo.ModelError,
    ),
    "too much data": (
        constant(dims=[1], float_data=[1.0, 2.0]),
        "a tensor's data must match its type and sizes. Got sizes [1]",
        neo.ModelError,
    ),
    "negative sizes of data": (
        constant(dims=[-2, -3], float_data=[1.0] * 6),
        "sizes must not be negative. Got [-2, -3] - at initializer 'w'",
        neo.ModelError,
    ),
    "sizes that overflow": (
        constant(dims=[1 << 40, 1 << 40], raw_data=b""),
        "a tensor must have fewer than 2^46 elements",
        neo.ModelError,
    ),
    "data of an unknown type": (
        constant(dims=[1], data_type=77, raw_data=b"\0"),
        "the element type must be known. Got 77 - at initializer 'w'",
        neo.ModelError,
    ),
    "sparse data outside": (sparse([7], [3]), "indices must lie inside the tensor. Got sizes [3]", neo.ModelError),
    "sparse data before": (sparse([-1], [3]), "indices must lie inside the tensor. Got sizes [3]", neo.ModelError),
    "sparse data that is too large": (
        sparse([0], [1 << 20, 1 << 20]),
        "a sparse tensor must have at most 2^32 elements",
        neo.ModelError,
    ),
    "external data of a model that is not a file": (
        constant(dims=[1], data_location=TensorProto.EXTERNAL),
        "a model with external data must be a file",
        neo.ModelError,
    ),
    "a constant without a value": (
        model([node("Constant", [], ["y"], name="one")], inputs=[]),
        'a constant must have one value. Got none - at node "one"',
        neo.ModelError,
    ),
    "a constant with two values": (
        model([node("Constant", [], ["y"], value_int=1, value_float=1.0)], inputs=[]),
        "a constant must have one value. Got value_float, value_int",
        neo.ModelError,
    ),
    "a body without a graph": (
        model([node("If", ["c"], ["y"], name="choice")], inputs=[info("c", (), TensorProto.BOOL)]),
        "attribute 'else_branch' is required. Got none - at node \"choice\"",
        neo.ModelError,
    ),
    "a branch with too few outputs": (
        if_model(ONE, branch("two", [node("Relu", ["x"], ["a"])], [])),
        'a branch must give every output of the node. Got 0, expected 1 - at node "choice".else_branch',
        neo.ModelError,
    ),
    "a branch with inputs": (
        if_model(ONE, branch("two", [node("Relu", ["z"], ["a"])], ["a"], ("z",))),
        "a branch must have no inputs. Got 'z' - at node \"choice\".else_branch",
        neo.ModelError,
    ),
    "a branch that reads what nobody makes": (
        if_model(ONE, branch("two", [node("Relu", ["w"], ["a"], name="inner")], ["a"])),
        'an input must be defined. Got \'w\', which no node makes - at node "inner" in node "choice".else_branch',
        neo.ModelError,
    ),
    "a loop's body with too few inputs": (
        loop_model(branch("body", [node("Relu", ["x"], ["a"])], ["a"], ("i",))),
        "the body must take the iteration, the condition and each carried value. Got 1 inputs, expected 3",
        neo.ModelError,
    ),
    "a loop's body with too few outputs": (
        loop_model(branch("body", [node("Relu", ["v"], ["a"])], ["a"], ("i", "c", "v"))),
        "the body must give the condition and each output of the node. Got 1, expected 2",
        neo.ModelError,
    ),
    "a scan of nothing": (
        scan_model(num_scan_inputs=0),
        'num_scan_inputs must be 1 to the number of inputs. Got 0 of 1 - at node "scan"',
        neo.ModelError,
    ),
    "a scan of too much": (
        scan_model(num_scan_inputs=2),
        "num_scan_inputs must be 1 to the number of inputs. Got 2 of 1",
        neo.ModelError,
    ),
    "a scan along no axis": (
        scan_model(num_scan_inputs=1, scan_input_axes=[5]),
        "an axis must be one of the input's. Got 5, expected -2 to 1",
        neo.ModelError,
    ),
    "a scan with too many axes": (
        scan_model(num_scan_inputs=1, scan_input_axes=[0, 1]),
        "scan_input_axes must have one entry per scanned input. Got 2, expected 1",
        neo.ModelError,
    ),
    "a function that calls itself": (recursive(), "bodies and functions may nest 64 deep", neo.ModelError),
    "functions that call each other too deep": (calls(70, 1), "bodies and functions may nest 64 deep", neo.ModelError),
    "bodies that nest too deep": (nested(70), "bodies and functions may nest 64 deep", neo.ModelError),
    "a function with an output nobody makes": (
        function_without_output(),
        "an output must be defined. Got 'b', which no node of the function makes - at node \"call\"",
        neo.ModelError,
    ),
    "a function with too many inputs": (
        function_of(2),
        '[F] a function must be called with its inputs. Got 2, expected at most 1 - at node "call"',
        neo.ModelError,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    subject, words, kind = CASES[name]
    with pytest.raises(neo.Error) as caught:
        neo.compile(subject)
    text = str(caught.value)
    assert words in text
    assert type(caught.value) is kind or kind is neo.ModelError
    assert isinstance(caught.value, kind)
    assert not isinstance(caught.value, neo.InternalError)
    assert text.startswith("[")


def test_functions_that_grow_without_end() -> None:
    with pytest.raises(neo.ModelError, match="a model may have 1000 nodes when its functions are written out"):
        neo.compile(calls(40, 2), limits=neo.Limits(nodes=1000))


def test_every_refused_node_is_listed_at_once() -> None:
    nodes = [
        node("Foo", ["x"], ["a"], name="one"),
        node("Relu", ["a"], ["b"], name="two"),
        node("Bar", ["b"], ["c"], name="three"),
        node("ImageDecoder", ["d"], ["y"], name="four"),
    ]
    subject = model(nodes, inputs=[info("x"), info("d", (4,), TensorProto.UINT8)])
    subject.graph.output[0].name = "y"
    with pytest.raises(neo.UnsupportedError) as caught:
        neo.compile(subject)
    text = str(caught.value)
    assert "Got 3 that are not" in text
    for words in ('at node "one"', 'at node "three"', 'at node "four"', "Foo (opset 21, float32)", "uint8"):
        assert words in text
    assert "Relu" not in text
    refusals = check_model(subject)
    assert [(r.node, r.op, r.opset, r.dtype) for r in refusals] == [
        ('node "one"', "Foo", 21, "float32"),
        ('node "three"', "Bar", 21, ""),
        ('node "four"', "ImageDecoder", 21, "uint8"),
    ]
    assert all(r.reason for r in refusals)


def test_refusals_inside_bodies_and_functions_are_listed() -> None:
    inner = branch("two", [node("Foo", ["x"], ["a"], name="inner")], ["a"])
    subject = if_model(ONE, inner)
    imports = [helper.make_opsetid("", 21)]
    bad = [node("Bar", ["a"], ["c"], name="hidden"), node("Relu", ["c"], ["b"])]
    subject.functions.append(helper.make_function("local", "F", ["a"], ["b"], bad, imports))
    subject.graph.node.append(node("F", ["x"], ["z"], domain="local", name="call"))
    subject.graph.node.append(node("F", ["y"], ["w"], domain="local", name="again"))
    refusals = check_model(subject)
    assert [r.op for r in refusals] == ["Foo", "Bar", "Bar"]
    assert refusals[0].node == 'node "inner" in node "choice".else_branch'
    assert refusals[1].node == 'node "hidden" in node "call"'
    assert refusals[2].node == 'node "hidden" in node "again"'


def test_the_command_line_lists_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from neo.cli import main

    path = tmp_path / "model.onnx"
    onnx.save(model([node("Foo", ["x"], ["y"], name="one")]), path)
    assert main(["check", str(path)]) == 1
    text = capsys.readouterr().out
    for words in ('node "one"', "Foo", "21", "float32", "opset 21 has no such operator"):
        assert words in text
    onnx.save(model([RELU]), path)
    assert main(["check", str(path)]) == 0


@pytest.mark.parametrize("shapes", [{"N": -1}, {"N": (4, 2)}, {"N": (1, 2, 3)}, {"N": "3"}, {"N": 1 << 60}])
def test_shapes_must_be_sizes(shapes: dict[str, Any]) -> None:
    with pytest.raises(neo.ModelError, match=r"shapes must be sizes or \(least, most\). Got .* for 'N'"):
        neo.compile(model([RELU], inputs=[info("x", ("N", 3))]), shapes=shapes)


def test_shapes_must_name_symbols_of_the_model() -> None:
    with pytest.raises(neo.ModelError, match="shapes must name symbols of the model. Got 'M', expected 'N'"):
        neo.compile(model([RELU], inputs=[info("x", ("N", 3))]), shapes={"M": 3})


@pytest.mark.parametrize("symbol", ["N in [1,2", "2*batch + 1", "min", "", "höhe", "a b", "-1", "n]", "x" * 10000])
def test_symbols_may_have_any_name(symbol: str) -> None:
    subject = model([RELU], inputs=[info("x", (symbol, 3))])
    result = neo.compile(subject)(np.full((4, 3), -1, np.float32))
    np.testing.assert_array_equal(result, np.zeros((4, 3), np.float32))


def test_names_may_be_anything() -> None:
    subject = model([node("Relu", ["a\nb"], ['"'], name="}")], ('"',), inputs=[info("a\nb")])
    assert neo.compile(subject).run({"a\nb": np.ones((2, 3), np.float32)}).keys() == {'"'}


@pytest.mark.parametrize("name", [b"first", b"test", b"\x01x", b"\x01y", b"Relu"])
def test_names_that_are_not_text(name: bytes) -> None:
    raw = model([RELU]).SerializeToString()
    with pytest.raises(neo.ModelError, match=r"names must be UTF-8. Got b'"):
        neo.compile(raw.replace(name, b"\x01\xff" if name[0] == 1 else b"\xff" * len(name)))


def test_an_output_may_be_an_input_or_an_initializer() -> None:
    w = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    subject = model([RELU], ("x", "w", "y"), initializers=[w])
    x = np.full((2, 3), -2, np.float32)
    results = neo.compile(subject).run({"x": x})
    np.testing.assert_array_equal(results["x"], x)
    np.testing.assert_array_equal(results["w"], np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(results["y"], np.zeros((2, 3), np.float32))


def test_a_graph_without_nodes() -> None:
    subject = model([], ("x",))
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(neo.compile(subject)(x), x)


def test_nodes_may_be_in_any_order() -> None:
    nodes = [node("Relu", ["a"], ["y"]), node("Neg", ["x"], ["a"])]
    result = neo.compile(model(nodes))(np.full((2, 3), -2, np.float32))
    np.testing.assert_array_equal(result, np.full((2, 3), 2, np.float32))


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [("MaxPool", ["x4"], {"kernel_shape": [9, 9]}), ("MatMul", ["x", "x"], {}), ("Transpose", ["x"], {"perm": [0, 0]})],
)
def test_what_inference_refuses_names_the_node(op: str, inputs: list[str], attrs: dict[str, Any]) -> None:
    nodes = [
        node("Relu", [inputs[0]], ["r"], name="before"),
        node(op, ["r", *inputs[1:]], ["y"], name="second", **attrs),
    ]
    subject = model(nodes, inputs=[info("x"), info("x4", (1, 2, 4, 4))])
    with pytest.raises((neo.ShapeError, neo.ModelError), match=r"\[" + op + r'\] .* - at node "second"$'):
        neo.compile(subject)
