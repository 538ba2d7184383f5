"""The largest elements against the reference, bit for bit."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, compile_pinned, floats, pick, rejections
from tests.routines.test_index import CASES, by_tier, check, symbolic

TOP_K = "cpu/top_k"

#: Dtypes that TopK has kernels for.
RANKED = ["float32", "float64", "int8", "uint8", "int16", "int32", "int64"]


def top_k_graph(dims, dtype, k, attrs, outputs, symbols=False):
    graph = _native.Graph()
    x = graph.add_input("x", dtype, symbolic(dims, symbols))
    count = graph.add_constant("k", np.array([k], np.int64))
    graph.outputs = [v for v in graph.add_node("TopK", [x, count], outputs, attrs, "top").outputs if v is not None]
    return graph


def ties(random, dtype, dims):
    """Few different numbers, among them both zeros and what is not a number."""
    if dtype.startswith("float"):
        values = np.array([-1.5, -0.0, 0.0, 0.25, 3, np.inf, -np.inf, np.nan, 1e-40], dtype)
        return np.where(random.random(dims) < 0.5, random.choice(values, dims), floats(random, dims)).astype(dtype)
    info = np.iinfo(dtype)
    return random.choice(np.array([info.min, info.max // 3, 0, 1, 5, info.max], dtype), dims)


@by_tier
@pytest.mark.parametrize("dtype", RANKED)
def test_largest_elements(dtype, tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 3]) for _ in range(int(random.integers(0, 3)))]
        axis = int(random.integers(0, len(dims) + 1))
        dims.insert(axis, pick(random, [1, 2, 5, 33, 257]))
        k = pick(random, [0, 1, 2, 3, 10, 100])
        k = dims[axis] if k > dims[axis] else k
        attrs = {"axis": axis - pick(random, [0, len(dims)]), "largest": int(random.integers(2)), "sorted": 1}
        outputs = pick(random, [["v", "i"], ["v"], ["", "i"]])
        graph = top_k_graph(dims, dtype, k, attrs, outputs, symbols=bool(random.integers(2)))
        check(graph, tier, "top", TOP_K, [ties(random, dtype, dims)])


@by_tier
@pytest.mark.parametrize("dtype", RANKED)
def test_largest_of_lines_side_by_side(dtype, tier):
    """More lines than lanes, and some that are left; few are kept by columns, more of them by lines; short ones are turned."""
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 3, 50]), pick(random, [1, 2, 17, 40, 300]), pick(random, [1, 2, 5, 31, 32, 67, 130])]
        k = min(dims[1], pick(random, [1, 2, 16, 17, 100]))
        outputs = pick(random, [["v", "i"], ["v"], ["", "i"]])
        graph = top_k_graph(dims, dtype, k, {"axis": 1, "largest": seed % 2}, outputs, symbols=seed % 3 == 0)
        check(graph, tier, "top", TOP_K, [ties(random, dtype, dims)])


@by_tier
@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_largest_of_many(order, tier):
    x = floats(np.random.default_rng(5), [3, 20000])
    if order != "random":
        x = np.ascontiguousarray(np.sort(x, axis=-1)[:, :: 1 if order == "ascending" else -1])
    graph = top_k_graph([3, 20000], "float32", 300, {"axis": -1}, ["v", "i"])
    check(graph, tier, "top", TOP_K, [x])


@by_tier
def test_largest_of_no_lines(tier):
    graph = top_k_graph([0, 5], "float32", 2, {"axis": -1}, ["v", "i"], symbols=True)
    check(graph, tier, "top", TOP_K, [np.zeros([0, 5], np.float32)])


@by_tier
@pytest.mark.parametrize("dtype", RANKED)
def test_as_many_of_the_largest_as_running_tells(dtype, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 3]), pick(random, [1, 5, 33, 100])]
        axis = int(random.integers(2))
        graph = _native.Graph()
        x, k = graph.add_input("x", dtype, symbolic(dims, seed % 2 == 0)), graph.add_input("k", "int64", [1])
        outputs = pick(random, [["v", "i"], ["v"], ["", "i"]])
        made = graph.add_node("TopK", [x, k], outputs, {"axis": axis, "largest": seed % 3 % 2}, "top").outputs
        graph.outputs = [v for v in made if v is not None]
        count = np.array([random.integers(0, dims[axis] + 1)])
        check(graph, tier, "top", TOP_K, [ties(random, dtype, dims), count])


def test_more_of_the_largest_than_there_are():
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", [2, 3]), graph.add_input("k", "int64", [1])]
    graph.outputs = graph.add_node("TopK", operands, ["v", "i"], {}, "top").outputs
    pinned = compile_pinned(graph, TIERS[0], {"top": TOP_K})
    for k in (-1, 4):
        with pytest.raises(ShapeError, match=f"k must lie inside the axis. Got {k}, expected 0 to 3 - at node .top."):
            pinned(np.zeros([2, 3], np.float32), np.array([k]))


def test_top_k_says_why_it_declines():
    graph = top_k_graph([4], "uint16", 2, {"axis": -1}, ["v", "i"])
    assert rejections(graph, TIERS[0], "top")[TOP_K] == "there is no kernel for its dtype"
