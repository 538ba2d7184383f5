"""Values that come from sizes and attributes."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run


def test_range_of_integers_counts_like_python():
    random = np.random.default_rng(0)
    for _ in range(100):
        start, limit = (int(v) for v in random.integers(-9, 9, 2))
        delta = int(random.integers(1, 4)) * int(random.choice([-1, 1]))
        got = run("Range", np.array(start), np.array(limit), np.array(delta))
        assert got.tolist() == list(range(start, limit, delta))


def test_range_of_half_precision_counts_in_float32():
    got = run("Range", np.float16(0), np.float16(2050), np.float16(1))
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.arange(2050, dtype=np.float32).astype(np.float16))


def test_range_refuses_a_step_of_zero():
    with pytest.raises(ShapeError, match="delta must not be 0"):
        run("Range", np.array(0), np.array(3), np.array(0))


def test_sizes_become_symbols():
    assert infer("ConstantOfShape", ["N", 4], value=np.array([1], np.int64)) == "int64[N,4]"


def test_constant_of_shape_defaults_to_float_zero():
    got = run("ConstantOfShape", np.array([2, 0]))
    assert (got.dtype, got.shape) == (np.float32, (2, 0))


def test_dtype_attributes_are_numbers_or_names():
    x = np.zeros((2, 3), np.float32)
    assert run("EyeLike", x, dtype=7, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert run("EyeLike", x, dtype="float64").dtype == np.float64
    with pytest.raises(ModelError, match="TensorProto data type. Got 99"):
        run("EyeLike", x, dtype=99)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_symmetric_windows_are_symmetric(op):
    got = run(op, np.array(9), periodic=0)
    np.testing.assert_allclose(got, got[::-1], atol=1e-7)
    np.testing.assert_allclose(run(op, np.array(8))[:8], got[:8], atol=1e-7)


def test_seeded_numbers_repeat():
    a, b = (run("RandomNormal", shape=[1000], seed=3.0) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert abs(float(a.mean())) < 0.2
    assert 0.8 < float(a.std()) < 1.2


def test_unseeded_numbers_differ():
    a, b = (run("RandomUniform", shape=[50], low=2.0, high=3.0) for _ in range(2))
    assert (a != b).any()
    assert ((a >= 2) & (a < 3)).all()


def test_multinomial_never_draws_the_impossible():
    scores = np.array([[0.0, -np.inf, 0.0]], np.float32)
    drawn = run("Multinomial", scores, sample_size=200)
    assert set(drawn.ravel().tolist()) == {0, 2}
