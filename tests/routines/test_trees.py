"""Forests against the reference: sums bit for bit, exponentials as float32 has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.errors import ModelError, ShapeError

from tests.routines.pinning import TIERS, compile_pinned, rejections

ROUTINE = "cpu/trees"
ML = "ai.onnx.ml."
ROWS = (0, 1, 2, 3, 8, 13, 65, 300)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-42, -1e-42, np.inf, -np.inf, 3e38, np.nan, 1.0000001]


def forest(random: np.random.Generator, trees: int, depth: int, features: int, modes: list[str]) -> dict[str, Any]:
    """The attributes nodes_*, and the leaves as (tree, node)."""
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    leaves: list[tuple[int, int]] = []
    missing: list[int] = []

    def grow(tree: int, level: int, free: list[int]) -> int:
        at = free[0]
        free[0] += 1
        place = len(nodes["treeids"])
        for key in nodes:
            nodes[key].append(0)
        missing.append(int(random.integers(0, 2)))
        leaf = level == depth or (level > 0 and random.random() < 0.2)
        row = {"treeids": tree, "nodeids": at, "featureids": int(random.integers(0, features))}
        row["modes"] = "LEAF" if leaf else modes[int(random.integers(len(modes)))]
        row["values"] = float(random.choice(EDGES[:-2]) if random.random() < 0.4 else random.normal())
        if leaf:
            leaves.append((tree, at))
        else:
            row["truenodeids"] = grow(tree, level + 1, free)
            row["falsenodeids"] = grow(tree, level + 1, free)
        for key, value in row.items():
            nodes[key][place] = value
        return at

    for tree in range(trees):
        grow(tree, 0, [0])
    attrs = {f"nodes_{key}": values for key, values in nodes.items()}
    if random.random() < 0.6:
        attrs["nodes_missing_value_tracks_true"] = missing
    return {"attrs": attrs, "leaves": leaves}


def votes(random: np.random.Generator, leaves: list[tuple[int, int]], prefix: str, targets: int, form: str) -> Any:
    rows = []
    for tree, node in leaves:
        ids = {"one": [0], "tree": [tree % targets], "all": range(targets)}.get(form)
        if ids is None:
            ids = random.integers(0, targets, int(random.integers(0, 4)))
        rows += [(tree, node, int(t), float(np.float32(random.normal()))) for t in ids]
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[], [], [], []]
    return {f"{prefix}_{k}": c for k, c in zip(("treeids", "nodeids", "ids", "weights"), columns, strict=True)}


def features(random: np.random.Generator, dtype: str, rows: int, width: int) -> np.ndarray:
    if dtype.startswith("int"):
        return random.integers(-2, 3, (rows, width)).astype(dtype)
    x = random.normal(size=(rows, width)).astype(dtype)
    edges = random.choice(np.array(EDGES), (rows, width)).astype(dtype)
    return np.where(random.random((rows, width)) < 0.3, edges, x)


def check(op: str, attrs: dict[str, Any], x: np.ndarray, tier: str, outputs: list[str], dynamic: bool) -> None:
    graph = _native.Graph()
    value = graph.add_input("x", x.dtype.name, ["N", x.shape[1]] if dynamic else list(x.shape))
    node = graph.add_node(ML + op, [value], outputs, attrs, "trees")
    graph.outputs = [o for o in node.outputs if o is not None]
    pinned = compile_pinned(graph, tier, {"trees": ROUTINE}, keeps_denormals=True)
    assert pinned.routines["trees"] == ROUTINE
    expected = graph.evaluate([x])
    for threads in (1, 2, 5):
        module = pinned.module if threads == 1 else pinned.module.with_threads(threads)
        for actual, wanted in zip(module.call([x]), expected, strict=True):
            assert actual.dtype == wanted.dtype
            if wanted.dtype.kind == "f" and attrs.get("post_transform") in ("LOGISTIC", "SOFTMAX"):
                np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)
            else:
                np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("tier", TIERS[-1:])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("form", ["one", "tree", "all", "any"])
@pytest.mark.parametrize("rows", ROWS)
def test_regressors(tier: str, dtype: str, form: str, rows: int) -> None:
    random = np.random.default_rng([rows, len(dtype), len(form)])
    targets = 1 if form == "one" else 3
    made = forest(random, int(random.choice([1, 3, 9, 20])), int(random.integers(1, 7)), 5, MODES)
    attrs = {**made["attrs"], **votes(random, made["leaves"], "target", targets, form), "n_targets": targets}
    attrs["aggregate_function"] = str(random.choice(["SUM", "AVERAGE", "MIN", "MAX"]))
    attrs["post_transform"] = str(random.choice(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]))
    if random.random() < 0.5:
        attrs["base_values"] = [float(v) for v in random.normal(size=targets)]
    check("TreeEnsembleRegressor", attrs, features(random, dtype, rows, 5), tier, ["y"], bool(random.integers(2)))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("depth", [5, 7, 10])
@pytest.mark.parametrize("form", ["one", "tree", "all"])
def test_trees_of_many_leaves(tier: str, dtype: str, depth: int, form: str) -> None:
    """Leaves of one word, of several, and more than are tested; each with rows for part of a vector and more."""
    random = np.random.default_rng([depth, len(form)])
    made = forest(random, 12, depth, 6, MODES[:4])
    targets = 1 if form == "one" else 3
    attrs = {**made["attrs"], **votes(random, made["leaves"], "target", targets, form), "n_targets": targets}
    for rows in (1, 4, 9, 33, 100):
        check("TreeEnsembleRegressor", attrs, features(random, dtype, rows, 6), tier, ["y"], dynamic=True)


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("form", ["one", "tree", "all"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("outputs", [["label", "score"], ["label"], ["", "score"]])
def test_classifiers(classes: int, form: str, transform: str, outputs: list[str]) -> None:
    random = np.random.default_rng([classes, len(form), len(transform)])
    made = forest(random, 12, 4, 5, ["BRANCH_LEQ"])
    attrs = {**made["attrs"], **votes(random, made["leaves"], "class", classes, form), "post_transform": transform}
    attrs["classlabels_int64s"] = [7, -3, 9][:classes]
    check("TreeEnsembleClassifier", attrs, features(random, "float32", 21, 5), TIERS[-1], outputs, dynamic=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", range(7))
def test_the_newer_operator(dtype: str, mode: int) -> None:
    """Three branches in a chain, with members where the mode is theirs."""
    random = np.random.default_rng(mode)
    splits = np.array(random.choice(np.array(EDGES[:6]), 3), dtype)
    attrs: dict[str, Any] = {
        "n_targets": 2,
        "tree_roots": [0, 1],
        "nodes_modes": np.array([mode, 0, mode], np.uint8),
        "nodes_splits": splits,
        "nodes_featureids": [0, 2, 1],
        "nodes_truenodeids": [1, 2, 0],
        "nodes_trueleafs": [0, 0, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": np.array([1, 2, 4, 8], dtype),
        "membership_values": np.array([0.5, -1, np.nan, np.nan], dtype),
    }
    if mode != 6:
        del attrs["membership_values"]
    check("TreeEnsemble", attrs, features(random, dtype, 90, 3), TIERS[-1], ["y"], dynamic=True)


def graph_of(attrs: dict[str, Any], dims: list[Any], dtype: str = "float32") -> _native.Graph:
    graph = _native.Graph()
    x = graph.add_input("x", dtype, dims)
    graph.outputs = graph.add_node(ML + "TreeEnsembleRegressor", [x], ["y"], attrs, "trees").outputs
    return graph


def test_what_it_leaves_to_the_reference() -> None:
    random = np.random.default_rng(0)
    made = forest(random, 2, 2, 3, ["BRANCH_LEQ"])
    attrs = {**made["attrs"], **votes(random, made["leaves"], "target", 1, "one")}
    graph = graph_of(attrs, [4, 3], "float16")
    assert rejections(graph, TIERS[-1], "trees")[ROUTINE] == "the features are not float32, float64, int32 or int64"


def test_cycles_and_features_that_are_not_there() -> None:
    attrs: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 1, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 2, 0],
        "target_treeids": [0],
        "target_nodeids": [2],
        "target_ids": [0],
        "target_weights": [1.0],
    }
    with pytest.raises(ModelError, match="a tree must not have cycles"):
        compile_pinned(graph_of(attrs, ["N", 3]), TIERS[-1], {"trees": ROUTINE})
    attrs["nodes_truenodeids"] = [1, 2, 0]
    module = compile_pinned(graph_of(attrs, ["N", "F"]), TIERS[-1], {"trees": ROUTINE}).module
    with pytest.raises(ShapeError, match="a branch must look at a feature. Got 1, expected less than 1"):
        module.call([np.zeros((2, 1), np.float32)])
