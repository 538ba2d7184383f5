"""Whether two answers are the same to the bit: arrays, strings, sequences, maps, empty optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_same"]


def assert_same(got: Any, expected: Any, name: str) -> None:
    """Compare two outputs of a model."""
    if expected is None:
        assert got is None, name
        return
    if isinstance(expected, dict):
        assert repr(got) == repr(expected), name
        return
    if isinstance(expected, list):
        assert isinstance(got, list), name
        assert len(got) == len(expected), name
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e, name)
        return
    assert got.dtype == expected.dtype, name
    assert got.shape == expected.shape, name
    if expected.dtype == object:
        assert got.tolist() == expected.tolist(), name
        return
    same = got.tobytes() == expected.tobytes()
    assert same, f"{name}: {np.sum(got != expected)} of {got.size} elements differ"
