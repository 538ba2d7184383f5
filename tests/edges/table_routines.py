"""A small graph for every routine of tables: trees, linear models, support vectors and look-ups."""

from __future__ import annotations

from tests.edges.nets import Spec

__all__ = ["TABLE_ROUTINES"]

TABLE_ROUTINES: dict[str, list[Spec]] = {
    "cpu/trees": [
        Spec(
            {"A": 4, "B": 5},
            lambda net: net.node(
                "ai.onnx.ml.TreeEnsembleRegressor",
                [net.input("AB")],
                nodes_treeids=[0, 0, 0],
                nodes_nodeids=[0, 1, 2],
                nodes_featureids=[0, 0, 0],
                nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_values=[0.5, 0.0, 0.0],
                nodes_truenodeids=[1, 0, 0],
                nodes_falsenodeids=[2, 0, 0],
                target_treeids=[0, 0],
                target_nodeids=[1, 2],
                target_ids=[0, 0],
                target_weights=[1.0, 2.0],
            ),
        )
    ],
    "cpu:float32/linear_model": [
        Spec(
            {"A": 4},
            lambda net, targets=targets: net.node(
                "ai.onnx.ml.LinearRegressor",
                [net.input("A5")],
                coefficients=[0.25 * i for i in range(targets * 5)],
                intercepts=[0.5] * targets,
                targets=targets,
            ),
        )
        for targets in (1, 4)
    ],
    "cpu:float32/support_vectors": [
        Spec(
            {"A": 4},
            lambda net: net.node(
                "ai.onnx.ml.SVMRegressor",
                [net.input("A5")],
                kernel_type="RBF",
                kernel_params=[0.5, 0.0, 3.0],
                coefficients=[1.0, -2.0, 0.5],
                support_vectors=[0.25 * i for i in range(15)],
                n_supports=3,
                rho=[0.25],
            ),
        )
    ],
    "cpu:float32/normalizer": [
        Spec({"A": 4, "B": 5}, lambda net: net.node("ai.onnx.ml.Normalizer", [net.input("AB")], norm="L2"))
    ],
    "cpu/lookup": [
        Spec(
            {"A": 4, "B": 5},
            lambda net: net.node(
                "ai.onnx.ml.LabelEncoder",
                [net.input("AB", "int64", 6)],
                keys_int64s=[0, 2, 4],
                values_floats=[1.0, 2.0, 3.0],
            ),
        )
    ],
}
