"""Classify the rows of a table with a forest, which is trained here: ``python classify_table.py``.

A forest of scikit-learn, XGBoost or LightGBM comes the same way: their converters write the same operator.
"""

import neo
import numpy as np
from onnx import helper

RANDOM = np.random.default_rng(0)
NAMES = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
CLASS_NAMES = ("treeids", "nodeids", "ids", "weights")


def table(rows):
    """Points of two rings, one around the other, and two columns that say nothing."""
    label = RANDOM.integers(0, 2, rows)
    angle, radius = RANDOM.uniform(0, 2 * np.pi, rows), 1 + label + RANDOM.normal(0, 0.2, rows)
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.concatenate([ring, RANDOM.normal(size=(rows, 2))], axis=1).astype(np.float32), label


def grow(nodes, tree, x, y, depth=9):
    """Add a tree of random thresholds to the lists of nodes, and return its root's number."""
    place, mine = len(nodes["nodes_modes"]), nodes["nodes_treeids"].count(tree)
    column = int(RANDOM.integers(x.shape[1]))
    threshold = float(RANDOM.uniform(x[:, column].min(), x[:, column].max()))
    goes_left = x[:, column] <= threshold
    is_leaf = depth == 0 or len(set(y)) < 2 or goes_left.all()
    values = (tree, mine, column, threshold, "LEAF" if is_leaf else "BRANCH_LEQ", 0, 0)
    for name, value in zip(NAMES, values, strict=True):
        nodes[f"nodes_{name}"].append(value)
    if is_leaf:
        for label in (0, 1):
            for name, value in zip(CLASS_NAMES, (tree, mine, label, float(np.mean(y == label))), strict=True):
                nodes[f"class_{name}"].append(value)
    else:
        nodes["nodes_truenodeids"][place] = grow(nodes, tree, x[goes_left], y[goes_left], depth - 1)
        nodes["nodes_falsenodeids"][place] = grow(nodes, tree, x[~goes_left], y[~goes_left], depth - 1)
    return mine


def forest(x, y, trees=40):
    """An ONNX model of the forest."""
    nodes = {f"nodes_{name}": [] for name in NAMES} | {f"class_{name}": [] for name in CLASS_NAMES}
    for tree in range(trees):
        grow(nodes, tree, x, y)
    nodes |= {"domain": "ai.onnx.ml", "classlabels_int64s": [0, 1]}
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "votes"], **nodes)
    kinds = {"x": (1, ["rows", x.shape[1]]), "label": (7, ["rows"]), "votes": (1, ["rows", 2])}  # floats, integers
    inputs, *outputs = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    graph = helper.make_graph([node], "forest", [inputs], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)


if __name__ == "__main__":
    module = neo.compile(forest(*table(500)))
    x, y = table(1000)
    label = module(x)[0]
    print(f"{np.mean(label == y):.1%} of {len(y)} rows right, by {module.steps[0].routine.split('{')[0]}")
