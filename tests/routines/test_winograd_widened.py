"""Winograd convolution of kernels with an even side against the reference, and its error against float64."""

import neo
import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, candidates, compile_pinned, floats, rejections
from tests.routines.test_conv import Case, tail_of
from tests.routines.test_winograd import check_lanes, check_stated_error, conv_model, pick, winograd

WIDENED = "cpu:float32/winograd_widened"
FORMS = {
    (2, 2): [2, 4],
    (4, 4): [2, 4],
    (6, 6): [2],
    (1, 4): [2, 4, 6],
    (6, 1): [2, 4],
    (4, 3): [2, 4],
    (5, 2): [2, 4],
}

by_tier = pytest.mark.parametrize("tier", TIERS)
by_form = pytest.mark.parametrize(
    ("kernel", "tile"), [(kernel, tile) for kernel, tiles in FORMS.items() for tile in tiles], ids=str
)


@by_tier
@by_form
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_reference(tier, kernel, tile, seed):
    case = Case(100 * tile + seed)
    pads = [int(n) for n in case.random.integers(0, 4, 4)]
    outputs = [pick(case.random, [12, 18, 24]) for _ in kernel]
    sizes = [outputs[i] + kernel[i] - 1 - pads[i] - pads[i + 2] for i in (0, 1)]
    ic, oc = (int(n) for n in case.random.integers(30, 70, 2))
    attrs = {"kernel_shape": list(kernel), "pads": pads}
    case.build([pick(case.random, [1, 1, 2]), ic, *sizes], [oc, ic, *kernel], attrs, tail_of(case.random))
    pinned = case.check(tier, winograd(case, tier, tile))
    assert pinned.routines[case.ends].startswith(WIDENED)


@by_tier
def test_one_dimension_agrees_with_the_reference(tier):
    case = Case(1)
    case.build([2, 33, 43], [20, 33, 4], {"pads": [1, 2]}, "relu")
    case.check(tier, winograd(case, tier, 4))


@by_tier
def test_no_padding_may_be_asked_for(tier):
    case = Case(2)
    case.build([1, 33, 27, 27], [20, 33, 4, 4], {"auto_pad": "VALID"})
    case.check(tier, winograd(case, tier, 4))


@by_tier
def test_the_input_may_be_the_residual(tier):
    graph, random = _native.Graph(), np.random.default_rng(3)
    x = floats(random, [1, 17, 9, 11])
    value = graph.add_input("x", "float32", list(x.shape))
    w = graph.add_constant("w", floats(random, [17, 17, 4, 4]))
    y = graph.add_node("Conv", [value, w], ["conv"], {"pads": [1, 2, 2, 1]}, "conv").outputs[0]
    graph.outputs = [graph.add_node("Add", [y, value], ["add"], {}, "add").outputs[0]]
    pinned = compile_pinned(graph, tier, {"add": WIDENED})
    expected = graph.evaluate([x])[0]
    assert np.abs(pinned(x) - expected).max() <= 1e-5 * np.abs(expected).max()


@by_tier
def test_lanes_beyond_the_channels_stay_zero(tier):
    check_lanes(tier, (4, 4), 4)


@by_tier
def test_the_same_bits_on_any_number_of_threads(tier):
    case = Case(15)
    case.build([1, 33, 40, 46], [80, 33, 4, 4], {"pads": [1, 2, 2, 1]}, "relu")
    pinned = case.check(tier, winograd(case, tier, 4))
    once = pinned(*case.inputs)
    for threads in (2, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))


@pytest.mark.parametrize(
    ("w_dims", "attrs", "expected"),
    [
        ([4, 4, 3, 5], {}, "no side of the kernel is even"),
        ([4, 4, 1, 1], {}, "no side of the kernel is even"),
        ([4, 4, 4, 4], {"auto_pad": "SAME_UPPER"}, "the padding follows from the sizes"),
        ([4, 4, 4, 4], {"strides": [2, 2]}, "the stride is not 1, nor 2 of three taps"),
        ([4, 4, 8, 8], {}, "a side of the kernel is not 1, 3, 5 or 7"),
        ([4, 2, 4, 4], {"group": 2}, "more than one group"),
    ],
)
def test_rejections_give_their_reason(w_dims, attrs, expected):
    case = Case(0).build([1, 4, 12, 12], w_dims, attrs)
    assert rejections(case.graph, "scalar", "conv")[WIDENED] == expected


@by_form
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_holds(kernel, tile, positive):
    check_stated_error(kernel, tile, 64, positive, 18)


def test_strict_accuracy_keeps_to_the_direct_method():
    model = conv_model(64, 28, (4, 4))

    def routines(**options):
        return [step.routine for step in neo.compile(model, **options).steps]

    assert any(r.startswith(WIDENED) for r in routines())
    assert not any(r.startswith(WIDENED) for r in routines(accuracy="strict"))


@pytest.mark.parametrize(("channels", "tiles"), [(2, 0), (16, 1)])
def test_is_not_offered_where_its_error_is_large(channels, tiles):
    case = Case(4).build([1, channels, 12, 12], [16, channels, 6, 6], {})
    found = [c for c in candidates(case.graph, TIERS[-1], "conv") if c["routine"].startswith(WIDENED)]
    assert len(found) == tiles
