"""Chains of convolutions that one routine runs: depthwise with pointwise or a first layer before it, or pointwise behind it."""

import math

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, rejections
from tests.routines.test_conv import clamp_of, pick, spatial

BEFORE = "cpu:float32/pointwise_depthwise"
BEHIND = "cpu:float32/depthwise_pointwise"
BOTH = "cpu:float32/inverted_residual"
FIRST = "cpu:float32/stem_depthwise"
FIRST_BOTH = "cpu:float32/stem_depthwise_pointwise"
FORMS = {BEFORE: "pd", BEHIND: "dp", BOTH: "pdp", FIRST: "fd", FIRST_BOTH: "fdp"}
ACTIVATIONS = ["HardSwish", "Swish", "LeakyRelu", "Sigmoid", "Relu", "Gelu", "Softplus", "Exp"]
CASES = 24

by_tier = pytest.mark.parametrize("tier", TIERS)
by_routine = pytest.mark.parametrize("routine", FORMS)


class Chain:
    """x -> first layer, pointwise and depthwise convolutions c0, c1, ... with activations a0, a1, ... -> y."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = _native.Graph()
        self.inputs = []
        self.nodes = []
        self.values = {}
        self.depth = 1

    def input(self, name, dims, symbols=()):
        value = self.graph.add_input(name, "float32", [symbols.get(i, d) if symbols else d for i, d in enumerate(dims)])
        self.inputs.append(floats(self.random, dims))
        return value

    def node(self, op, operands, attrs, name):
        self.nodes.append(name)
        self.values[name] = self.graph.add_node(op, operands, [f"{name}.y"], attrs, name).outputs[0]
        return self.values[name]

    def conv(self, x, kind, out, attrs, index, clamp=None):
        channels = x.shape[1]
        axes = len(x.shape) - 2
        if kind == "f":
            size = pick(self.random, [2, 3, 5])
            attrs = {"kernel_shape": [size] * axes, "pads": [size // 2] * (2 * axes)}
            attrs["strides"] = [pick(self.random, [1, 2])] * axes
        kernel = [1] * axes if kind == "p" else attrs["kernel_shape"]
        out = channels if kind == "d" else out
        dims = [out, 1 if kind == "d" else channels, *kernel]
        operands = [
            x,
            self.graph.add_constant(f"w{index}", floats(self.random, dims) / np.float32(np.sqrt(np.prod(dims[1:])))),
        ]
        if self.random.random() < 0.7:
            operands.append(self.graph.add_constant(f"b{index}", floats(self.random, [out])))
        window = {} if kind == "p" else {**attrs, "group": channels} if kind == "d" else attrs
        self.depth += int(np.prod(dims[1:]))
        return self.node("Conv", operands, {**window, **(clamp or {})}, f"c{index}")

    def build(self, form, x_dims, channels, attrs, tail="", symbols=(), activate=True):
        """`channels`: of each convolution that is not depthwise, in order. A first layer reads few, of twice the size."""
        if form.startswith("f"):
            x_dims = [x_dims[0], min(x_dims[1], 4), *(2 * size for size in x_dims[2:])]
        value = x = self.input("x", x_dims, symbols)
        channels = list(channels)
        for i, kind in enumerate(form):
            last = i + 1 == len(form)
            clamp = {} if last and tail else clamp_of(self.random)
            value = self.conv(value, kind, 0 if kind == "d" else channels.pop(0), attrs, i, clamp)
            if activate and self.random.random() < 0.4 and not (last and tail):
                value = self.node(pick(self.random, ACTIVATIONS), [value], {}, f"a{i}")
        if tail:
            other = x if tail.startswith("x") else self.input("residual", value.shape)
            value = self.node("Add", [value, other] if self.random.random() < 0.5 else [other, value], {}, "add")
            if tail.endswith("relu"):
                value = self.node("Relu", [value], {}, "relu")
            elif tail.endswith("clip"):
                bounds = [self.graph.add_constant(n, np.float32(v)) for n, v in (("lo", -0.5), ("hi", 0.75))]
                value = self.node("Clip", [value, *bounds], {}, "clip")
        self.graph.outputs = [value]
        return self

    def compile(self, tier, routine, threads=1):
        """``routine`` alone, or with a schedule."""
        pinned = compile_pinned(self.graph, tier, dict.fromkeys(self.nodes, routine), threads)
        assert list(pinned.routines) == self.nodes[-1:], pinned.routines
        assert pinned.routines[self.nodes[-1]].startswith(routine), pinned.routines
        return pinned

    def check(self, tier, routine):
        pinned = self.compile(tier, routine)
        found = pinned(*self.inputs)
        assert_close(found, self.graph.evaluate(self.inputs)[0], self.depth, str(self.graph))
        for threads in (2, 3):
            np.testing.assert_array_equal(pinned(*self.inputs, threads=threads), found)
            other = self.compile(tier, routine, threads)
            # Which pixels Strassen's algorithm sums depends on how the image is cut.
            if "strassen" in str([*pinned.routines.values(), *other.routines.values()]):
                assert_close(other(*self.inputs), found, self.depth, str(self.graph))
            else:
                np.testing.assert_array_equal(other(*self.inputs), found)


@by_tier
@by_routine
@pytest.mark.parametrize("seed", range(CASES))
def test_a_chain_agrees_with_the_reference(tier, routine, seed):
    chain = Chain(seed)
    random = chain.random
    sizes, attrs = spatial(random, pick(random, [1, 2, 2, 2]))
    form = FORMS[routine]
    tail = pick(random, ["", "add", "relu", "clip"]) if form.endswith("p") else ""
    x_dims = [pick(random, [1, 1, 2]), int(random.integers(2, 50)), *sizes]
    chain.build(form, x_dims, [int(n) for n in random.integers(2, 90, 2)], attrs, tail).check(tier, routine)


@by_tier
@pytest.mark.parametrize("tail", ["x", "x relu", "x clip"])
@pytest.mark.parametrize("channels", [5, 24, 32])
def test_the_input_may_be_the_residual(tier, tail, channels):
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    Chain(1).build("pdp", [2, channels, 9, 11], [6 * channels, channels], attrs, tail).check(tier, BOTH)
    Chain(2).build("dp", [2, channels, 9, 11], [channels], attrs, tail).check(tier, BEHIND)


@by_tier
@by_routine
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("kernel", "size"), [(3, 56), (5, 30), (7, 17), (3, 7)])
def test_strips_and_tasks_of_larger_images(tier, routine, stride, kernel, size):
    pad = kernel // 2
    attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    Chain(kernel).build(FORMS[routine], [1, 18, size, size], [70, 20], attrs).check(tier, routine)


@by_tier
@by_routine
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_LOWER"])
def test_sizes_may_be_symbols(tier, routine, auto_pad):
    attrs = {"kernel_shape": [3, 4], "strides": [2, 1], "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        attrs["pads"] = [1, 1, 1, 2]
    chain = Chain(3)
    chain.build(FORMS[routine], [1, 20, 8, 8], [33, 9], attrs, symbols={0: "n", 2: "h", 3: "w"})
    pinned = chain.compile(tier, routine)
    for n, h, w in [(1, 8, 8), (3, 7, 11), (0, 8, 8), (2, 30, 6)]:
        inputs = [floats(chain.random, [n, chain.inputs[0].shape[1], h, w])]
        assert_close(pinned(*inputs), chain.graph.evaluate(inputs)[0], chain.depth, (n, h, w))


@by_tier
@by_routine
def test_a_plane_without_pixels(tier, routine):
    chain = Chain(4)
    attrs = {"kernel_shape": [1, 3], "pads": [0, 1, 0, 1]}
    chain.build(FORMS[routine], [2, 20, 8, 8], [33, 9], attrs, symbols={2: "h", 3: "w"}, activate=False)
    pinned = chain.compile(tier, routine)
    for h, w in [(0, 8), (3, 0), (0, 0), (5, 7)]:
        inputs = [floats(chain.random, [2, chain.inputs[0].shape[1], h, w])]
        found, expected = pinned(*inputs), chain.graph.evaluate(inputs)[0]
        assert found.shape == expected.shape
        assert_close(found, expected, chain.depth, (h, w))


@by_tier
@pytest.mark.parametrize("stride", [1, 2])
def test_a_first_layer_of_a_photograph(tier, stride):
    chain = Chain(9)
    value = chain.input("x", [1, 3, 65, 130])
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}
    first = floats(chain.random, [24, 3, 3, 3])
    value = chain.node("Conv", [value, chain.graph.add_constant("first", first)], window, "c0")
    value = chain.node("HardSwish", [value], {}, "a0")
    value = chain.conv(value, "d", 0, {"kernel_shape": [5, 5], "strides": [stride] * 2, "pads": [2] * 4}, 1)
    chain.graph.outputs = [chain.conv(value, "p", 16, {}, 2)]
    chain.check(tier, FIRST_BOTH)


@by_tier
@pytest.mark.parametrize("routine", [BEHIND, BOTH, FIRST_BOTH])
@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("tasks", [2, 3])
def test_tasks_share_the_depthwise_rows_of_an_image(tier, routine, seed, tasks):
    chain = Chain(seed)
    random = chain.random
    sizes, attrs = spatial(random, pick(random, [1, 2, 2]))
    tail = pick(random, ["", "add", "relu", "clip"])
    channels = [int(random.integers(170, 230)), int(random.integers(2, 90))]
    x_dims = [1, channels[0] if routine == BEHIND else int(random.integers(2, 50)), *sizes]
    if routine == BEHIND:
        channels = channels[1:]
    chain.build(FORMS[routine], x_dims, channels, attrs, tail)
    pin = f"{routine}{{shared=1 tasks={tasks}}}"
    if pin not in {c["routine"] for c in candidates(chain.graph, tier, chain.nodes[-1], tasks)}:
        assert math.prod(chain.inputs[0].shape) > 1000, "small images have the schedule everywhere"
        pytest.skip("not on this processor: half of its private cache is less than a task's part of the rows")
    pinned = chain.compile(tier, pin, tasks)
    found = pinned(*chain.inputs)
    assert_close(found, chain.graph.evaluate(chain.inputs)[0], chain.depth, str(chain.graph))
    for threads in (2, 3):
        np.testing.assert_array_equal(pinned(*chain.inputs, threads=threads), found)
    np.testing.assert_array_equal(chain.compile(tier, routine)(*chain.inputs), found)


@by_tier
@pytest.mark.parametrize("oc", [128, 256])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("shared", ["", "shared=1 "])
def test_a_projection_by_strassen(tier, oc, levels, shared):
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for size in (1, 5, 7, 14):
        chain = Chain(size).build("pdp", [1, 40, size, size], [256, oc], attrs, "relu")
        schedules = {c["routine"] for c in candidates(chain.graph, tier, "relu", 2)}
        pin = f"{BOTH}{{{shared}strassen={levels} tasks=2}}"
        assert pin in schedules
        pinned = chain.compile(tier, pin, 2)
        found = pinned(*chain.inputs)
        # Its error is 2.6 times that of direct sums, or 5.2 times.
        assert_close(found, chain.graph.evaluate(chain.inputs)[0], 16 * levels * chain.depth, size)
        np.testing.assert_array_equal(pinned(*chain.inputs, threads=2), found)


@by_tier
def test_a_projection_by_strassen_of_channels_that_parts_do_not_divide(tier):
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for levels, inner in [(1, 272), (2, 240), (2, 272)]:
        chain = Chain(inner).build("pdp", [1, 40, 9, 9], [inner, 256], attrs, "relu")
        found = chain.compile(tier, f"{BOTH}{{strassen={levels} tasks=1}}")(*chain.inputs)
        assert_close(found, chain.graph.evaluate(chain.inputs)[0], 16 * levels * chain.depth, inner)


def test_rows_that_make_narrow_tiles_are_estimated():
    """Of 7 rows of 7 pixels one of two tasks has three, a quarter of which fills no tile of many rows."""
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    times = {}
    for size in (7, 14):
        chain = Chain(size).build("dp", [1, 1024, size, size], [1024], attrs, "relu")
        for c in candidates(chain.graph, TIERS[-1], "relu", 2):
            for levels in (1, 2):
                if c["routine"] == f"{BEHIND}{{strassen={levels} tasks=2}}":
                    times[size, levels] = c["time_us"]
    wide, narrow = (times[size, 2] / times[size, 1] for size in (14, 7))
    assert wide < 1.25
    if TIERS[-1] == "avx512":
        assert narrow > 1.5
        assert narrow > 1.3 * wide


@by_tier
def test_images_that_are_not_alone_share_nothing(tier):
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    chain = Chain(12).build(
        "pdp", [1, 20, 9, 9], [200, 24], attrs, symbols={0: "n", 2: "h in [0,16]", 3: "w in [0,16]"}
    )
    pinned = chain.compile(tier, f"{BOTH}{{shared=1 tasks=2}}", 2)
    for n, h, w in [(1, 9, 9), (3, 9, 9), (1, 1, 1), (0, 5, 5), (1, 16, 15), (1, 0, 6)]:
        inputs = [floats(chain.random, [n, 20, h, w])]
        expected = chain.graph.evaluate(inputs)[0]
        for threads in (1, 2, 3):
            assert_close(pinned(*inputs, threads=threads), expected, chain.depth, (n, h, w))


@by_tier
def test_many_channels(tier):
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    Chain(11).build("pdp", [1, 530, 5, 6], [600, 40], attrs).check(tier, BOTH)


def ends_of_chains(chain, node):
    return {
        c["routine"].split("{")[0]
        for c in candidates(chain.graph, "scalar", node)
        if c["routine"].startswith(tuple(FORMS))
    }


def test_what_others_read_is_not_inside_a_chain():
    chain = Chain(5).build("pdp", [1, 8, 6, 6], [16, 8], {"kernel_shape": [3, 3]}, activate=False)
    assert ends_of_chains(chain, "c2") == {BEHIND, BOTH}
    chain.graph.outputs = [*chain.graph.outputs, chain.values["c0"]]
    assert ends_of_chains(chain, "c2") == {BEHIND}
    assert ends_of_chains(chain, "c1") == set()


def test_no_chain_of_other_convolutions():
    attrs = {"kernel_shape": [3, 3]}
    assert ends_of_chains(Chain(6).build("pp", [1, 8, 6, 6], [16, 8], attrs, activate=False), "c1") == set()
    assert ends_of_chains(Chain(7).build("dd", [1, 8, 6, 6], [], attrs, activate=False), "c1") == set()
    assert ends_of_chains(Chain(7).build("fd", [1, 3, 6, 6], [8], attrs, activate=False), "c1") == {FIRST}


def test_the_input_of_a_first_layer_is_not_the_residual():
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 4, 6, 6])
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    value = graph.add_node("Conv", [x, graph.add_constant("f", np.ones([8, 4, 3, 3], np.float32))], ["f.y"], same, "f")
    weight = graph.add_constant("d", np.ones([8, 1, 3, 3], np.float32))
    value = graph.add_node("Conv", [value.outputs[0], weight], ["d.y"], {**same, "group": 8}, "d")
    weight = graph.add_constant("p", np.ones([4, 8, 1, 1], np.float32))
    value = graph.add_node("Conv", [value.outputs[0], weight], ["p.y"], {}, "p")
    graph.outputs = [graph.add_node("Add", [value.outputs[0], x], ["y"], {}, "add").outputs[0]]
    assert rejections(graph, "scalar", "add")[FIRST_BOTH] == "the input is the residual too"


@pytest.mark.parametrize(("op", "constant"), [("PRelu", 0.25), ("Pow", 3.0), ("Mul", 2.0), ("Add", 1.0)])
def test_an_operator_of_two_operands_does_not_join_a_chain(op, constant):
    chain = Chain(10).build("dp", [1, 8, 6, 6], [16], {"kernel_shape": [3, 3]}, activate=False)
    operands = [*chain.graph.outputs, chain.graph.add_constant("constant", np.float32([constant]))]
    chain.graph.outputs = [chain.node(op, operands, {}, "end")]
    assert ends_of_chains(chain, "end") == set()
    assert ends_of_chains(chain, "c1") == {BEHIND}


def test_weights_and_bias_must_be_constants():
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 8, 6, 6])
    bias = graph.add_input("b", "float32", [8])
    weight = graph.add_constant("w", np.ones([8, 1, 3, 3], np.float32))
    inner = graph.add_node("Conv", [x, weight, bias], ["c"], {"group": 8}, "conv").outputs[0]
    pointwise = graph.add_constant("p", np.ones([4, 8, 1, 1], np.float32))
    graph.outputs = [graph.add_node("Conv", [inner, pointwise], ["y"], {}, "end").outputs[0]]
    assert rejections(graph, "scalar", "end")[BEHIND] == "the weights are not constants"


def test_a_kernel_of_many_rows_is_left_to_others():
    chain = Chain(8).build("dp", [1, 4, 70, 3], [5], {"kernel_shape": [65, 1]}, activate=False)
    assert rejections(chain.graph, "scalar", "c1")[BEHIND] == "the kernel has too many rows"
