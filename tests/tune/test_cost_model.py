"""What the cost model knows and learns."""

import numpy as np
import pytest
from neo import ModelError, ResourceError, _native
from neo.frontend.onnx import read_model
from neo.tune import cost_model, xgboost_library
from neo.tune.cost_model import CostModel
from neo.tune.features import ROUTINES, point_features
from neo.tune.trees import Trees, shipped_corrections, shipped_model

from .spaces import conv_model, gemm_model

needs_xgboost = pytest.mark.skipif(not xgboost_library.available(), reason="there is no XGBoost library")


def synthetic(count, seed=0):
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
    rows, times = synthetic(200)
    assert not model.add("g", rows, times)
    assert model.note == "the cost model did not learn: there is no XGBoost library"
    assert model.predict(rows).shape == (200,)


def test_without_a_model_of_these_features_the_estimate_ranks(monkeypatch):
    def missing():
        msg = "[tune] it is missing"
        raise ResourceError(msg)

    monkeypatch.setattr(cost_model, "shipped_model", missing)
    model = CostModel()
    rows, _ = synthetic(20)
    np.testing.assert_array_equal(np.argsort(model.predict(rows)), np.argsort(-rows[:, model.names.index("estimate")]))


def test_training_without_a_library_is_an_error(monkeypatch):
    monkeypatch.setattr(xgboost_library, "_library", lambda: None)
    with pytest.raises(ResourceError, match=r"^\[tune\] training must have XGBoost"):
        xgboost_library.train(np.zeros((2, 1), "f"), np.zeros(2, "f"), np.array([2], "u4"), rounds=1)


@needs_xgboost
def test_it_learns_what_the_shipped_model_does_not_know():
    model = CostModel()
    rows, times = synthetic(300)
    before = pairs_in_order(model.predict(rows), times)
    assert model.add("g", rows, times)
    held_out, held_times = synthetic(100, seed=1)
    assert pairs_in_order(model.predict(held_out), held_times) > max(0.8, before)


@needs_xgboost
def test_it_learns_again_only_when_there_is_much_more():
    model = CostModel()
    rows, times = synthetic(300)
    learned = [model.add("g", rows[i : i + 8], times[i : i + 8]) for i in range(0, 296, 8)]
    assert 1 < sum(learned) < 8


@needs_xgboost
def test_trained_trees_are_evaluated_as_the_library_does():
    rows, times = synthetic(400)
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
    rows, times = synthetic(10)
    with pytest.raises(ResourceError, match=r"^\[tune\] XGBoost must accept what it is given"):
        xgboost_library.train(rows, times.astype("f"), np.array([9], "u4"), rounds=1)


def estimates(model, target="cpu", trees=None):
    """Of every candidate what its time is expected to be, and the bench that has it."""
    graph = _native.run_passes(read_model(model.SerializeToString())[0])
    bench = _native.make_bench(_native.build_problem(graph, target, 1, trees=trees), 1)
    return {(t["workload"], t["candidate"]): t["estimate_us"] for t in bench.trials}, bench


def leaf(value, lanes):
    names = CostModel().names
    return _native.make_cost_trees(_native.make_trees([0], [-1], [value], [0], len(names)), names, lanes)


WIDEST = {"avx512": 16, "avx2": 8, "neon": 4, "scalar": 4}


def lanes_here():
    return [WIDEST[_native.host_isa().split("_")[0]]]


def test_estimates_of_routines_that_were_measured_are_corrected():
    model = conv_model((1, 32, 14, 14), (48, 32, 3, 3), pads=[1] * 4)
    plain, _ = estimates(model)
    doubled, _ = estimates(model, trees=leaf(1.0, lanes_here()))
    elsewhere, _ = estimates(model, trees=leaf(1.0, [999]))
    assert plain == elsewhere
    for key, estimate in plain.items():
        routine = key[1].split("{")[0].split(" ")[0]
        start_us = _native.product_start_us(routine)
        assert doubled[key] == pytest.approx((estimate - start_us) * (2 if routine in ROUTINES else 1) + start_us), key
    assert plain != doubled


def test_features_may_be_those_of_another_machine():
    graph = _native.run_passes(read_model(conv_model((1, 64, 28, 28), (64, 64, 3, 3)).SerializeToString())[0])
    column = _native.loop_feature_names().index("private_l2")
    for bytes_of_l2 in (1 << 20, 1 << 22):
        problem = _native.build_problem(graph, "cpu", 1, caches=(1 << 15, bytes_of_l2))
        assert _native.make_bench(problem, 1).features(0, [0], "memory")[0, column] == np.log2(bytes_of_l2)


@pytest.mark.parametrize(
    "model",
    [
        conv_model((1, 40, 28, 28), (64, 40, 3, 3), pads=[1] * 4),
        conv_model((1, 32, 28, 28), (32, 1, 3, 3), group=32),
        gemm_model(17, 64, 96),
    ],
)
def test_the_core_evaluates_the_shipped_trees_as_python_does(model):
    trees = shipped_model()
    everywhere = _native.make_cost_trees(trees.native, trees.names, lanes_here())
    plain, bench = estimates(model)
    corrected, _ = estimates(model, trees=everywhere)
    seen = 0
    for i, space in enumerate(bench.spaces):
        if space["routine"] not in ROUTINES:
            continue
        for trial in (bench.trial(t) for t in space["trials"]):
            point = bench.find(i, trial["candidate"])
            if point is None:
                continue
            rows = point_features(bench, i, space["routine"], "shared", [point])
            key = trial["workload"], trial["candidate"]
            start_us = _native.product_start_us(space["routine"])
            alone_us = (plain[key] - start_us) * 2 ** float(trees.predict(rows)[0])
            assert corrected[key] == pytest.approx(alone_us + start_us, rel=1e-3)
            seen += 1
    assert seen > 0


def test_a_damaged_model_is_an_error():
    names = CostModel().names
    assert shipped_corrections() is not None
    for arrays in (
        ([1], [-1], [0.0], [0]),  # a root outside
        ([0], [0, -1], [0.0, 0.0], [0, 0]),  # a child that comes before its parent
        ([0], [len(names), -1, -1], [0.0] * 3, [1, 0, 0]),  # no such column
        ([0], [0, -1], [0.0, 0.0], [1, 0]),  # half a pair of children
        ([0], [-1], [0.0, 1.0], [0]),
    ):
        with pytest.raises(ModelError, match=r"^\[tune\] a cost model's trees must be whole"):
            _native.make_trees(*arrays, len(names))
    trees = _native.make_trees([0], [-1], [0.0], [0], 2)
    for columns in (["flops", "cache_level"], ["flops"]):
        with pytest.raises(ModelError, match=r"^\[tune\] a cost model must be of the features of this neo"):
            _native.make_cost_trees(trees, columns, [16])
    with pytest.raises(ModelError, match=r"^\[tune\] rows must have the columns of the trees. Got 3, expected 2"):
        trees.predict(np.zeros((1, 3), np.float32))
