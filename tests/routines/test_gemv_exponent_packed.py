"""One row times weights that are held in 28 bits: no bit of a weight is lost, and sums agree with the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, rejections

EXPONENT_PACKED = "cpu:float32/gemv_exponent_packed"

by_tier = pytest.mark.parametrize("tier", TIERS)
#: Sizes k, n around those of panels, each of at least 2^18 weights.
SIZES = [(4096, 64), (4099, 65), (1021, 257), (300, 1000), (87, 3019), (1, 262147), (2048, 129), (262151, 1)]


def graph_of(weight, bias=None, tail="", transposed=False, alpha=1.0):
    """y = x W, a MatMul or a Gemm, with what follows it; a tail may be the bounds of a clamp."""
    clamp = {"clamp_min": tail[0], "clamp_max": tail[1]} if isinstance(tail, tuple) else {}
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, weight.shape[0]])
    if bias is None and not transposed and alpha == 1.0:
        node = graph.add_node("MatMul", [x, graph.add_constant("w", weight)], ["y"], clamp, "product")
    else:
        operands = [x, graph.add_constant("w", np.ascontiguousarray(weight.T) if transposed else weight)]
        if bias is not None:
            operands.append(graph.add_constant("b", bias))
        attrs = {"transB": int(transposed), "alpha": alpha, "beta": 0.5, **clamp}
        node = graph.add_node("Gemm", operands, ["y"], attrs, "product")
    if tail and not clamp:
        node = graph.add_node(tail, [node.outputs[0]], ["z"], {}, "tail")
    graph.outputs = [node.outputs[0]]
    return graph


def compile_exponent_packed(graph, tier, threads=1, keeps_denormals=False):
    pins = dict.fromkeys(["product", "tail"], EXPONENT_PACKED)
    pinned = compile_pinned(graph, tier, pins, threads, keeps_denormals)
    assert all(routine.startswith(EXPONENT_PACKED) for routine in pinned.routines.values()), pinned.routines
    return pinned


@by_tier
@pytest.mark.parametrize(("k", "n"), SIZES)
def test_agrees_with_the_reference(tier, k, n):
    random = np.random.default_rng(k)
    graph = graph_of(floats(random, [k, n]))
    x = floats(random, [1, k])
    pinned = compile_exponent_packed(graph, tier)
    found = pinned(x)
    assert_close(found, graph.evaluate([x])[0], k, (k, n))
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), found)


@by_tier
@pytest.mark.parametrize("tail", ["", (0.0, 2.5), "HardSwish", "Gelu"])
@pytest.mark.parametrize("transposed", [False, True])
def test_bias_and_what_follows(tier, tail, transposed):
    random = np.random.default_rng(3)
    k, n = 523, 517
    for bias in (None, floats(random, [n]), floats(random, [1])):
        graph = graph_of(floats(random, [k, n]), bias, tail, transposed)
        x = floats(random, [1, k])
        assert_close(compile_exponent_packed(graph, tier)(x), graph.evaluate([x])[0], k)


@by_tier
def test_no_bit_of_a_weight_is_lost(tier):
    random = np.random.default_rng(5)
    k, n = 400, 700
    weight = random.standard_normal((k, n)).astype(np.float32) * np.float32(0.03)
    weight[random.random((k, n)) < 0.01] = 0
    where = random.random((k, n)) < 0.0005
    odd = [1e-30, -3e-9, 1e-42, -1e-45, np.float32(2**-14) * np.abs(weight).max()]
    weight[where] = random.choice(np.float32(odd), int(where.sum()))
    pinned = compile_exponent_packed(graph_of(weight), tier, keeps_denormals=True)
    for row in {0, 1, k - 1, *np.flatnonzero(where.any(axis=1))[:40].tolist()}:
        x = np.zeros([1, k], np.float32)
        x[0, row] = 1
        np.testing.assert_array_equal(pinned(x)[0], weight[row])


@by_tier
@pytest.mark.parametrize("power", [-110, -60, 0, 15])
def test_weights_of_any_size(tier, power):
    random = np.random.default_rng(6)
    weight = floats(random, [600, 500]) * np.float32(2.0**power)
    x = floats(random, [1, 600])
    found, expected = compile_exponent_packed(graph_of(weight), tier)(x), x.astype(np.float64) @ weight
    scale = 2.0**power
    assert_close((found / scale).astype(np.float32), (expected / scale).astype(np.float32), 600)


@by_tier
def test_infinities_and_not_a_numbers(tier):
    random = np.random.default_rng(7)
    weight = floats(random, [512, 520])
    weight[3, 5] = np.nan
    weight[8, 6] = 1e-20
    graph = graph_of(weight)
    pinned = compile_exponent_packed(graph, tier)
    x = floats(random, [1, 512])
    for value in (np.inf, -np.inf, np.nan, 1.0):
        x[0, 8] = value
        found, expected = pinned(x), graph.evaluate([x])[0]
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        infinite = np.isinf(expected)
        np.testing.assert_array_equal(found[infinite], expected[infinite])


def reason(graph):
    return rejections(graph, "scalar", "product").get(EXPONENT_PACKED)


def test_what_it_is_not_for():
    random = np.random.default_rng(8)
    weight = floats(random, [512, 520])
    assert reason(graph_of(weight)) is None
    assert reason(graph_of(weight[:, :500])) == "few weights, which the caches hold"
    assert reason(graph_of(weight, alpha=2.0)) == "the product is scaled"
    wide = weight * np.float32(2.0) ** random.integers(-40, 10, weight.shape).astype(np.float32)
    assert reason(graph_of(wide)) == "more than a weight in 1024 lies outside 15 binades"
    assert reason(graph_of(weight * np.float32(2.0**20))) == "the weights are too large or too small"
    assert reason(graph_of(weight * np.float32(2.0**-115))) == "the weights are too large or too small"
    weight[0, 0] = np.inf
    assert reason(graph_of(weight)) == "the weights are too large or too small"


def test_several_rows_are_left_to_others():
    for rows in (2, "n"):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", [rows, 512])
        weight = graph.add_constant("w", np.ones([512, 520], np.float32))
        graph.outputs = [graph.add_node("MatMul", [x, weight], ["y"], {}, "product").outputs[0]]
        assert reason(graph) == "more than one row"


@by_tier
def test_vectors_and_leading_axes(tier):
    random = np.random.default_rng(9)
    weight = floats(random, [600, 450])
    for dims in ([600], [1, 1, 600]):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", dims)
        constant = graph.add_constant("w", weight)
        graph.outputs = [graph.add_node("MatMul", [x, constant], ["y"], {}, "product").outputs[0]]
        value = floats(random, dims)
        assert_close(compile_exponent_packed(graph, tier)(value), graph.evaluate([value])[0], 600)


@by_tier
@pytest.mark.parametrize("transposed", [False, True])
def test_a_row_that_lies_apart(tier, transposed):
    random = np.random.default_rng(10)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [600, 3] if transposed else [3, 600])
    axis = int(transposed)
    bounds = [graph.add_constant(n, np.int64([v])) for n, v in (("from", 1), ("to", 2), ("axis", axis))]
    row = graph.add_node("Slice", [x, *bounds], ["row"], {}, "slice").outputs[0]
    weight = graph.add_constant("w", floats(random, [600, 450]))
    attrs = {"transA": int(transposed)}
    graph.outputs = [graph.add_node("Gemm", [row, weight], ["y"], attrs, "product").outputs[0]]
    value = floats(random, [600, 3] if transposed else [3, 600])
    # Columns are copied, rows are read where they lie.
    pinned = compile_pinned(graph, tier, {"product": EXPONENT_PACKED} | ({} if transposed else {"slice": "cpu/view"}))
    assert pinned.routines["product"].startswith(EXPONENT_PACKED), pinned.routines
    assert_close(pinned(value), graph.evaluate([value])[0], 600)


@by_tier
def test_a_model_of_zeros(tier):
    graph = graph_of(np.zeros([512, 520], np.float32))
    np.testing.assert_array_equal(compile_exponent_packed(graph, tier)(np.ones([1, 512], np.float32)), 0)
