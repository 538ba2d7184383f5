"""1x1 convolutions whose input is scaled and shifted by channel and activated in the cache."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats
from tests.routines.test_conv import clamp_of, pick

ROUTINE = "cpu:float32/pointwise_with_prologue"
ACTIVATIONS = ["Relu", "Clip", "HardSwish", "Swish", "Sigmoid", "Softplus"]
CASES = 40

by_tier = pytest.mark.parametrize("tier", TIERS)


class Prologue:
    """x -> Mul -> Add -> activation -> Conv -> Add, Relu; each but the convolution may be left out."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = _native.Graph()
        self.inputs = []
        self.nodes = []

    def input(self, name, dims, symbols):
        value = self.graph.add_input(name, "float32", [symbols.get(i, d) for i, d in enumerate(dims)])
        self.inputs.append(floats(self.random, dims))
        return value

    def constant(self, name, dims):
        return self.graph.add_constant(name, floats(self.random, dims))

    def node(self, op, operands, attrs=None):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(name)
        return self.graph.add_node(op, operands, [f"{name}.y"], attrs or {}, name).outputs[0]

    def swapped(self, *operands):
        return list(operands) if self.random.random() < 0.5 else list(reversed(operands))

    def build(self, x_dims, out, scale="", shift=False, activation="", tail="", symbols=()):
        """`scale`: "constant", "shared" by all images, or "own" of each."""
        symbols = dict(symbols)
        channels, ones = x_dims[1], [1] * (len(x_dims) - 2)
        value = self.input("x", x_dims, symbols)
        if scale == "constant":
            value = self.node(
                "Mul",
                self.swapped(value, self.constant("s", pick(self.random, [[1, channels, *ones], [channels, *ones]]))),
            )
        elif scale:
            images = x_dims[0] if scale == "own" else 1
            value = self.node(
                "Mul",
                self.swapped(
                    value,
                    self.input(
                        "s", [images, channels, *ones], {0: symbols[0]} if scale == "own" and 0 in symbols else {}
                    ),
                ),
            )
        if shift:
            value = self.node("Add", self.swapped(value, self.constant("t", [channels, *ones])))
        if activation == "Clip":
            bounds = [self.graph.add_constant(n, np.float32(v)) for n, v in (("lo", -0.5), ("hi", 0.75))]
            value = self.node("Clip", [value, *bounds])
        elif activation:
            value = self.node(activation, [value])
        weight = self.constant("w", [out, channels, *ones])
        bias = [self.constant("b", [out])] if self.random.random() < 0.7 else []
        value = self.node("Conv", [value, weight, *bias], {} if tail else clamp_of(self.random))
        if tail:
            value = self.node("Add", self.swapped(value, self.input("r", value.shape, {})))
        if tail == "relu":
            value = self.node("Relu", [value])
        self.depth = channels + 3
        self.graph.outputs = [value]
        return self

    def compile(self, tier, threads=1, routine=ROUTINE):
        pinned = compile_pinned(self.graph, tier, dict.fromkeys(self.nodes, routine), threads)
        assert list(pinned.routines) == self.nodes[-1:], pinned.routines
        return pinned

    def check(self, tier):
        pinned = self.compile(tier)
        found = pinned(*self.inputs)
        assert_close(found, self.graph.evaluate(self.inputs)[0], self.depth, str(self.graph))
        for threads in (2, 3):
            np.testing.assert_array_equal(pinned(*self.inputs, threads=threads), found)


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_agrees_with_the_reference(tier, seed):
    prologue = Prologue(seed)
    random = prologue.random
    sizes = [int(n) for n in random.integers(1, 20, pick(random, [1, 2, 2, 2]))]
    scale = pick(random, ["", "constant", "shared", "own"])
    shift = bool(random.random() < 0.6)
    activation = pick(random, ["", *ACTIVATIONS] if scale or shift else ACTIVATIONS)
    x_dims = [pick(random, [1, 1, 2]), int(random.integers(2, 70)), *sizes]
    prologue.build(
        x_dims, int(random.integers(1, 90)), scale, shift, activation, pick(random, ["", "add", "relu"])
    ).check(tier)


@by_tier
@pytest.mark.parametrize(("channels", "out", "size"), [(64, 128, 56), (1024, 128, 7), (67, 33, 29), (512, 16, 14)])
def test_runs_of_pixels_of_larger_images(tier, channels, out, size):
    Prologue(size).build([1, channels, size, size], out, "constant", True, "Relu").check(tier)


@by_tier
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (14, 14), (29, 33)])
@pytest.mark.parametrize(("channels", "out"), [(64, 128), (192, 384), (240, 128), (1024, 256)])
def test_the_product_by_strassen(tier, levels, size, channels, out):
    prologue = Prologue(size[0]).build([2, channels, *size], out, "constant", True, "Relu", "add")
    routine = f"{ROUTINE}{{strassen={levels} tasks=2}}"
    assert routine in {c["routine"] for c in candidates(prologue.graph, tier, prologue.nodes[-1], 2)}
    pinned = prologue.compile(tier, 2, routine)
    assert pinned.routines == {prologue.nodes[-1]: routine}
    found = pinned(*prologue.inputs)
    # Its error is 2.6 times that of direct sums, or 5.2 times.
    assert_close(found, prologue.graph.evaluate(prologue.inputs)[0], 16 * levels * prologue.depth, size)
    np.testing.assert_array_equal(pinned(*prologue.inputs, threads=2), found)


@by_tier
def test_sizes_may_be_symbols(tier):
    prologue = Prologue(3).build([1, 20, 8, 8], 33, "own", True, "Relu", symbols={0: "n", 2: "h", 3: "w"})
    pinned = prologue.compile(tier)
    for n, h, w in [(1, 8, 8), (3, 5, 11), (0, 8, 8), (2, 30, 6)]:
        inputs = [floats(prologue.random, [n, 20, h, w]), floats(prologue.random, [n, 20, 1, 1])]
        assert_close(pinned(*inputs), prologue.graph.evaluate(inputs)[0], prologue.depth, (n, h, w))


@by_tier
def test_a_value_that_is_not_a_number_stays(tier):
    prologue = Prologue(4).build([1, 32, 4, 4], 16, "constant", True, "Relu")
    prologue.inputs[0][0, 5, 2, 3] = np.nan
    found = prologue.compile(tier)(*prologue.inputs)
    assert np.isnan(found[0, :, 2, 3]).all()
    assert np.isnan(found).sum() == 16


@pytest.mark.parametrize("build", ["a second reader", "a scale by pixel", "a kernel of three", "a sum of two inputs"])
def test_what_is_not_taken(build):
    prologue = Prologue(5)
    graph = prologue.graph
    x = prologue.input("x", [1, 16, 6, 6], {})
    if build == "a sum of two inputs":
        y = prologue.node("Add", [x, prologue.input("s", [1, 16, 6, 6], {})])
    else:
        y = prologue.node(
            "Mul", [x, prologue.constant("s", [1, 16, 6, 6] if build == "a scale by pixel" else [1, 16, 1, 1])]
        )
    side = 3 if build == "a kernel of three" else 1
    z = prologue.node("Conv", [y, prologue.constant("w", [8, 16, side, side])])
    graph.outputs = [z, y] if build == "a second reader" else [z]
    offered = candidates(graph, TIERS[-1], prologue.nodes[-1])
    assert offered
    assert not [c for c in offered if c["routine"].startswith(ROUTINE)]
