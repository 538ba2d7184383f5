"""Sequences and optionals."""

import numpy as np
import pytest
from neo import _native
from neo.errors import DTypeError, ShapeError

from tests.ops.single_node import infer, run

A = np.arange(3, dtype=np.float32)
B = np.arange(2, dtype=np.float32)


def test_construct_at_length():
    assert [x.tolist() for x in run("SequenceConstruct", A, B)] == [A.tolist(), B.tolist()]
    np.testing.assert_array_equal(run("SequenceAt", [A, B], np.array(-1)), B)
    assert run("SequenceLength", [A, B]) == 2
    with pytest.raises(ShapeError, match="Got 2, expected -2 to 1"):
        run("SequenceAt", [A, B], np.array(2))


def test_insert_and_erase():
    inserted = run("SequenceInsert", [A, A], B, np.array(-1))
    assert [x.size for x in inserted] == [3, 2, 3]
    assert [x.size for x in run("SequenceInsert", [A], B)] == [3, 2]
    assert [x.size for x in run("SequenceErase", [A, B])] == [3]
    assert [x.size for x in run("SequenceErase", [A, B], np.array(0))] == [2]


def test_elements_have_one_type():
    assert infer("SequenceConstruct", "float32[2]", "float32[2]") == "seq(float32[2])"
    assert infer("SequenceConstruct", "float32[2]", "float32[2,1]") == "seq(float32[*])"
    with pytest.raises(DTypeError, match="one type"):
        infer("SequenceConstruct", "float32[2]", "int64[2]")


def test_two_elements_may_differ_in_a_symbol():
    graph = _native.Graph()
    x = graph.add_input("x", "seq(float32[N,3])")
    position = graph.add_constant("i", np.array(0))
    types = [graph.add_node("SequenceAt", [x, position], [name]).outputs[0].shape for name in "ab"]
    assert types[0][1] == 3
    assert types[0][0] != types[1][0]


def test_concat_and_stack():
    np.testing.assert_array_equal(run("ConcatFromSequence", [A, B], axis=0), np.concatenate([A, B]))
    np.testing.assert_array_equal(run("ConcatFromSequence", [A, A], axis=-1, new_axis=1), np.stack([A, A], -1))
    with pytest.raises(ShapeError, match="not joined"):
        run("ConcatFromSequence", [A, B], axis=0, new_axis=1)


def test_split_without_sizes_may_drop_the_axis():
    x = np.arange(6.0).reshape(2, 3)
    assert [p.shape for p in run("SplitToSequence", x, axis=1, keepdims=0)] == [(2,)] * 3
    assert [p.shape for p in run("SplitToSequence", x, np.array(2), axis=1)] == [(2, 2), (2, 1)]
    with pytest.raises(ShapeError, match="add up"):
        run("SplitToSequence", x, np.array([1, 1]), axis=1)


def test_optionals():
    graph = _native.Graph()
    empty = graph.add_node("Optional", [], ["empty"], {"type": "float32[2]"}).outputs[0]
    full = graph.add_node("Optional", [graph.add_constant("c", B)], ["full"]).outputs[0]
    has = [graph.add_node("OptionalHasElement", [v], ["has"]).outputs[0] for v in (empty, full)]
    element = graph.add_node("OptionalGetElement", [full], ["element"]).outputs[0]
    graph.outputs = [*has, element]
    results = graph.evaluate([])
    assert [bool(x) for x in results[:2]] == [False, True]
    np.testing.assert_array_equal(results[2], B)
    graph.outputs = [graph.add_node("OptionalGetElement", [empty], ["none"]).outputs[0]]
    with pytest.raises(ShapeError, match="must hold an element"):
        graph.evaluate([])
