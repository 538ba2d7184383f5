"""Recurrent layers that are more than the plain cell, against the reference."""

import numpy as np
import pytest

from benchmarks.models.recurrent import ACTIVATIONS, FUNCTIONS
from tests.routines.pinning import TIERS, compile_pinned, pick, rejections
from tests.routines.test_recurrent import EXPONENT_PACKED, ROUTINE, Layer, attrs_of

by_tier = pytest.mark.parametrize("tier", TIERS)
by_op = pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])

DIRECTIONS = ["forward", "reverse", "bidirectional"]


def functions_of(random, op, direction):
    """Random functions of each direction, bounded where they would make states grow."""
    chosen = [pick(random, list(ACTIVATIONS)) for _ in range(FUNCTIONS[op] * (1 + (direction == "bidirectional")))]
    alpha = [float(np.float32(random.uniform(0.1, 0.4))) for name in chosen if ACTIVATIONS[name] > 0]
    beta = [float(np.float32(random.uniform(0.1, 0.4))) for name in chosen if ACTIVATIONS[name] > 1]
    found = {"activations": chosen, "clip": float(np.float32(random.uniform(0.3, 1.5)))}
    return found | {key: values for key, values in (("activation_alpha", alpha), ("activation_beta", beta)) if values}


def lengths_of(random, steps, batch):
    """Lengths of a batch: any, all the same, or as long as X but for one."""
    form = int(random.integers(4))
    if form == 0:
        return [int(random.integers(0, steps + 1))] * batch
    lengths = [int(random.integers(0, steps + 1)) for _ in range(batch)]
    return lengths if form < 3 else [steps] * (batch - 1) + lengths[:1]


@by_tier
@by_op
def test_every_form(op, tier):
    """Rules, lengths and weights that are inputs, in any mixture, at sizes that are whole vectors or not."""
    for seed in range(24):
        random = np.random.default_rng(seed)
        steps, batch = int(random.integers(1, 12)), pick(random, [1, 1, 2, 3, 7, 13])
        direction = pick(random, DIRECTIONS)
        attrs = attrs_of(random, op)
        if seed % 3:
            attrs |= functions_of(random, op, direction)
        if op == "LSTM" and seed % 4 == 1:
            attrs["input_forget"] = 1
        outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
        wanted = int(random.integers(1, 2 ** len(outputs)))
        Layer(
            random,
            op,
            steps,
            batch,
            pick(random, [1, 3, 16, 33]),
            pick(random, [1, 5, 16, 19, 48]),
            direction=direction,
            attrs=attrs,
            outputs=[o if wanted >> i & 1 else "" for i, o in enumerate(outputs)],
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
            lengths=lengths_of(random, steps, batch) if random.integers(2) else None,
            peepholes=op == "LSTM" and bool(random.integers(2)),
            variable=bool(random.integers(2)),
        ).check(tier)


@by_tier
@by_op
@pytest.mark.parametrize("function", list(ACTIVATIONS))
def test_each_function(op, function, tier):
    """Alone, with the defaults of its parameters and with others, near zero and far from it."""
    for count in range(ACTIVATIONS[function] + 1):
        given = {"activations": [function] * FUNCTIONS[op]}
        for key in ("activation_alpha", "activation_beta")[:count]:
            given[key] = [0.3] * FUNCTIONS[op]
        Layer(np.random.default_rng(3), op, 3, 2, 4, 17, attrs={"clip": 1.5, **given}).check(tier)
        far = Layer(np.random.default_rng(3), op, 1, 2, 4, 17, attrs={"clip": 40.0, **given})
        far.inputs[0] = far.inputs[0] * np.float32(30)
        far.check(tier)


@by_tier
@by_op
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("steps", "batch", "hidden"), [(9, 40, 64), (20, 1, 256), (7, 7, 130), (23, 1, 48)])
def test_lengths_at_sizes_for_a_team(op, direction, steps, batch, hidden, tier):
    """All ways to do a layer; sequences of no step at the beginning and at the end."""
    for seed in range(2):
        random = np.random.default_rng(seed)
        lengths = [int(random.integers(0, steps + 1)) for _ in range(batch)]
        lengths[0] = 0 if batch > 1 and seed else lengths[0]
        lengths[-1] = 0 if batch > 2 and not seed else lengths[-1]
        Layer(
            random, op, steps, batch, 33, hidden, direction=direction, attrs=attrs_of(random, op), lengths=lengths
        ).check(tier)


