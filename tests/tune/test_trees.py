"""The evaluator of trees beside plain loops, and what is no model."""

import json

import numpy as np
import pytest
from neo import ResourceError
from neo.tune.features import feature_names
from neo.tune.trees import Trees, shipped_model

NAMES = tuple(f"f{i}" for i in range(5))


def random_tree(random, depth):
    """A tree as XGBoost writes it, its nodes in the order it made them."""
    lefts, rights, indices, conditions = [], [], [], []

    def grow(level):
        node = len(lefts)
        lefts.append(-1)
        rights.append(-1)
        indices.append(int(random.integers(len(NAMES))))
        conditions.append(float(np.float32(random.standard_normal())))
        if level < depth and random.random() < 0.8:
            lefts[node] = grow(level + 1)
            rights[node] = grow(level + 1)
        return node

    grow(0)
    return {
        "left_children": lefts,
        "right_children": rights,
        "split_indices": indices,
        "split_conditions": conditions,
    }


def model_text(trees):
    return json.dumps({"learner": {"gradient_booster": {"model": {"trees": trees}}}})


def score(tree, row):
    node = 0
    while tree["left_children"][node] >= 0:
        below = row[tree["split_indices"][node]] < np.float32(tree["split_conditions"][node])
        node = tree["left_children" if below else "right_children"][node]
    return tree["split_conditions"][node]


@pytest.mark.parametrize("count", [0, 1, 30])
def test_scores_are_the_sums_of_leaves(count):
    random = np.random.default_rng(count)
    trees = [random_tree(random, 6) for _ in range(count)]
    rows = random.standard_normal((50, len(NAMES))).astype(np.float32)
    # Values on a threshold go right.
    if count:
        rows[0, trees[0]["split_indices"][0]] = trees[0]["split_conditions"][0]
    expected = [sum(score(t, row) for t in trees) for row in rows]
    found = Trees.from_xgboost(model_text(trees), NAMES).predict(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_model_is_kept_in_a_file(tmp_path):
    random = np.random.default_rng(7)
    trees = Trees.from_xgboost(model_text([random_tree(random, 5) for _ in range(9)]), NAMES)
    trees.save(tmp_path / "m.trees")
    trees.save(tmp_path / "again.trees")
    assert (tmp_path / "m.trees").read_bytes() == (tmp_path / "again.trees").read_bytes()
    rows = random.standard_normal((20, len(NAMES))).astype(np.float32)
    read = Trees.load(tmp_path / "m.trees")
    assert read.names == NAMES
    np.testing.assert_array_equal(read.predict(rows), trees.predict(rows))


@pytest.mark.parametrize("change", ["left", "feature", "roots", "threshold"])
def test_a_file_that_leads_outside_is_refused(tmp_path, change):
    random = np.random.default_rng(8)
    trees = Trees.from_xgboost(model_text([random_tree(random, 5)]), NAMES)
    values = {"left": 10_000, "feature": len(NAMES), "roots": 10_000}
    array = getattr(trees, change)
    if change == "threshold":
        broken = array[:-1]
    else:
        broken = array.copy()
        broken[np.flatnonzero(trees.feature >= 0)[0] if change != "roots" else 0] = values[change]
    path = tmp_path / "m.trees"
    Trees(
        **{**{k: getattr(trees, k) for k in ("roots", "feature", "threshold", "left", "names")}, change: broken}
    ).save(path)
    with pytest.raises(ResourceError, match=r"^\[tune\] a cost model's trees must be whole"):
        Trees.load(path)


def test_a_missing_or_damaged_file_is_an_error(tmp_path):
    with pytest.raises(ResourceError, match=r"^\[tune\] a cost model must be a file that neo wrote"):
        Trees.load(tmp_path / "no.trees")
    for content in (b"nonsense", b"", b"[]\n", b'{"names": [], "lanes": [], "sizes": [9, 9, 9, 9]}\nshort'):
        (tmp_path / "bad.trees").write_bytes(content)
        with pytest.raises(ResourceError, match=r"^\[tune\] a cost model must be a file that neo wrote"):
            Trees.load(tmp_path / "bad.trees")


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"learner": {"gradient_booster": {"model": {"trees": [{}]}}}}'])
def test_what_is_no_model_is_an_error(text):
    with pytest.raises(ResourceError, match=r"^\[tune\] a cost model must be trees in XGBoost's JSON"):
        Trees.from_xgboost(text, NAMES)


def test_the_shipped_model_is_of_the_features_and_small():
    from neo.tune import trees

    assert trees.shipped_model().names == tuple(feature_names())
    assert trees._SHIPPED.stat().st_size <= 1 << 20
    assert len(shipped_model().roots) > 50
