"""Reshapes, slices and splits that are the same memory under another shape, and concatenations written in place."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, compile_pinned, rejections

VIEW = "cpu/view"
ASSEMBLE = "cpu/concat_in_place"

by_tier = pytest.mark.parametrize("tier", TIERS)


def ints(*numbers):
    return np.array(numbers, np.int64)


# Operator, sizes of the input, operands, attributes, number of results.
VIEWS = {
    "reshape": ("Reshape", [6, 4], [ints(3, 8)], {}, 1),
    "flatten": ("Flatten", [2, 3, 4], [], {"axis": 2}, 1),
    "squeeze": ("Squeeze", [3, 1, 4], [ints(1)], {}, 1),
    "unsqueeze": ("Unsqueeze", [3, 4], [ints(0, 2)], {}, 1),
    "transpose of one row": ("Transpose", [1, 5, 1, 4], [], {"perm": [1, 2, 0, 3]}, 1),
    "slice": ("Slice", [7, 5], [ints(2), ints(5)], {}, 1),
    "slice from the end": ("Slice", [7, 5], [ints(-3), ints(-1)], {}, 1),
    "slice behind one": ("Slice", [1, 7, 5], [ints(3), ints(100), ints(1)], {}, 1),
    "gather": ("Gather", [7, 5], [np.array(3)], {}, 1),
    "gather from the end": ("Gather", [7, 5], [ints(-2)], {}, 1),
    "gather behind one": ("Gather", [1, 7, 5], [ints(6)], {"axis": -2}, 1),
    "split": ("Split", [7, 5], [ints(2, 1, 4)], {"axis": 0}, 3),
    "split behind one": ("Split", [1, 6, 5], [ints(5, 1)], {"axis": 1}, 2),
}
COPIES = {
    "transpose": ("Transpose", [4, 5], [], {}, 1),
    "transpose of planes": ("Transpose", [2, 3, 4], [], {"perm": [1, 0, 2]}, 1),
    "slice with a step": ("Slice", [7, 5], [ints(1), ints(7), ints(0), ints(2)], {}, 1),
    "slice with a step to one row": ("Slice", [7, 5], [ints(1), ints(2), ints(0), ints(3)], {}, 1),
    "slice backwards": ("Slice", [7, 5], [ints(5), ints(0), ints(0), ints(-1)], {}, 1),
    "slice of columns": ("Slice", [7, 5], [ints(1), ints(4), ints(1)], {}, 1),
    "gather of columns": ("Gather", [7, 5], [np.array(1)], {"axis": 1}, 1),
    "gather of two": ("Gather", [7, 5], [ints(1, 2)], {}, 1),
    "split of columns": ("Split", [7, 5], [ints(2, 3)], {"axis": 1}, 2),
}


def graph_of(op, dims, operands, attrs, results):
    """The node "move" between others, which write and read the memory."""
    graph = _native.Graph()
    x = graph.add_node("Relu", [graph.add_input("x", "float32", dims)], ["r"], {}, "before").outputs[0]
    constants = [graph.add_constant(f"k{i}", operand) for i, operand in enumerate(operands)]
    parts = graph.add_node(op, [x, *constants], [f"p{i}" for i in range(results)], attrs, "move").outputs
    graph.outputs = [
        graph.add_node("Neg", [part], [f"y{i}"], {}, f"after{i}").outputs[0] for i, part in enumerate(parts)
    ]
    return graph


def check(graph, tier, pins, dims):
    pinned = compile_pinned(graph, tier, pins)
    x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    for found, right in zip(pinned.module.call([x]), graph.evaluate([x]), strict=True):
        np.testing.assert_array_equal(found, right, strict=True)


@by_tier
@pytest.mark.parametrize("name", VIEWS)
def test_what_a_view_can_be(name, tier):
    graph = graph_of(*VIEWS[name])
    check(graph, tier, {"move": VIEW}, VIEWS[name][1])


@by_tier
@pytest.mark.parametrize("name", COPIES)
def test_what_a_view_cannot_be(name, tier):
    graph = graph_of(*COPIES[name])
    assert VIEW in rejections(graph, tier, "move")
    check(graph, tier, {}, COPIES[name][1])


@by_tier
@pytest.mark.parametrize(
    ("pieces", "axis"), [([[2, 3], [4, 3]], 0), ([[1, 2, 5], [1, 1, 5], [1, 3, 5]], 1), ([[1, 1, 4], [1, 1, 3]], -1)]
)
def test_pieces_of_a_concatenation_lie_one_behind_the_other(pieces, axis, tier):
    graph = _native.Graph()
    inputs = [graph.add_input(f"x{i}", "float32", dims) for i, dims in enumerate(pieces)]
    made = [graph.add_node("Relu", [x], [f"r{i}"], {}, f"before{i}").outputs[0] for i, x in enumerate(inputs)]
    whole = graph.add_node("Concat", made, ["c"], {"axis": axis}, "join").outputs[0]
    graph.outputs = graph.add_node("Neg", [whole], ["y"], {}, "after").outputs
    arrays = [np.random.default_rng(i).standard_normal(dims).astype(np.float32) for i, dims in enumerate(pieces)]
    pinned = compile_pinned(graph, tier, {"join": ASSEMBLE})
    np.testing.assert_array_equal(pinned(*arrays), graph.evaluate(arrays)[0], strict=True)