@by_tier
@by_op
def test_one_module_for_all_lengths(op, tier):
    """What one call leaves in memory does not show in the next."""
    random = np.random.default_rng(2)
    for batch in (1, 5):
        layer = Layer(random, op, 21, batch, 9, 33, direction="bidirectional", lengths=[21] * batch, states=False)
        for lengths in ([21] * batch, [3] * batch, list(range(batch, 0, -1)), [0] * batch, [17] + [20] * (batch - 1)):
            layer.inputs[1] = np.asarray(lengths, np.int32)
            layer.check(tier)


@by_tier
@by_op
@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0), (0, 0)])
def test_lengths_of_nothing(op, steps, batch, tier):
    Layer(np.random.default_rng(5), op, steps, batch, 3, 5, symbols=True, lengths=[0] * batch).check(tier)


@by_tier
def test_rules_beside_strassens_algorithm(tier):
    """Products of whole batches end in the same functions."""
    for op in ("LSTM", "GRU"):
        random = np.random.default_rng(6)
        attrs = functions_of(random, op, "forward") | {
            "activations": ["HardSigmoid", "Tanh", "Softsign"][: FUNCTIONS[op]]
        }
        ways = Layer(random, op, 3, 23, 64, 128, attrs=attrs, peepholes=op == "LSTM").check(tier)
        assert any("levels" in way for way in ways)


@by_tier
@by_op
def test_float64(op, tier):
    """Every form, to the last digits of its numbers."""
    for seed in range(24):
        random = np.random.default_rng(seed)
        steps, batch = int(random.integers(0, 9)), pick(random, [0, 1, 1, 2, 5, 9, 70])
        direction = pick(random, DIRECTIONS)
        attrs = attrs_of(random, op)
        if seed % 2:
            attrs |= functions_of(random, op, direction)
        if op == "LSTM" and seed % 4 == 1:
            attrs["input_forget"] = 1
        outputs = ["y", "y_h", "y_c"][: 3 if op == "LSTM" else 2]
        wanted = int(random.integers(1, 2 ** len(outputs)))
        layer = Layer(
            random,
            op,
            steps,
            batch,
            pick(random, [1, 3, 16, 33]),
            pick(random, [1, 5, 16, 19, 48]),
            direction=direction,
            attrs=attrs,
            outputs=[o if wanted >> i & 1 else "" for i, o in enumerate(outputs)],
            states=bool(random.integers(2)),
            bias=bool(random.integers(2)),
            symbols=bool(random.integers(2)),
            lengths=lengths_of(random, steps, batch) if random.integers(2) else None,
            peepholes=op == "LSTM" and bool(random.integers(2)),
            variable=bool(random.integers(2)),
            dtype="float64",
        )
        for actual, expected in zip(
            layer.run(tier, "cpu:float64/recurrent"), layer.graph.evaluate(layer.inputs), strict=True
        ):
            assert actual.dtype == np.float64
            np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


@by_op
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_that_nobody_looked_at_are_bounded(op, dtype):
    """As a saved module from a stranger may have them: no memory outside X is touched."""
    routine = f"cpu:{dtype}/recurrent"
    for batch in (1, 3):
        given = [7, -5, 2**30][-batch:]
        layer = Layer(np.random.default_rng(1), op, 4, batch, 3, 17, lengths=given, dtype=dtype, states=False)
        wild = layer.run(TIERS[0], routine)
        layer.inputs[1] = np.clip(np.asarray(given, np.int32), 0, 4)
        for a, b in zip(wild, layer.run(TIERS[0], routine), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_other_routines_leave():
    def reason(**forms):
        layer = Layer(np.random.default_rng(12), "LSTM", 2, 1, 3, 256, **forms)
        return rejections(layer.graph, TIERS[0], "layer").get(EXPONENT_PACKED)

    assert reason(lengths=[1], peepholes=True, attrs={"clip": 0.5}) is None
    assert reason(variable=True) == "the weights are not constants"


def test_a_function_of_no_name():
    from neo import UnsupportedError

    layer = Layer(np.random.default_rng(1), "RNN", 2, 1, 3, 4, attrs={"activations": ["Cosine"]})
    with pytest.raises(UnsupportedError, match="the activation is not known"):
        compile_pinned(layer.graph, TIERS[0], {"layer": ROUTINE})
