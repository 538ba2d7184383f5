"""Layers over time whose cell is no operator of ONNX: a Scan around it, or as many copies as there are steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.models.builder import Builder, Shape
from benchmarks.models.random_cells import random_shapes, random_step

__all__ = ["CELLS", "Cell", "cell_model", "feeds_of_cells"]

#: What a cell computes in one step: from the slice and the states, the new states and the result.
Step = Callable[["Cell", str, list[str]], tuple[list[str], str]]


class Cell:
    """Nodes of a body, and the weights around it."""

    def __init__(self, outer: Builder, prefix: str, units: int) -> None:
        self.outer, self.units = outer, units
        self.body = Builder(0, prefix)
        self._weights: list[str] = []
        self._next = 0

    def copy(self, prefix: str) -> Cell:
        """The same cell of another step: it reads the same weights."""
        other = Cell(self.outer, prefix, self.units)
        other._weights = self._weights
        return other

    def _outer(self, make: Callable[[], str]) -> str:
        if self._next == len(self._weights):
            self._weights.append(make())
        self._next += 1
        return self._weights[self._next - 1]

    def weight(self, *shape: int) -> str:
        return self._outer(lambda: self.outer.weight(*shape))

    def bias(self, *shape: int) -> str:
        return self._outer(lambda: self.outer.constant(np.linspace(-0.5, 0.5, int(np.prod(shape))).reshape(shape)))

    def number(self, value: float) -> str:
        return self._outer(lambda: self.outer.constant(value))

    def ints(self, *values: int) -> str:
        return self._outer(lambda: self.outer.constant(values, np.int64))

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        return self.body.add(op, *inputs, **attributes)

    def linear(self, x: str, outputs: int, inputs: int | None = None) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(inputs or self.units, outputs)), self.bias(outputs))

    def gates(self, x: str, h: str, count: int) -> list[str]:
        """Parts of one sum of products of both operands."""
        total = self.add("Add", self.linear(x, count * self.units), self.linear(h, count * self.units))
        return self.split(total, count)

    def split(self, x: str, count: int, axis: int = 1) -> list[str]:
        return self.body.add_all("Split", [x, self.ints(*[self.units] * count)], count, axis=axis)

    def sigmoid(self, x: str) -> str:
        return self.add("Sigmoid", x)

    def tanh(self, x: str) -> str:
        return self.add("Tanh", x)

    def mul(self, a: str, b: str) -> str:
        return self.add("Mul", a, b)

    def plus(self, a: str, b: str) -> str:
        return self.add("Add", a, b)

    def mix(self, gate: str, a: str, b: str) -> str:
        """gate a + (1 - gate) b"""
        return self.plus(self.mul(gate, a), self.mul(self.add("Sub", self.number(1.0), gate), b))

    def norm(self, x: str, size: int) -> str:
        """A normalization of rows, spelled out."""
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1]))
        variance = self.add("ReduceMean", self.mul(centred, centred), axes=[-1])
        scaled = self.add("Div", centred, self.add("Sqrt", self.plus(variance, self.number(1e-5))))
        return self.plus(self.mul(scaled, self.bias(size)), self.bias(size))

    def column(self, x: str) -> str:
        return self.add("Unsqueeze", x, self.ints(2))

    def row(self, x: str) -> str:
        return self.add("Unsqueeze", x, self.ints(1))

    def read(self, matrix: str, x: str) -> str:
        """Rows x of a batch times its matrices."""
        return self.add("Squeeze", self.add("MatMul", self.row(x), matrix), self.ints(1))


def _lstm_state(c: Cell, i: str, f: str, g: str, cell: str) -> str:
    return c.plus(c.mul(c.sigmoid(f), cell), c.mul(c.sigmoid(i), c.tanh(g)))


def _lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    i, o, f, g = c.gates(x, states[0], 4)
    cell = _lstm_state(c, i, f, g, states[1])
    h = c.mul(c.sigmoid(o), c.tanh(cell))
    return [h, cell], h


def _gru(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    of_x, of_h = c.split(c.linear(x, 3 * c.units), 3), c.split(c.linear(states[0], 3 * c.units), 3)
    z, r = (c.sigmoid(c.plus(a, b)) for a, b in zip(of_x[:2], of_h[:2], strict=True))
    h = c.mix(z, states[0], c.tanh(c.plus(of_x[2], c.mul(r, of_h[2]))))
    return [h], h


def _norm_lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    total = c.plus(c.norm(c.linear(x, 4 * c.units), 4 * c.units), c.norm(c.linear(states[0], 4 * c.units), 4 * c.units))
    i, o, f, g = c.split(total, 4)
    cell = _lstm_state(c, i, f, g, states[1])
    h = c.mul(c.sigmoid(o), c.tanh(c.norm(cell, c.units)))
    return [h, cell], h


def _projected_lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    total = c.plus(c.linear(x, 4 * c.units), c.linear(states[0], 4 * c.units, c.units // 2))
    i, o, f, g = c.split(total, 4)
    cell = _lstm_state(c, i, f, g, states[1])
    h = c.add("MatMul", c.mul(c.sigmoid(o), c.tanh(cell)), c.weight(c.units, c.units // 2))
    return [h, cell], h


def _peephole_lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    i, o, f, g = c.gates(x, states[0], 4)
    i, f = (c.plus(gate, c.mul(states[1], c.bias(c.units))) for gate in (i, f))
    cell = _lstm_state(c, i, f, g, states[1])
    h = c.mul(c.sigmoid(c.plus(o, c.mul(cell, c.bias(c.units)))), c.tanh(cell))
    return [h, cell], h


def _coupled_lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    i, o, g = c.gates(x, states[0], 3)
    cell = c.mix(c.sigmoid(i), c.tanh(g), states[1])
    h = c.mul(c.sigmoid(o), c.tanh(cell))
    return [h, cell], h


def _minimal_gate(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    f = c.sigmoid(c.plus(c.linear(x, c.units), c.linear(states[0], c.units)))
    fresh = c.tanh(c.plus(c.linear(x, c.units), c.linear(c.mul(f, states[0]), c.units)))
    h = c.mix(f, fresh, states[0])
    return [h], h


def _highway(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    h = states[0]
    for depth in range(2):
        total = c.linear(h, 2 * c.units)
        if depth == 0:
            total = c.plus(total, c.linear(x, 2 * c.units))
        fresh, gate = c.split(total, 2)
        h = c.mix(c.sigmoid(gate), c.tanh(fresh), h)
    return [h], h


def _sru(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    fresh, f, r = c.split(c.linear(x, 3 * c.units), 3)
    f = c.sigmoid(c.plus(f, c.mul(states[0], c.bias(c.units))))
    cell = c.mix(f, states[0], fresh)
    r = c.sigmoid(c.plus(r, c.mul(states[0], c.bias(c.units))))
    return [cell], c.mix(r, c.tanh(cell), x)


def _qrnn(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    z, f, o = c.split(c.linear(x, 3 * c.units), 3)
    cell = c.mix(c.sigmoid(f), states[0], c.tanh(z))
    return [cell], c.mul(c.sigmoid(o), cell)


def _min_gru(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    h = c.mix(c.sigmoid(c.linear(x, c.units)), c.linear(x, c.units), states[0])
    return [h], h


def _min_lstm(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    f, i = c.sigmoid(c.linear(x, c.units)), c.sigmoid(c.linear(x, c.units))
    share = c.add("Div", f, c.plus(f, i))
    h = c.mix(share, states[0], c.linear(x, c.units))
    return [h], h


def _independent(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    h = c.add("Relu", c.plus(c.linear(x, c.units), c.mul(states[0], c.bias(c.units))))
    return [h], h


def _linear_attention(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    q, k, v = (c.linear(x, c.units) for _ in range(3))
    k = c.plus(c.add("Elu", k), c.number(1.0))
    memory = c.plus(states[0], c.mul(c.column(k), c.row(v)))
    return [memory], c.read(memory, q)


def _retention(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    q, k, v = (c.linear(x, c.units) for _ in range(3))
    memory = c.plus(c.mul(states[0], c.number(0.96875)), c.mul(c.column(k), c.row(v)))
    return [memory], c.read(memory, q)


def _gated_attention(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    q, k, v, gate = (c.linear(x, c.units) for _ in range(4))
    memory = c.plus(c.mul(states[0], c.column(c.sigmoid(gate))), c.mul(c.column(k), c.row(v)))
    return [memory], c.read(memory, q)


def _delta(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    q, k, v = (c.linear(x, c.units) for _ in range(3))
    k = c.add("Softmax", k, axis=-1)
    beta = c.sigmoid(c.linear(x, 1))
    error = c.mul(beta, c.add("Sub", v, c.read(states[0], k)))
    memory = c.plus(states[0], c.mul(c.column(k), c.row(error)))
    return [memory], c.read(memory, q)


def _diagonal(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    """States [batch, units, 16] that a constant decays."""
    h = c.plus(c.mul(states[0], c.sigmoid(c.bias(c.units, 16))), c.mul(c.column(x), c.bias(c.units, 16)))
    y = c.add("ReduceSum", c.mul(h, c.bias(c.units, 16)), c.ints(2), keepdims=0)
    return [h], c.plus(y, c.mul(x, c.bias(c.units)))


def _selective(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    """States [batch, units, 16] that the slice decays, as Mamba's scan has it."""
    delta = c.add("Softplus", c.linear(x, c.units))
    b, out = c.linear(x, 16), c.linear(x, 16)
    decay = c.add("Exp", c.mul(c.column(delta), c.add("Neg", c.add("Exp", c.bias(c.units, 16)))))
    h = c.plus(c.mul(states[0], decay), c.mul(c.column(c.mul(delta, x)), c.row(b)))
    y = c.add("Squeeze", c.add("MatMul", h, c.column(out)), c.ints(2))
    return [h], c.plus(y, c.mul(x, c.bias(c.units)))


