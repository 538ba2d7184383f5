"""Products of float64 and of integers against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, compile_pinned, rejections

ROUTINE = "cpu/gemm"

by_tier = pytest.mark.parametrize("tier", TIERS)


def values(random, dims, dtype):
    if dtype == "float64":
        return random.standard_normal(dims)
    bounds = np.iinfo(dtype)
    return random.integers(bounds.min, bounds.max, dims, dtype, endpoint=True)


def check(graph, tier, inputs, node="node"):
    pinned = compile_pinned(graph, tier, {node: ROUTINE})
    assert pinned.routines[node] == ROUTINE, pinned.routines
    found, expected = pinned(*inputs), graph.evaluate(inputs)[0]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype == np.float64:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    else:
        np.testing.assert_array_equal(found, expected)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


SHAPES = [
    ([1, 1], [1, 1]),
    ([3, 5], [5, 7]),
    ([67, 131], [131, 97]),
    ([130, 8], [8, 65]),
    ([4, 0], [0, 5]),
    ([0, 4], [4, 5]),
    ([4, 5], [5, 0]),
    ([2, 3, 9, 11], [2, 3, 11, 13]),
    ([2, 1, 9, 11], [3, 11, 13]),
    ([7], [7, 9]),
    ([3, 9, 7], [7]),
    ([7], [7]),
]


@by_tier
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint32", "int64", "uint64"])
def test_products(dtype, tier):
    for index, (a, b) in enumerate(SHAPES):
        random = np.random.default_rng(index)
        graph = _native.Graph()
        second = values(random, b, dtype)
        inputs = [graph.add_input("a", dtype, [f"d{i}" for i in range(len(a))] if index % 3 == 2 else a)]
        feeds = [values(random, a, dtype)]
        if index % 2:
            inputs.append(graph.add_constant("b", second))
        else:
            inputs.append(graph.add_input("b", dtype, [f"e{i}" for i in range(len(b))] if index % 3 == 2 else b))
            feeds.append(second)
        if index % 3 == 2 and len(a) > 1 and index % 2 == 0:
            continue  # sizes that are not known to agree
        graph.outputs = graph.add_node("MatMul", inputs, ["y"], {}, "node").outputs
        check(graph, tier, feeds)


@by_tier
@pytest.mark.parametrize(
    "attrs", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}]
)
@pytest.mark.parametrize("added", [None, [], [1], [23], [17, 1], [17, 23]])
def test_gemm(attrs, added, tier):
    random = np.random.default_rng(0)
    a, b = ([31, 17] if "transA" in attrs else [17, 31]), ([23, 31] if "transB" in attrs else [31, 23])
    for dtype in ["float64", *([] if "alpha" in attrs else ["int64"])]:
        graph = _native.Graph()
        feeds = [values(random, dims, dtype) for dims in (a, b, *([] if added is None else [added]))]
        inputs = [graph.add_input(f"x{i}", dtype, list(f.shape)) for i, f in enumerate(feeds)]
        graph.outputs = graph.add_node("Gemm", inputs, ["y"], attrs, "node").outputs
        check(graph, tier, feeds)


def test_what_it_is_not_for():
    graph = _native.Graph()
    inputs = [graph.add_input(n, "int32", [3, 3]) for n in "ab"]
    graph.outputs = graph.add_node("Gemm", inputs, ["y"], {"alpha": 2.0}, "node").outputs
    assert rejections(graph, "scalar", "node")[ROUTINE] == "integers are scaled"
    graph = _native.Graph()
    inputs = [graph.add_input(n, "float16", [3, 3]) for n in "ab"]
    graph.outputs = graph.add_node("MatMul", inputs, ["y"], {}, "node").outputs
    assert rejections(graph, "scalar", "node")[ROUTINE] == "it has no lanes for the dtype"


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_products_of_few_columns(dtype, tier):
    for index, columns in enumerate((1, 2, 3, 1)):
        random = np.random.default_rng(index)
        a, b = [*([2] if index % 2 else []), (67, 1, 300, 5)[index], (131, 1, 41, 64)[index]], (131, 1, 41, 64)[index]
        feeds = [values(random, a, "float64" if dtype == "float32" else dtype).astype(dtype)]
        weights = values(random, [b, columns], "float64" if dtype == "float32" else dtype).astype(dtype)
        graph = _native.Graph()
        operands = [graph.add_input("a", dtype, a)]
        if index % 2:
            operands.append(graph.add_constant("b", weights))
        else:
            operands.append(graph.add_input("b", dtype, [b, columns]))
            feeds.append(weights)
        graph.outputs = graph.add_node("MatMul", operands, ["y"], {}, "node").outputs
        pinned = compile_pinned(graph, tier, {"node": ROUTINE})
        assert pinned.routines["node"] == ROUTINE
        found, expected = pinned(*feeds), graph.evaluate(feeds)[0]
        if dtype.startswith("float"):
            tolerance = 2e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(pinned(*feeds, threads=3), found)


def test_a_packed_bias_is_left_to_another_routine():
    graph = _native.Graph()
    operands = [graph.add_input("a", "float32", [5, 6]), graph.add_input("b", "float32", [6, 1])]
    operands.append(graph.add_constant("c", np.ones(1, np.float32)))
    graph.outputs = graph.add_node("Gemm", operands, ["y"], {}, "node").outputs
    assert rejections(graph, TIERS[0], "node")[ROUTINE] == "a constant is added, which another routine packs"


@pytest.mark.parametrize(("a", "b"), [([5, 6], [6, 4]), ([16, 24], [24, 3]), ([100, 2], [2, 2])])
def test_blocks_of_float32_are_left_to_another_routine(a, b):
    graph = _native.Graph()
    operands = [graph.add_input("a", "float32", a), graph.add_input("b", "float32", b)]
    graph.outputs = graph.add_node("MatMul", operands, ["y"], {}, "node").outputs
    reason = "float32 of many columns, or of many rows that are short, has a routine of its own"
    assert rejections(graph, TIERS[0], "node")[ROUTINE] == reason
