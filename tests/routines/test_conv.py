"""Convolution by every routine of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

DIRECT = "cpu:float32/direct_nchwc"
FIRST = "cpu:float32/direct_nchw"
ROWS = "cpu:float32/direct_rows"
DEPTHWISE = "cpu:float32/depthwise_nchwc"
PANEL = "cpu:float32/im2col"
CASES = 24

#: What may follow instead of a clamp, with attributes; the first ones make zero of zero.
KEEPS_ZERO = {"Swish": {}, "HardSwish": {}, "Gelu": {}, "LeakyRelu": {"alpha": 0.1}}
ACTIVATIONS = {**KEEPS_ZERO, "Sigmoid": {}, "HardSigmoid": {}}
TWO_STEPS = ("add Swish", "add Tanh")
ACTIVATIONS["Tanh"] = {}

by_tier = pytest.mark.parametrize("tier", TIERS)


def lanes(tier):
    return {"scalar": 4, "neon": 4, "avx2": 8}.get(tier, 16)


def spatial(random, rank):
    """Sizes and attributes of a window that fits its input."""
    sizes, attrs = [], {"kernel_shape": [], "strides": [], "dilations": []}
    begin, end = [], []
    for _ in range(rank):
        kernel, stride, dilation = (int(random.integers(1, n)) for n in ((6, 4, 3), (4, 3, 3))[rank > 2])
        extent = (kernel - 1) * dilation + 1
        begin.append(int(random.integers(0, extent)))
        end.append(int(random.integers(0, extent)))
        sizes.append(max(extent - begin[-1] - end[-1], 1) + int(random.integers(0, (17, 6)[rank > 2])))
        attrs["kernel_shape"].append(kernel)
        attrs["strides"].append(stride)
        attrs["dilations"].append(dilation)
    auto_pad = pick(random, ["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if auto_pad == "VALID":
        sizes = [
            max(s, (k - 1) * d + 1) for s, k, d in zip(sizes, attrs["kernel_shape"], attrs["dilations"], strict=True)
        ]
    if auto_pad == "NOTSET":
        attrs["pads"] = begin + end
    else:
        attrs["auto_pad"] = auto_pad
    return sizes, attrs


def clamp_of(random):
    return pick(random, [{}, {"clamp_min": 0.0}, {"clamp_min": 0.25, "clamp_max": 1.0}])


class Case:
    """x -> Conv "conv" [-> Add "add" [-> Relu "relu"]] -> y."""

    def __init__(self, seed, op="Conv"):
        self.random = np.random.default_rng(seed)
        self.op = op
        self.graph = _native.Graph()
        self.inputs = []
        self.attrs = {}
        self.ends = "conv"

    def build(self, x_dims, w_dims, attrs, tail="", symbols=False):
        random, graph = self.random, self.graph
        dims = [d if i == 1 or not symbols else f"d{i}" for i, d in enumerate(x_dims)]
        x = graph.add_input("x", "float32", dims)
        self.inputs.append(floats(random, x_dims))
        operands = [x, graph.add_constant("w", floats(random, w_dims))]
        oc = w_dims[0] if self.op == "Conv" else w_dims[1] * attrs.get("group", 1)
        if random.random() < 0.7:
            operands.append(graph.add_constant("b", floats(random, [oc])))
        self.attrs = {**attrs, **(clamp_of(random) if not tail else {})}
        value = graph.add_node(self.op, operands, ["conv"], self.attrs, "conv").outputs[0]
        self.depth = int(np.prod(w_dims[1:])) if self.op == "Conv" else int(np.prod(w_dims) // max(1, w_dims[1]))
        if tail and tail not in ACTIVATIONS:
            if symbols:
                # Only a like node has the same expressions for sizes.
                other = graph.add_constant("other.w", floats(random, w_dims))
                residual = graph.add_node(self.op, [x, other], ["other"], attrs, "other").outputs[0]
            else:
                residual = graph.add_input("residual", "float32", list(value.shape))
                self.inputs.append(floats(random, value.shape))
            pair = [value, residual] if random.random() < 0.5 else [residual, value]
            value = graph.add_node("Add", pair, ["add"], {}, "add").outputs[0]
            self.ends = "add"
            if tail == "relu":
                value = graph.add_node("Relu", [value], ["relu"], {}, "relu").outputs[0]
                self.ends = "relu"
            elif tail == "clip":
                bounds = [graph.add_constant(n, np.float32(v)) for n, v in (("lo", -0.5), ("hi", 0.75))]
                value = graph.add_node("Clip", [value, *bounds], ["clip"], {}, "clip").outputs[0]
                self.ends = "clip"
        for op in tail.split()[1:] if tail in TWO_STEPS else [tail] if tail in ACTIVATIONS else []:
            value = graph.add_node(op, [value], ["act"], ACTIVATIONS[op], "act").outputs[0]
            self.ends = "act"
        graph.outputs = [value]
        return self

    def check(self, tier, routine):
        pinned = compile_pinned(self.graph, tier, {self.ends: routine})
        assert pinned.routines[self.ends].startswith(routine), pinned.routines
        where = f"{self.attrs} {[v.type for v in self.graph.inputs]}\n{self.graph}"
        assert_close(pinned(*self.inputs), self.graph.evaluate(self.inputs)[0], self.depth, where)
        return pinned


def tail_of(random):
    return pick(random, ["", "", "add", "relu", "clip", *KEEPS_ZERO, *TWO_STEPS])


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_direct_nchwc_agrees_with_the_reference(tier, seed):
    case = Case(seed)
    sizes, attrs = spatial(case.random, pick(case.random, [1, 2, 2]))
    ic, oc = (int(n) for n in case.random.integers(1, 40, 2))
    x_dims = [pick(case.random, [1, 1, 2]), ic, *sizes]
    case.build(x_dims, [oc, ic, *attrs["kernel_shape"]], attrs, tail_of(case.random)).check(tier, DIRECT)


@by_tier
@pytest.mark.parametrize("seed", range(8))
def test_direct_nchwc_takes_groups_of_whole_vectors(tier, seed):
    case = Case(100 + seed)
    sizes, attrs = spatial(case.random, 2)
    groups = pick(case.random, [2, 3])
    group_ic = pick(case.random, [lanes(tier), lanes(tier) // 2])
    group_oc = lanes(tier) * pick(case.random, [1, 2])
    w_dims = [groups * group_oc, group_ic, *attrs["kernel_shape"]]
    case.build([1, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(case.random))
    case.check(tier, DIRECT)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_direct_nchw_agrees_with_the_reference(tier, seed):
    case = Case(200 + seed)
    sizes, attrs = spatial(case.random, pick(case.random, [1, 2, 2]))
    ic, oc = int(case.random.integers(1, 6)), int(case.random.integers(1, 70))
    x_dims = [pick(case.random, [1, 2]), ic, *sizes]
    case.build(x_dims, [oc, ic, *attrs["kernel_shape"]], attrs, tail_of(case.random)).check(tier, FIRST)


@by_tier
@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs"),
    [
        ([2, 3, 9, 260], [20, 3, 3, 3], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ([1, 3, 9, 131], [9, 3, 3, 3], {"strides": [1, 2], "pads": [0, 0, 1, 0]}),
        ([1, 2, 7, 150], [33, 2, 5, 7], {"pads": [2, 9, 2, 20]}),
        ([1, 2, 9, 400], [16, 2, 3, 3], {"strides": [2, 3], "dilations": [2, 5], "pads": [1, 4, 1, 6]}),
        ([1, 1, 300], [5, 1, 8], {"strides": [2], "pads": [3, 4]}),
        ([1, 1, 2], [5, 1, 3], {"pads": [90, 90]}),
    ],
)
def test_direct_nchw_takes_wide_rows(tier, x_dims, w_dims, attrs):
    """Register blocks between the sides read the image itself."""
    case = Case(8)
    case.build(x_dims, w_dims, attrs, "relu").check(tier, FIRST)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_direct_rows_agrees_with_the_reference(tier, seed):
    case = Case(600 + seed)
    random = case.random
    sizes, attrs = spatial(random, pick(random, [1, 2, 2]))
    if seed % 3 == 0:
        sizes[-1] += int(random.integers(60, 200))
    groups = pick(random, [1, 1, 2, 5])
    group_ic, group_oc = (int(n) for n in random.integers(1, 18, 2))
    w_dims = [groups * group_oc, group_ic, *attrs["kernel_shape"]]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(random))
    case.check(tier, ROWS)


@by_tier
@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs"),
    [
        ([1, 3, 700], [2, 3, 64], {"strides": [2], "pads": [31, 40]}),  # long runs along the row
        ([1, 1, 40000], [6, 1, 9], {"strides": [4]}),  # tasks of parts of one row
        ([1, 20, 70, 301], [5, 20, 3, 5], {"pads": [1, 2, 1, 2]}),  # more rows than a buffer holds
        ([1, 2, 9, 50], [3, 2, 2, 6], {"strides": [1, 3], "dilations": [2, 2], "pads": [1, 0, 1, 5]}),
    ],
)
def test_direct_rows_takes_large_windows_and_rows(tier, x_dims, w_dims, attrs):
    case = Case(9)
    case.build(x_dims, w_dims, attrs, "relu").check(tier, ROWS)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_depthwise_agrees_with_the_reference(tier, seed):
    case = Case(300 + seed)
    sizes, attrs = spatial(case.random, pick(case.random, [1, 2, 2]))
    channels = int(case.random.integers(2, 50))
    w_dims = [channels, 1, *attrs["kernel_shape"]]
    case.build([2, channels, *sizes], w_dims, {**attrs, "group": channels}, tail_of(case.random))
    case.check(tier, DEPTHWISE)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_panel_agrees_with_the_reference(tier, seed):
    case = Case(400 + seed)
    sizes, attrs = spatial(case.random, pick(case.random, [1, 2, 3]))
    groups = pick(case.random, [1, 1, 2, 5])
    group_ic, group_oc = (int(n) for n in case.random.integers(1, 12, 2))
    w_dims = [groups * group_oc, group_ic, *attrs["kernel_shape"]]
    case.build([2, groups * group_ic, *sizes], w_dims, {**attrs, "group": groups}, tail_of(case.random))
    case.check(tier, PANEL)


@by_tier
@pytest.mark.parametrize("activation", ["Sigmoid", "HardSigmoid"])
@pytest.mark.parametrize(("routine", "channels"), [(DIRECT, 32), (FIRST, 32), (ROWS, 5), (PANEL, 5)])
def test_activations_that_do_not_keep_zero(tier, activation, routine, channels):
    case = Case(11)
    case.build([1, 3, 9, 8], [channels, 3, 3, 3], {"pads": [1, 1, 1, 1]}, activation).check(tier, routine)


@by_tier
def test_padding_lanes_need_an_activation_that_keeps_zero(tier):
    case = Case(12).build([1, 3, 9, 8], [5, 3, 3, 3], {}, "Sigmoid")
    assert "does not keep padding lanes zero" in rejections(case.graph, tier, "act")[DIRECT]


@by_tier
def test_panel_takes_weights_that_arrive_at_run_time(tier):
    random = np.random.default_rng(0)
    graph = _native.Graph()
    values = [graph.add_input(n, "float32", d) for n, d in (("x", [2, 6, 9, 7]), ("w", [8, 3, 3, 2]), ("b", [8]))]
    graph.outputs = [graph.add_node("Conv", values, ["y"], {"group": 2, "pads": [1, 0, 1, 1]}, "conv").outputs[0]]
    inputs = [floats(random, v.shape) for v in values]
    pinned = compile_pinned(graph, tier, {"conv": PANEL})
    assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 18)


#: Which of the weights and the bias are inputs: one at least.
ARRIVING = [("input", None), ("input", "input"), ("input", "k"), ("k", "input")]


def arrive(graph, name, kind, data, values, inputs):
    """Add a constant (``k``), an input (``input``) or nothing to a graph, its value and what is fed for it to lists."""
    if kind == "k":
        values.append(graph.add_constant(name, data))
    elif kind:
        values.append(graph.add_input(name, "float32", list(data.shape)))
        inputs.append(data)


def check_run_time_weights(op, routine, tier, weight, bias, channels, filters, kernel):
    """A convolution whose weights are [filters, channels of a group, *kernel]."""
    random = np.random.default_rng(channels)
    graph = _native.Graph()
    axes = ["h", "w"][: len(kernel)]
    values, inputs = [graph.add_input("x", "float32", ["n", channels, *axes])], []
    for name, kind, dims in (("w", weight, [*filters, *kernel]), ("b", bias, [filters[0]])):
        arrive(graph, name, kind, floats(random, dims), values, inputs)
    attrs = {"group": channels // filters[1], "pads": [1] * (2 * len(kernel)), "strides": [2] * len(kernel)}
    graph.outputs = graph.add_node(op, values, ["y"], attrs, "conv").outputs
    pinned = compile_pinned(graph, tier, {"conv": routine})
    assert pinned.routines["conv"].split("{")[0] == routine
    for sizes in ([1, 9, 7], [3, 20, 33]):
        xs = [floats(random, [sizes[0], channels, *sizes[1 : 1 + len(kernel)]]), *inputs]
        for threads in (1, 3):
            depth = 2 * filters[1] * int(np.prod(kernel))
            assert_close(pinned(*xs, threads=threads), graph.evaluate(xs)[0], depth)


def check_depthwise_of_run_time_weights(op, routine, tier, weight, bias):
    for channels, kernel in ((2, [3, 3]), (17, [5]), (40, [2, 7])):
        check_run_time_weights(op, routine, tier, weight, bias, channels, [channels, 1], kernel)


@by_tier
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 8])
@pytest.mark.parametrize(
    ("sizes", "kernel", "strides"), [([9, 40], [3, 2], [3, 5]), ([7, 11, 40], [2, 3, 3], [1, 3, 4])]
)
def test_panel_gathers_pixels_of_short_rows(tier, sizes, kernel, strides, width, groups):
    """Windows inside the input, whose last column is that of the last pixel or of the one before."""
    case = Case(width)
    attrs = {"strides": strides, "dilations": [2] * len(sizes), "group": groups}
    sizes = [*sizes[:-1], (width - 1) * strides[-1] + 2 * (kernel[-1] - 1) + 1 + width % 2]
    case.build([3, 4 * groups, *sizes], [5 * groups, 4, *kernel], attrs, "relu").check(tier, PANEL)


@by_tier
@pytest.mark.parametrize(("weight", "bias"), ARRIVING)
def test_direct_takes_weights_that_arrive_at_run_time(tier, weight, bias):
    for channels, filters, kernel in ((5, [7, 5], [3, 3]), (33, [80, 33], [1]), (64, [32, 32], [3, 2])):
        check_run_time_weights("Conv", DIRECT, tier, weight, bias, channels, filters, kernel)


@by_tier
@pytest.mark.parametrize(("weight", "bias"), ARRIVING)
def test_depthwise_takes_weights_that_arrive_at_run_time(tier, weight, bias):
    check_depthwise_of_run_time_weights("Conv", DEPTHWISE, tier, weight, bias)


@by_tier
@pytest.mark.parametrize(
    ("routine", "channels", "groups"),
    [(DIRECT, 20, 1), (FIRST, 3, 1), (ROWS, 6, 2), (DEPTHWISE, 20, 20), (PANEL, 20, 4)],
)
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_LOWER"])
def test_sizes_may_be_symbols(tier, routine, channels, groups, auto_pad):
    case = Case(7)
    attrs = {"strides": [2, 1], "group": groups, "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        attrs["pads"] = [1, 1, 1, 2]
    oc = 20 if groups > 1 else 9
    case.build([1, channels, 8, 8], [oc, channels // groups, 3, 4], attrs, "relu", symbols=True)
    pinned = compile_pinned(case.graph, tier, {"relu": routine})
    assert pinned.routines["relu"].startswith(routine)
    for n, h, w in [(1, 8, 8), (3, 5, 11), (0, 8, 8), (2, 30, 6)]:
        inputs = [floats(case.random, [n, channels, h, w])]
        assert_close(pinned(*inputs), case.graph.evaluate(inputs)[0], 2 * case.depth, (n, h, w))


@by_tier
@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize(
    ("routine", "channels", "groups"),
    [(DIRECT, 20, 1), (FIRST, 3, 1), (ROWS, 6, 2), (DEPTHWISE, 20, 20), (PANEL, 20, 4)],
)
def test_any_batch(tier, batch, routine, channels, groups):
    case = Case(8)
    case.build([batch, channels, 6, 5], [20, channels // groups, 3, 3], {"group": groups}, "add")
    case.check(tier, routine)


@by_tier
@pytest.mark.parametrize(
    ("routine", "channels", "groups"),
    [(DIRECT, 20, 1), (FIRST, 3, 1), (ROWS, 6, 2), (DEPTHWISE, 20, 20), (PANEL, 20, 4)],
)
def test_a_plane_without_pixels(tier, routine, channels, groups):
    case = Case(9)
    attrs = {"group": groups, "pads": [0, 1, 0, 1]}
    case.build([2, channels, 8, 8], [20, channels // groups, 1, 3], attrs, "add", symbols=True)
    pinned = compile_pinned(case.graph, tier, {"add": routine})
    assert pinned.routines["add"].startswith(routine)
    for h, w in [(0, 8), (3, 0), (0, 0), (5, 7)]:
        inputs = [floats(case.random, [2, channels, h, w])] + [floats(case.random, [2, 20, h, w])] * (
            len(case.graph.inputs) - 1
        )
        found = pinned(*inputs)
        assert found.shape == (2, 20, h, w)
        assert_close(found, case.graph.evaluate(inputs)[0], 2 * case.depth, (h, w))


@by_tier
def test_lanes_beyond_the_channels_do_no_harm(tier):
    # A clamp above zero would fill them, and all three nodes hand blocks on.
    random = np.random.default_rng(3)
    graph = _native.Graph()
    value = graph.add_input("x", "float32", [1, 3, 12, 12])
    clamp = {"clamp_min": 0.25, "clamp_max": 1.0}
    for name, dims, attrs in (
        ("first", [5, 3, 3, 3], clamp),
        ("middle", [5, 1, 3, 3], {"group": 5, "clamp_min": 0.5}),
        ("last", [7, 5, 1, 1], clamp),
    ):
        weight = graph.add_constant(f"{name}.w", floats(random, dims))
        value = graph.add_node("Conv", [value, weight], [name], attrs, name).outputs[0]
    mean = graph.add_node("ReduceMean", [value], ["mean"], {"keepdims": 0}, "mean").outputs[0]
    graph.outputs = [value, mean]
    x = floats(random, [1, 3, 12, 12])
    pinned = compile_pinned(graph, tier, {"first": FIRST, "middle": DEPTHWISE, "last": DIRECT})
    assert_close(pinned(x), graph.evaluate([x])[0], 60)


@by_tier
def test_the_input_may_be_the_residual(tier):
    random = np.random.default_rng(4)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 20, 9, 9])
    before = graph.add_node("Relu", [x], ["before"], {}, "before").outputs[0]
    weight = graph.add_constant("w", floats(random, [20, 20, 3, 3]))
    conv = graph.add_node("Conv", [before, weight], ["conv"], {"pads": [1, 1, 1, 1]}, "conv").outputs[0]
    add = graph.add_node("Add", [before, conv], ["add"], {}, "add").outputs[0]
    graph.outputs = [graph.add_node("Neg", [add], ["neg"], {}, "neg").outputs[0]]
    inputs = [floats(random, x.shape)]
    for routine in (DIRECT, PANEL):
        pinned = compile_pinned(graph, tier, {"add": routine})
        assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 180, routine)


@by_tier
def test_an_add_is_offered_to_both_of_its_convolutions(tier):
    random = np.random.default_rng(5)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 16, 9, 9])
    sides = []
    for name in ("left", "right"):
        weight = graph.add_constant(f"{name}.w", floats(random, [24, 16, 1, 1]))
        sides.append(graph.add_node("Conv", [x, weight], [name], {}, name).outputs[0])
    add = graph.add_node("Add", sides, ["add"], {}, "add").outputs[0]
    graph.outputs = [graph.add_node("Relu", [add], ["relu"], {}, "relu").outputs[0]]
    offered = {tuple(c["nodes"]) for c in candidates(graph, tier, "relu") if c["routine"].startswith(DIRECT)}
    assert offered == {("left", "add", "relu"), ("right", "add", "relu")}
    inputs = [floats(random, x.shape)]
    pinned = compile_pinned(graph, tier, {"relu": DIRECT})
    assert len(pinned.routines) == 2
    assert_close(pinned(*inputs), graph.evaluate(inputs)[0], 16)


@pytest.mark.parametrize("reason", ["clamp", "second reader", "output", "broadcast"])
def test_an_add_is_not_taken_where_the_sum_is_not_its_own(reason):
    random = np.random.default_rng(6)
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 16, 9, 9])
    residual = graph.add_input("r", "float32", [1, 16, 1, 1] if reason == "broadcast" else [1, 16, 9, 9])
    weight = graph.add_constant("w", floats(random, [16, 16, 1, 1]))
    attrs = {"clamp_min": 0.0} if reason == "clamp" else {}
    conv = graph.add_node("Conv", [x, weight], ["conv"], attrs, "conv").outputs[0]
    outputs = [graph.add_node("Add", [conv, residual], ["add"], {}, "add").outputs[0]]
    if reason == "second reader":
        outputs.append(graph.add_node("Neg", [conv], ["neg"], {}, "neg").outputs[0])
    if reason == "output":
        outputs.append(conv)
    graph.outputs = outputs
    assert not [c for c in candidates(graph, TIERS[0], "add") if "conv" in c["nodes"]]


@by_tier
@pytest.mark.parametrize(
    ("routine", "x_dims", "w_dims", "group"),
    [
        (DIRECT, [2, 32, 28, 28], [48, 32, 3, 3], 1),
        (DIRECT, [1, 64, 1, 1], [264, 64, 3, 3], 1),
        (FIRST, [1, 3, 64, 64], [32, 3, 3, 3], 1),
        (FIRST, [1, 3, 34, 34], [40, 3, 3, 3], 1),
        (DEPTHWISE, [1, 64, 56, 56], [64, 1, 3, 3], 64),
        (PANEL, [1, 32, 28, 28], [48, 16, 3, 3], 2),
        (PANEL, [1, 16, 20, 20], [22, 16, 3, 3], 1),
    ],
)
def test_the_same_bits_on_any_number_of_threads(tier, routine, x_dims, w_dims, group):
    case = Case(9)
    case.build(x_dims, w_dims, {"group": group, "pads": [1, 1, 1, 1]}, "relu")
    pinned = compile_pinned(case.graph, tier, {"relu": routine})
    once = pinned(*case.inputs)
    for threads in (2, 5):
        assert np.array_equal(once, pinned(*case.inputs, threads=threads))
    assert_close(once, case.graph.evaluate(case.inputs)[0], case.depth)


@by_tier
def test_every_schedule_of_a_node_agrees_with_the_reference(tier):
    case = Case(10)
    case.build([1, 24, 10, 10], [7 * lanes(tier), 24, 3, 3], {"pads": [1, 1, 1, 1]})
    offered = [c for c in candidates(case.graph, tier, "conv") if c["routine"].startswith(DIRECT)]
    assert 1 < len(offered) <= 8
    assert any("line=1" in c["routine"] for c in offered)
    for candidate in offered:
        case.check(tier, candidate["routine"])
        assert candidate["packed_bytes"] >= 7 * lanes(tier) * 24 * 9 * 4
        assert candidate["time_us"] > 0


@by_tier
def test_panels_that_no_private_cache_keeps_are_passed_over_in_parts(tier):
    case = Case(12).build([1, 4096, 2, 3], [4 * lanes(tier), 4096, 3, 3], {"pads": [1, 1, 1, 1]})
    offered = [c["routine"] for c in candidates(case.graph, tier, "conv") if c["routine"].startswith(DIRECT)]
    parts = [routine for routine in offered if "{ic=" in routine]
    assert parts
    assert len(parts) < len(offered)
    for routine in parts:
        case.check(tier, routine)


def test_blocks_are_vectors():
    case = Case(11).build([1, 40, 10, 10], [40, 40, 3, 3], {})
    for tier in TIERS:
        offered = [c for c in candidates(case.graph, tier, "conv") if c["routine"].startswith(DIRECT)]
        assert all(c["outputs"] == [f"cpu:float32:NCHW{lanes(tier)}c"] for c in offered)
        assert all(c["inputs"][1] is None for c in offered)


@pytest.mark.parametrize(
    ("x_dims", "w_dims", "attrs", "expected"),
    [
        (
            [1, 40, 9, 9],
            [8, 40, 3, 3],
            {},
            {FIRST: "more than 16 input channels", DEPTHWISE: "not one input and one output"},
        ),
        (
            [1, 8, 9, 9],
            [8, 1, 3, 3],
            {"group": 8},
            {DIRECT: "one input channel per group", FIRST: "more than one group"},
        ),
        ([1, 4, 9, 9, 9], [8, 4, 3, 3, 3], {}, dict.fromkeys((DIRECT, FIRST, DEPTHWISE), "more than two spatial axes")),
        ([1, 6, 9, 9], [10, 3, 3, 3], {"group": 2}, {DIRECT: "grouped output channels must fill whole blocks"}),
    ],
)
def test_rejections_give_their_reason(x_dims, w_dims, attrs, expected):
    reasons = rejections(Case(12).build(x_dims, w_dims, attrs).graph, TIERS[0], "conv")
    for routine, reason in expected.items():
        assert reason in reasons[routine]
    assert PANEL not in reasons


def test_float64_is_left_to_the_reference():
    graph = _native.Graph()
    x = graph.add_input("x", "float64", [1, 4, 5, 5])
    conv = graph.add_node("Conv", [x, graph.add_constant("w", np.ones((4, 4, 1, 1)))], ["y"], {}, "conv")
    graph.outputs = list(conv.outputs)
    reasons = rejections(graph, TIERS[0], "conv")
    assert set(reasons.values()) == {"an input is not a float32 tensor of known rank"}
    assert [c["routine"] for c in candidates(graph, TIERS[0], "conv")] == ["cpu/reference"]


@by_tier
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("seed", range(6))
def test_weights_of_sizes_that_only_a_call_tells(tier, op, seed):
    random = np.random.default_rng(seed)
    rank, channels = int(random.integers(1, 4)), "co" if op == "ConvTranspose" else "oc"
    attrs = {"strides": random.integers(1, 4, rank).tolist(), "dilations": random.integers(1, 3, rank).tolist()}
    attrs |= pick(random, [{}, {"pads": [1] * 2 * rank}, {"auto_pad": "SAME_UPPER"}])
    graph = _native.Graph()
    axes = [f"s{i}" for i in range(rank)]
    operands = [graph.add_input("x", "float32", ["n", "c", *axes])]
    operands.append(graph.add_input("w", "float32", [*channels, *(f"k{i}" for i in range(rank))]))
    operands.append(graph.add_input("b", "float32", ["o"]))
    graph.outputs = graph.add_node(op, operands, ["y"], attrs, "conv").outputs
    pinned = compile_pinned(graph, tier, {"conv": PANEL})
    for _ in range(4):
        kernel = random.integers(1, 5, rank).tolist()
        n, c, o = (int(random.integers(1, 20)) for _ in range(3))
        x = floats(random, [n, c, *(int(k * 2 + random.integers(3, 8)) for k in kernel)])
        w = floats(random, [*((o, c) if op == "Conv" else (c, o)), *kernel])
        inputs = [x, w, floats(random, [o])]
        actual = pinned(*inputs, threads=2)
        assert_close(actual, graph.evaluate(inputs)[0], c * int(np.prod(kernel)), (x.shape, w.shape, attrs))


def test_weights_that_do_not_fit_are_an_error():
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", ["n", "c", "h"]), graph.add_input("w", "float32", ["o", "i", "k"])]
    graph.outputs = graph.add_node("Conv", operands, ["y"], {}, "conv").outputs
    pinned = compile_pinned(graph, TIERS[0], {})
    for x, w in (((1, 3, 5), (2, 4, 2)), ((1, 3, 5), (2, 2, 2))):
        with pytest.raises(ShapeError):
            pinned(np.ones(x, np.float32), np.ones(w, np.float32))
