"""Maps: ZipMap, DictVectorizer and CastMap of ai.onnx.ml, and what else takes a map."""

from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.errors import DTypeError, ModelError, ShapeError

ZIP, VECTORIZE, CAST = "ai.onnx.ml.ZipMap", "ai.onnx.ml.DictVectorizer", "ai.onnx.ml.CastMap"


def node(op: str, kind: str, dims: list[Any] | None = None, **attrs: Any) -> Any:
    graph = _native.Graph()
    made = graph.add_node(op, [graph.add_input("x", kind, dims)], ["y"], attrs)
    graph.outputs = made.outputs
    return graph


def run(op: str, kind: str, x: Any, dims: list[Any] | None = None, **attrs: Any) -> Any:
    return node(op, kind, dims, **attrs).evaluate([x])[0]


def type_of(op: str, kind: str, dims: list[Any] | None = None, **attrs: Any) -> str:
    return str(node(op, kind, dims, **attrs).outputs[0].type)


def test_types_are_written_and_read():
    for text in ("map(string,float32[])", "seq(map(int64,float64[]))", "optional(map(int64,string[]))"):
        graph = _native.Graph()
        assert graph.add_input("x", text).type == text
        graph.outputs = graph.inputs
        assert str(_native.parse_graph(str(graph))) == str(graph)
    assert _native.Graph().add_input("x", "map(string,float32[])").kind == "map"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("map(string)", "written like map"),
        ("map(string,float32)", "written like float32"),
        ("map(float32,int64[])", "keys of a map must be integers or strings. Got float32"),
        ("map(bool,int64[])", "keys of a map must be integers or strings. Got bool"),
        ("map(string,int64[2])", "values of a map must be scalars"),
        ("map(string,seq(int64[]))", "values of a map must be scalars"),
        ("map(none,int64[])", "written like map"),
    ],
)
def test_types_that_are_none(text, rule):
    with pytest.raises(ModelError, match=rule):
        _native.Graph().add_input("x", text)


def test_zip_map_sorts_its_labels():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    assert type_of(ZIP, "float32", ["N", 3], classlabels_int64s=[5, -1, 2]) == "seq(map(int64,float32[]))"
    rows = run(ZIP, "float32", x, [2, 3], classlabels_int64s=[5, -1, 2])
    assert rows == [{-1: 2.0, 2: 3.0, 5: 1.0}, {-1: 5.0, 2: 6.0, 5: 4.0}]
    assert [list(row) for row in rows] == [[-1, 2, 5]] * 2
    assert all(type(k) is int and type(v) is float for k, v in rows[0].items())
    words = run(ZIP, "float32", x, [2, 3], classlabels_strings=["b", "é", "a"])
    assert list(words[1].items()) == [("a", 6.0), ("b", 4.0), ("é", 5.0)]


def test_zip_map_of_one_row_none_and_equal_labels():
    assert run(ZIP, "float32", np.array([1, 2], np.float32), [2], classlabels_int64s=[0, 1]) == [{0: 1.0, 1: 2.0}]
    assert run(ZIP, "float32", np.zeros((0, 2), np.float32), [0, 2], classlabels_int64s=[0, 1]) == []
    twice = run(ZIP, "float32", np.array([[1, 2, 3]], np.float32), [1, 3], classlabels_int64s=[1, 0, 1])
    assert twice == [{0: 2.0, 1: 3.0}]


def test_zip_map_checks():
    with pytest.raises(ModelError, match="either integers or strings. Got 0 and 0"):
        type_of(ZIP, "float32", [2, 3])
    with pytest.raises(ModelError, match="either integers or strings. Got 1 and 1"):
        type_of(ZIP, "float32", [2, 1], classlabels_int64s=[1], classlabels_strings=["a"])
    with pytest.raises(ModelError, match=r"scores must be \[N,C\]"):
        type_of(ZIP, "float32", [2, 3, 4], classlabels_int64s=[0, 1, 2, 3])
    with pytest.raises(ShapeError, match="one label per score"):
        type_of(ZIP, "float32", [2, 3], classlabels_int64s=[0, 1])
    with pytest.raises(ShapeError, match="one label per score. Got 3, expected 2"):
        run(ZIP, "float32", np.ones((2, 3), np.float32), ["N", "C"], classlabels_int64s=[0, 1])
    with pytest.raises(ModelError, match="must be a tensor"):
        type_of(ZIP, "seq(float32[*])", classlabels_int64s=[0, 1])


@pytest.mark.parametrize("value", ["float32", "float64", "int64"])
def test_dict_vectorizer(value):
    kind = f"map(string,{value}[])"
    assert type_of(VECTORIZE, kind, string_vocabulary=["a", "b"]) == f"{value}[1,2]"
    row = run(VECTORIZE, kind, {"c": 3, "a": 1, "q": 9}, string_vocabulary=["a", "b", "c"])
    assert row.dtype == value
    np.testing.assert_array_equal(row, [[1, 0, 3]])
    assert run(VECTORIZE, kind, {}, string_vocabulary=["a"]).tolist() == [[0]]


