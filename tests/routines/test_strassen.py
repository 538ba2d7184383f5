"""1x1 convolutions by Strassen's algorithm against the reference, and their error against float64."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import EPSILON, TIERS, candidates, compile_pinned, floats, rejections, rms
from tests.routines.test_conv import Case, lanes, pick, tail_of

STRASSEN = "cpu:float32/strassen"
DIRECT = "cpu:float32/direct_nchwc"
CASES = 24

by_tier = pytest.mark.parametrize("tier", TIERS)
by_levels = pytest.mark.parametrize("levels", [1, 2])


def narrowest(tier):
    """Vectors of a part of the output channels that a tile has at least."""
    return 3 if tier == "neon" else 2


def pin_of(levels, tasks=1):
    """So many levels of the algorithm, in as many tasks; 4 is the most that there are for one thread."""
    return f"{STRASSEN}{{levels=2 tasks={tasks}}}" if levels == 2 else f"{STRASSEN}{{tasks={tasks}}}"


def check(case, tier, levels, threads=()):
    """Equal up to the rounding of sums of products, and of the additions around them."""
    pin = pin_of(levels, 4 if threads else 1)
    pinned = compile_pinned(case.graph, tier, {case.ends: pin})
    assert pinned.routines[case.ends] == pin, pinned.routines
    found, expected = pinned(*case.inputs), case.graph.evaluate(case.inputs)[0]
    assert found.shape == expected.shape
    if expected.size:
        tolerance = 12 * levels * EPSILON * np.sqrt(case.depth) * max(1.0, float(np.abs(expected).max()))
        assert float(np.abs(found - expected).max()) <= tolerance, f"{case.graph}"
    for count in threads:
        np.testing.assert_array_equal(pinned(*case.inputs, threads=count), found)


@by_tier
@by_levels
@pytest.mark.parametrize("seed", range(CASES))
def test_agrees_with_the_reference(tier, levels, seed):
    case = Case(seed)
    random, pair = case.random, lanes(tier) << levels
    ic, oc = pair * int(random.integers(1, 5)), pair * pick(random, [narrowest(tier), 3, 4, 6, 7, 8, 9, 10, 11, 17])
    sizes = [int(n) for n in random.integers(1, pick(random, [4, 20]), pick(random, [1, 2, 2]))]
    x_dims = [pick(random, [1, 1, 2]), ic, *sizes]
    case.build(x_dims, [oc, ic, *[1] * len(sizes)], {}, tail_of(random))
    check(case, tier, levels, threads=(2, 3))


@by_tier
@by_levels
@pytest.mark.parametrize("blocks", [2, 3, 5, 7, 9, 14, 15])
@pytest.mark.parametrize("size", [(7, 7), (3, 67), (29, 31)])
def test_input_channels_that_parts_do_not_divide(tier, levels, blocks, size):
    """What is over is multiplied directly, also where the pixel in the middle is computed twice and where runs end."""
    width = lanes(tier)
    blocks = max(blocks, 1 << levels)
    oc = (width << levels) * pick(np.random.default_rng(blocks), [narrowest(tier), 3, 7, 9])
    case = Case(blocks).build([2, blocks * width, *size], [oc, blocks * width, 1, 1], {}, "add")
    check(case, tier, levels, threads=(2, 5))
    case = Case(blocks).build([1, blocks * width, *size], [oc, blocks * width, 1, 1], {"strides": (2, 1)}, "add")
    check(case, tier, levels)


@by_tier
@by_levels
@pytest.mark.parametrize("pixels", [1, 2, 3, 5, 6, 7, 23, 24, 25, 35, 36, 37, 49, 97, 98, 99, 196, 337, 505, 506, 1011])
def test_numbers_of_pixels_that_runs_do_not_divide(tier, levels, pixels):
    pair = lanes(tier) << levels
    case = Case(pixels).build([1, 2 * pair, pixels], [(narrowest(tier) + pixels % 2) * pair, 2 * pair, 1], {}, "add")
    check(case, tier, levels, threads=(2, 5))


@by_tier
@by_levels
@pytest.mark.parametrize("team", [2, 3, 4])
@pytest.mark.parametrize("dims", [(1, 7, 7), (2, 14, 15), (1, 0, 3), (3, 1, 1)])
def test_groups_of_output_channels_have_tasks_of_their_own(tier, levels, team, dims):
    pair = lanes(tier) << levels
    for groups in {2, team}:
        case = Case(team)
        case.build([dims[0], 2 * pair, *dims[1:]], [12 * pair, 2 * pair, 1, 1], {}, "add")
        rest = f"levels={levels} " if levels > 1 else ""
        pin = f"{STRASSEN}{{groups={groups} {rest}tasks={team}}}"
        assert pin in {c["routine"] for c in candidates(case.graph, tier, case.ends, team)}
        pinned = compile_pinned(case.graph, tier, {case.ends: pin}, team)
        found, expected = pinned(*case.inputs), case.graph.evaluate(case.inputs)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        for threads in (2, 3, 5):
            np.testing.assert_array_equal(pinned(*case.inputs, threads=threads), found)


@by_tier
@by_levels
@pytest.mark.parametrize("strides", [(2, 2), (1, 2), (3, 1)])
@pytest.mark.parametrize("size", [(1, 1), (7, 7), (14, 15), (5, 61), (61, 33)])
def test_pixels_that_lie_apart(tier, levels, strides, size):
    pair = lanes(tier) << levels
    case = Case(sum(size)).build([2, 2 * pair, *size], [3 * pair, 2 * pair, 1, 1], {"strides": strides}, "add")
    check(case, tier, levels, threads=(2, 5))


@by_tier
@by_levels
@pytest.mark.parametrize("size", [(5, 7), (1, 1), (3, 1), (5, 1), (31, 33)])
def test_a_sum_in_place_of_its_operand(tier, levels, size):
    """The pixel in the middle of an odd number is computed twice, and the operand added once."""
    pair = lanes(tier) << levels
    random, graph = np.random.default_rng(0), _native.Graph()
    x = graph.add_input("x", "float32", [1, pair, *size])
    first = graph.add_node("Relu", [x], ["first"], {}, "first").outputs[0]
    weight = graph.add_constant("w", floats(random, [3 * pair, pair, 1, 1]))
    other = graph.add_constant("v", floats(random, [3 * pair, pair, 1, 1]))
    left = graph.add_node("Conv", [first, weight], ["left"], {}, "left").outputs[0]
    right = graph.add_node("Conv", [first, other], ["right"], {}, "right").outputs[0]
    graph.outputs = [graph.add_node("Add", [left, right], ["sum"], {}, "sum").outputs[0]]
    pin = pin_of(levels)
    pinned = compile_pinned(graph, tier, {"left": DIRECT, "right": pin, "sum": pin})
    inputs = [floats(random, [1, pair, *size])]
    assert pin in pinned.routines.values()
    np.testing.assert_allclose(pinned(*inputs), graph.evaluate(inputs)[0], rtol=1e-4, atol=1e-4)


@by_tier
@by_levels
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
@pytest.mark.parametrize("filters", [3, 4])
def test_sizes_may_be_symbols(tier, levels, strides, filters):
    pair = lanes(tier) << levels
    case = Case(3).build([1, pair, 8, 8], [filters * pair, pair, 1, 1], {"strides": strides}, symbols=True)
    pinned = compile_pinned(case.graph, tier, {"conv": pin_of(levels, 4)})
    for n, h, w in [(1, 8, 8), (3, 5, 11), (0, 8, 8), (2, 0, 3), (1, 30, 7), (1, 1, 1), (4, 3, 5), (2, 4, 8)]:
        x = floats(case.random, [n, pair, h, w])
        found = pinned(x)
        np.testing.assert_allclose(found, case.graph.evaluate([x])[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(pinned(x, threads=5), found)


@by_tier
def test_what_is_not_taken(tier):
    pair = 2 * lanes(tier)

    def why(x_dims, w_dims, attrs):
        return rejections(Case(0).build(x_dims, w_dims, attrs).graph, tier, "conv")[STRASSEN]

    far = "not a 1x1 convolution of one group without padding"
    odd = "the output channels are not an even number of vectors"
    few = "the input channels are no vectors, or fewer than there are parts"
    wide = [1, pair, 6, 6]
    assert why(wide, [2 * pair, pair, 3, 3], {}) == far
    assert why(wide, [2 * pair, pair, 1, 1], {"pads": [0, 1, 0, 0]}) == far
    assert why(wide, [2 * pair, pair // 2, 1, 1], {"group": 2}) == far
    assert why([1, pair // 2, 6, 6], [2 * pair, pair // 2, 1, 1], {}) == few
    assert why([1, pair + 1, 6, 6], [2 * pair, pair + 1, 1, 1], {}) == few
    assert why(wide, [3 * pair + 1, pair, 1, 1], {}) == odd
    for vectors in (1,) if narrowest(tier) == 2 else (1, 2, 5):
        assert why(wide, [vectors * pair, pair, 1, 1], {}) == "half the output channels make narrow tiles"


@by_tier
@pytest.mark.parametrize(
    ("ic", "oc", "levels"), [(4, 8, 2), (4, 12, 2), (6, 8, 2), (3, 8, 1), (4, 10, 1), (4, 4, 1), (2, 24, 1)]
)
def test_two_levels_where_channels_are_many(tier, ic, oc, levels):
    """Four vectors of input channels or more, and of output channels four times a number, each with enough."""
    width = lanes(tier)
    if narrowest(tier) == 3 and oc == 8:
        levels = 1
    graph = Case(0).build([1, ic * width, 6, 6], [oc * width, ic * width, 1, 1], {}).graph
    routines = {c["routine"] for c in candidates(graph, tier, "conv")}
    assert (pin_of(2) in routines) == (levels == 2)


@by_tier
@by_levels
@pytest.mark.parametrize("dims", [(1, 49), (2, 50), (1, 3), (3, 200)])
@pytest.mark.parametrize("strides", [1, 2])
def test_weights_of_a_dense_layer_behind_are_fetched_without_a_trace(tier, levels, dims, strides):
    """The convolution has the same bits as before another reader."""
    random, graph = np.random.default_rng(31), _native.Graph()
    pair = lanes(tier) << levels
    channels = pair * narrowest(tier)
    x = floats(random, [dims[0], pair, 1, dims[1]])
    value = graph.add_input("x", "float32", list(x.shape))
    w = graph.add_constant("w", floats(random, [channels, pair, 1, 1]))
    attrs = {"kernel_shape": [1, 1], "strides": [1, strides]}
    y = graph.add_node("Conv", [value, w], ["y"], attrs, "conv").outputs[0]
    graph.outputs = [y]
    (alone,) = compile_pinned(graph, tier, {"conv": pin_of(levels)}).module.call([x])
    mean = graph.add_node("GlobalAveragePool", [y], ["mean"], {}, "mean").outputs[0]
    rows = graph.add_node("Flatten", [mean], ["rows"], {"axis": 1}, "rows").outputs[0]
    dense = graph.add_constant("dense", floats(random, [channels, (1 << 17) // channels]))
    graph.outputs = [y, graph.add_node("MatMul", [rows, dense], ["z"], {}, "dense").outputs[0]]
    for threads in (1, 2):
        pinned = compile_pinned(graph, tier, {"conv": pin_of(levels)}, 1)
        module = pinned.module if threads == 1 else pinned.module.with_threads(threads)
        found, z = module.call([x])
        np.testing.assert_array_equal(found, alone)
        np.testing.assert_allclose(z, graph.evaluate([x])[1], rtol=0, atol=1e-4 * float(np.abs(z).max()))


@pytest.mark.parametrize(
    ("levels", "channels"), [(1, 32), (1, 64), (1, 128), (1, 512), (1, 2048), (2, 64), (2, 128), (2, 512), (2, 2048)]
)
@pytest.mark.parametrize("positive", [False, True])
def test_the_stated_error_holds(levels, channels, positive):
    """The rms error against float64, in units of the direct method's, is what the candidate says or less."""
    random = np.random.default_rng(channels)
    x = random.standard_normal([1, channels, 240]).astype(np.float32)
    x = np.abs(x) if positive else x
    w = random.standard_normal([128, channels, 1]).astype(np.float32)
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", list(x.shape)), graph.add_constant("w", w)]
    graph.outputs = [graph.add_node("Conv", operands, ["conv"], {}, "conv").outputs[0]]
    exact = np.einsum("kc,ncp->nkp", w[:, :, 0].astype(np.float64), x.astype(np.float64))
    tiers = [tier for tier in TIERS if tier != "scalar"]
    assert tiers
    for tier in tiers:
        candidate = next(c for c in candidates(graph, tier, "conv") if c["routine"] == pin_of(levels))
        error = rms(compile_pinned(graph, tier, {"conv": candidate["routine"]})(x) - exact)
        direct = rms(compile_pinned(graph, tier, {"conv": DIRECT})(x) - exact)
        assert 0 < error <= candidate["error"] * direct, tier
