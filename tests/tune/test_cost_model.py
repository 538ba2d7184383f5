"""What the cost model knows and learns."""

import numpy as np
import pytest
from neo import ResourceError
from neo.tune import cost_model, xgboost_library
from neo.tune.cost_model import CostModel
from neo.tune.trees import Trees

needs_xgboost = pytest.mark.skipif(not xgboost_library.available(), reason="there is no XGBoost library")


def made_up(count, seed=0):
    """Rows whose time follows two features."""
    random = np.random.default_rng(seed)
    rows = random.random((count, len(CostModel().names))).astype(np.float32)
    return rows, 10 + 20 * rows[:, 3] + 5 * np.abs(rows[:, 7] - 0.4)


def pairs_in_order(scores, times):
    """The share of pairs that the scores order as the times do."""
    faster = times[:, None] < times[None, :]
    return np.mean((scores[:, None] > scores[None, :])[faster])


def test_without_a_library_it_says_so_and_goes_on(monkeypatch):
    monkeypatch.setattr(xgboost_library, "available", lambda: False)
    model = CostModel()
    rows, times = made_up(200)
    assert not model.add("g", rows, times)
    assert model.note == "the cost model did not learn: there is no XGBoost library"
    assert model.predict(rows).shape == (200,)


def test_without_a_model_of_these_features_the_estimate_ranks(monkeypatch):
    def missing():
        msg = "[tune] it is missing"
        raise ResourceError(msg)

    monkeypatch.setattr(cost_model, "shipped_model", missing)
    model = CostModel()
    rows, _ = made_up(20)
    np.testing.assert_array_equal(np.argsort(model.predict(rows)), np.argsort(-rows[:, model.names.index("estimate")]))


def test_training_without_a_library_is_an_error(monkeypatch):
    monkeypatch.setattr(xgboost_library, "_library", lambda: None)
    with pytest.raises(ResourceError, match=r"^\[tune\] training needs XGBoost"):
        xgboost_library.train(np.zeros((2, 1), "f"), np.zeros(2, "f"), np.array([2], "u4"), rounds=1)


@needs_xgboost
def test_it_learns_what_the_shipped_model_does_not_know():
    model = CostModel()
    rows, times = made_up(300)
    before = pairs_in_order(model.predict(rows), times)
    assert model.add("g", rows, times)
    held_out, held_times = made_up(100, seed=1)
    assert pairs_in_order(model.predict(held_out), held_times) > max(0.8, before)


@needs_xgboost
def test_it_learns_again_only_when_there_is_much_more():
    model = CostModel()
    rows, times = made_up(300)
    learned = [model.add("g", rows[i : i + 8], times[i : i + 8]) for i in range(0, 296, 8)]
    assert 1 < sum(learned) < 8


@needs_xgboost
def test_trained_trees_are_evaluated_as_the_library_does():
    rows, times = made_up(400)
    scores = (times.min() / times).astype("f")
    groups = np.array([150, 250], "u4")
    first = Trees.from_xgboost(xgboost_library.train(rows, scores, groups, rounds=20), CostModel().names)
    margins = first.predict(rows)
    more = xgboost_library.train(rows, scores, groups, rounds=5, margins=margins)
    total = margins + Trees.from_xgboost(more, CostModel().names).predict(rows)
    assert pairs_in_order(total, times) > pairs_in_order(margins, times) - 0.01
    assert pairs_in_order(margins, times) > 0.9


@needs_xgboost
def test_what_the_library_refuses_is_an_error():
    rows, times = made_up(10)
    with pytest.raises(ResourceError, match=r"^\[tune\] XGBoost must accept what it is given"):
        xgboost_library.train(rows, times.astype("f"), np.array([9], "u4"), rounds=1)