def test_dict_vectorizer_of_integer_keys():
    row = run(VECTORIZE, "map(int64,string[])", {7: "x", -1: "y"}, int64_vocabulary=[-1, 0, 7])
    assert row.tolist() == [["y", "", "x"]]
    with pytest.raises(ModelError, match="vocabulary must be of the keys' dtype. Got int64, expected string"):
        type_of(VECTORIZE, "map(string,float32[])", int64_vocabulary=[1])
    with pytest.raises(DTypeError, match=r"must be a map. Got float32\[2\]"):
        type_of(VECTORIZE, "float32", [2], int64_vocabulary=[1])


@pytest.mark.parametrize(
    ("kind", "x", "to", "want"),
    [
        ("float32", {1: 1.5, 0: 2.0}, "TO_FLOAT", [2.0, 1.5]),
        ("float32", {1: 1.5, 0: 2.0}, "TO_INT64", [2, 1]),
        ("float32", {1: 1.5, 0: 2.0}, "TO_STRING", ["2.000000", "1.500000"]),
        ("string", {1: "1.5", 0: "2"}, "TO_FLOAT", [2.0, 1.5]),
        ("string", {1: "7", 0: "-2"}, "TO_INT64", [-2, 7]),
        ("string", {1: "b", 0: "a"}, "TO_STRING", ["a", "b"]),
    ],
)
def test_cast_map(kind, x, to, want):
    dtype = {"TO_FLOAT": "float32", "TO_INT64": "int64", "TO_STRING": "string"}[to]
    assert type_of(CAST, f"map(int64,{kind}[])", cast_to=to) == f"{dtype}[1,entries]"
    assert run(CAST, f"map(int64,{kind}[])", x, cast_to=to).tolist() == [want]
    sparse = {"map_form": "SPARSE", "max_map": 4}
    assert type_of(CAST, f"map(int64,{kind}[])", cast_to=to, **sparse) == f"{dtype}[1,4]"
    zero = {"TO_FLOAT": 0.0, "TO_INT64": 0, "TO_STRING": "0.f"}[to]
    spread = {2 * k + 1: v for k, v in x.items()}
    assert run(CAST, f"map(int64,{kind}[])", spread, cast_to=to, **sparse).tolist() == [[zero, want[0], zero, want[1]]]
    assert run(CAST, f"map(int64,{kind}[])", {9: x[0]}, cast_to=to, **sparse).tolist() == [[zero] * 4]


def test_cast_map_checks():
    kind = "map(int64,float32[])"
    with pytest.raises(ModelError, match='TO_FLOAT, TO_INT64 or TO_STRING. Got "TO_INT8"'):
        type_of(CAST, kind, cast_to="TO_INT8")
    with pytest.raises(ModelError, match='DENSE or SPARSE. Got "THIN"'):
        type_of(CAST, kind, map_form="THIN")
    with pytest.raises(ModelError, match="max_map must be positive. Got 0"):
        type_of(CAST, kind, map_form="SPARSE", max_map=0)
    with pytest.raises(ModelError, match="keys must be integers"):
        type_of(CAST, "map(string,float32[])")
    with pytest.raises(ShapeError, match="must not be negative. Got -1"):
        run(CAST, kind, {-1: 2.0}, map_form="SPARSE", max_map=2)
    with pytest.raises(ModelError, match='must be a number. Got "x"'):
        run(CAST, "map(int64,string[])", {0: "x"})


def test_sequences_of_maps():
    kind = "seq(map(int64,float32[]))"
    graph = _native.Graph()
    many = graph.add_input("many", kind)
    first = graph.add_node("SequenceAt", [many, graph.add_constant("i", np.array(0))], ["first"]).outputs[0]
    length = graph.add_node("SequenceLength", [many], ["length"]).outputs[0]
    more = graph.add_node("SequenceInsert", [many, first], ["more"]).outputs[0]
    graph.outputs = [first, length, more]
    assert [v.type for v in graph.outputs] == ["map(int64,float32[])", "int64[]", kind]
    one, two = {1: 0.5}, {2: 1.5, 0: -1.0}
    results = graph.evaluate([[one, two]])
    assert results[0] == one
    assert results[1] == 2
    assert results[2] == [one, two, one]


@pytest.mark.parametrize(
    ("kind", "x", "rule"),
    [
        ("map(string,float32[])", {1: 2.0}, "every key of a map must be of dtype string. Got 1"),
        ("map(int64,float32[])", {"a": 2.0}, "every key of a map must be of dtype int64. Got 'a'"),
        ("map(int64,float32[])", {1: "a"}, "every value of a map must be of dtype float32. Got 'a'"),
        ("map(int64,int64[])", {1: 2.5}, "every value of a map must be of dtype int64. Got 2.5"),
        ("map(int8,int64[])", {300: 2}, "every key of a map must be of dtype int8. Got 300"),
        ("seq(float32[*])", {1: 2}, r"a value of type seq\(float32\[\*\]\) must not be a dict. Got 1 entries"),
    ],
)
def test_entries_of_another_dtype(kind, x, rule):
    graph = _native.Graph()
    graph.outputs = graph.add_node("Identity", [graph.add_input("x", kind)], ["y"]).outputs
    with pytest.raises(DTypeError, match=rule):
        graph.evaluate([x])
