"""Models of ai.onnx.ml."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import run

ML = "ai.onnx.ml."
X = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
ONE_TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}


def test_label_encoder_takes_the_last_of_equal_keys():
    got = run(ML + "LabelEncoder", np.array(["a", "b", "c"], object), keys_strings=["a", "b", "a"], values_int64s=[1, 2, 3])
    assert got.tolist() == [3, 2, -1]


def test_label_encoder_matches_nan():
    x = np.array([np.nan, 1.0], np.float32)
    got = run(ML + "LabelEncoder", x, keys_floats=[1.0, float("nan")], values_strings=["one", "nan"])
    assert got.tolist() == ["nan", "one"]


def test_linear_classifier_with_one_row_of_two_classes():
    labels, scores = run(
        ML + "LinearClassifier",
        X,
        outputs=2,
        coefficients=[1.0, 1.0],
        intercepts=[0.0],
        classlabels_strings=["no", "yes"],
        post_transform="LOGISTIC",
    )
    p = 1 / (1 + np.exp(-np.array([-1.0, 3.5])))
    assert labels.tolist() == ["no", "yes"]
    np.testing.assert_allclose(scores, np.stack([1 - p, p], 1), rtol=1e-6)


def test_linear_regressor_refuses_coefficients_that_do_not_fit():
    with pytest.raises(ShapeError, match="one row of features per target"):
        run(ML + "LinearRegressor", X, coefficients=[1.0], targets=1)


def test_svm_regressor_with_rbf():
    got = run(
        ML + "SVMRegressor",
        X,
        kernel_type="RBF",
        kernel_params=[0.5, 0.0, 0.0],
        n_supports=1,
        support_vectors=[0.0, 0.0],
        coefficients=[2.0],
        rho=[1.0],
    )
    np.testing.assert_allclose(got[:, 0], 1 + 2 * np.exp(-0.5 * (X**2).sum(1)), rtol=1e-6)


def test_svm_probabilities_sum_to_one():
    random = np.random.default_rng(0)
    x = random.standard_normal((4, 3)).astype(np.float32)
    _, scores = run(
        ML + "SVMClassifier",
        x,
        outputs=2,
        kernel_type="LINEAR",
        vectors_per_class=[2, 1, 2],
        support_vectors=random.standard_normal(15).tolist(),
        coefficients=random.standard_normal(10).tolist(),
        rho=random.standard_normal(3).tolist(),
        prob_a=[-1.0, -2.0, -0.5],
        prob_b=[0.1, 0.0, -0.1],
        classlabels_ints=[0, 1, 2],
    )
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)


def test_tree_regressor_adds_base_values():
    votes = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [5.0, 7.0]}
    got = run(ML + "TreeEnsembleRegressor", X, **ONE_TREE, **votes, n_targets=1, base_values=[0.5])
    assert got.tolist() == [[5.5], [7.5]]


def test_missing_values_follow_their_track():
    votes = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [5.0, 7.0]}
    x = np.array([[0, np.nan]], np.float32)
    for track, want in ((0, 7), (1, 5)):
        got = run(ML + "TreeEnsembleRegressor", x, **ONE_TREE, **votes, nodes_missing_value_tracks_true=[track, 0, 0])
        assert got == want


def test_tree_classifier_with_votes_for_one_class():
    votes = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 0], "class_weights": [0.25, 0.75]}
    labels, scores = run(ML + "TreeEnsembleClassifier", X, outputs=2, **ONE_TREE, **votes, classlabels_int64s=[3, 4])
    assert labels.tolist() == [3, 4]
    np.testing.assert_allclose(scores, [[0.75, 0.25], [0.25, 0.75]])


def test_hostile_trees_are_refused():
    votes = {"target_treeids": [0], "target_nodeids": [2], "target_ids": [0], "target_weights": [1.0]}
    cycle = {**ONE_TREE, "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], "nodes_featureids": [1, 1, 0]}
    with pytest.raises(ModelError, match="cycles"):
        run(ML + "TreeEnsembleRegressor", np.array([[0, -1]], np.float32), **cycle, **votes)
    with pytest.raises(ShapeError, match="must look at a feature"):
        run(ML + "TreeEnsembleRegressor", X, **{**ONE_TREE, "nodes_featureids": [9, 0, 0]}, **votes)
    with pytest.raises(ModelError, match="two children"):
        run(ML + "TreeEnsembleRegressor", X, **{**ONE_TREE, "nodes_truenodeids": [8, 0, 0]}, **votes)
    with pytest.raises(ModelError, match="one length"):
        run(ML + "TreeEnsembleRegressor", X, **{**ONE_TREE, "nodes_values": [0.0]}, **votes)


@pytest.mark.parametrize(("norm", "want"), [("MAX", [2, -4]), ("L1", [1 / 3, -2 / 3]), ("L2", [1 / 5**0.5, -2 / 5**0.5])])
def test_normalizer(norm, want):
    if norm == "MAX":
        want = [1, -2]
    np.testing.assert_allclose(run(ML + "Normalizer", X, norm=norm)[0], want, rtol=1e-6)


def test_one_hot_encoder_refuses_strangers_unless_they_are_zeros():
    x = np.array([[1], [9]])
    assert run(ML + "OneHotEncoder", x, cats_int64s=[1, 2]).tolist() == [[[1, 0]], [[0, 0]]]
    with pytest.raises(ShapeError, match="must be a category"):
        run(ML + "OneHotEncoder", x, cats_int64s=[1, 2], zeros=0)
