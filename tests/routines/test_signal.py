"""Fourier transforms of any length by every instruction set against the reference, whose sums are the definition."""

import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, compile_pinned, pick, rejections

FOURIER = "cpu/fourier"
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 30, 49, 64, 97, 100, 121, 128, 169, 210, 257]

by_tier = pytest.mark.parametrize("tier", TIERS)


def numbers(random, dtype, dims):
    return random.uniform(-1, 1, dims).astype(dtype)


def check(graph, tier, inputs):
    pinned = compile_pinned(graph, tier, {"node": FOURIER})
    assert pinned.routines["node"] == FOURIER
    expected = graph.evaluate(inputs)[0]
    found = pinned(*inputs)
    assert found.dtype == expected.dtype
    tolerance = (3e-7 if found.dtype == np.float32 else 1e-13) * max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(*inputs, threads=threads), found)


def dft_graph(x, axis, attrs, length=None, symbols=False):
    graph = _native.Graph()
    names = [f"d{i}" if symbols else d for i, d in enumerate(x.shape[:-1])]
    operands = [graph.add_input("x", x.dtype.name, [*names, x.shape[-1]])]
    operands.append(None if length is None else graph.add_constant("length", np.array(length)))
    operands.append(graph.add_constant("axis", np.array(axis)))
    graph.outputs = graph.add_node("DFT", operands, ["y"], attrs, "node").outputs
    return graph


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("attrs", [{}, {"inverse": 1}, {"onesided": 1}, {"inverse": 1, "onesided": 1}], ids=str)
def test_transforms_of_every_length(attrs, dtype, tier):
    for seed, size in enumerate(LENGTHS):
        random = np.random.default_rng(seed)
        if attrs.get("inverse") and attrs.get("onesided") and size < 2:
            continue
        parts = 1 if attrs == {"onesided": 1} else 1 + seed % 2
        x = numbers(random, dtype, [pick(random, [1, 3, 19]), size, parts])
        check(dft_graph(x, 1, attrs, symbols=seed % 3 == 0), tier, [x])


@by_tier
def test_transforms_along_other_axes_and_of_other_lengths(tier):
    for seed in range(12):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 5, 9]) for _ in range(int(random.integers(1, 4)))]
        x = numbers(random, "float32", [*dims, 1 + seed % 2])
        axis = int(random.integers(len(dims)))
        length = pick(random, [None, 1, 4, 11, 17])
        check(dft_graph(x, axis - (x.ndim if seed % 2 else 0), {"inverse": seed % 2}, length), tier, [x])


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frames_of_a_signal(dtype, tier):
    for seed in range(16):
        random = np.random.default_rng(seed)
        length = pick(random, [1, 6, 17, 40])
        size = length + pick(random, [0, 3, 100])
        dims = [pick(random, [1, 3]), size, *([1 + seed % 2] if seed % 3 else [])]
        x = numbers(random, dtype, dims)
        graph = _native.Graph()
        operands = [graph.add_input("x", dtype, dims), graph.add_constant("step", np.array(pick(random, [1, 5])))]
        inputs = [x]
        if seed % 4 < 2:
            inputs.append(numbers(random, dtype, [length]))
            operands.append(graph.add_input("window", dtype, [length]))
        else:
            operands += [None, graph.add_constant("length", np.array(length))]
        graph.outputs = graph.add_node("STFT", operands, ["y"], {"onesided": seed // 2 % 2}, "node").outputs
        check(graph, tier, inputs)


def test_says_why_it_declines():
    x = np.zeros([2, 4, 1], np.float32)
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", [2, 4, 1]), None, graph.add_input("axis", "int64", [])]
    graph.outputs = graph.add_node("DFT", operands, ["y"], {}, "node").outputs
    assert rejections(graph, TIERS[0], "node")[FOURIER] == "the size of the result is only known when it runs"
    graph = dft_graph(x.astype(np.float16), 1, {})
    assert rejections(graph, TIERS[0], "node")[FOURIER] == "there is no kernel for its dtype"
