"""Winograd convolution of every tile size and instruction set against the reference, and its error against float64."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, rejections
from tests.routines.test_conv import Case, lanes, pick, tail_of

WINOGRAD = "cpu:float32/winograd"
DIRECT = "cpu:float32/direct_nchwc"
TILES = [2, 4, 6]
# The largest tiles are offered where their error is not that of few terms, and where they save multiplications.
FEWEST_CHANNELS = {2: 1, 4: 1, 6: 9}
SIZES = {2: [1, 2, 3, 5, 7, 12, 19, 23], 4: [1, 2, 3, 5, 7, 12, 19, 23], 6: [5, 6, 9, 10, 11, 17, 22, 23]}
# Kernels other than 3x3, and their tiles.
FORMS = {
    (1, 3): [2, 4, 6],
    (3, 1): [2, 4, 6],
    (1, 5): [2, 4, 6],
    (5, 1): [2, 4, 6],
    (1, 7): [2, 4, 6],
    (7, 1): [2, 4, 6],
    (5, 5): [2, 4],
    (3, 5): [2, 4],
    (7, 3): [2, 4],
    (7, 7): [2],
    (2, 2): [4, 6],
    (4, 4): [4, 6],
    (6, 6): [4],
    (1, 4): [4, 6],
    (6, 1): [4, 6],
    (4, 3): [4],
    (5, 2): [4],
}
# Outputs of these sizes along each axis are cut into so few tiles that the larger ones pay.
FORM_SIZES = {2: [1, 2, 3, 7, 11, 13, 17], 4: [4, 8, 11, 12, 19], 6: [6, 17, 18, 11]}
# The same where a side of the kernel is even: its tiles are one shorter.
EVEN_FORM_SIZES = {4: [1, 3, 6, 9, 18, 21], 6: [5, 10, 20]}
# Kernels and strides beyond 1; all have tiles of 2 and 4.
STRIDED = [
    ((3, 3), (2, 2)),
    ((1, 3), (1, 2)),
    ((3, 1), (2, 1)),
    ((3, 1), (2, 2)),
    ((1, 3), (3, 2)),
    ((3, 3), (2, 1)),
    ((5, 3), (1, 2)),
]

# Kernels and strides of first layers, whose NCHW input is folded, and their tiles.
FOLDED = [
    ((7, 7), 2, [4, 6]),
    ((5, 5), 2, [2, 4]),
    ((7, 5), 2, [4]),
    ((6, 8), 2, [4]),
    ((11, 11), 4, [2, 4]),
    ((10, 13), 4, [4]),
]

#: Of a MaxPool that a convolution's last transform takes.
PAIRS = {"kernel_shape": [2, 2], "strides": [2, 2]}

by_tier = pytest.mark.parametrize("tier", TIERS)
by_folded = pytest.mark.parametrize(
    ("kernel", "stride", "tile"), [(*form, tile) for *form, tiles in FOLDED for tile in tiles], ids=str
)
by_tile = pytest.mark.parametrize("tile", TILES)
by_form = pytest.mark.parametrize(
    ("kernel", "tile"), [(kernel, tile) for kernel, tiles in FORMS.items() for tile in tiles], ids=str
)
by_strided = pytest.mark.parametrize(
    ("kernel", "strides", "tile"), [(*form, tile) for form in STRIDED for tile in (2, 4)], ids=str
)


def winograd(case, tier, tile):
    """A candidate of one tile size; the depth of the case is scaled to what the rounding of that tile amounts to.

    The tolerance of a case is in units of its clamped results, the error in those of the sums before: hence the 3.
    """
    found = [c for c in candidates(case.graph, tier, case.ends) if c["routine"].startswith(WINOGRAD)]
    candidate = next(c for c in found if f"tile={tile}" in c["routine"])
    case.depth = int(case.depth * (3 * max(1.0, candidate["error"])) ** 2)
    return candidate["routine"]


def folded_channels(tile):
    """Input channels of first layers; the error of few of them keeps the largest tiles out."""
    return [3, 4] if tile == 6 else [1, 2, 3, 4]


def form_sizes(kernel):
    return EVEN_FORM_SIZES if any(taps % 2 == 0 for taps in kernel) else FORM_SIZES


def attrs_of(pads, **more):
    return {"kernel_shape": [3, 3], "pads": pads, **more}


@by_tier
@by_tile
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_reference(tier, tile, seed):
    case = Case(seed)
    pads = [int(n) for n in case.random.integers(0, 3, 4)]
    sizes = [max(1, pick(case.random, SIZES[tile]) + 2 - pads[i] - pads[i + 2]) for i in (0, 1)]
    ic, oc = (int(n) for n in case.random.integers(FEWEST_CHANNELS[tile], 70, 2))
    case.build([pick(case.random, [1, 1, 2, 3]), ic, *sizes], [oc, ic, 3, 3], attrs_of(pads), tail_of(case.random))
    case.check(tier, winograd(case, tier, tile))


@by_tier
@by_form
@pytest.mark.parametrize("seed", range(4))
def test_other_kernels_agree_with_the_reference(tier, kernel, tile, seed):
    case = Case(100 * tile + seed)
    pads = [int(n) for n in case.random.integers(0, 4, 4)]
    outputs = [pick(case.random, form_sizes(kernel)[tile]) for _ in kernel]
    sizes = [max(1, outputs[i] + kernel[i] - 1 - pads[i] - pads[i + 2]) for i in (0, 1)]
    # Padding stands in for what a size cannot give.
    pads[2:] = [outputs[i] + kernel[i] - 1 - pads[i] - sizes[i] for i in (0, 1)]
    pads = [pads[i] + min(0, pads[i + 2]) for i in (0, 1)] + [max(0, n) for n in pads[2:]]
    ic, oc = (int(n) for n in case.random.integers(30, 70, 2))
    attrs = {"kernel_shape": list(kernel), "pads": pads}
    case.build([pick(case.random, [1, 1, 2]), ic, *sizes], [oc, ic, *kernel], attrs, tail_of(case.random))
    case.check(tier, winograd(case, tier, tile))


@by_tier
@by_strided
@pytest.mark.parametrize("seed", range(8))
def test_strides_agree_with_the_reference(tier, kernel, strides, tile, seed):
    case = Case(1000 * tile + seed)
    random = case.random
    pads = [int(n) for n in random.integers(0, 3, 4)]
    outputs = [pick(random, FORM_SIZES[tile]) for _ in kernel]
    sizes = []
    for i in (0, 1):
        unread = int(random.integers(0, strides[i]))
        size = (outputs[i] - 1) * strides[i] + kernel[i] + unread - pads[i] - pads[i + 2]
        pads[i + 2] += min(0, size - 1)
        pads[i] += min(0, pads[i + 2])
        pads[i + 2] = max(0, pads[i + 2])
        sizes.append(max(1, size))
    ic, oc = (int(n) for n in random.integers(1, 70, 2))
    attrs = {"kernel_shape": list(kernel), "strides": list(strides), "pads": pads}
    case.build([pick(random, [1, 1, 2, 3]), ic, *sizes], [oc, ic, *kernel], attrs, tail_of(random))
    case.check(tier, winograd(case, tier, tile))


@by_tier
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("sizes", [[11, 12], [14, 27]])
def test_strides_with_padding_that_follows_from_the_sizes(tier, tile, auto_pad, sizes):
    case = Case(18)
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": auto_pad}
    case.build([1, 9, *sizes], [20, 9, 3, 3], attrs, "relu")
    case.check(tier, winograd(case, tier, tile))


@by_tier
@pytest.mark.parametrize("tile", [2, 4])
def test_strides_with_sizes_that_are_symbols(tier, tile):
    case = Case(19)
    attrs = attrs_of([1, 0, 2, 1], strides=[2, 2])
    case.build([1, 10, 16, 17], [21, 10, 3, 3], attrs, "relu", symbols=True)
    pinned = case.check(tier, winograd(case, tier, tile))
    for dims in ([1, 10, 1, 3], [3, 10, 13, 5], [2, 10, 40, 37], [0, 10, 8, 8]):
        x = floats(case.random, dims)
        assert_close(pinned(x), case.graph.evaluate([x])[0], 2 * case.depth, dims)


@by_tier
@by_folded
@pytest.mark.parametrize("seed", range(6))
def test_first_layers_agree_with_the_reference(tier, kernel, stride, tile, seed):
    case = Case(10000 * tile + seed)
    random = case.random
    pads = [int(n) for n in random.integers(0, 2 * stride, 4)]
    outputs = [pick(random, [1, 2, 3, 7, 12, 23] if tile < 6 else [5, 10, 23]) for _ in kernel]
    sizes = []
    for i in (0, 1):
        unread = int(random.integers(0, stride))
        size = (outputs[i] - 1) * stride + kernel[i] + unread - pads[i] - pads[i + 2]
        pads[i + 2] += min(0, size - 1)
        pads[i] += min(0, pads[i + 2])
        pads[i + 2] = max(0, pads[i + 2])
        sizes.append(max(1, size))
    ic, oc = pick(random, folded_channels(tile)), int(random.integers(1, 70))
    attrs = {"kernel_shape": list(kernel), "strides": [stride, stride], "pads": pads}
    case.build([pick(random, [1, 1, 2, 3]), ic, *sizes], [oc, ic, *kernel], attrs, tail_of(random))
    case.check(tier, winograd(case, tier, tile))


@by_tier
@pytest.mark.parametrize("tile", [4, 6])
def test_first_layers_with_sizes_that_are_symbols(tier, tile):
    case = Case(20)
    attrs = {"kernel_shape": [7, 7], "strides": [2, 2], "pads": [3, 2, 1, 3]}
    case.build([1, 3, 40, 41], [21, 3, 7, 7], attrs, "relu", symbols=True)
    pinned = case.check(tier, winograd(case, tier, tile))
    for dims in ([1, 3, 3, 2], [3, 3, 33, 15], [2, 3, 100, 71], [0, 3, 20, 20]):
        x = floats(case.random, dims)
        assert_close(pinned(x), case.graph.evaluate([x])[0], 2 * case.depth, dims)


@by_tier
@pytest.mark.parametrize(
    ("kernel", "tile", "output"),
    [(3, 2, 7), (3, 6, 18), (5, 4, 23), (7, 2, 1), (7, 4, 19), (7, 6, 18), (2, 4, 7), (4, 6, 25), (6, 4, 19)],
)
@pytest.mark.parametrize("tail", ["", "relu"])
def test_one_dimension_agrees_with_the_reference(tier, kernel, tile, output, tail):
    case = Case(kernel)
    attrs = {"kernel_shape": [kernel], "pads": [1, 2]}
    case.build([2, 33, output + kernel - 4], [37, 33, kernel], attrs, tail)
    case.check(tier, winograd(case, tier, tile))


@by_tier
@by_tile
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_padding_may_follow_from_the_sizes(tier, tile, auto_pad):
    case = Case(7)
    case.build([1, 9, 11, 12], [20, 9, 3, 3], {"kernel_shape": [3, 3], "auto_pad": auto_pad}, "relu")
    case.check(tier, winograd(case, tier, tile))


@by_tier
@by_tile
def test_many_blocks_of_tiles_and_panels_of_channels(tier, tile):
    case = Case(11)
    ic, oc = 2 * lanes(tier) + 3, 9 * lanes(tier) + 1
    case.build([2, ic, 29, 34], [oc, ic, 3, 3], attrs_of([1, 1, 1, 1]), "relu")
    case.check(tier, winograd(case, tier, tile))


@by_tier
@by_tile
@pytest.mark.parametrize("tail", ["", "relu"])
def test_sizes_may_be_symbols(tier, tile, tail):
    case = Case(12)
    case.build([1, 10, 8, 9], [21, 10, 3, 3], attrs_of([1, 0, 2, 1]), tail, symbols=True)
    pinned = case.check(tier, winograd(case, tier, tile))
    for dims in ([1, 10, 1, 3], [3, 10, 13, 5], [2, 10, 40, 37], [0, 10, 8, 8]):
        x = floats(case.random, dims)
        assert_close(pinned(x), case.graph.evaluate([x])[0], 2 * case.depth, dims)


@by_tier
@by_tile
@pytest.mark.parametrize("batch", [0, 3])
def test_any_batch(tier, tile, batch):
    case = Case(8)
    case.build([batch, 10, 8, 7], [20, 10, 3, 3], attrs_of([0, 0, 0, 0]), "add")
    case.check(tier, winograd(case, tier, tile))


def check_lanes(tier, kernel, tile, strides=(1, 1), pools=False):
    """The clamp would make them 0.25, which the second node's transform reads."""
    graph, random = _native.Graph(), np.random.default_rng(13)
    even = form_sizes(kernel) is EVEN_FORM_SIZES
    x = floats(random, [1, 42, *((20 if even else 18) if stride == 1 else 62 for stride in strides)])
    value = graph.add_input("x", "float32", list(x.shape))
    for name, oc, ic in (("first", 43, 42), ("second", 7, 43)):
        w = graph.add_constant(f"{name}.w", floats(random, [oc, ic, *kernel]))
        pads = [n // 2 for n in kernel] + [(n - 1) // 2 for n in kernel]
        attrs = {"kernel_shape": list(kernel), "strides": list(strides), "pads": pads}
        attrs["clamp_min"] = 0.25
        value = graph.add_node("Conv", [value, w], [name], attrs, name).outputs[0]
        if pools and name == "first":
            value = graph.add_node("MaxPool", [value], ["pool"], PAIRS, "pool").outputs[0]
    graph.outputs = [value]
    pins = {}
    for name in ("pool" if pools else "first", "second"):
        found = [c["routine"] for c in candidates(graph, tier, name)]
        pins[name] = next(r for r in found if r.startswith(WINOGRAD) and f"tile={tile}" in r)
    expected = graph.evaluate([x])[0]
    assert np.abs(compile_pinned(graph, tier, pins)(x) - expected).max() <= 1e-4 * np.abs(expected).max()


@by_tier
@by_tile
def test_lanes_beyond_the_channels_stay_zero(tier, tile):
    check_lanes(tier, (3, 3), tile)


@by_tier
@by_tile
def test_lanes_beyond_the_channels_stay_zero_for_pools(tier, tile):
    check_lanes(tier, (3, 3), tile, pools=True)


@by_tier
@by_form
def test_lanes_beyond_the_channels_stay_zero_for_other_kernels(tier, kernel, tile):
    check_lanes(tier, kernel, tile)


@by_tier
@by_strided
def test_lanes_beyond_the_channels_stay_zero_for_strides(tier, kernel, strides, tile):
    check_lanes(tier, kernel, tile, strides)


@by_tier
def test_the_input_may_be_the_residual(tier):
    graph, random = _native.Graph(), np.random.default_rng(14)
    x = floats(random, [1, 17, 9, 11])
    value = graph.add_input("x", "float32", list(x.shape))
    w = graph.add_constant("w", floats(random, [17, 17, 3, 3]))
    y = graph.add_node("Conv", [value, w], ["conv"], attrs_of([1, 1, 1, 1]), "conv").outputs[0]
    graph.outputs = [graph.add_node("Add", [y, value], ["add"], {}, "add").outputs[0]]
    pinned = compile_pinned(graph, tier, {"add": WINOGRAD})
    assert pinned.routines["add"].startswith(WINOGRAD)
    expected = graph.evaluate([x])[0]
    assert np.abs(pinned(x) - expected).max() <= 1e-5 * np.abs(expected).max()


@by_tier
@by_tile
@pytest.mark.parametrize("dims", [[1, 33, 41, 46], [2, 64, 12, 11]])
def test_the_same_bits_on_any_number_of_threads(tier, tile, dims):
    case = Case(15)
    case.build(dims, [80, dims[1], 3, 3], attrs_of([1, 1, 1, 1]), "relu")
    pinned = case.check(tier, winograd(case, tier, tile))
    once = pinned(*case.inputs)
    for threads in (2, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))


