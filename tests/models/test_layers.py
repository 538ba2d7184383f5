"""Quantized models layer by layer: each step is onnxruntime's, but for values on the edge between two integers.

A whole network says less: one value on such an edge is one step in one element, and sixty layers later it is many steps
in most of them (see ``engines.Spread``). Here nothing grows, so nothing is forgiven.
"""

from __future__ import annotations

import neo
import numpy as np
import pytest

from .conftest import each_model, require
from .engines import OnnxRuntime
from .layers import QuantizedStep, quantized_steps, tapped
from .zoo import Model

# How far from the edge, in steps, both roundings are right: a few units in the last place of a float of 256 steps.
EDGE = 8 * 256 * float(np.finfo(np.float32).eps)

# Share of the elements that may lie on an edge: less than what lies so near one by chance, which is 2 * EDGE.
SHARE = 1e-4


def _assert_exact_but_for_edges(step: QuantizedStep, actual: np.ndarray) -> tuple[int, int]:
    """Check one quantized tensor; return how many of its elements were rounded the other way, and of how many."""
    assert actual.dtype == step.expected.dtype
    assert actual.shape == step.expected.shape
    apart = np.abs(actual.astype(np.int64) - step.expected)
    assert apart.max(initial=0) <= 1, f"{step.name}: {apart.max()} steps"
    from_edge = np.abs(step.exact - np.floor(step.exact) - 0.5)[apart > 0]
    assert from_edge.max(initial=0) <= EDGE, f"{step.name}: {from_edge.max():.3g} of a step from the edge"
    return int(np.count_nonzero(apart)), apart.size


@each_model(lambda model: model.quantized)
def test_every_step_is_exact_but_for_edges(tier: str, model: Model) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    runtime = OnnxRuntime(tapped(require(model).path), plain=True)
    for case in model.cases():
        counts = []
        for step in quantized_steps(model.path, {**case.feeds, **runtime.run(case.feeds)}):
            module = neo.compile(step.model, target=f"cpu:{tier}", threads=1)
            counts.append(_assert_exact_but_for_edges(step, module.run(step.feeds)[step.name]))
        different, total = np.sum(counts, axis=0)
        assert different <= 1 + SHARE * total


@each_model(lambda model: model.quantized)
def test_every_step_of_the_whole_network_is_exact_but_for_edges(tier: str, model: Model) -> None:
    """As above on neo's own tensors: the network is compiled whole, and onnxruntime is fed step by step."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    module = neo.compile(tapped(require(model).path), target=f"cpu:{tier}", threads=2)
    for case in model.cases():
        actual = module.run(case.feeds)
        steps = list(quantized_steps(model.path, {**case.feeds, **actual}))
        different, total = np.sum([_assert_exact_but_for_edges(step, actual[step.name]) for step in steps], axis=0)
        assert len(steps) > 10
        assert different <= 1 + SHARE * total
