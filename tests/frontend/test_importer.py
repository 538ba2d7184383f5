"""Names, constants, functions, bodies and symbols on the way from ONNX to neo's graph."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from neo.frontend.onnx import import_model
from onnx import TensorProto, helper, numpy_helper

from .models import model_of, value_info

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]


def test_values_and_nodes_keep_their_names() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["hidden/0"], name="first"),
        helper.make_node("Clip", ["hidden/0"], ["y"], name="second", min=0.0),
    ]
    graph = import_model(model_of(nodes, [value_info("x", X)], ["y"], opset=10))
    assert [n.name for n in graph.nodes] == ["first", "second"]
    assert [v.name for v in graph.inputs] == ["x"]
    assert [v.name for v in graph.outputs] == ["y"]
    assert graph.nodes[0].outputs[0].name == "hidden/0"


def test_an_initializer_that_is_an_input_is_a_constant() -> None:
    w = numpy_helper.from_array(np.float32([1, 2, 3]), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = model_of([node], [value_info("w", np.float32([0, 0, 0])), value_info("x", X)], ["y"], initializers=[w])
    module = neo.compile(model)
    assert [t.name for t in module.inputs] == ["x"]
    np.testing.assert_array_equal(module(X), X + np.float32([1, 2, 3]))


def test_sparse_initializers() -> None:
    values = numpy_helper.from_array(np.float32([5, 7]), "w")
    for at, dims in ((np.array([0, 4]), [2, 3]), (np.array([[0, 0], [1, 1]]), [2, 3])):
        model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [value_info("x", X)], ["y"])
        tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(at, "at"), dims)
        model.graph.sparse_initializer.append(tensor)
        np.testing.assert_array_equal(neo.compile(model)(X), X + np.float32([[5, 0, 0], [0, 7, 0]]))


def test_functions_take_attributes_and_leave_inputs_out() -> None:
    clip = helper.make_node("Clip", ["a", "low", "high"], ["c"])
    scale = helper.make_node("LeakyRelu", ["c"], ["b"])
    scale.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    function = helper.make_function(
        "local",
        "F",
        ["a", "low", "high"],
        ["b"],
        [clip, scale],
        IMPORTS,
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )
    nodes = [
        helper.make_node("F", ["x", "", "one"], ["y"], domain="local"),
        helper.make_node("F", ["x"], ["z"], domain="local", slope=0.25),
    ]
    one = numpy_helper.from_array(np.float32(1), "one")
    model = model_of(
        nodes, [value_info("x", X)], ["y", "z"], domains={"local": 1}, initializers=[one], functions=[function]
    )
    y, z = neo.compile(model)(X)
    np.testing.assert_array_equal(y, np.where(X < 0, 0.5 * X, np.minimum(X, 1)))
    np.testing.assert_array_equal(z, np.where(X < 0, 0.25 * X, X))


def test_functions_have_overloads_and_opsets_of_their_own() -> None:
    negate = helper.make_function("local", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], IMPORTS)
    total = helper.make_node("ReduceSum", ["a"], ["b"], axes=[1], keepdims=0)
    old = helper.make_function("local", "F", ["a"], ["b"], [total], [helper.make_opsetid("", 11)], overload="sum")
    nodes = [
        helper.make_node("F", ["x"], ["y"], domain="local"),
        helper.make_node("F", ["x"], ["z"], domain="local", overload="sum"),
    ]
    model = model_of(nodes, [value_info("x", X)], ["y", "z"], domains={"local": 1}, functions=[negate, old])
    y, z = neo.compile(model)(X)
    np.testing.assert_array_equal(y, -X)
    np.testing.assert_array_equal(z, X.sum(1))


def test_bodies_see_the_values_around_them() -> None:
    def branch(op: str, other: str) -> onnx.GraphProto:
        info = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(op, ["x", other], ["result"])], op, [], [info])

    nodes = [
        helper.make_node("Neg", ["x"], ["negative"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Mul", "two"), else_branch=branch("Add", "negative")),
    ]
    two = numpy_helper.from_array(np.float32(2), "two")
    inputs = [value_info("x", X), value_info("c", np.bool_(True))]
    module = neo.compile(model_of(nodes, inputs, ["y"], initializers=[two]))
    np.testing.assert_array_equal(module(X, np.bool_(True)), 2 * X)
    np.testing.assert_array_equal(module(X, np.bool_(False)), 0 * X)


def test_one_name_is_one_size() -> None:
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", size]) for n, size in (("a", 3), ("b", None))
    ]
    model = model_of([helper.make_node("Concat", ["a", "b"], ["y"], axis=1)], infos, ["y"])
    graph = import_model(model)
    assert graph.inputs[0].shape == ("batch", 3)
    assert graph.inputs[1].shape is not None
    assert graph.inputs[1].shape[0] == "batch"
    assert import_model(model, shapes={"batch": 4}).outputs[0].shape[0] == 4
    bounded = neo.compile(model, shapes={"batch": (1, 2)})
    assert bounded(X, X).shape == (2, 6)


def test_a_name_that_is_a_formula_is_a_symbol_of_its_own() -> None:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [d]) for n, d in (("a", "n - 1"), ("b", "n + 1"))]
    nodes = [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)]
    model = model_of(nodes, infos, ["y"])
    assert neo.compile(model)(np.zeros(2, np.float32), np.zeros(4, np.float32)).shape == (6,)
    assert import_model(model, shapes={"n + 1": 4}).inputs[1].shape == (4,)


def test_external_data_is_mapped(tmp_path: Path) -> None:
    w = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    model = model_of(
        [helper.make_node("MatMul", ["w", "x"], ["y"])],
        [value_info("x", X[:1].T)],
        ["y"],
        initializers=[numpy_helper.from_array(w, "w")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    assert path.stat().st_size < w.nbytes
    np.testing.assert_allclose(neo.compile(path)(X[:1].T), w @ X[:1].T, rtol=1e-6)


def test_a_constant_result_of_a_body_keeps_its_name() -> None:
    graph = _native.parse_graph(
        """graph "g" (c: bool[], x: int64[1]) -> (a) {
          a = If(c, x) : int64[1] with {
            then_branch = graph "then" (x: int64[1]) -> ("a name too long to be kept in place") {
              constant one = int64[1] {1}
              "a name too long to be kept in place" = Identity(one) : int64[1]
            }
            else_branch = graph "else" (x: int64[1]) -> (b) { b = Neg(x) : int64[1] }
          }
        }"""
    )
    folded = _native.run_passes(graph, ["fold_constants"])
    assert folded.nodes[0].bodies["then_branch"].outputs[0].name == "a name too long to be kept in place"


def test_outputs_tell_what_the_model_declares_where_neo_knows_less() -> None:
    flat = helper.make_graph([helper.make_node("Flatten", ["x"], ["a"])], "flat", [], [onnx.ValueInfoProto(name="a")])
    same = helper.make_graph([helper.make_node("Add", ["x", "x"], ["b"])], "same", [], [onnx.ValueInfoProto(name="b")])
    x = np.ones((2, 3, 4), np.float32)
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=flat, else_branch=same),
        helper.make_node("NonZero", ["x"], ["z"]),
        helper.make_node("Neg", ["x"], ["w"]),
    ]
    model = model_of(nodes, [value_info("c", np.bool_(True)), value_info("x", x)], ["y", "z", "w"])
    undeclared = {t.name: t.shape for t in neo.compile(model).outputs}
    assert undeclared["y"] is None
    del model.graph.output[:]
    model.graph.output.extend(
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("y", TensorProto.FLOAT, ["rows", None, 12]),
            ("z", TensorProto.INT64, [3, 24]),
            ("w", TensorProto.FLOAT, ["n", 3]),
        )
    )
    told = {t.name: t.shape for t in neo.compile(model).outputs}
    assert told == {"y": ("rows", "y", 12), "z": (3, 24), "w": (2, 3, 4)}


@pytest.mark.parametrize(
    "node",
    [
        '"", "", z = BatchNormalization <training_mode = 1> (x, c, c, c, c)',
        '"", z = MaxPool <kernel_shape = [2, 2]> (x)',
        '"", z = TopK (x, k)',
        'z, "" = TopK (x, k)',
        '"", z, "" = Split <axis = 3, num_outputs = 3> (x)',
        '"", z = Dropout (x)',
        '"", "", "", z = Unique (x)',
        '"", z, "" = DynamicQuantizeLinear (x)',
        '"", z, "" = LayerNormalization (x, c)',
        '"", "", z = LayerNormalization (x, c)',
        '"", "", "", z = com.microsoft.SkipLayerNormalization (r, r, c)',
    ],
)
def test_results_that_nobody_reads_are_left_out(node: str) -> None:
    model = onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
left_out (float[2, 3, 6, 3] x, float[2, 4, 3] r) => (z) <float[3] c = {{1, 2, 3}}, int64[1] k = {{2}}> {{ {node} }}""")
    named = onnx.ModelProto()
    named.CopyFrom(model)
    names = named.graph.node[0].output
    names[:] = [name or f"unread_{i}" for i, name in enumerate(names)]
    random = np.random.default_rng(0)
    inputs = {
        name: random.standard_normal(dims).astype(np.float32) for name, dims in (("x", (2, 3, 6, 3)), ("r", (2, 4, 3)))
    }
    left_out, expected = neo.compile(model).run(inputs)["z"], neo.compile(named).run(inputs)["z"]
    assert left_out.size > 0
    np.testing.assert_array_equal(left_out, expected)
