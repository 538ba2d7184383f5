"""Pools against windows written out."""

import itertools

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run

CASES = [
    # sizes, kernel, strides, dilations, pads, ceil_mode
    ((7,), (3,), (2,), (1,), (1, 1), 0),
    ((6, 5), (2, 3), (1, 2), (1, 1), (0, 1, 1, 1), 0),
    ((6, 5), (2, 2), (3, 2), (2, 1), (0, 0, 0, 0), 1),
    ((4, 4), (3, 3), (2, 2), (1, 1), (0, 0, 0, 0), 1),
    ((1, 1), (1, 1), (2, 2), (1, 1), (0, 0, 1, 1), 1),
    ((3, 4, 5), (2, 2, 2), (1, 2, 2), (1, 1, 2), (1, 0, 0, 0, 1, 1), 0),
]


def windows(case):
    """For every output position, the input positions below its window, and how many lie in the padded input."""
    sizes, kernel, strides, dilations, pads, ceil_mode = case
    rank = len(sizes)
    outputs = []
    for i in range(rank):
        free = sizes[i] + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1
        output = (-(-free // strides[i]) if ceil_mode else free // strides[i]) + 1
        while (output - 1) * strides[i] >= sizes[i] + pads[i]:
            output -= 1
        outputs.append(output)
    for o in itertools.product(*map(range, outputs)):
        taps = [[o[i] * strides[i] + t * dilations[i] - pads[i] for t in range(kernel[i])] for i in range(rank)]
        below = list(itertools.product(*[[a for a in taps[i] if 0 <= a < sizes[i]] for i in range(rank)]))
        padded = np.prod([sum(a < sizes[i] + pads[i + rank] for a in taps[i]) for i in range(rank)])
        yield tuple(outputs), o, below, padded


def pool(x, case, reduce):
    for outputs, o, below, padded in windows(case):
        if o == (0,) * len(o):
            y = np.zeros((*x.shape[:2], *outputs))
        values = np.stack([x[(..., *at)] for at in below], axis=-1)
        y[(..., *o)] = reduce(values, padded)
    return y


def attributes(case):
    _, kernel, strides, dilations, pads, ceil_mode = case
    return {"kernel_shape": list(kernel), "strides": list(strides), "dilations": list(dilations), "pads": list(pads),
            "ceil_mode": ceil_mode}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pools(case):
    x = np.random.default_rng(0).standard_normal((2, 3, *case[0]))
    attrs = attributes(case)
    np.testing.assert_array_equal(run("MaxPool", x, **attrs), pool(x, case, lambda v, _: v.max(-1)))
    average = run("AveragePool", x, **attrs)
    np.testing.assert_allclose(average, pool(x, case, lambda v, _: v.mean(-1)), atol=1e-12)
    padded = run("AveragePool", x, **attrs, count_include_pad=1)
    np.testing.assert_allclose(padded, pool(x, case, lambda v, n: v.sum(-1) / n), atol=1e-12)
    norm = run("LpPool", x, **attrs, p=3)
    np.testing.assert_allclose(norm, pool(x, case, lambda v, _: (np.abs(v) ** 3).sum(-1) ** (1 / 3)), atol=1e-12)


@pytest.mark.parametrize("order", [0, 1])
def test_indices_find_the_largest(order):
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 5))
    y, indices = run("MaxPool", x, outputs=2, kernel_shape=[3, 2], pads=[1, 0, 1, 0], storage_order=order)
    flat = (x.transpose(0, 1, 3, 2) if order else x).reshape(-1)
    np.testing.assert_array_equal(flat[indices], y)


def test_unpool_undoes_a_pool():
    x = np.random.default_rng(2).uniform(1, 2, (2, 3, 6, 4)).astype(np.float32)
    y, indices = run("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    back = run("MaxUnpool", y, indices, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(back[back != 0], x[back != 0])
    assert (back != 0).sum() == y.size
    larger = run("MaxUnpool", y, indices, np.array([2, 3, 7, 5]), kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(larger[:, :, :6, :4], back)


def test_integers_pool():
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 1, 4, 4)
    result = run("MaxPool", x, kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    assert result.dtype == np.int8
    assert result[0, 0, 0].tolist() == [-8, -7, -6, -5]


@pytest.mark.parametrize("dims", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_global_pools(dims):
    x = np.random.default_rng(3).standard_normal(dims)
    axes = tuple(range(2, len(dims)))
    np.testing.assert_allclose(run("GlobalAveragePool", x), x.mean(axes, keepdims=True), atol=1e-12)
    np.testing.assert_array_equal(run("GlobalMaxPool", x), x.max(axes, keepdims=True))
    np.testing.assert_allclose(run("GlobalLpPool", x), np.sqrt((x * x).sum(axes, keepdims=True)), atol=1e-12)


def test_sizes_from_symbols():
    assert infer("GlobalAveragePool", "float32[N,64,H,W]") == "float32[N,64,1,1]"
    assert infer("MaxPool", "float32[N,64,H,8]", kernel_shape=[1, 2], strides=[1, 2]) == "float32[N,64,H,4]"


def test_refusals():
    with pytest.raises(ModelError, match="kernel_shape is required"):
        infer("MaxPool", "float32[1,1,4,4]")
    with pytest.raises(ShapeError, match="must fit into the padded input"):
        infer("AveragePool", "float32[1,1,4,4]", kernel_shape=[9, 9])
