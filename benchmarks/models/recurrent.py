"""Recurrent layers of every form that ONNX has: random, and the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["FORMS", "Layer", "random_layer", "recurrent_stack"]

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
#: Names of ONNX's functions, and how many parameters each takes.
ACTIVATIONS = {
    "Affine": 2,
    "Elu": 1,
    "HardSigmoid": 2,
    "LeakyRelu": 1,
    "Relu": 0,
    "ScaledTanh": 2,
    "Sigmoid": 0,
    "Softplus": 0,
    "Softsign": 0,
    "Tanh": 0,
    "ThresholdedRelu": 1,
}
#: What a layer may have beside the plain cell.
FORMS = (
    "lengths",
    "clip",
    "activations",
    "peepholes",
    "coupled",
    "weights",
    "layout",
    "linear",
    "states",
    "bias",
    "last",
)


@dataclass
class Layer:
    """A model of one recurrent layer with the inputs of a call."""

    op: str
    steps: int
    batch: int
    input: int
    hidden: int
    direction: str = "forward"
    dtype: str = "float32"
    forms: frozenset[str] = frozenset()
    symbols: bool = False
    seed: int = 0
    lengths: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the layer is, in one line."""
        sizes = f"T{self.steps} B{self.batch} I{self.input} H{self.hidden}"
        parts = [self.op, sizes, self.direction, *sorted(self.forms)]
        if self.symbols:
            parts.append("run-time sizes")
        return " ".join(parts if self.dtype == "float32" else [*parts, self.dtype])

    def build(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """Return the model and the inputs of a call."""
        random = np.random.default_rng(self.seed)
        forms, hidden = self.forms, self.hidden
        directions = 2 if self.direction == "bidirectional" else 1
        rows = GATES[self.op] * hidden
        attrs: dict[str, Any] = {"hidden_size": hidden, "direction": self.direction}
        feeds: dict[str, np.ndarray] = {}
        inputs: list[onnx.ValueInfoProto] = []
        constants: list[onnx.TensorProto] = []
        element = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        batch_first = "layout" in forms

        def given(name: str, values: np.ndarray, dims: list[Any] | None = None) -> str:
            feeds[name] = values
            kind = helper.np_dtype_to_tensor_dtype(values.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, dims or list(values.shape)))
            return name

        def floats(*dims: int, scale: float = 1.0) -> np.ndarray:
            return (random.uniform(-1, 1, dims) * scale).astype(self.dtype)

        def weight(name: str, values: np.ndarray) -> str:
            if "weights" in forms:
                return given(name, values)
            constants.append(numpy_helper.from_array(values, name))
            return name

        if batch_first:
            attrs["layout"] = 1
        x_dims = [self.batch, self.steps] if batch_first else [self.steps, self.batch]
        names = (["b", "t"] if batch_first else ["t", "b"]) if self.symbols else x_dims
        scale = 1 / np.sqrt(hidden)
        operands = [
            given("x", floats(*x_dims, self.input), [*names, self.input]),
            weight("w", floats(directions, rows, self.input, scale=1 / np.sqrt(max(1, self.input)))),
            weight("r", floats(directions, rows, hidden, scale=scale)),
            weight("b", floats(directions, 2 * rows)) if "bias" in forms else "",
        ]
        lengths = self.lengths or [int(random.integers(1, self.steps + 1)) for _ in range(self.batch)]
        operands.append(given("lengths", np.asarray(lengths, np.int32)) if "lengths" in forms else "")
        state_dims = [self.batch, directions, hidden] if batch_first else [directions, self.batch, hidden]
        states = ["h0", "c0"] if self.op == "LSTM" else ["h0"]
        declared = [("b" if self.symbols and size == self.batch else size) for size in state_dims]
        for state in states:
            operands.append(given(state, floats(*state_dims), declared) if "states" in forms else "")
        if self.op == "LSTM" and "peepholes" in forms:
            operands.append(weight("p", floats(directions, 3 * hidden)))
        if "clip" in forms:
            attrs["clip"] = 0.6
        if "coupled" in forms:
            attrs["input_forget"] = 1
        if self.op == "GRU":
            attrs["linear_before_reset"] = int("linear" in forms)
        if "activations" in forms:
            chosen = [str(random.choice(list(ACTIVATIONS))) for _ in range(FUNCTIONS[self.op] * directions)]
            attrs["activations"] = chosen
            for least, key in enumerate(("activation_alpha", "activation_beta")):
                values = [float(random.uniform(0.2, 0.9)) for c in chosen if ACTIVATIONS[c] > least]
                if values:
                    attrs[key] = values
        outputs = ["y", "yh", "yc"] if self.op == "LSTM" else ["y", "yh"]
        if "last" in forms:
            outputs[0] = ""
        while operands[-1] == "":
            operands.pop()
        node = helper.make_node(self.op, operands, outputs, "layer", **attrs)
        results = [helper.make_tensor_value_info(o, element, None) for o in outputs if o]
        graph = helper.make_graph([node], "recurrent", inputs, results, constants)
        opset = helper.make_opsetid("", 22 if self.dtype == "bfloat16" else 14)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8), feeds


