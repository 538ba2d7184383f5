"""DynamicQuantizeLSTM of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import candidates, compile_pinned, floats, pick, rejections

ROUTINE = "cpu:int8/recurrent"
by_tier = pytest.mark.parametrize("tier", _native.host_tiers())


class Layer:
    """One node "layer" with random codes."""

    def __init__(self, random, steps, batch, inputs, hidden, *, direction="forward", dtype="int8", columns=False,
                 zeros=False, lengths=None, states=True, bias=True, peepholes=False, symbols=False, attrs=None,
                 variable=False):  # fmt: skip
        self.graph = _native.Graph()
        self.hidden, self.columns = hidden, 4 * hidden
        directions = 2 if direction == "bidirectional" else 1
        attrs = {"hidden_size": hidden, "direction": direction, **(attrs or {})}
        if lengths is not None:
            attrs["checked_lengths"] = 1
        batch_first = attrs.get("layout", 0) == 1
        x_dims = [batch, steps] if batch_first else [steps, batch]
        names = (["b", "t"] if batch_first else ["t", "b"]) if symbols else x_dims
        state_dims = [batch, directions, hidden] if batch_first else [directions, batch, hidden]
        self.inputs = [floats(random, [*x_dims, inputs])]
        low, high = (0, 256) if dtype == "uint8" else (-128, 128)

        def matrix(name, depth):
            codes = random.integers(low, high, (directions, depth, self.columns)).astype(dtype)
            if not variable:
                return self.graph.add_constant(name, codes)
            self.inputs.append(codes)
            return self.graph.add_input(name, dtype, list(codes.shape))

        def grid(name, depth):
            shape = (directions, self.columns) if columns else (directions,)
            scale = np.float32(random.uniform(0.5, 1, shape) / 127 / np.sqrt(depth))
            zero = random.integers(low, high, shape) if zeros else np.full(shape, (low + high) // 2)
            return [
                self.graph.add_constant(f"{name}_scale", scale),
                self.graph.add_constant(f"{name}_zero", zero.astype(dtype)),
            ]

        operands = [self.graph.add_input("x", "float32", [*names, inputs]), matrix("w", inputs), matrix("r", hidden)]
        operands.append(self.graph.add_constant("b", floats(random, [directions, 2 * self.columns])) if bias else None)
        operands.append(None)
        if lengths is not None:
            operands[-1] = self.graph.add_input("lengths", "int32", [names[1 - batch_first]])
            self.inputs.append(np.asarray(lengths, np.int32))
        for name in "hc":
            operands.append(self.graph.add_input(name, "float32", state_dims) if states else None)
            if states:
                self.inputs.append(floats(random, state_dims))
        operands.append(self.graph.add_constant("p", floats(random, [directions, 3 * hidden])) if peepholes else None)
        node = self.graph.add_node(
            "com.microsoft.DynamicQuantizeLSTM",
            [*operands, *grid("w", inputs), *grid("r", hidden)],
            ["y", "y_h", "y_c"],
            attrs,
            "layer",
        )
        self.graph.outputs = list(node.outputs)

    def check(self, tier):
        """The routine against the reference, in which a code may lie a step away; teams of any size agree."""
        expected = self.graph.evaluate(self.inputs)
        pinned = compile_pinned(self.graph, tier, {"layer": ROUTINE})
        actual = pinned.module.call(self.inputs)
        for threads in (2, 5):
            for a, b in zip(actual, pinned.module.with_threads(threads).call(self.inputs), strict=True):
                np.testing.assert_array_equal(a, b)
        for a, e in zip(actual, expected, strict=True):
            assert a.shape == e.shape
            # A state on the border between two codes changes a product by a step of a 255th of the range.
            assert np.abs(a - e).max(initial=0) <= 0.02 * max(1.0, np.abs(e).max(initial=0))
        # Most results know nothing of that.
        if expected[0].size > 50:
            assert np.median(np.abs(actual[0] - expected[0])) < 1e-4


@by_tier
def test_gives_what_the_reference_gives(tier):
    for seed in range(20):
        random = np.random.default_rng(seed)
        steps, batch = int(random.integers(1, 9)), pick(random, [1, 1, 2, 5, 9])
        attrs = {"layout": int(random.integers(2))}
        if seed % 5 == 1:
            attrs |= {"input_forget": 1, "clip": 0.7}
        if seed % 5 == 2:
            attrs["activations"] = ["HardSigmoid", "Softsign", "Tanh"] * 2
        direction = pick(random, ["forward", "reverse", "bidirectional"])
        if direction != "bidirectional" and "activations" in attrs:
            attrs["activations"] = attrs["activations"][:3]
        Layer(
            random,
            steps,
            batch,
            pick(random, [1, 3, 4, 17, 40]),
            pick(random, [1, 5, 16, 19, 48]),
            direction=direction,
            dtype=pick(random, ["int8", "uint8"]),
            columns=bool(random.integers(2)),
            zeros=bool(random.integers(2)),
            lengths=[int(random.integers(0, steps + 1)) for _ in range(batch)] if random.integers(2) else None,
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            peepholes=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
            attrs=attrs,
        ).check(tier)


@by_tier
@pytest.mark.parametrize(("steps", "batch"), [(4, 1), (3, 23)])
def test_large_enough_for_a_team(steps, batch, tier):
    random = np.random.default_rng(4)
    Layer(random, steps, batch, 70, 260, direction="bidirectional", zeros=True).check(tier)


@by_tier
@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0)])
def test_no_step_or_no_batch(steps, batch, tier):
    Layer(np.random.default_rng(5), steps, batch, 3, 5, symbols=True).check(tier)


@by_tier
def test_numbers_of_one_value(tier):
    """Ranges of no width, and of one side of zero."""
    for value in (0.0, 1e-30, 2.0, -3.0):
        layer = Layer(np.random.default_rng(6), 3, 2, 5, 17, states=False)
        layer.inputs[0][:] = value
        layer.check(tier)


def test_says_why_it_declines():
    tier = _native.host_tiers()[0]
    layer = Layer(np.random.default_rng(7), 2, 1, 3, 4, variable=True)
    assert rejections(layer.graph, tier, "layer")[ROUTINE] == "the weights are not constants"
    plain = Layer(np.random.default_rng(7), 2, 1, 3, 4)
    assert ROUTINE in [c["routine"] for c in candidates(plain.graph, tier, "layer")]
