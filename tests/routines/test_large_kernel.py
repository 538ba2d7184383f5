"""Convolution whose kernel is about as large as its image, on every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, pick, rejections

LARGE = "cpu:float32/large_kernel"
CASES = 40

by_tier = pytest.mark.parametrize("tier", TIERS)


def conv(x_dims, weight, attrs, bias=None):
    """x, w -> Conv "conv", weights at run time where they are dims."""
    graph = _native.Graph()
    at_run_time = isinstance(weight, tuple)
    operands = [graph.add_input("x", "float32", x_dims)]
    operands.append(graph.add_input("w", "float32", weight) if at_run_time else graph.add_constant("w", weight))
    if bias is not None:
        operands.append(graph.add_constant("b", bias))
    graph.outputs = graph.add_node("Conv", operands, ["conv"], attrs, "conv").outputs
    return graph


def window(random, rank):
    """Sizes of an image, of a kernel about as large, and attributes; at most as many outputs as taps."""
    while True:
        sizes, kernel, attrs, outputs = [], [], {"strides": [], "dilations": []}, 1
        begin, end = [], []
        for _ in range(rank):
            k, stride, dilation = int(random.integers(1, 40 if rank == 1 else 12)), *random.integers(1, 4, 2).tolist()
            extent = (k - 1) * dilation + 1
            begin.append(int(random.integers(0, min(extent, 4))))
            end.append(int(random.integers(0, min(extent, 4))))
            out = int(random.integers(1, 6))
            sizes.append(max(1, extent + (out - 1) * stride - begin[-1] - end[-1] + int(random.integers(stride))))
            kernel.append(k)
            outputs *= (sizes[-1] + begin[-1] + end[-1] - extent) // stride + 1
            attrs["strides"].append(stride)
            attrs["dilations"].append(dilation)
        if outputs <= np.prod(kernel):
            return sizes, kernel, {**attrs, "pads": begin + end}


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_agrees_with_reference(tier, seed):
    random = np.random.default_rng(seed)
    sizes, kernel, attrs = window(random, pick(random, [1, 2, 2, 2, 3]))
    groups = pick(random, [1, 1, 2, 3])
    images = pick(random, [1, 2, 3, 8, 16, 17, 40, 64, 100])
    channels, features = groups * int(random.integers(1, 5)), groups * pick(random, [1, 3, 16, 21])
    x = floats(random, (images, channels, *sizes))
    w = floats(random, (features, channels // groups, *kernel))
    attrs = {**attrs, "group": groups, **pick(random, [{}, {"clamp_min": 0.0}, {"clamp_min": -0.5, "clamp_max": 0.5}])}
    bias = floats(random, [features]) if random.random() < 0.5 else None
    if bias is None and random.random() < 0.7:
        graph, inputs = conv([f"n{seed}", *x.shape[1:]], w.shape, attrs), [x, w]
    else:
        graph, inputs = conv(x.shape, w, attrs, bias), [x]
    pinned = compile_pinned(graph, tier, {"conv": LARGE})
    assert pinned.routines["conv"] == LARGE
    expected = graph.evaluate(inputs)[0]
    actual = pinned(*inputs)
    assert_close(actual, expected, int(np.prod(w.shape[1:])), (x.shape, w.shape, attrs))
    np.testing.assert_array_equal(actual, pinned(*inputs, threads=3))


@by_tier
def test_long_sums_are_cut_into_slices(tier):
    random = np.random.default_rng(1)
    x, w = floats(random, (20, 6, 30, 301)), floats(random, (24, 6, 28, 299))
    graph = conv(x.shape, w.shape, {})
    pinned = compile_pinned(graph, tier, {"conv": LARGE})
    actual = pinned(x, w)
    assert_close(actual, graph.evaluate([x, w])[0], w[0].size)
    for threads in (2, 3):
        np.testing.assert_array_equal(actual, pinned(x, w, threads=threads))


@by_tier
def test_takes_nan_and_infinity(tier):
    x, w = np.ones((17, 1, 6, 6), np.float32), np.ones((3, 1, 4, 4), np.float32)
    x[3, 0, 0, 0], x[5, 0, 5, 5] = np.nan, np.inf
    graph = conv(x.shape, w.shape, {"clamp_min": 0.0})
    np.testing.assert_array_equal(compile_pinned(graph, tier, {"conv": LARGE})(x, w), graph.evaluate([x, w])[0])


@by_tier
def test_batches_that_only_a_call_tells(tier):
    random = np.random.default_rng(2)
    graph = conv(("c", "n", 12, 12), ("o", "n", 10, 11), {"pads": [1, 1, 1, 1]})
    pinned = compile_pinned(graph, tier, {"conv": LARGE})
    for images, batch, features in ((3, 5, 7), (64, 8, 33), (1, 1, 1), (17, 2, 16)):
        x, w = floats(random, (images, batch, 12, 12)), floats(random, (features, batch, 10, 11))
        assert_close(pinned(x, w, threads=2), graph.evaluate([x, w])[0], batch * 110)


def test_says_why_not():
    ones = np.ones((4, 2, 3, 3), np.float32)
    padded = {"pads": [1] * 4}
    assert (
        rejections(conv((1, 2, 9, 9), ones, padded), "scalar", "conv")[LARGE] == "the output is larger than the kernel"
    )
    assert rejections(conv((1, 2, 40, 40), ones, padded), "scalar", "conv")[LARGE] == "the output has many pixels"
    unknown = conv((1, 2, "h", 4), ones, {})
    assert rejections(unknown, "scalar", "conv")[LARGE] == "the size of the output is not known"
    unknown = conv((1, 2, 4, 4), (3, 2, "h", 4), {})
    assert rejections(unknown, "scalar", "conv")[LARGE] == "the size of the kernel is not known"
