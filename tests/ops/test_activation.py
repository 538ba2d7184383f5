"""Activations where their formulas need care."""

import math

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run

EXTREMES = np.array([-1000, -80, -1, -1e-8, 0, 1e-8, 1, 80, 1000], np.float64)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Sigmoid", [0, math.exp(-80), 1 / (1 + math.e), 0.5, 0.5, 0.5, math.e / (1 + math.e), 1, 1]),
        ("Softplus", [0, math.exp(-80), math.log1p(math.exp(-1)), math.log(2), math.log(2), math.log(2),
                      math.log1p(math.e), 80, 1000]),
        ("Elu", [-1, -1, math.expm1(-1), -1e-8, 0, 1e-8, 1, 80, 1000]),
        ("Celu", [-1, -1, math.expm1(-1), -1e-8, 0, 1e-8, 1, 80, 1000]),
    ],
)  # fmt: skip
def test_extremes_stay_finite(op, expected):
    np.testing.assert_allclose(run(op, EXTREMES), expected, rtol=1e-7, atol=1e-300)


def test_defaults_are_those_of_float32():
    assert run("LeakyRelu", np.array([-1.0]))[0] == -float(np.float32(0.01))
    assert run("HardSigmoid", np.array([1.0]))[0] == float(np.float32(0.2)) + 0.5


@pytest.mark.parametrize("op", ["com.microsoft.BiasGelu", "com.microsoft.FastGelu"])
def test_gelu_with_bias(op):
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    bias = np.array([0.5, -1, 2, 0])
    approximate = "tanh" if op.endswith("FastGelu") else "none"
    np.testing.assert_array_equal(run(op, x, bias), run("Gelu", x + bias, approximate=approximate))


def test_prelu_broadcasts_both_ways():
    x = np.array([[-1, 2], [-3, -4]], np.float32)
    np.testing.assert_array_equal(run("PRelu", x, np.array([[2], [3]], np.float32)), [[-2, 2], [-9, -12]])
    np.testing.assert_array_equal(run("PRelu", x[:1], np.array([[2], [3]], np.float32)), [[-2, 2], [-3, 2]])
    assert infer("PRelu", "float32[2]", "float32[3,2]") == "float32[3,2]"
    with pytest.raises(ShapeError, match="broadcast"):
        infer("PRelu", "float32[2]", "float32[3]")


def test_dropout_passes_in_inference_only():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for inputs in ((np.float32(0.5),), (np.float32(0.5), np.array(False)), (np.float32(0), np.array(True))):
        y, mask = run("Dropout", x, *inputs, outputs=2)
        np.testing.assert_array_equal(y, x)
        assert mask.all()


def test_dropout_that_trains():
    x = np.ones((100, 100), np.float32)
    y, mask = run("Dropout", x, np.float32(0.25), np.array(True), outputs=2)
    np.testing.assert_array_equal(y, np.where(mask, np.float32(4 / 3), 0))
    assert 0.7 < mask.mean() < 0.8
    assert not np.array_equal(y, run("Dropout", x, np.float32(0.25), np.array(True)))
    seeded = [run("Dropout", x, np.float32(0.5), np.array(True), seed=7) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    with pytest.raises(ShapeError, match="ratio must be at least 0 and below 1. Got 1"):
        run("Dropout", x, np.float32(1), np.array(True))


def test_attributes_are_checked():
    with pytest.raises(ModelError, match=r'approximate must be none or tanh. Got "erf"'):
        infer("Gelu", "float32[2]", approximate="erf")
