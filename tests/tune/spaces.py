"""Small graphs of one node, and the points of their spaces as modules."""

import numpy as np
import onnx
from neo import _native
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import solve
from onnx import TensorProto, helper, numpy_helper


def conv_model(x, weight, *, op="Conv", residual=False, activation="Relu", **attributes):
    """A convolution with bias, a residual and an activation, on values that are not all positive."""
    random = np.random.default_rng(0)
    constants = [random.standard_normal(weight).astype("f") * 0.1]
    constants.append(random.standard_normal(weight[0] if op == "Conv" else weight[1]).astype("f"))
    nodes = [helper.make_node(op, ["x", "w", "b"], ["sum"], **attributes)]
    last = "sum"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x))]
    if residual:
        nodes.append(helper.make_node("Add", [last, "r"], ["added"]))
        last = "added"
        shape = onnx.shape_inference.infer_shapes(_model(nodes[:1], inputs, "sum", constants)).graph.output[0]
        dims = [d.dim_value for d in shape.type.tensor_type.shape.dim]
        inputs.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, dims))
    if activation:
        nodes.append(helper.make_node(activation, [last], ["y"]))
        last = "y"
    return _model(nodes, inputs, last, constants)


def gemm_model(m, k, n, *, constant=True):
    """A product with a packed or a run-time right side."""
    random = np.random.default_rng(0)
    w = random.standard_normal((k, n)).astype("f")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])]
    if not constant:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [k, n]))
    return _model([helper.make_node("MatMul", ["x", "w"], ["y"])], inputs, "y", [w] if constant else [])


def _model(nodes, inputs, output, constants):
    graph = helper.make_graph(
        nodes,
        "one",
        inputs,
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(c, name) for c, name in zip(constants, "wb", strict=False)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


class Points:
    """A model's problem, whose spaces can be run point by point."""

    def __init__(self, model, *, target="cpu", threads=2):
        graph, _ = read_model(model.SerializeToString())
        graph = _native.run_passes(graph)
        random = np.random.default_rng(1)
        self.inputs = [random.standard_normal(v.hints).astype("f") for v in graph.inputs]
        # The node itself, not what inner graphs make of it.
        self.problem = _native.build_problem(graph, target, threads, lambda _, routine: "expansion/" not in routine)
        self.bench = _native.make_bench(self.problem, threads)
        self.threads = threads
        self.spaces = [
            (i, s) for i, s in enumerate(self.bench.spaces) if s["routine"] != "cpu/reference" and self.whole(s)
        ]

    def whole(self, space):
        """Whether the space is of the group of all nodes."""
        longest = max(len(s["workload"]) for s in self.bench.spaces)
        return len(space["workload"]) == longest

    def reference(self):
        """What the model's reference routines give."""
        names = [t["candidate"] for t in self.bench.trials]
        return self._run([i for i, name in enumerate(names) if name.startswith("cpu/reference")])

    def run(self, space, point):
        """What the module gives whose root is this point of a space."""
        (index,) = self.bench.extend(space, [point])
        self.bench.offer([index])
        return self._run([index])

    def _run(self, wanted):
        trials = self.bench.trials
        times = [1.0 if i in wanted or t["routine"] == "cpu:adapt" else 1e6 for i, t in enumerate(trials)]
        self.bench.price(times, [True] * len(trials))
        solution = solve(selection_arrays(self.problem))
        module = self.problem.lower(list(solution.choice), 0.0, self.threads)
        used = [
            node["choices"][choice].get("routine")
            for node, choice in zip(self.problem.nodes, solution.choice, strict=False)
        ]
        return module.call(self.inputs)[0], used
