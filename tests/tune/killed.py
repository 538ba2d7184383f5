"""Tunes models into a database until it is killed; says what is kept, once it is: ``python killed.py DATABASE``."""

import sys

import numpy as np
from neo import _native
from neo.tune import Context, Database, parse_budget, tune_problem
from onnx import TensorProto, helper, numpy_helper


def model(k):
    """The k-th of endless small models, all different."""
    channels, side = 4 + k % 61, 5 + k // 61
    weight = np.random.default_rng(k).standard_normal((8, channels, 1, 1)).astype("f")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def tune(k, database):
    """Measure all of the k-th model."""
    from neo.frontend.onnx import read_model

    graph = _native.run_passes(read_model(model(k))[0])
    bench = _native.make_bench(_native.build_problem(graph, "cpu", 1), 1)
    return tune_problem(bench, Context.here("cpu", bench.threads), database, budget=parse_budget("1h"))


class Telling(Database):
    """Says of every time that it is kept, after it is."""

    def store(self, context, workload, cache_level, rows):
        super().store(context, workload, cache_level, rows)
        for row in rows:
            print(f"{workload}\t{cache_level}\t{row.candidate}", flush=True)


if __name__ == "__main__":
    with Telling(sys.argv[1]) as database:
        k = 0
        while True:
            tune(k, database)
            k += 1
