"""Recurrent layers of every instruction set against the reference."""

import numpy as np
import pytest
from neo import ShapeError, _native

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections
from tests.routines.test_conv import lanes

ROUTINE = "cpu:float32/recurrent"
BESIDE = ROUTINE + "{beside=1}"
EXPONENT_PACKED = ROUTINE + "_exponent_packed"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CASES = 16

by_tier = pytest.mark.parametrize("tier", TIERS)
by_op = pytest.mark.parametrize("op", list(GATES))


class Layer:
    """One recurrent node "layer" with random weights."""

    def __init__(
        self,
        random,
        op,
        steps,
        batch,
        inputs,
        hidden,
        *,
        direction="forward",
        attrs=None,
        outputs=None,
        states=True,
        bias=True,
        symbols=False,
        change=None,
        lengths=None,
        peepholes=False,
        variable=False,
        dtype="float32",
    ):
        def values(dims):
            return floats(random, dims).astype(dtype)

        self.graph = _native.Graph()
        directions = 2 if direction == "bidirectional" else 1
        attrs = {"hidden_size": hidden, "direction": direction, **(attrs or {})}
        if lengths is not None:
            attrs.setdefault("checked_lengths", 1)
        batch_first = attrs.get("layout", 0) == 1
        x_dims = [batch, steps, inputs] if batch_first else [steps, batch, inputs]
        state_dims = [batch, directions, hidden] if batch_first else [directions, batch, hidden]
        rows = GATES[op] * hidden
        scale = np.dtype(dtype).type(1 / np.sqrt(hidden))
        names = ["t", "b"] if not batch_first else ["b", "t"]
        operands = [self.graph.add_input("x", dtype, [*names, inputs] if symbols else x_dims)]
        self.inputs = [values(x_dims)]

        def weight(name, array):
            if not variable:
                return self.graph.add_constant(name, array)
            self.inputs.append(array)
            return self.graph.add_input(name, dtype, list(array.shape))

        operands.append(weight("w", values([directions, rows, inputs]) * scale))
        recurrent = values([directions, rows, hidden]) * scale
        if change:
            change(recurrent)
        operands.append(weight("r", recurrent))
        operands.append(weight("b", values([directions, 2 * rows])) if bias else None)
        operands.append(None)
        if lengths is not None:
            operands[-1] = self.graph.add_input("lengths", "int32", [names[1 - batch_first] if symbols else batch])
            self.inputs.append(np.asarray(lengths, np.int32))
        for name in ["h", "c"][: 2 if op == "LSTM" else 1] if states else []:
            operands.append(self.graph.add_input(name, dtype, state_dims))
            self.inputs.append(values(state_dims))
        if peepholes:
            operands += [None] * (7 - len(operands))
            operands.append(weight("p", values([directions, 3 * hidden])))
        if outputs is None:
            outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
        node = self.graph.add_node(op, operands, outputs, attrs, "layer")
        self.graph.outputs = [v for v in node.outputs if v is not None]
        self.depth = inputs + hidden

    def run(self, tier, routine):
        """All outputs, which do not depend on the size of the team."""
        pinned = compile_pinned(self.graph, tier, {"layer": routine if "{" in routine else routine + "{}"})
        assert pinned.routines["layer"] == routine
        actual = pinned.module.call(self.inputs)
        for threads in (2, 5):
            again = pinned.module.with_threads(threads).call(self.inputs)
            for a, b in zip(actual, again, strict=True):
                np.testing.assert_array_equal(a, b)
        return actual

    def check(self, tier):
        """Every way in which the layer can be done against the reference; the ways."""
        expected = self.graph.evaluate(self.inputs)
        ways = [c["routine"] for c in candidates(self.graph, tier, "layer") if c["routine"].startswith(ROUTINE)]
        assert ROUTINE in ways
        for routine in ways:
            # Strassen's algorithm rounds 2.6 or 5.2 times as much.
            error = 1.0 if "levels" not in routine else 5.2
            for a, e in zip(self.run(tier, routine), expected, strict=True):
                # Rounding grows from step to step by less than it shrinks in the gates; a few steps' worth remains.
                assert_close(a, e, int(4 * self.depth * error**2), f"{routine} {self.graph}")
        return ways


def attrs_of(random, op):
    attrs = {"layout": int(random.integers(2))}
    if op == "GRU":
        attrs["linear_before_reset"] = int(random.integers(2))
    return attrs


