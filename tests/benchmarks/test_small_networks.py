"""The small networks of the benchmarks against onnxruntime."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from benchmarks.models.small_networks import KINDS, make

#: Of seeds that nobody measures, too.
SEEDS = (0, 7, 1001)


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_onnxruntime(kind: str) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    for seed in SEEDS:
        sample = make(kind, seed)
        session = onnxruntime.InferenceSession(sample.model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, sample.feeds)
        module = neo.compile(sample.model, threads=2)
        for found, wanted in zip(module.run(sample.feeds).values(), expected, strict=True):
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max() <= 5e-4 * max(1, np.abs(wanted).max()), sample.name
        assert not [step.op for step in module.steps if step.routine == "cpu/reference"], sample.name


def test_seeds_make_different_networks() -> None:
    for kind in KINDS:
        first, again, other = make(kind, 1), make(kind, 1), make(kind, 2)
        assert first.model == again.model
        assert first.model != other.model
