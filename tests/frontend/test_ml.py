"""Operators of ai.onnx.ml that are taken over in another form."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest


@pytest.mark.parametrize("outputs", [["label", "score"], ["", "score"]])
def test_labels_of_trees_that_are_strings_are_gathered(outputs: list[str]) -> None:
    """A pass over numbers chooses a place, which names a label."""
    node = onnx.helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        outputs,
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.0, 0.0],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_ids=[0, 1],
        class_weights=[0.75, 0.5],
        classlabels_strings=["no", "yes"],
    )
    types = {"label": onnx.TensorProto.STRING, "score": onnx.TensorProto.FLOAT}
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 2])],
        [onnx.helper.make_tensor_value_info(name, types[name], None) for name in outputs if name],
    )
    domains = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    module = neo.compile(onnx.helper.make_model(graph, opset_imports=domains, ir_version=9))
    got = module.run({"x": np.array([[0, -1], [0, 2], [0, np.nan]], np.float32)})
    want = {"label": ["no", "yes", "yes"], "score": [[0.75, 0], [0, 0.5], [0, 0.5]]}
    assert {name: value.tolist() for name, value in got.items()} == {name: want[name] for name in outputs if name}