def random_layer(seed: int, *, largest: int = 40) -> Layer:
    """Return a layer of any form, with sizes up to ``largest``."""
    random = np.random.default_rng(seed)
    op = str(random.choice(list(GATES)))
    forms = {form for form in FORMS if random.random() < 0.35}
    if op != "LSTM":
        forms -= {"peepholes", "coupled"}
    if op != "GRU":
        forms -= {"linear"}
    return Layer(
        op,
        steps=int(random.integers(1, 20)),
        batch=int(random.choice([1, 1, 2, 3, 5, 7, 8, 13])),
        input=int(random.integers(1, largest)),
        hidden=int(random.integers(1, largest)),
        direction=str(random.choice(["forward", "reverse", "bidirectional"])),
        forms=frozenset(forms),
        symbols=bool(random.random() < 0.3),
        seed=seed,
    )


def recurrent_stack(
    op: str, layers: int, steps: int, batch: int, hidden: int, *, seed: int = 0, states: bool = False
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a stack of plain layers "layer0" ... of one size, and the input of a call.

    Parameters
    ----------
    op : str
        LSTM, GRU or RNN.
    layers : int
        Each reads the hidden states of the one before.
    steps, batch, hidden : int
        X has dims ``[steps, batch, hidden]``; ``steps`` is a size of the call.
    seed : int, optional
        Of the weights and of X.
    states : bool, optional
        Whether the last states of all layers are results, too, as PyTorch exports h_n and c_n.
    """
    random = np.random.default_rng(seed)
    kinds = ["h", "c"][: 2 if op == "LSTM" else 1] if states else []
    rows, bound = GATES[op] * hidden, 1 / np.sqrt(hidden)
    constants = [numpy_helper.from_array(np.array([1], np.int64), "axis")]
    nodes, x = [], "x"
    for i in range(layers):
        shapes = {"w": (1, rows, hidden), "r": (1, rows, hidden), "b": (1, 2 * rows)}
        for name, dims in shapes.items():
            constants.append(
                numpy_helper.from_array(random.uniform(-bound, bound, dims).astype(np.float32), f"{name}{i}")
            )
        operands = [x, *(f"{name}{i}" for name in shapes)]
        outputs = [f"y{i}", *(f"{kind}{i}" for kind in kinds)]
        nodes.append(helper.make_node(op, operands, outputs, f"layer{i}", hidden_size=hidden))
        nodes.append(helper.make_node("Squeeze", [f"y{i}", "axis"], [f"x{i + 1}"]))
        x = f"x{i + 1}"
    for kind in kinds:
        nodes.append(helper.make_node("Concat", [f"{kind}{i}" for i in range(layers)], [f"{kind}_n"], axis=0))
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "stack",
        [helper.make_tensor_value_info("x", float32, ["t", batch, hidden])],
        [helper.make_tensor_value_info(name, float32, None) for name in [x, *(f"{kind}_n" for kind in kinds)]],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return model, {"x": random.uniform(-1, 1, (steps, batch, hidden)).astype(np.float32)}
