"""Normalizations against their formulas."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import floats, infer, run

EPSILON = float(np.float32(1e-5))


def normalized(x, axes, epsilon=EPSILON):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def per_channel(v, rank):
    return v.reshape(-1, *[1] * (rank - 2))


@pytest.mark.parametrize("dims", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
def test_batch_norm(dims):
    x, scale, bias, mean = floats(*dims), floats(3, seed=1), floats(3, seed=2), floats(3, seed=3)
    variance = floats(3, seed=4) ** 2
    c = lambda v: per_channel(v, len(dims))  # noqa: E731
    expected = (x - c(mean)) / np.sqrt(c(variance) + 0.25) * c(scale) + c(bias)
    np.testing.assert_allclose(
        run("BatchNormalization", x, scale, bias, mean, variance, epsilon=0.25), expected, atol=1e-12
    )
    axes = (0, *range(2, len(dims)))
    y, running_mean, running_variance = run(
        "BatchNormalization", x, scale, bias, mean, variance, outputs=3, training_mode=1, momentum=0.75
    )
    np.testing.assert_allclose(y, normalized(x, axes) * c(scale) + c(bias), atol=1e-12)
    np.testing.assert_allclose(running_mean, mean * 0.75 + x.mean(axes) * 0.25, atol=1e-12)
    np.testing.assert_allclose(running_variance, variance * 0.75 + x.var(axes) * 0.25, atol=1e-12)


def test_running_statistics_need_training():
    inputs = ["float32[2,3]", *["float32[3]"] * 4]
    with pytest.raises(ModelError, match="only training_mode = 1 gives running statistics"):
        infer("BatchNormalization", *inputs, outputs=3)


def test_group_norm_spans_instance_norm():
    x, scale, bias = floats(2, 6, 4, 5), floats(6, seed=1), floats(6, seed=2)
    c = lambda v: per_channel(v, 4)  # noqa: E731
    np.testing.assert_allclose(
        run("InstanceNormalization", x, scale, bias), normalized(x, (2, 3)) * c(scale) + c(bias), atol=1e-12
    )
    grouped = normalized(x.reshape(2, 3, -1), 2).reshape(x.shape) * c(scale) + c(bias)
    np.testing.assert_allclose(run("GroupNormalization", x, scale, bias, num_groups=3), grouped, atol=1e-12)
    with pytest.raises(ShapeError, match="divisible by num_groups"):
        infer("GroupNormalization", "float32[2,6,4]", "float32[6]", "float32[6]", num_groups=4)


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_norm(axis):
    x = floats(2, 3, 4)
    axes = tuple(range(axis % 3, 3))
    scale, bias = floats(*x.shape[axis % 3 :], seed=1), floats(4, seed=2)
    y, mean, inverse = run("LayerNormalization", x, scale, bias, outputs=3, axis=axis, stash_type=11)
    np.testing.assert_allclose(y, normalized(x, axes) * scale + bias, atol=1e-12)
    np.testing.assert_allclose(mean, x.mean(axes, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(axes, keepdims=True) + EPSILON), atol=1e-12)
    rms = x / np.sqrt((x * x).mean(axes, keepdims=True) + EPSILON) * scale
    np.testing.assert_allclose(run("RMSNormalization", x, scale, axis=axis), rms, atol=1e-12)


def test_skip_layer_norm():
    x, skip, gamma, beta, bias = floats(2, 3, 8), floats(3, 8, seed=1), *(floats(8, seed=s) for s in (2, 3, 4))
    total = x + skip + bias
    y, _, _, kept = run("com.microsoft.SkipLayerNormalization", x, skip, gamma, beta, bias, outputs=4, epsilon=1e-3)
    np.testing.assert_allclose(y, normalized(total, (2,), 1e-3) * gamma + beta, atol=1e-7)
    np.testing.assert_allclose(kept, total, atol=1e-12)
    simple = run("com.microsoft.SkipSimplifiedLayerNormalization", x, skip, gamma, epsilon=1e-3)
    squares = np.mean((x + skip) ** 2, -1, keepdims=True)
    np.testing.assert_allclose(simple, (x + skip) / np.sqrt(squares + 1e-3) * gamma, atol=1e-7)


def test_lrn_has_the_longer_side_after():
    x = floats(1, 6, 2)
    for size in [1, 3, 4]:
        before, after = (size - 1) // 2, size // 2
        squares = np.stack([(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(6)], 1)
        expected = x / (2 + 0.5 / size * squares) ** 0.75
        np.testing.assert_allclose(run("LRN", x, size=size, alpha=0.5, bias=2.0), expected, atol=1e-12)


def test_lp_norm_of_zeros_is_zero():
    x = np.array([[3, 4], [0, 0]], np.float64)
    np.testing.assert_allclose(run("LpNormalization", x), [[0.6, 0.8], [0, 0]])
    np.testing.assert_allclose(run("LpNormalization", x, p=1, axis=0), [[1, 1], [0, 0]])
