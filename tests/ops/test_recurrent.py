"""Recurrent layers against one step after the other written out."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError, UnsupportedError

from tests.ops.single_node import infer, run

STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
LENGTHS = np.array([5, 1, 3], np.int32)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "Sigmoid": lambda x, a, b: sigmoid(x),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
}


def weights(op, directions, seed=0):
    random = np.random.default_rng(seed)
    gates = GATES[op]
    return {
        "x": random.standard_normal((STEPS, BATCH, INPUT)),
        "w": random.standard_normal((directions, gates * HIDDEN, INPUT)),
        "r": random.standard_normal((directions, gates * HIDDEN, HIDDEN)),
        "b": random.standard_normal((directions, 2 * gates * HIDDEN)),
        "h": random.standard_normal((directions, BATCH, HIDDEN)),
        "c": random.standard_normal((directions, BATCH, HIDDEN)),
        "p": random.standard_normal((directions, 3 * HIDDEN)),
    }


def step(op, v, d, x, h, c, functions, clip, linear_before_reset=0, input_forget=0):
    """The next hidden and cell state of one element of the batch."""
    f = [lambda y, g=g: g(np.clip(y, -clip, clip)) for g in functions]
    wb, rb = np.split(v["b"][d], 2)
    from_x, from_h = v["w"][d] @ x + wb, v["r"][d] @ h
    if op == "RNN":
        return f[0](from_x + from_h + rb), c
    if op == "GRU":
        (xz, xr, xh), (hz, hr, hh), (bz, br, bh) = (np.split(a, 3) for a in (from_x, from_h, rb))
        z, reset = f[0](xz + hz + bz), f[0](xr + hr + br)
        inner = reset * (hh + bh) if linear_before_reset else np.split(v["r"][d], 3)[2] @ (reset * h) + bh
        return (1 - z) * f[1](xh + inner) + z * h, c
    i, o, forget, new = np.split(from_x + from_h + rb, 4)
    pi, po, pf = np.split(v["p"][d], 3)
    i = f[0](i + pi * c)
    forget = 1 - i if input_forget else f[0](forget + pf * c)
    c = forget * c + i * f[1](new)
    return f[0](o + po * c) * f[2](c), c


def layer(op, v, lengths, direction, functions, clip=np.inf, **attrs):
    directions = [False, True] if direction == "bidirectional" else [direction == "reverse"]
    y = np.zeros((STEPS, len(directions), BATCH, HIDDEN))
    last_h, last_c = v["h"].copy(), v["c"].copy()
    per = len(functions) // len(directions)
    for d, backwards in enumerate(directions):
        for n in range(BATCH):
            order = range(lengths[n])
            for t in reversed(order) if backwards else order:
                last_h[d, n], last_c[d, n] = step(
                    op,
                    v,
                    d,
                    v["x"][t, n],
                    last_h[d, n],
                    last_c[d, n],
                    functions[d * per : (d + 1) * per],
                    clip,
                    **attrs,
                )
                y[t, d, n] = last_h[d, n]
    return [y, last_h, last_c][: 3 if op == "LSTM" else 2]


def inputs(op, v, lengths):
    arrays = [v["x"], v["w"], v["r"], v["b"], lengths, v["h"]]
    return arrays + ([v["c"], v["p"]] if op == "LSTM" else [])


def close(results, expected):
    for result, reference in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, reference, atol=1e-12)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("switch", [0, 1])
def test_layers(op, direction, switch):
    directions = 2 if direction == "bidirectional" else 1
    v = weights(op, directions)
    names = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[op] * directions
    functions = [lambda x, n=n: FUNCTIONS[n](x, 0, 0) for n in names]
    attrs = {"GRU": {"linear_before_reset": switch}, "LSTM": {"input_forget": switch}}.get(op, {})
    expected = layer(op, v, LENGTHS, direction, functions, **attrs)
    outputs = len(expected)
    close(run(op, *inputs(op, v, LENGTHS), outputs=outputs, direction=direction, hidden_size=HIDDEN, **attrs), expected)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_activations_take_their_parameters_in_turn(op, direction):
    directions = 2 if direction == "bidirectional" else 1
    v = weights(op, directions)
    # Names, and the parameters each consumes.
    chosen = [("HardSigmoid", 0.3, 0.4), ("Softsign", 0, 0), ("ScaledTanh", 1.5, 0.7), ("Elu", 0.8, 0),
              ("Affine", 0.5, 0.1), ("LeakyRelu", 0.2, 0)]  # fmt: skip
    chosen = chosen[: {"RNN": 1, "GRU": 2, "LSTM": 3}[op] * directions]
    functions = [lambda x, c=c: FUNCTIONS[c[0]](x, c[1], c[2]) for c in chosen]
    expected = layer(op, v, LENGTHS, direction, functions, clip=0.6)
    results = run(
        op, *inputs(op, v, LENGTHS), outputs=len(expected), direction=direction, clip=0.6,
        activations=[c[0] for c in chosen],
        activation_alpha=[c[1] for c in chosen if c[0] != "Softsign"],
        activation_beta=[c[2] for c in chosen if c[0] in ("HardSigmoid", "ScaledTanh", "Affine")],
    )  # fmt: skip
    close(results, expected)


@pytest.mark.parametrize("op", GATES)
def test_batch_first_is_the_same_layer(op):
    v = weights(op, 2)
    outputs = 3 if op == "LSTM" else 2
    y, *states = run(op, *inputs(op, v, LENGTHS), outputs=outputs, direction="bidirectional")
    turned = dict(v, x=v["x"].swapaxes(0, 1), h=v["h"].swapaxes(0, 1), c=v["c"].swapaxes(0, 1))
    y1, *states1 = run(op, *inputs(op, turned, LENGTHS), outputs=outputs, direction="bidirectional", layout=1)
    np.testing.assert_array_equal(y1, y.transpose(2, 0, 1, 3))
    for state, state1 in zip(states, states1, strict=True):
        np.testing.assert_array_equal(state1, state.swapaxes(0, 1))


def test_quantized_layer_is_near_the_real_one():
    v = weights("LSTM", 1)
    quantized, scales = [], []
    for name in ("w", "r"):
        scale = np.abs(v[name]).max(axis=(1, 2)) / 127
        codes = np.rint(v[name] / scale.reshape(-1, 1, 1)).astype(np.int8)
        quantized.append(codes.swapaxes(1, 2).copy())
        scales += [scale.astype(np.float32), np.zeros(1, np.int8)]
    single = {k: a.astype(np.float32) for k, a in v.items()}
    expected = run("LSTM", *inputs("LSTM", single, LENGTHS), outputs=3)
    arrays = [single["x"], *quantized, single["b"], LENGTHS, single["h"], single["c"], single["p"], *scales]
    results = run("com.microsoft.DynamicQuantizeLSTM", *arrays, outputs=3, hidden_size=HIDDEN)
    for result, reference in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, reference, atol=0.1)
        assert np.abs(result - reference).max() > 0


def test_sizes_from_symbols():
    shapes = ["float32[T,B,4]", "float32[2,8,4]", "float32[2,8,2]"]
    assert infer("LSTM", *shapes, outputs=3, direction="bidirectional", hidden_size=2) == [
        "float32[T,2,B,2]", "float32[2,B,2]", "float32[2,B,2]",
    ]  # fmt: skip
    assert run("GRU", np.zeros((0, 2, 4)), np.zeros((1, 6, 4)), np.zeros((1, 6, 2)), outputs=2)[1].shape == (1, 2, 2)


def test_refusals():
    shapes = ["float32[T,B,4]", "float32[1,8,4]", "float32[1,8,2]"]
    with pytest.raises(ModelError, match="direction must be"):
        infer("LSTM", *shapes, direction="backward")
    with pytest.raises(ShapeError, match="a row per gate"):
        infer("GRU", *shapes)
    v = weights("RNN", 1)
    with pytest.raises(UnsupportedError, match=r'activation is not known. Got "Swish"'):
        run("RNN", *inputs("RNN", v, LENGTHS), outputs=2, activations=["Swish"])
    with pytest.raises(ShapeError, match=r"must not be longer than X. Got 6"):
        run("RNN", *inputs("RNN", v, np.array([6, 1, 1], np.int32)), outputs=2)
