"""Channels that change places between blocks: concatenations, slices, splits and shuffles, against the references."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, candidates, compile_pinned, floats
from tests.routines.test_move import pick

CHANNELS = "cpu:float32/channels_nchwc"
CASES = 24

by_tier = pytest.mark.parametrize("tier", TIERS)


class Channels:
    """A graph of nodes that move channels of [batch, channels, *spatial] inputs."""

    def __init__(self, seed, batch=1, spatial=(5, 7), symbols=None):
        self.random = np.random.default_rng(seed)
        self.graph = _native.Graph()
        self.batch, self.spatial, self.symbols = batch, tuple(spatial), symbols
        self.inputs = []
        self.nodes = []

    def input(self, channels):
        dims = [self.batch, channels, *self.spatial]
        self.inputs.append(floats(self.random, dims))
        named = [self.symbols.get(i, d) for i, d in enumerate(dims)] if self.symbols else dims
        return self.graph.add_input(f"x{len(self.inputs)}", "float32", named)

    def node(self, op, operands, attrs=None, outputs=1):
        name = f"n{len(self.nodes)}"
        self.nodes.append(name)
        names = [f"{name}.{i}" for i in range(outputs)]
        values = self.graph.add_node(op, operands, names, attrs or {}, name).outputs
        return values[0] if outputs == 1 else values

    def ints(self, values):
        return self.graph.add_constant(
            f"k{len(self.nodes)}.{len(values)}.{self.random.integers(1 << 40)}", np.int64(values)
        )

    def concat(self, values, axis=1):
        return self.node("Concat", values, {"axis": axis})

    def slice(self, value, start, stop, step=1, axis=1):
        return self.node("Slice", [value, *(self.ints([i]) for i in (start, stop, axis, step))])

    def split(self, value, sizes):
        return self.node("Split", [value, self.ints(sizes)], {"axis": 1}, len(sizes))

    def reshape(self, value, channels):
        return self.node("Reshape", [value, self.ints([self.batch, *channels, *self.spatial])])

    def shuffle(self, value, groups):
        channels = value.shape[1]
        rank = 3 + len(self.spatial)
        value = self.reshape(value, [groups, channels // groups])
        value = self.node("Transpose", [value], {"perm": [0, 2, 1, *range(3, rank)]})
        return self.reshape(value, [channels])

    def interleave(self, values):
        columns = [self.node("Unsqueeze", [v, self.ints([2])]) for v in values]
        return self.reshape(self.concat(columns, 2), [sum(v.shape[1] for v in values)])

    def check(self, tier, results, threads=(1, 2, 3)):
        self.graph.outputs = results
        expected = self.graph.evaluate(self.inputs)
        for compiled in threads:
            pinned = compile_pinned(self.graph, tier, dict.fromkeys(self.nodes, CHANNELS), compiled)
            assert set(pinned.routines.values()) == {CHANNELS}, pinned.routines
            for team in threads:
                found = pinned.module.with_threads(team).call(self.inputs)
                for a, e in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(a, e, str(self.graph))
        return pinned


def random_channels(seed):
    random = np.random.default_rng(1000 + seed)
    rank = pick(random, [1, 2, 2, 3])
    return Channels(seed, pick(random, [1, 1, 3]), [int(random.integers(1, 9)) for _ in range(rank)]), random


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_concatenations_at_any_channel(tier, seed):
    c, random = random_channels(seed)
    parts = [c.input(int(n)) for n in random.integers(1, 40, int(random.integers(2, 6)))]
    if random.random() < 0.3:
        parts.append(parts[0])
    c.check(tier, [c.concat(parts)])


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_slices_and_splits(tier, seed):
    c, random = random_channels(seed)
    channels = int(random.integers(3, 120))
    x = c.input(channels)
    if random.random() < 0.5:
        sizes = random.multinomial(channels - 2, [1 / 2] * 2) + 1
        c.check(tier, list(c.split(x, [int(n) for n in sizes])))
        return
    start, stop = sorted(int(n) for n in random.choice(channels + 1, 2, replace=False))
    step = pick(random, [1, 1, 2, 3])
    if random.random() < 0.2:
        start, stop, step = stop - 1, start - channels - 1, -step
    c.check(tier, [c.slice(x, start, stop, step)])


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_shuffles(tier, seed):
    c, random = random_channels(seed)
    groups, each = int(random.integers(2, 7)), int(random.integers(1, 30))
    c.check(tier, [c.shuffle(c.input(groups * each), groups)])


@by_tier
@pytest.mark.parametrize("channels", [4, 16, 29, 58, 116])
def test_a_unit_of_shufflenet(tier, channels):
    # The first half of what came before and the branch, interleaved; of what comes out, the second half.
    c = Channels(channels, spatial=[14, 9])
    before, branch = c.input(2 * channels), c.input(channels)
    whole = c.interleave([c.slice(before, 0, channels), branch])
    c.check(tier, [whole, c.slice(whole, channels, 2 * channels)])


@by_tier
def test_nested_moves_are_one_step(tier):
    c = Channels(3)
    a, b = c.input(21), c.input(35)
    joined = c.shuffle(c.concat([c.slice(c.concat([a, b]), 7, 50), c.shuffle(b, 5)]), 6)
    pinned = c.check(tier, [joined])
    assert list(pinned.routines) == c.nodes[-1:]


def test_long_rows_of_moves_are_several_steps():
    c = Channels(8)
    value = c.input(90)
    for _ in range(80):
        value = c.slice(value, 1, value.shape[1])
    c.graph.outputs = [value]
    expected = c.graph.evaluate(c.inputs)[0]
    pinned = compile_pinned(c.graph, "scalar", {})
    np.testing.assert_array_equal(pinned(*c.inputs), expected)
    assert takes(c, value)


@by_tier
def test_sizes_may_be_symbols(tier):
    c = Channels(4, symbols={0: "n", 2: "h", 3: "w"})
    c.graph.outputs = [c.concat([c.input(20), c.input(7)])]
    pinned = compile_pinned(c.graph, tier, dict.fromkeys(c.nodes, CHANNELS), 2)
    for n, h, w in [(1, 5, 7), (3, 1, 1), (0, 4, 4), (2, 0, 3), (1, 40, 50)]:
        inputs = [floats(c.random, [n, channels, h, w]) for channels in (20, 7)]
        for threads in (1, 2, 3):
            found = pinned.module.with_threads(threads).call(inputs)[0]
            np.testing.assert_array_equal(found, c.graph.evaluate(inputs)[0])


@by_tier
def test_what_lies_behind_the_last_channel_stays_zero(tier):
    # A slice ends inside a block whose other channels exist in its source; a convolution reads whole blocks.
    c = Channels(5)
    x = c.input(40)
    c.inputs[0][:, 21:] = np.nan
    part = c.slice(x, 3, 21)
    weight = c.graph.add_constant("weight", floats(c.random, [16, 18, 1, 1]))
    c.graph.outputs = [c.graph.add_node("Conv", [part, weight], ["y"], {}, "conv").outputs[0]]
    pins = {c.nodes[0]: CHANNELS, "conv": "cpu:float32/direct_nchwc"}
    found = compile_pinned(c.graph, tier, pins)(*c.inputs)
    np.testing.assert_allclose(found, c.graph.evaluate(c.inputs)[0], rtol=0, atol=1e-5)


def takes(c, value):
    c.graph.outputs = [value]
    return any(one["routine"] == CHANNELS for one in candidates(c.graph, "scalar", c.nodes[-1]))


def test_other_moves_are_left_to_others():
    c = Channels(6)
    assert not takes(c, c.concat([c.input(4), c.input(4)], axis=2))
    c = Channels(6)
    assert not takes(c, c.slice(c.input(4), 1, 3, axis=3))
    c = Channels(6)
    assert not takes(c, c.node("Transpose", [c.input(4)], {"perm": [0, 2, 1, 3]}))
    c = Channels(6)
    assert not takes(c, c.node("Reshape", [c.input(6), c.ints([1, 2, 3, 35])]))
    c = Channels(6)
    nothing = [c.node("Unsqueeze", [c.input(0), c.ints([1])]) for _ in range(2)]
    part = c.node("Squeeze", [c.slice(c.concat(nothing), 0, 1), c.ints([1])])
    assert not takes(c, c.concat([part]))
    c = Channels(6)
    assert takes(c, c.concat([c.input(4), c.input(4)]))


def test_what_others_read_is_not_inside_a_group():
    c = Channels(7)
    joined = c.concat([c.input(5), c.input(6)])
    pinned = c.check("scalar", [joined, c.slice(joined, 2, 9)], threads=(1,))
    assert list(pinned.routines) == c.nodes