@by_tier
@by_form
def test_other_kernels_give_the_same_bits_on_any_number_of_threads(tier, kernel, tile):
    case = Case(16)
    attrs = {"kernel_shape": list(kernel), "pads": [n // 2 for n in kernel] + [(n - 1) // 2 for n in kernel]}
    sizes = [25, 30] if form_sizes(kernel) is EVEN_FORM_SIZES else [24, 30]
    case.build([1, 33, *sizes], [80, 33, *kernel], attrs, "relu")
    pinned = case.check(tier, winograd(case, tier, tile))
    once = pinned(*case.inputs)
    for threads in (2, 3, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))


@by_tier
@by_strided
def test_strides_give_the_same_bits_on_any_number_of_threads(tier, kernel, strides, tile):
    case = Case(20)
    attrs = {"kernel_shape": list(kernel), "strides": list(strides), "pads": [n // 2 for n in kernel] * 2}
    sizes = [24 * strides[0], 30 * strides[1]]
    case.build([1, 33, *sizes], [80, 33, *kernel], attrs, "relu")
    pinned = case.check(tier, winograd(case, tier, tile))
    once = pinned(*case.inputs)
    for threads in (2, 3, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))


@by_tier
def test_a_team_shares_few_tiles_evenly(tier):
    """Panels are the tasks of a single block, as many as the team shares evenly; or each member has a block of its own."""
    case = Case(17)
    case.build([1, 33, 7, 7], [5 * 4 * lanes(tier), 33, 3, 3], attrs_of([1, 1, 1, 1]), "")
    pinned = case.check(tier, winograd(case, tier, 4))

    def value(routine, name):
        return int(routine.split(f"{name}=")[1].split()[0].rstrip("}"))

    fewest = value(pinned.routines["conv"], "panels")
    for threads in (2, 3):
        found = [c["routine"] for c in candidates(case.graph, tier, case.ends, threads)]
        offered = {routine for routine in found if "tile=4" in routine and "raw" not in routine}
        single = {r for r in offered if value(r, "block") >= 4}
        assert len(single) == len(offered) - len(single) == 1, (
            "two by two tiles in one block, or in one for each member"
        )
        assert value(*single, "panels") % threads == 0
        assert value(*single, "panels") >= fewest
        assert value(*(offered - single), "block") == 2
        for routine in offered:
            team = compile_pinned(case.graph, tier, {"conv": routine}, threads)
            np.testing.assert_array_equal(team(*case.inputs), pinned(*case.inputs))


@by_tier
def test_a_large_team_shares_the_panels_of_few_tiles(tier):
    """Every member of a team of sixteen has panels of a block; smaller teams share them by the usual parts."""
    case = Case(18)
    case.build([1, 19, 7, 7], [16 * lanes(tier), 19, 3, 3], attrs_of([1, 1, 1, 1]), "")

    def offered(threads):
        found = [c for c in candidates(case.graph, tier, case.ends, threads) if "tile=4" in c["routine"]]
        return {c["routine"] for c in found if "parts" in c["routine"]}

    winograd(case, tier, 4)  # the depth of its sums
    expected = case.graph.evaluate(case.inputs)[0]
    assert not offered(8)
    shared = offered(16)
    assert any("block=1 " in routine and "parts=4" in routine for routine in shared), shared
    assert any("block=1 " not in routine and "parts=16" in routine for routine in shared), shared
    for routine in shared:
        team = compile_pinned(case.graph, tier, {"conv": routine}, 16)
        assert team.routines["conv"] == routine
        assert_close(team(*case.inputs), expected, case.depth, routine)
        np.testing.assert_array_equal(team(*case.inputs), team(*case.inputs, threads=1))


def with_taps(case, tier):
    """The candidate whose weights are packed as taps, or none; the depth of the case is scaled as by winograd()."""
    found = [c for c in candidates(case.graph, tier, case.ends) if "raw=1" in c["routine"]]
    if found:
        case.depth = int(case.depth * (3 * max(1.0, found[0]["error"])) ** 2)
    return found[0]["routine"] if found else None


# Only tiers of 32 registers offer `raw=1`.
tiers_with_taps = [t for t in TIERS if t in ("avx512", "neon")]
none_here = pytest.param("", marks=pytest.mark.skip(reason="not on this processor: no tier has 32 registers"))
by_tier_of_many_registers = pytest.mark.parametrize("tier", tiers_with_taps or [none_here])


@by_tier_of_many_registers
@pytest.mark.parametrize("seed", range(16))
def test_weights_as_taps_agree_with_the_reference(tier, seed):
    case = Case(500 + seed)
    pads = [int(n) for n in case.random.integers(0, 3, 4)]
    sizes = [max(1, int(case.random.integers(1, 17)) + 2 - pads[i] - pads[i + 2]) for i in (0, 1)]
    tiles = np.prod([-(-(sizes[i] + pads[i] + pads[i + 2] - 2) // 4) for i in (0, 1)])
    ic, oc = (int(n) for n in case.random.integers(1, 100, 2))
    batch = int(case.random.integers(1, 16 // tiles + 1))
    case.build([batch, ic, *sizes], [oc, ic, 3, 3], attrs_of(pads), tail_of(case.random))
    routine = with_taps(case, tier)
    pinned = case.check(tier, routine)
    for threads in (2, 3):
        np.testing.assert_array_equal(pinned(*case.inputs, threads=threads), pinned(*case.inputs))


@by_tier_of_many_registers
def test_weights_as_taps_with_sizes_that_are_symbols(tier):
    random = np.random.default_rng(41)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", ["n", 40, "h in [0,8]", "w in [0,8]"])
    w = graph.add_constant("w", floats(random, [33, 40, 3, 3]))
    graph.outputs = [graph.add_node("Conv", [x, w], ["y"], {"pads": [1, 1, 1, 1]}, "conv").outputs[0]]
    (routine,) = [c["routine"] for c in candidates(graph, tier, "conv") if "raw=1" in c["routine"]]
    pinned = compile_pinned(graph, tier, {"conv": routine})
    for dims in ([2, 40, 7, 5], [1, 40, 1, 2], [9, 40, 8, 7], [0, 40, 7, 5], [3, 40, 0, 4]):
        inputs = [floats(random, dims)]
        assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 20 * 9 * 40, dims)


@by_tier_of_many_registers
def test_weights_that_points_share_are_packed_once(tier):
    """Of stride 2 samples that are passed through share theirs: m + 2 along an axis; taps are packed as they are."""

    def packed(strides, form):
        graph = _native.Graph()
        x, w = graph.add_input("x", "float32", [1, 64, 8, 8]), np.ones([64, 64, 3, 3], np.float32)
        attrs = {"pads": [1, 1, 1, 1], "strides": [strides] * 2}
        graph.outputs = [graph.add_node("Conv", [x, graph.add_constant("w", w)], ["y"], attrs, "conv").outputs[0]]
        found = [c for c in candidates(graph, tier, "conv") if c["routine"].startswith(WINOGRAD)]
        return next(c["packed_bytes"] for c in found if form in c["routine"]) / (64 * 64 * 4)

    assert packed(2, "tile=2") == 4 * 4
    assert packed(2, "tile=4") == 6 * 6
    assert packed(1, "tile=4") == 6 * 6
    assert packed(1, "raw=1") == 9


def test_many_tiles_or_few_registers_take_no_weights_as_taps():
    for tier, size in (("scalar", 7), (TIERS[-1], 17)):
        case = Case(0).build([1, 16, size, size], [4, 16, 3, 3], attrs_of([1, 1, 1, 1]))
        assert with_taps(case, tier) is None


@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs", "expected"),
    [
        ([1, 4, 8, 8], [4, 4, 8, 3], {}, "a side of the kernel is not 1 to 7"),
        ([1, 4, 12, 12], [4, 4, 1, 9], {}, "a side of the kernel is not 1 to 7"),
        ([1, 4, 8, 8], [4, 4, 1, 1], {}, "the kernel is 1x1"),
        ([1, 4, 8, 8], [4, 4, 3, 3], {"strides": [1, 3]}, "the stride is not 1, nor 2 of three taps"),
        ([1, 4, 8, 8], [4, 4, 3, 5], {"strides": [2, 2]}, "the stride is not 1, nor 2 of three taps"),
        ([1, 4, 8, 8], [4, 4, 3, 3], {"dilations": [2, 1]}, "the dilation is not 1"),
        ([1, 4, 8, 8], [4, 2, 3, 3], {"group": 2}, "more than one group"),
        ([1, 4, 8, 8, 8], [4, 4, 3, 3, 3], {}, "more than two spatial axes"),
    ],
)
def test_rejections_give_their_reason(x_dims, w_dims, attrs, expected):
    case = Case(0).build(x_dims, w_dims, attrs)
    assert rejections(case.graph, "scalar", "conv")[WINOGRAD] == expected


@pytest.mark.parametrize(("channels", "tiles"), [(8, [2, 4]), (9, [2, 4, 6])])
def test_the_largest_tiles_are_not_offered_for_few_channels(channels, tiles):
    case = Case(0).build([1, channels, 8, 8], [4, channels, 3, 3], {})
    assert offered(case) == tiles


@pytest.mark.parametrize(
    ("size", "tiles"), [(7, [2, 4]), (8, [2, 4]), (12, [2, 4, 6]), (13, [2, 4, 6]), (112, [2, 4, 6])]
)
def test_the_largest_tiles_are_offered_where_they_save_multiplications(size, tiles):
    case = Case(0).build([1, 16, size, size], [4, 16, 3, 3], attrs_of([1, 1, 1, 1]))
    assert offered(case) == tiles


def offered(case):
    found = [c["routine"] for c in candidates(case.graph, "scalar", "conv") if c["routine"].startswith(WINOGRAD)]
    return sorted(int(r.split("tile=")[1][0]) for r in found)


def test_weights_that_arrive_at_run_time_are_rejected():
    graph = _native.Graph()
    x, w = graph.add_input("x", "float32", [1, 4, 8, 8]), graph.add_input("w", "float32", [4, 4, 3, 3])
    graph.outputs = [graph.add_node("Conv", [x, w], ["conv"], {}, "conv").outputs[0]]
    assert rejections(graph, "scalar", "conv")[WINOGRAD] == "the weights are not constants"