def _liquid(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
    """A closed-form continuous-time cell: a time gate between two heads of one layer."""
    trunk = c.tanh(c.plus(c.linear(x, c.units), c.linear(states[0], c.units)))
    first, second, rate, shift = c.split(c.linear(trunk, 4 * c.units), 4)
    h = c.mix(c.sigmoid(c.plus(c.add("Neg", rate), shift)), c.tanh(first), c.tanh(second))
    return [h], h


def _squares(units: int) -> list[Shape]:
    return [["b", units, units]]


#: Steps, and the shapes of their states.
_STEPS: dict[str, tuple[Step, Callable[[int], list[Shape]]]] = {
    "lstm": (_lstm, lambda n: [["b", n], ["b", n]]),
    "gru": (_gru, lambda n: [["b", n]]),
    "norm-lstm": (_norm_lstm, lambda n: [["b", n], ["b", n]]),
    "projected-lstm": (_projected_lstm, lambda n: [["b", n // 2], ["b", n]]),
    "peephole-lstm": (_peephole_lstm, lambda n: [["b", n], ["b", n]]),
    "coupled-lstm": (_coupled_lstm, lambda n: [["b", n], ["b", n]]),
    "minimal-gate": (_minimal_gate, lambda n: [["b", n]]),
    "highway": (_highway, lambda n: [["b", n]]),
    "sru": (_sru, lambda n: [["b", n]]),
    "qrnn": (_qrnn, lambda n: [["b", n]]),
    "min-gru": (_min_gru, lambda n: [["b", n]]),
    "min-lstm": (_min_lstm, lambda n: [["b", n]]),
    "independent": (_independent, lambda n: [["b", n]]),
    "linear-attention": (_linear_attention, _squares),
    "retention": (_retention, _squares),
    "gated-attention": (_gated_attention, _squares),
    "delta": (_delta, _squares),
    "diagonal": (_diagonal, lambda n: [["b", n, 16]]),
    "selective": (_selective, lambda n: [["b", n, 16]]),
    "liquid": (_liquid, lambda n: [["b", n]]),
}
CELLS: Sequence[str] = tuple(_STEPS)


def _step_of(name: str) -> tuple[Step, Callable[[int], list[Shape]]]:
    if name.startswith("random-"):
        seed = int(name.removeprefix("random-"))
        return random_step(seed), random_shapes(seed)
    return _STEPS[name]


def cell_model(name: str, units: int, *, unrolled: int = 0, seed: int = 0) -> onnx.ModelProto:
    """Return a layer of a cell: x [t, b, units] and states s0, ... in, the results of all steps and the last states out.

    Parameters
    ----------
    name : str
        One of ``CELLS``, or ``random-N`` for the random cell of that seed.
    units : int
        Of the slices and of the states.
    unrolled : int, optional
        So many copies of the cell, for x of so many steps, instead of a Scan.
    seed : int, optional
        Of the weights.
    """
    step, shapes = _step_of(name)
    outer = Builder(seed)
    cell = Cell(outer, "body_", units)
    states = [f"s{i}" for i in range(len(shapes(units)))]
    inputs: dict[str, Shape] = {"x": [unrolled or "t", "b", units], **dict(zip(states, shapes(units), strict=True))}
    if unrolled:
        results = []
        for t in range(unrolled):
            now = cell.copy(f"step{t}_")
            at = outer.add("Gather", "x", outer.constant(t, np.int64), axis=0)
            states, y = step(now, at, states)
            outer.nodes.extend(now.body.nodes)
            results.append(outer.add("Unsqueeze", y, outer.constant([0], np.int64)))
        return outer.model(inputs, [outer.add("Concat", *results, axis=0), *states])
    given = [f"body_s{i}" for i in range(len(states))]
    after, y = step(cell, "body_x", given)
    collected = cell.add("Identity", y)  # which may be a state, too
    float32 = TensorProto.FLOAT
    body = helper.make_graph(
        cell.body.nodes,
        "step",
        [
            *(helper.make_tensor_value_info(n, float32, s) for n, s in zip(given, shapes(units), strict=True)),
            helper.make_tensor_value_info("body_x", float32, ["b", units]),
        ],
        [helper.make_tensor_value_info(n, float32, None) for n in [*after, collected]],
    )
    results = outer.add_all("Scan", [*states, "x"], len(states) + 1, body=body, num_scan_inputs=1)
    return outer.model(inputs, [results[-1], *results[:-1]])


def feeds_of_cells(model: onnx.ModelProto, steps: int, batch: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs of a call: slices of about 1, states of about a half."""
    random = np.random.default_rng(seed)
    sizes = {"t": steps, "b": batch}
    feeds = {}
    for value in model.graph.input:
        dims = [d.dim_value or sizes[d.dim_param] for d in value.type.tensor_type.shape.dim]
        bound = 1.0 if value.name == "x" else 0.5
        feeds[value.name] = random.uniform(-bound, bound, dims).astype(np.float32)
    return feeds
