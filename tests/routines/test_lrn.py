"""LRN by every routine of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

BLOCKED = "cpu:float32/lrn_nchwc"
PLAIN = "cpu:float32/lrn_nchw"
CASES = 40

by_tier = pytest.mark.parametrize("tier", TIERS)
by_routine = pytest.mark.parametrize("routine", [BLOCKED, PLAIN])


def lrn_graph(dims, attrs, symbols=False):
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [f"d{i}" if symbols and i != 1 else d for i, d in enumerate(dims)])
    graph.outputs = graph.add_node("LRN", [x], ["y"], attrs, "lrn").outputs
    return graph


def check(graph, tier, routine, x, depth):
    pinned = compile_pinned(graph, tier, {"lrn": routine})
    assert pinned.routines["lrn"].split("{")[0] == routine
    with np.errstate(all="ignore"):
        expected = graph.evaluate([x])[0]
    actual = pinned(x)
    assert_close(actual, expected, depth, x.shape)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), actual)


@by_tier
@by_routine
def test_gives_what_the_reference_gives(routine, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        spatial = [pick(random, [1, 2, 3, 7, 13, 31]) for _ in range(pick(random, [1, 2, 2, 3]))]
        dims = [int(random.integers(1, 4)), pick(random, [1, 3, 4, 7, 8, 16, 17, 31, 33, 64]), *spatial]
        attrs = {
            "size": int(random.integers(1, 10)),
            "alpha": pick(random, [1e-4, 0.5, 2.0]),
            "beta": pick(random, [0.75, 0.75, 1.0, 0.5, 0.6, 2.3]),
            "bias": pick(random, [1.0, 2.0, 0.1]),
        }
        graph = lrn_graph(dims, attrs, symbols=bool(random.integers(2)))
        check(graph, tier, routine, floats(random, dims) * np.float32(4), 8)


@by_tier
@by_routine
@pytest.mark.parametrize("size", [5, 4, 1])
def test_large_enough_for_a_team(size, routine, tier):
    graph = lrn_graph([2, 40, 53, 47], {"size": size})
    check(graph, tier, routine, floats(np.random.default_rng(1), [2, 40, 53, 47]), 8)


@by_tier
def test_windows_wider_than_the_channels(tier):
    dims = [2, 5, 3, 3]
    check(lrn_graph(dims, {"size": 41, "alpha": 1.0}), tier, PLAIN, floats(np.random.default_rng(2), dims), 8)


@by_tier
@by_routine
@pytest.mark.parametrize("dims", [[0, 5, 3, 3], [2, 5, 0, 3]])
def test_no_elements(dims, routine, tier):
    check(lrn_graph(dims, {"size": 3}, symbols=True), tier, routine, np.zeros(dims, np.float32), 1)


@by_tier
@by_routine
def test_an_image_is_a_vector_of_channels(routine, tier):
    dims = [3, 19] if routine == PLAIN else [3, 19, 1]
    check(lrn_graph(dims, {"size": 5, "alpha": 1.0}), tier, routine, floats(np.random.default_rng(3), dims), 8)


@by_tier
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_numbers_stay_in_their_windows(special, tier):
    """A NaN in the last channel reaches its neighbours, and the padding lanes behind it stay zero."""
    graph = _native.Graph()
    value = graph.add_input("x", "float32", [1, 18, 2, 3])
    value = graph.add_node("LRN", [value], ["a"], {"size": 3, "alpha": 1.0}, "a").outputs[0]
    graph.outputs = graph.add_node("LRN", [value], ["y"], {"size": 3, "alpha": 1.0}, "b").outputs
    pinned = compile_pinned(graph, tier, {"a": BLOCKED, "b": BLOCKED})
    x = floats(np.random.default_rng(4), [1, 18, 2, 3])
    x[0, 17, 1, 1] = special
    actual, expected = pinned(x), graph.evaluate([x])[0]
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    assert_close(np.nan_to_num(actual), np.nan_to_num(expected), 8)


@by_tier
@by_routine
def test_squares_without_a_bias(routine, tier):
    """Zero over zero is NaN, in channels that exist only."""
    dims = [1, 18, 2, 3]
    x = floats(np.random.default_rng(5), dims)
    x[0, 3:9] = 0
    graph = lrn_graph(dims, {"size": 3, "alpha": 1.0, "bias": 0.0})
    actual = compile_pinned(graph, tier, {"lrn": routine})(x)
    expected = graph.evaluate([x])[0]
    assert np.isnan(expected).any()
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    assert_close(np.nan_to_num(actual), np.nan_to_num(expected), 8)


@by_tier
def test_costs_less_than_the_reference(tier):
    graph = lrn_graph([1, 96, 54, 54], {"size": 5})
    costs = {c["routine"].split("{")[0]: c["time_us"] for c in candidates(graph, tier, "lrn")}
    assert max(costs[BLOCKED], costs[PLAIN]) < costs["cpu/reference"]


def test_says_why_it_declines():
    graph = lrn_graph([1, 40, 3, 3], {"size": 41})
    assert rejections(graph, "scalar", "lrn")[BLOCKED] == "the window is wider than the blocks beside its own"
    graph = lrn_graph([1, 40], {"size": 3})
    assert rejections(graph, TIERS[0], "lrn")[BLOCKED] == "the input has not 1 to 3 spatial axes"
