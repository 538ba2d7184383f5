"""Rows in the order of their scores: what may change places, and what may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .ranking import align

NAMES = ("scores", "labels", "boxes")


def _rows(*rows: tuple[float, int, float]) -> dict[str, Any]:
    """Return one batch of rows of a score, a label and the left edge of a box."""
    scores, labels, lefts = zip(*rows, strict=True)
    boxes = np.array([[left, 0, left + 2, 2] for left in lefts], np.float32)
    return {"scores": np.array([scores], np.float32), "labels": np.array([labels]), "boxes": boxes[None]}


EXPECTED = _rows((0.9, 3, 10), (0.5001, 7, 20), (0.5, 4, 30), (0.2, 5, 40))


def _assert_same(aligned: tuple[dict[str, Any], dict[str, Any]]) -> None:
    for name in NAMES:
        np.testing.assert_allclose(aligned[0][name], aligned[1][name], atol=0.01)


def test_rows_of_near_scores_may_change_places() -> None:
    actual = _rows((0.9, 3, 10), (0.5, 4, 30), (0.5001, 7, 20), (0.2, 5, 40))
    aligned = align(NAMES, actual, EXPECTED, 0.001)
    _assert_same(aligned)
    np.testing.assert_array_equal(aligned[1]["labels"], EXPECTED["labels"])


def test_equal_rows_are_each_used_once() -> None:
    expected = _rows((0.5, 3, 10), (0.5, 3, 10), (0.2, 5, 40))
    with pytest.raises(AssertionError, match=r"\[scores\] no row is that of place 1 of batch 0, score 0\.5"):
        align(NAMES, _rows((0.5, 3, 10), (0.5, 4, 10), (0.2, 5, 40)), expected, 0.001)
    _assert_same(align(NAMES, expected, expected, 0.001))


@pytest.mark.parametrize(
    "wrong", [(0.5001, 8, 20), (0.51, 7, 20)], ids=["another label", "a score beyond the tolerance"]
)
def test_a_row_that_is_nowhere_is_refused(wrong: tuple[float, int, float]) -> None:
    with pytest.raises(AssertionError, match="place 1 of batch 0"):
        align(NAMES, _rows((0.9, 3, 10), wrong, (0.5, 4, 30), (0.2, 5, 40)), EXPECTED, 0.001)


def test_another_box_stays_for_the_float_rule() -> None:
    actual = _rows((0.9, 3, 10), (0.5001, 7, 25), (0.5, 4, 30), (0.2, 5, 40))
    found, right = align(NAMES, actual, EXPECTED, 0.001)
    assert np.abs(found["boxes"] - right["boxes"]).max() == 5


def test_rows_that_tie_with_the_last_place_may_be_others() -> None:
    actual = _rows((0.9, 3, 10), (0.5001, 7, 20), (0.5, 4, 30), (0.2003, 9, 70))
    found, right = align(NAMES, actual, EXPECTED, 0.001)
    _assert_same((found, right))
    assert right["labels"].tolist() == [[3, 7, 4, 0]]