@by_tier
@by_op
def test_gives_what_the_reference_gives(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
        wanted = int(random.integers(1, 2 ** len(outputs)))
        Layer(
            random,
            op,
            int(random.integers(1, 7)),
            pick(random, [1, 1, 2, 3, 5, 13]),
            pick(random, [1, 3, 10, 17]),
            pick(random, [1, 4, 7, 16, 19]),
            direction=pick(random, ["forward", "reverse", "bidirectional"]),
            attrs=attrs_of(random, op),
            outputs=[o if wanted >> i & 1 else "" for i, o in enumerate(outputs)],
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
        ).check(tier)


@by_tier
@by_op
@pytest.mark.parametrize(("steps", "batch", "hidden"), [(3, 1, 512), (5, 40, 64)])
def test_large_enough_for_a_team(op, steps, batch, hidden, tier):
    random = np.random.default_rng(4)
    for linear in [0, 1] if op == "GRU" else [None]:
        attrs = {} if linear is None else {"linear_before_reset": linear}
        Layer(random, op, steps, batch, 33, hidden, direction="bidirectional", attrs=attrs).check(tier)


@by_tier
@by_op
def test_inputs_multiplied_beside_the_steps(op, tier):
    """Batches of one, of lengths before, at and after the ends of the tiles of inputs."""
    ways = set()
    for seed, steps in enumerate([1, 5, 6, 7, 8, 9, 17, 18, 19, 30, 32, 33, 40, 57]):
        random = np.random.default_rng(seed)
        attrs = {"layout": seed % 2}
        if op == "GRU":
            attrs["linear_before_reset"] = int(seed % 4 != 3)
        layer = Layer(
            random,
            op,
            steps,
            1,
            pick(random, [1, 2, 5, 16, 33, 70]),
            pick(random, [1, 15, 16, 17, 48, 130]),
            direction=pick(random, ["forward", "reverse", "bidirectional"]),
            attrs=attrs,
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
        )
        ways.update(layer.check(tier))
    assert (BESIDE in ways) == (tier == "avx512" and op != "RNN")


@by_tier
@by_op
@pytest.mark.parametrize("batch", range(1, 14))
def test_rows_of_a_batch(op, batch, tier):
    Layer(np.random.default_rng(batch), op, 3, batch, 9, 33).check(tier)


@by_tier
@pytest.mark.parametrize("batch", [2, 3, 4, 6, 7, 12, 13, 31, 97])
def test_batches_with_inputs_of_every_size(batch, tier):
    """LSTMs that multiply their inputs within the step, and beside them the batches that do not."""
    for seed in range(4):
        random = np.random.default_rng(100 * batch + seed)
        Layer(
            random,
            "LSTM",
            int(random.integers(1, 5)),
            batch,
            pick(random, [1, 2, 15, 16, 33, 70]),
            pick(random, [1, 15, 16, 17, 48, 66]),
            direction=pick(random, ["forward", "reverse", "bidirectional"]),
            attrs={"layout": seed % 2},
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
        ).check(tier)


@by_tier
@by_op
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_one_sequence_shared_by_a_team(op, direction, tier):
    """Sizes at which members share the steps or have a direction each; inputs larger and smaller than the state."""
    for inputs, hidden in [(300, 130), (16, 256), (257, 177)]:
        random = np.random.default_rng(inputs)
        attrs = {"linear_before_reset": 1} if op == "GRU" else None
        Layer(random, op, 21, 1, inputs, hidden, direction=direction, attrs=attrs).check(tier)


@by_tier
@by_op
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_products_by_strassens_algorithm(op, direction, tier):
    """Both products, of rows and units that its parts do and do not divide, in groups for a team of any size."""
    width, ways = lanes(tier), set()
    for seed, batch in enumerate([2, 3, 5, 7, 8, 13, 16, 23, 41]):
        random = np.random.default_rng(seed)
        hidden = width * pick(random, [4, 6, 8, 12, 24])
        inputs = width * pick(random, [2, 3, 5, 9]) if seed % 4 else 7
        layer = Layer(random, op, pick(random, [1, 2, 5]), batch, inputs, hidden, direction=direction,
                      attrs=attrs_of(random, op), states=seed % 3 > 0)  # fmt: skip
        ways.update(layer.check(tier))
        for routine in [c["routine"] for c in candidates(layer.graph, tier, "layer", 3) if "levels" in c["routine"]]:
            pinned = compile_pinned(layer.graph, tier, {"layer": routine}, 3)
            found = pinned.module.call(layer.inputs)
            for threads in (1, 2):
                again = pinned.module.with_threads(threads).call(layer.inputs)
                for a, b in zip(again, found, strict=True):
                    np.testing.assert_array_equal(a, b)
    levels = ["levels=1", "levels=2", "input_levels=1", "input_levels=2"]
    pairs = [f"input_levels={i} levels={r}" for i in (1, 2) for r in (1, 2)]
    assert {f"{ROUTINE}{{{p}}}" for p in levels + pairs} <= ways


@by_tier
@by_op
def test_strassens_algorithm_only_for_known_rows(op, tier):
    """Rows that are known only at run time may be one, which it makes several times as slow."""
    sizes = [1, 1, 8 * lanes(tier), 8 * lanes(tier)]
    for symbols, expected in (True, False), (False, True):
        graph = Layer(np.random.default_rng(0), op, *sizes, symbols=symbols).graph
        ways = [c["routine"] for c in candidates(graph, tier, "layer")]
        assert any("input_levels" in way for way in ways) == expected
        assert not any("{levels" in way or " levels" in way for way in ways)
        best = min(candidates(graph, tier, "layer"), key=lambda c: c["time_us"])["routine"]
        assert "levels" not in best


@by_tier
@pytest.mark.parametrize(("steps", "batch"), [(20, 1), (2, 7)])
def test_weights_larger_than_the_caches(steps, batch, tier):
    """All inputs are multiplied first."""
    Layer(np.random.default_rng(10), "LSTM", steps, batch, 40000, 40).check(tier)


#: Sizes of at least 2^18 recurrent weights: groups of rows and blocks of units that are not whole.
EXPONENT_PACKED_SIZES = [
    ("LSTM", 256, {}),
    ("LSTM", 261, {}),
    ("RNN", 515, {}),
    ("RNN", 520, {"activations": ["Relu"]}),
]
EXPONENT_PACKED_SIZES += [("GRU", 299, {"linear_before_reset": linear}) for linear in (0, 1)]


@by_tier
@pytest.mark.parametrize(("op", "hidden", "attrs"), EXPONENT_PACKED_SIZES)
def test_exponent_packed_weights_lose_no_bit(op, hidden, attrs, tier):
    """Without outliers the sums are those of plain weights, bit by bit, whatever the state."""

    def leave_none_out(recurrent):
        recurrent[np.abs(recurrent) < np.abs(recurrent).max() * 2.0**-13] = 0

    for seed, direction in enumerate(["forward", "reverse", "bidirectional"]):
        random = np.random.default_rng(seed)
        given = {"layout": seed % 2, **attrs}
        layer = Layer(random, op, 3, 1, 5, hidden, direction=direction, attrs=given, change=leave_none_out)
        assert EXPONENT_PACKED in layer.check(tier)
        for state in (1.0, 1e-20, 3e30):
            layer.inputs[1] = np.float32(state) * np.sign(layer.inputs[1])
            with np.errstate(over="ignore"):
                plain, packed = layer.run(tier, ROUTINE), layer.run(tier, EXPONENT_PACKED)
            for a, b in zip(packed, plain, strict=True):
                np.testing.assert_array_equal(a, b)


@by_tier
@pytest.mark.parametrize(("op", "hidden", "attrs"), EXPONENT_PACKED_SIZES)
def test_exponent_packed_weights_far_from_the_largest(op, hidden, attrs, tier):
    random = np.random.default_rng(11)

    def scatter(recurrent):
        where = random.random(recurrent.shape) < 0.0005
        recurrent[where] = random.choice(np.float32([1e-30, -3e-9, 1e-42]), int(where.sum()))

    layer = Layer(random, op, 4, 1, 5, hidden, direction="bidirectional", attrs=attrs, change=scatter)
    assert EXPONENT_PACKED in layer.check(tier)
    layer.inputs[1][:] = np.inf
    for a, e in zip(layer.run(tier, EXPONENT_PACKED), layer.run(tier, ROUTINE), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(e))


def test_what_exponent_packed_weights_are_not_for():
    def reason(batch=1, hidden=256, change=None):
        layer = Layer(np.random.default_rng(12), "LSTM", 2, batch, 3, hidden, change=change)
        return rejections(layer.graph, TIERS[0], "layer").get(EXPONENT_PACKED)

    assert reason() is None
    assert reason(batch=2) == "more than one row"
    assert reason(hidden=255) == "few weights, which the caches hold"
    assert reason(change=lambda r: np.multiply(r, r**8, out=r)) == "more than a weight in 1024 lies outside 15 binades"


@by_tier
def test_gates_far_from_zero(tier):
    """Saturated gates, at and beyond the limits of their exponentials."""
    for op in GATES:
        for scale in (30.0, 300.0, 1e30):
            layer = Layer(np.random.default_rng(9), op, 2, 2, 7, 16, bias=False)
            layer.inputs = [value * np.float32(scale) if i == 0 else value for i, value in enumerate(layer.inputs)]
            layer.check(tier)


@by_tier
@by_op
@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0)])
def test_no_step_or_no_batch(op, steps, batch, tier):
    Layer(np.random.default_rng(5), op, steps, batch, 3, 5, states=True, symbols=True).check(tier)


@by_tier
def test_rnn_with_relu(tier):
    Layer(np.random.default_rng(6), "RNN", 4, 2, 3, 9, attrs={"activations": ["Relu"]}).check(tier)


def test_refuses_an_initial_state_of_another_size():
    layer = Layer(np.random.default_rng(7), "GRU", 4, 2, 3, 9, symbols=True)
    pinned = compile_pinned(layer.graph, TIERS[0], {"layer": ROUTINE})
    with pytest.raises(ShapeError, match=r"an initial state must have dims \[1,3,9\]"):
        pinned.module.call([np.zeros((4, 3, 3), np.float32), layer.inputs[1]])


def test_says_why_it_declines():
    def reason(**forms):
        layer = Layer(np.random.default_rng(8), "LSTM", 2, 1, 3, 4, **forms)
        return rejections(layer.graph, TIERS[0], "layer").get(ROUTINE)

    assert reason() is None
    assert reason(lengths=[2]) is None
    assert reason(lengths=[2], attrs={"checked_lengths": 0}) == "nobody has looked whether the lengths fit"
