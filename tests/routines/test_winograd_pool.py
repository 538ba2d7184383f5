"""A MaxPool of every 2x2 results as part of a Winograd convolution, against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import assert_close, candidates, compile_pinned, floats, rejections
from tests.routines.test_conv import Case, pick
from tests.routines.test_winograd import (
    FEWEST_CHANNELS,
    PAIRS,
    WINOGRAD,
    attrs_of,
    by_tier,
    by_tier_of_many_registers,
    by_tile,
    winograd,
    with_taps,
)

POOLED_SIZES = {2: [2, 3, 7, 12, 19, 23], 4: [2, 3, 7, 12, 19, 23], 6: [6, 7, 10, 11, 17, 18, 22, 23]}


def add_pool(case, **attrs):
    """Behind the convolution of a case, which ends in it."""
    (value,) = case.graph.outputs
    case.graph.outputs = [case.graph.add_node("MaxPool", [value], ["pool"], {**PAIRS, **attrs}, "pool").outputs[0]]
    case.ends = "pool"
    return case


@by_tier
@by_tile
@pytest.mark.parametrize("seed", range(8))
def test_pools_of_pairs_agree_with_the_reference(tier, tile, seed):
    case = Case(700 + seed)
    pads = [int(n) for n in case.random.integers(0, 3, 4)]
    outputs = [pick(case.random, POOLED_SIZES[tile]) for _ in range(2)]
    sizes = [max(1, outputs[i] + 2 - pads[i] - pads[i + 2]) for i in (0, 1)]
    ic, oc = (int(n) for n in case.random.integers(FEWEST_CHANNELS[tile], 70, 2))
    case.build([pick(case.random, [1, 1, 3]), ic, *sizes], [oc, ic, 3, 3], attrs_of(pads))
    pinned = add_pool(case).check(tier, winograd(case, tier, tile))
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(*case.inputs, threads=threads), pinned(*case.inputs))


@by_tier_of_many_registers
@pytest.mark.parametrize("size", [4, 7])
def test_pools_of_pairs_with_weights_as_taps(tier, size):
    case = add_pool(Case(710).build([1, 40, size, size], [50, 40, 3, 3], attrs_of([1, 1, 1, 1])))
    case.check(tier, with_taps(case, tier))


@by_tier
@by_tile
def test_pools_of_pairs_with_sizes_that_are_symbols(tier, tile):
    random = np.random.default_rng(42)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", ["n", 20, "h in [0,50]", "w in [0,50]"])
    w = graph.add_constant("w", floats(random, [33, 20, 3, 3]))
    value = graph.add_node("Conv", [x, w], ["y"], {"pads": [1, 1, 1, 1]}, "conv").outputs[0]
    graph.outputs = [graph.add_node("MaxPool", [value], ["z"], PAIRS, "pool").outputs[0]]
    found = [c["routine"] for c in candidates(graph, tier, "pool") if c["routine"].startswith(WINOGRAD)]
    pinned = compile_pinned(graph, tier, {"pool": next(r for r in found if f"tile={tile}" in r)})
    for dims in ([1, 20, 24, 18], [2, 20, 7, 2], [1, 20, 3, 3], [1, 20, 1, 9], [0, 20, 8, 8], [1, 20, 0, 4]):
        inputs = [floats(random, dims)]
        assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 200 * 9 * 20, dims)


@by_tier
@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_shape": [3, 3]},
        {"strides": [1, 1]},
        {"strides": [2, 1]},
        {"pads": [0, 0, 1, 1]},
        {"auto_pad": "SAME_UPPER"},
        {"ceil_mode": 1},
        {"dilations": [2, 2]},
    ],
    ids=str,
)
def test_other_pools_are_steps_of_their_own(tier, attrs):
    case = add_pool(Case(720).build([1, 32, 15, 15], [32, 32, 3, 3], attrs_of([1, 1, 1, 1])), **attrs)
    assert not [c for c in candidates(case.graph, tier, "pool") if c["routine"].startswith(WINOGRAD)]


@by_tier
@pytest.mark.parametrize("tail", ["relu", "Swish"])
def test_pools_of_what_others_read_too_are_steps_of_their_own(tier, tail):
    case = Case(721).build([1, 32, 16, 16], [32, 32, 3, 3], attrs_of([1, 1, 1, 1]), tail if tail == "relu" else "")
    conv = case.graph.outputs[0]
    add_pool(case)
    if tail != "relu":
        case.graph.outputs = [conv, *case.graph.outputs]
    assert not [c for c in candidates(case.graph, tier, "pool") if c["routine"].startswith(WINOGRAD)]


@by_tier
def test_a_pool_behind_a_kernel_that_is_not_3x3_gives_its_reason(tier):
    case = add_pool(Case(722).build([1, 32, 16, 16], [32, 32, 5, 5], attrs_of([2, 2, 2, 2], kernel_shape=[5, 5])))
    assert "pool" in rejections(case.graph, tier, "pool")[WINOGRAD]
