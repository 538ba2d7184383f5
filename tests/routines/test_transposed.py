"""Transposed convolution by every routine of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import assert_close, candidates, compile_pinned, floats, rejections
from tests.routines.test_conv import (
    ARRIVING,
    CASES,
    PANEL,
    TIERS,
    Case,
    arrive,
    by_tier,
    check_depthwise_of_run_time_weights,
    lanes,
    pick,
    spatial,
    tail_of,
)

SUBPIXEL = "cpu:float32/subpixel_nchwc"
ROWS = "cpu:float32/subpixel_rows"
WINOGRAD = "cpu:float32/subpixel_winograd"
DEPTHWISE = "cpu:float32/transposed_depthwise_nchwc"
OP = "ConvTranspose"


def enlarging(random, rank):
    """Sizes and attributes of a transposed window, with each way to say how much of the result is cut off."""
    most = 6 if rank < 3 else 4
    kernel, strides, dilations = ([int(random.integers(1, n)) for _ in range(rank)] for n in (most, 5, 3))
    attrs = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    sizes = [int(random.integers(1, 9)) for _ in range(rank)]
    mode = pick(random, ["pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "output_shape"])
    natural = [s * (n - 1) + (k - 1) * d + 1 for s, n, k, d in zip(strides, sizes, kernel, dilations, strict=True)]
    if mode == "pads":
        attrs["pads"] = [int(random.integers(0, max(1, min(n // 2, 4)))) for n in natural * 2]
        attrs["output_padding"] = [int(random.integers(0, s)) for s in strides]
    elif mode == "output_shape":
        attrs["output_shape"] = [max(1, n - int(random.integers(-3, 4))) for n in natural]
    else:
        attrs["auto_pad"] = mode
    return sizes, attrs


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_subpixel_agrees_with_the_reference(tier, seed):
    case = Case(seed, OP)
    random = case.random
    sizes, attrs = enlarging(random, pick(random, [1, 2, 2, 3]))
    ic, oc = (int(n) for n in random.integers(1, 40, 2))
    case.build([pick(random, [1, 1, 3]), ic, *sizes], [ic, oc, *attrs["kernel_shape"]], attrs, tail_of(random))
    case.check(tier, SUBPIXEL)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_subpixel_takes_volumes_of_convolutions(tier, seed):
    case = Case(300 + seed)
    random = case.random
    sizes, attrs = spatial(random, 3)
    groups = pick(random, [1, 1, 2])
    group_ic = int(random.integers(1, 40)) if groups == 1 else lanes(tier)
    group_oc = int(random.integers(1, 40)) if groups == 1 else lanes(tier)
    w_dims = [groups * group_oc, group_ic, *attrs["kernel_shape"]]
    case.build([pick(random, [1, 2]), groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, SUBPIXEL)


@by_tier
@pytest.mark.parametrize("seed", range(8))
def test_subpixel_takes_groups_of_whole_vectors(tier, seed):
    case = Case(100 + seed, OP)
    random = case.random
    sizes, attrs = enlarging(random, 2)
    groups = pick(random, [2, 3])
    group_ic = pick(random, [lanes(tier), lanes(tier) // 2])
    w_dims = [groups * group_ic, lanes(tier) * pick(random, [1, 2]), *attrs["kernel_shape"]]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, SUBPIXEL)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_panel_agrees_with_the_reference(tier, seed):
    case = Case(500 + seed, OP)
    random = case.random
    sizes, attrs = enlarging(random, pick(random, [1, 2, 2, 3]))
    groups = pick(random, [1, 2, 3])
    group_ic, group_oc = (int(n) for n in random.integers(1, 12, 2))
    w_dims = [groups * group_ic, group_oc, *attrs["kernel_shape"]]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, PANEL)


@by_tier
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(64, 32, 0), (64, 32, 5), (100, 40, 7), (30, 40, 0)])
def test_panel_gathers_once_for_many_phases(tier, kernel, stride, pad, channels):
    case = Case(kernel + pad + channels, OP)
    attrs = {"kernel_shape": [kernel], "strides": [stride], "pads": [pad, pad], "group": 2}
    case.build([2, 14, 37], [14, channels, kernel], attrs).check(tier, PANEL)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_rows_agree_with_the_reference(tier, seed):
    case = Case(700 + seed, OP)
    random = case.random
    sizes, attrs = enlarging(random, pick(random, [1, 2, 2, 3]))
    groups = pick(random, [1, 1, 2])
    group_ic, group_oc = (int(n) for n in random.integers(1, 18, 2))
    if seed % 4 == 0:
        sizes[-1] += int(random.integers(20, 400))
        attrs.pop("output_shape", None)
    w_dims = [groups * group_ic, group_oc, *attrs["kernel_shape"]]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, ROWS)


@by_tier
@pytest.mark.parametrize("tail", ["", "relu", "Sigmoid"])
@pytest.mark.parametrize(
    ("x_dims", "w_dims", "strides", "pads"),
    [
        ([3, 5, 17, 3], [5, 7, 1, 1], [3, 2], [0] * 4),  # rows and columns that no tap reaches
        ([1, 4, 40, 5], [4, 3, 5, 7], [2, 2], [1, 2, 0, 1]),
        ([2, 3, 3, 4, 6], [3, 2, 1, 2, 3], [2, 4, 2], [0, 1, 0, 0, 0, 1]),
        ([1, 2, 9, 100], [2, 3, 2, 2], [3, 3], [0] * 4),  # rows that are not short
    ],
)
def test_short_rows_are_one(tier, x_dims, w_dims, strides, pads, tail):
    case = Case(17, OP).build(x_dims, w_dims, {"strides": strides, "pads": pads}, tail)
    case.check(tier, ROWS)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_residues_of_a_row_may_be_joined(tier, seed):
    case = Case(1000 + seed, OP)
    random = case.random
    rank = pick(random, [1, 2, 2, 3])
    strides = [int(random.integers(1, 4)) for _ in range(rank)]
    strides[-1] = int(random.integers(2, 4))
    kernel = [int(random.integers(1, 8)) for _ in range(rank)]
    kernel[-1] = int(random.integers(strides[-1], 10))
    attrs = {"strides": strides, "kernel_shape": kernel}
    mode = pick(random, ["pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if mode == "pads":
        attrs["pads"] = [int(random.integers(0, 4)) for _ in range(2 * rank)]
        attrs["output_padding"] = [int(random.integers(0, s)) for s in strides]
    else:
        attrs["auto_pad"] = mode
    sizes = [int(random.integers(6, 30)) for _ in range(rank)]
    sizes[-1] += pick(random, [0, 150])
    groups, group_ic, group_oc = pick(random, [1, 2]), int(random.integers(8, 40)), pick(random, [1, 1, 2])
    w_dims = [groups * group_ic, group_oc, *kernel]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, ROWS)


@by_tier
def test_residues_of_one_channel_are_joined(tier):
    case = Case(13, OP).build([1, 32, 20, 64], [32, 1, 9, 9], {"strides": [3, 3], "pads": [4] * 4})
    assert "joined=1" in case.check(tier, ROWS).routines["conv"]


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_winograd_agrees_with_the_reference(tier, seed):
    case = Case(900 + seed, OP)
    random = case.random
    rank = pick(random, [1, 2, 2])
    sizes, attrs = enlarging(random, rank)
    attrs["dilations"] = [1] * rank
    attrs["kernel_shape"] = [s * int(random.integers(1, 3)) + 1 for s in attrs["strides"]]
    sizes = [n + int(random.integers(0, 12)) for n in sizes]
    if "output_shape" in attrs:
        attrs["output_shape"] = [s * n + 2 for s, n in zip(attrs["strides"], sizes, strict=True)]
    ic, oc = (int(n) for n in random.integers(1, 40, 2))
    x_dims = [pick(random, [1, 1, 3]), ic, *sizes]
    case.build(x_dims, [ic, oc, *attrs["kernel_shape"]], attrs, tail_of(random))
    offered = [c for c in candidates(case.graph, tier, case.ends) if c["routine"].startswith(WINOGRAD)]
    assert offered
    for candidate in offered:
        assert candidate["error"] > 0
        pinned = compile_pinned(case.graph, tier, {case.ends: candidate["routine"]})
        assert pinned.routines[case.ends].startswith(candidate["routine"])
        where = f"{candidate['routine']} {attrs} {x_dims}"
        assert_close(pinned(*case.inputs), case.graph.evaluate(case.inputs)[0], 64 * case.depth, where)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_depthwise_agrees_with_the_reference(tier, seed):
    case = Case(800 + seed, OP)
    random = case.random
    sizes, attrs = enlarging(random, pick(random, [1, 2, 2, 3]))
    channels = int(random.integers(2, 50))
    w_dims = [channels, 1, *attrs["kernel_shape"]]
    case.build([2, channels, *sizes], w_dims, {**attrs, "group": channels}, tail_of(random))
    case.check(tier, DEPTHWISE)


@by_tier
@pytest.mark.parametrize(("routine", "group"), [(PANEL, 1), (PANEL, 2), (ROWS, 1), (ROWS, 2), (SUBPIXEL, 1)])
@pytest.mark.parametrize(("weight", "bias"), ARRIVING)
@pytest.mark.parametrize("attrs", [{"strides": [2, 3], "pads": [1, 0, 1, 1]}, {"auto_pad": "SAME_UPPER"}])
def test_weights_may_arrive_at_run_time(tier, routine, group, attrs, weight, bias):
    random = np.random.default_rng(0)
    graph = _native.Graph()
    values, inputs = [], []
    for name, kind, dims in (("x", "input", [2, 6, 9, 7]), ("w", weight, [6, 4, 3, 4]), ("b", bias, [4 * group])):
        arrive(graph, name, kind, floats(random, dims), values, inputs)
    graph.outputs = [graph.add_node(OP, values, ["y"], {"group": group, **attrs}, "conv").outputs[0]]
    pinned = compile_pinned(graph, tier, {"conv": routine})
    assert pinned.routines["conv"].split("{")[0] == routine
    for threads in (1, 3):
        assert_close(pinned(*inputs, threads=threads), graph.evaluate(inputs)[0], 72)


@by_tier
@pytest.mark.parametrize("weight_first", [True, False])
def test_subpixel_takes_volumes_whose_weights_arrive_at_run_time(tier, weight_first):
    random = np.random.default_rng(0)
    graph = _native.Graph()
    dims = [("w", [7, 5, 3, 2, 3]), ("x", [2, 5, 7, 8, 9]), ("b", [7])]
    given = {n: graph.add_input(n, "float32", d) for n, d in (dims if weight_first else sorted(dims))}
    inputs = [floats(random, v.shape) for v in given.values()]
    values = [given[n] for n in "xwb"]
    graph.outputs = [graph.add_node("Conv", values, ["y"], {"strides": [2, 2, 1], "pads": [1] * 6}, "conv").outputs[0]]
    pinned = compile_pinned(graph, tier, {"conv": SUBPIXEL})
    assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 180)


@by_tier
@pytest.mark.parametrize("routine", [PANEL, SUBPIXEL, ROWS])
@pytest.mark.parametrize("activation", ["Sigmoid", "HardSigmoid", "LeakyRelu"])
def test_activations(tier, routine, activation):
    case = Case(11, OP)
    channels = 3 * lanes(tier)
    case.build([1, 5, 7, 6], [5, channels, 4, 4], {"strides": [2, 2], "pads": [1] * 4}, activation)
    case.check(tier, routine)


@by_tier
@pytest.mark.parametrize(("routine", "group"), [(PANEL, 1), (SUBPIXEL, 1), (ROWS, 2), (DEPTHWISE, 20), (WINOGRAD, 1)])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_sizes_may_be_symbols(tier, routine, group, auto_pad):
    case = Case(7, OP)
    attrs = {"strides": [2, 3], "auto_pad": auto_pad, "group": group}
    if auto_pad == "NOTSET":
        attrs["pads"] = [1, 1, 1, 2]
    case.build([1, 20, 8, 8], [20, 1 if group == 20 else 9, 5, 4], attrs, "relu", symbols=True)
    pinned = compile_pinned(case.graph, tier, {"relu": routine})
    assert pinned.routines["relu"].startswith(routine)
    for n, h, w in [(1, 8, 8), (3, 5, 11), (0, 8, 8), (2, 30, 6), (1, 1, 1)]:
        inputs = [floats(case.random, [n, 20, h, w])]
        assert_close(pinned(*inputs), case.graph.evaluate(inputs)[0], 16 * case.depth, (n, h, w))


@by_tier
@pytest.mark.parametrize(("routine", "group"), [(PANEL, 1), (SUBPIXEL, 1), (ROWS, 2), (DEPTHWISE, 20), (WINOGRAD, 1)])
def test_a_plane_without_pixels(tier, routine, group):
    case = Case(9, OP)
    attrs = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": group}
    attrs["pads"][2:] = [2, 2] if routine == WINOGRAD else [1, 1]
    case.build([2, 20, 8, 8], [20, 20 // group, *[3 if routine == WINOGRAD else 2] * 2], attrs, symbols=True)
    pinned = compile_pinned(case.graph, tier, {"conv": routine})
    for h, w in [(1, 8), (3, 1), (5, 7)]:  # two pixels are cut off each axis
        inputs = [floats(case.random, [2, 20, h, w])]
        assert_close(pinned(*inputs), case.graph.evaluate(inputs)[0], 16 * case.depth, (h, w))


@by_tier
@pytest.mark.parametrize("routine", [PANEL, SUBPIXEL, ROWS])
@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs"),
    [
        ([1, 9, 30], [9, 12, 16], {"strides": [8], "pads": [4, 4]}),
        ([1, 9, 5, 4], [9, 12, 2, 3], {"strides": [5, 7], "output_padding": [4, 6]}),  # residues without taps
        ([1, 9, 3, 200], [9, 12, 3, 3], {"strides": [2, 2], "dilations": [4, 6]}),
        ([1, 9, 2], [9, 12, 700], {"strides": [3]}),  # far longer than the input
        ([2, 9, 7, 1500], [9, 7, 3, 4], {"strides": [2, 2], "pads": [1, 1, 0, 2]}),  # a row in parts
    ],
)
def test_windows_of_all_kinds(tier, routine, x_dims, w_dims, attrs):
    Case(10, OP).build(x_dims, w_dims, attrs).check(tier, routine)


@by_tier
@pytest.mark.parametrize(("x_dims", "w_dims"), [([1, 32, 14, 14], [32, 48, 4, 4]), ([4, 64, 2, 2], [64, 264, 4, 4])])
@pytest.mark.parametrize("routine", [PANEL, SUBPIXEL, ROWS, WINOGRAD])
def test_the_same_bits_on_any_number_of_threads(tier, routine, x_dims, w_dims):
    case = Case(9, OP).build(x_dims, w_dims, {"strides": [2, 2], "pads": [1] * 4}, "relu")
    pinned = compile_pinned(case.graph, tier, {"relu": routine})
    once = pinned(*case.inputs)
    for threads in (2, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))
    assert_close(once, case.graph.evaluate(case.inputs)[0], 64 * case.depth)


@by_tier
def test_every_schedule_of_a_node_agrees_with_the_reference(tier):
    case = Case(12, OP).build([2, 2048, 2, 3], [2048, 4 * lanes(tier), 4, 4], {"strides": [2, 2], "pads": [1] * 4})
    offered = [c["routine"] for c in candidates(case.graph, tier, "conv") if c["routine"].startswith(SUBPIXEL)]
    parts = [routine for routine in offered if "{ic=" in routine]
    assert 0 < len(parts) < len(offered)
    for routine in offered:
        case.check(tier, routine)


@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs", "expected"),
    [
        ([1, 6, 9, 9], [6, 5, 3, 3], {"group": 2}, {SUBPIXEL: "a multiple of the vector width"}),
        ([1, 6, 9, 9], [6, 8, 17, 17], {}, dict.fromkeys((SUBPIXEL, ROWS), "more than 256 taps reach")),
        ([1, 6, 9], [6, 1, 3], {"strides": [65], "group": 6}, dict.fromkeys((SUBPIXEL, ROWS, DEPTHWISE), "64 pixels")),
        ([1, 6, 9, 9, 9], [6, 1, 3, 3, 3], {"group": 6}, {WINOGRAD: "more than two spatial axes"}),
        (
            [1, 6, 9],
            [6, 2, 3],
            {"group": 3, "strides": [2]},
            {DEPTHWISE: "not one input and one output channel per group", WINOGRAD: "more than one group"},
        ),
        ([1, 6, 9], [6, 2, 3], {"dilations": [2], "strides": [2]}, {WINOGRAD: "a dilation"}),
        ([1, 6, 9, 9], [6, 1, 65, 3], {"group": 6}, {DEPTHWISE: "more than 64 rows"}),
    ],
)
def test_rejections_give_their_reason(x_dims, w_dims, attrs, expected):
    reasons = rejections(Case(12, OP).build(x_dims, w_dims, attrs).graph, TIERS[0], "conv")
    for routine, reason in expected.items():
        assert reason in reasons[routine]
    assert PANEL not in reasons


@by_tier
@pytest.mark.parametrize(("weight", "bias"), ARRIVING)
def test_depthwise_takes_weights_that_arrive_at_run_time(tier, weight, bias):
    check_depthwise_of_run_time_weights(OP, DEPTHWISE, tier, weight, bias)
