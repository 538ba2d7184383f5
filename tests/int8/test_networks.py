"""Random quantized networks against onnxruntime, and how integer routines take them."""

from __future__ import annotations

import neo
import numpy as np
import onnxruntime as ort
import pytest
from neo import _native

from tests.int8.networks import random_network

# A code may differ where a quotient lies halfway between two, and with it what is computed from it.
STEPS = 2
SHARE = 0.02
FEW = 4


def reference_of(model: bytes, feed: np.ndarray) -> list[np.ndarray]:
    """What onnxruntime computes, each operator by itself: in float32, as the model is written."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, {"x": feed})]


def input_of(model: object, seed: int) -> np.ndarray:
    """Numbers over the range of the first codes."""
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]  # type: ignore[attr-defined]
    return (np.random.default_rng(seed).standard_normal(dims) * 3).astype(np.float32)


@pytest.mark.parametrize("signed", [False, True], ids=["uint8", "int8"])
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_onnxruntime(seed: int, signed: bool) -> None:
    model = random_network(seed, signed=signed)
    feed = input_of(model, seed)
    module = neo.compile(model, threads=1)
    for result, expected in zip(module(feed), reference_of(model.SerializeToString(), feed), strict=True):
        step = np.abs(expected[expected != 0]).min(initial=1)
        off = np.abs(result - expected) / step
        assert off.max(initial=0) <= STEPS + 0.01
        assert (off > 0.5).sum() <= max(SHARE * off.size, FEW)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_bits_on_every_tier_and_team(seed: int) -> None:
    model = random_network(seed, signed=seed % 2 == 1, size=11)
    feed = input_of(model, seed)
    expected = neo.compile(model, threads=1)(feed)
    for tier in _native.host_tiers():
        for threads in (1, 2):
            for result, wanted in zip(
                neo.compile(model, target=f"cpu:{tier}", threads=threads)(feed), expected, strict=True
            ):
                np.testing.assert_array_equal(result, wanted)
