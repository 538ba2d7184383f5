"""Answers that were stored are the ones that models are held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from . import answers, engines, zoo

MODEL = zoo.BY_NAME["micro-kws-qdq"]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[answers.Answer]]:
    """Store two cases of different shapes and use them instead of onnxruntime."""
    rng = np.random.default_rng(3)
    kept = [
        (f"{rows}x4", {"a/b:0": rng.random((rows, 4))}, {"out|0": rng.random(rows, dtype=np.float32)})
        for rows in (2, 3)
    ]
    answers.save(tmp_path, MODEL, kept, [{"out|0": outputs["out|0"] + 1} for *_, outputs in kept])
    monkeypatch.setenv("NEO_TEST_ANSWERS", str(tmp_path))
    engines.expected_of.cache_clear()
    yield kept
    engines.expected_of.cache_clear()


def test_cases_come_back_as_they_were_stored(stored: list[answers.Answer]) -> None:
    loaded = engines.expected_of(MODEL)
    for outputs, (*_, plain) in zip(engines.fused_of(MODEL), stored, strict=True):
        np.testing.assert_array_equal(outputs["out|0"], plain["out|0"] + 1)
    assert [name for name, _, _ in loaded] == ["2x4", "3x4"]
    for (_, feeds, outputs), (_, right_feeds, right_outputs) in zip(loaded, stored, strict=True):
        for left, right in ((feeds, right_feeds), (outputs, right_outputs)):
            assert left.keys() == right.keys()
            for name in right:
                np.testing.assert_array_equal(left[name], right[name], strict=True)


def test_only_models_with_an_answer_take_part(stored: list[answers.Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    assert [model.name for model in zoo.MODELS if answers.covers(model)] == [MODEL.name]
    monkeypatch.delenv("NEO_TEST_ANSWERS")
    assert all(answers.covers(model) for model in zoo.MODELS)
