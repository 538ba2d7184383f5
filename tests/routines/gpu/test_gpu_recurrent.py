"""Recurrent layers: as plain C and on a device, step after step, and in modules."""

import neo
import numpy as np
import onnxruntime
import pytest
from neo import _native
from onnx import TensorProto, helper, numpy_helper

from tests.routines.gpu.programs import ON, Program, need_device

KINDS = {"LSTM": (0, 4), "GRU linear": (1, 3), "GRU": (2, 3), "RNN": (4, 1), "RNN Relu": (5, 1)}


def weights_of(rng, directions, gates, hidden, inputs):
    scale = 1 / np.sqrt(hidden)
    w = (scale * rng.standard_normal((directions, gates * hidden, inputs))).astype("f4")
    r = (scale * rng.standard_normal((directions, gates * hidden, hidden))).astype("f4")
    b = (scale * rng.standard_normal((directions, 2 * gates * hidden))).astype("f4")
    return w, r, b


def attributes_of(kind, hidden, way, batch_first):
    attributes = {"hidden_size": hidden, "layout": int(batch_first)}
    if way != "forward":
        attributes["direction"] = way
    if kind == "GRU linear":
        attributes["linear_before_reset"] = 1
    if kind == "RNN Relu":
        attributes["activations"] = ["Relu"] * (2 if way == "bidirectional" else 1)
    return attributes


def pack_gates(matrix, gates, first, count, hidden, lanes, by_depth, depth=None):
    """Gates of W or R, [direction][panel][depth][gate][lane]; by depth the panel comes after it."""
    directions, _, given = matrix.shape
    panels, depth = -(-hidden // lanes), depth or given
    whole = np.zeros((directions, count, panels * lanes, depth), "f4")
    whole[:, :, :hidden, :given] = matrix.reshape(directions, gates, hidden, given)[:, first : first + count]
    parts = whole.reshape(directions, count, panels, lanes, depth).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3, 4) if by_depth else parts)


def pack(kind, w, r, b, lanes, by_depth):
    gates, hidden = KINDS[kind][1], r.shape[2]
    depth = -(-hidden // lanes) * lanes
    own = b.reshape(len(b), 2, gates, hidden, 1)
    biases = own.sum(1)
    linear = kind == "GRU linear"
    if linear:
        biases[:, 2] = own[:, 0, 2]
    count = 2 if kind == "GRU" else gates
    packed = [
        pack_gates(w, gates, 0, gates, hidden, lanes, by_depth),
        pack_gates(biases.reshape(len(b), gates * hidden, 1), gates, 0, gates, hidden, lanes, False),
        pack_gates(r, gates, 0, count, hidden, lanes, by_depth, depth),
    ]
    if kind == "GRU":
        packed.append(pack_gates(r, gates, 2, 1, hidden, lanes, by_depth, depth))
    if linear:
        packed.append(pack_gates(own[:, 1, 2], 1, 0, 1, hidden, lanes, False))
    return packed


def reference(op, x, constants, initial, outputs, attributes):
    graph = _native.Graph()
    values = [graph.add_input("x", "float32", list(x.shape))]
    values += [graph.add_constant(f"c{i}", c) for i, c in enumerate(constants)]
    if initial:
        values += [None, *(graph.add_constant(f"h{i}", h) for i, h in enumerate(initial))]
    names = [f"y{i}" for i in range(outputs)]
    graph.outputs = graph.add_node(op, values, names, attributes, "node").outputs
    return [np.asarray(y) for y in graph.evaluate([x])]


# kind, steps, batch, inputs, hidden, way, batch first, initial states, schedule
CASES = [
    ("LSTM", 5, 3, 7, 11, "forward", False, True, {}),
    ("LSTM", 4, 5, 3, 16, "bidirectional", False, False, {"rows": 4, "lanes": 16}),
    ("LSTM", 3, 2, 9, 13, "reverse", True, True, {"rows": 2, "by_depth": 1, "threads": 4}),
    ("LSTM", 1, 1, 1, 1, "forward", False, False, {}),
    ("LSTM", 0, 3, 4, 5, "forward", False, True, {}),
    ("GRU linear", 4, 3, 5, 17, "bidirectional", False, True, {"lanes": 4}),
    ("GRU linear", 3, 1, 5, 8, "reverse", True, False, {}),
    ("GRU", 4, 3, 5, 19, "bidirectional", False, True, {"rows": 2}),
    ("GRU", 2, 1, 6, 4, "forward", True, False, {"lanes": 4, "by_depth": 1}),
    ("RNN", 5, 2, 3, 7, "bidirectional", False, True, {}),
    ("RNN Relu", 3, 2, 3, 9, "forward", False, False, {"rows": 6, "threads": 1}),
]


def parts_of(case):
    kind, steps, batch, inputs, hidden, way, batch_first, initial, schedule = case
    rng = np.random.default_rng(steps + hidden)
    directions = 2 if way == "bidirectional" else 1
    x = rng.standard_normal((batch, steps, inputs) if batch_first else (steps, batch, inputs)).astype("f4")
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    states = 2 if kind == "LSTM" else 1
    given = [rng.standard_normal(state).astype("f4") for _ in range(states)] if initial else []
    constants = weights_of(rng, directions, KINDS[kind][1], hidden, inputs)
    expected = reference(
        kind.split()[0], x, constants, given, states + 1, attributes_of(kind, hidden, way, batch_first)
    )
    choice = {"kind": KINDS[kind][0], "input": inputs, "hidden": hidden, "directions": directions}
    choice |= {"reverse": way == "reverse", "batch_first": batch_first, "y": 1, "final_h": 1}
    choice |= {"initial_h": initial, "initial_c": initial and states == 2, "final_c": states == 2} | schedule
    packed = pack(kind, *constants, schedule.get("lanes", 8), schedule.get("by_depth", 0))
    return Program("recurrent", **choice), [x, *given], expected, packed


@pytest.mark.parametrize("case", CASES, ids=[" ".join(map(str, c[:8])) for c in CASES])
def test_runs_as_the_reference(case):
    program, inputs, expected, packed = parts_of(case)
    for on in ON if case[1] > 2 else ON[:1]:
        actual, _ = program.run(inputs, [(y.shape, "f4") for y in expected], packed, on=on)
        for a, y in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, y, rtol=2e-5, atol=2e-6, err_msg=on)


@pytest.mark.parametrize("case", [CASES[0], CASES[5], CASES[7]], ids=lambda c: c[0])
def test_compiles_for_cuda(case):
    parts_of(case)[0].compile_cuda(87)


def model_of(op, steps, hidden, **attributes):
    """A layer of which only the last state is read."""
    gates = {"LSTM": 4, "GRU": 3}[op]
    w, r, b = weights_of(np.random.default_rng(1), 1, gates, hidden, 6)
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden, **attributes)
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, "batch", 6])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "h")],
        [numpy_helper.from_array(value, name) for name, value in (("w", w), ("r", r), ("b", b))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize(("op", "attributes"), [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})])
def test_a_layer_runs_whole_on_the_device(op, attributes):
    need_device("opencl")
    model = model_of(op, 9, 20, **attributes)
    module = neo.compile(model, target="opencl", routines={"*": "gpu:float32/recurrent"})
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for batch in (1, 3):
        x = np.random.default_rng(batch).standard_normal((9, batch, 6)).astype("f4")
        for y, expected in zip(module(x), session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
