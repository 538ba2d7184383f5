"""Random cells: gates, normalizations, states and memories put together in ways that have no name.

A cell of some seeds does not forget: there what two engines round differently grows from step to step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.models.builder import Shape
    from benchmarks.models.cells import Cell

__all__ = ["random_shapes", "random_step"]

_GATES = ("Sigmoid", "Sigmoid", "Sigmoid", "HardSigmoid")
_SQUASHES = ("Tanh", "Tanh", "Relu", "Softsign", "Elu")
_FORMS = ("sum", "sum", "concat", "gemm", "parts", "trunk")
_NORMS = ("none", "none", "none", "spelled", "both", "rms")
_UPDATES = ("mix", "mix", "lstm", "leaky", "exponential")
_KINDS = ("plain", "plain", "plain", "memory", "projected")


class _Form:
    """What the random numbers of a seed say of a cell."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.form, self.norm = draw.choice(_FORMS), draw.choice(_NORMS)
        self.update, self.kind = draw.choice(_UPDATES), draw.choice(_KINDS)
        self.gates = [draw.choice(_GATES) for _ in range(draw.randint(2, 4))]
        self.squash, self.last = draw.choice(_SQUASHES), draw.choice(_SQUASHES)
        self.peephole, self.reset, self.residual = (draw.random() < 0.3 for _ in range(3))
        self.slots = draw.choice((4, 8, 16))
        self.depth = draw.choice((1, 1, 1, 2))


def random_shapes(seed: int) -> Callable[[int], list[Shape]]:
    """Return the shapes of the states of the seed's cell."""
    form = _Form(seed)

    def shapes(n: int) -> list[Shape]:
        found: list[Shape] = [["b", n // 2 if form.kind == "projected" else n], ["b", n]]
        if form.update == "exponential":
            found.append(["b", n])
        if form.kind == "memory":
            found.append(["b", form.slots, n])
        return found

    return shapes


def random_step(seed: int) -> Callable[[Cell, str, list[str]], tuple[list[str], str]]:
    """Return the step of the seed's cell: a hidden state, a cell state, and what else the form has."""
    form = _Form(seed)

    def step(c: Cell, x: str, states: list[str]) -> tuple[list[str], str]:
        h, cell = states[0], states[1]
        width = c.units // 2 if form.kind == "projected" else c.units
        raw = _gates(form, c, x, h, width, len(form.gates) + 1)
        gates = [
            c.add(op, c.plus(g, c.mul(cell, c.bias(c.units))) if form.peephole and i < 2 else g)
            for i, (op, g) in enumerate(zip(form.gates, raw[1:], strict=True))
        ]
        fresh = raw[0]
        if form.reset:
            fresh = c.plus(fresh, c.linear(c.mul(gates[0], cell), c.units))
        fresh = c.add(form.squash, fresh)
        after, more = _update(form, c, gates, raw[1], fresh, states)
        shown = c.norm(after, c.units) if form.norm == "both" else after
        out = c.mul(gates[-1], c.add(form.last, shown))
        if form.kind == "memory":
            memory = states[-1]
            read, memory = _memory(c, out, memory, gates[0], fresh)
            out = c.plus(out, read)
            more = [*more, memory]
        if form.depth == 2:
            out = c.plus(out, c.add("Tanh", c.linear(out, c.units)))
        if form.kind == "projected":
            out = c.add("MatMul", out, c.weight(c.units, width))
        result = c.plus(out, x) if form.residual and width == c.units else out
        return [out, after, *more], result

    return step


def _gates(form: _Form, c: Cell, x: str, h: str, width: int, count: int) -> list[str]:
    size = count * c.units
    if form.form == "parts":
        return [
            _normed(form, c, c.plus(c.linear(x, c.units), c.linear(h, c.units, width)), c.units) for _ in range(count)
        ]
    if form.form in ("concat", "gemm"):
        both = c.add("Concat", x, h, axis=1)
        if form.form == "gemm":
            total = c.add("Gemm", both, c.weight(size, c.units + width), c.bias(size), transB=1)
        else:
            total = c.linear(both, size, c.units + width)
        return c.split(_normed(form, c, total, size), count)
    if form.form == "trunk":
        trunk = c.tanh(c.plus(c.linear(x, c.units), c.linear(h, c.units, width)))
        return c.split(_normed(form, c, c.linear(trunk, size), size), count)
    return c.split(c.plus(c.linear(x, size), _normed(form, c, c.linear(h, size, width), size)), count)


def _normed(form: _Form, c: Cell, x: str, size: int) -> str:
    if form.norm in ("spelled", "both"):
        return c.norm(x, size)
    if form.norm == "rms":
        mean = c.add("ReduceMean", c.mul(x, x), axes=[-1])
        return c.mul(c.add("Div", x, c.add("Sqrt", c.plus(mean, c.number(1e-5)))), c.bias(size))
    return x


def _update(form: _Form, c: Cell, gates: list[str], raw: str, fresh: str, states: list[str]) -> tuple[str, list[str]]:
    cell = states[1]
    if form.update == "mix":
        return c.mix(gates[0], cell, fresh), []
    if form.update == "lstm":
        return c.plus(c.mul(gates[0], cell), c.mul(gates[1], fresh)), []
    if form.update == "leaky":
        return c.plus(c.mul(c.number(0.875), cell), c.mul(gates[0], fresh)), []
    grown = c.add("Exp", c.add("Min", raw, c.number(1.0)))
    sums = c.plus(c.mul(gates[1], states[2]), grown)
    total = c.plus(c.mul(gates[1], cell), c.mul(grown, fresh))
    return c.add("Div", total, c.plus(c.add("Abs", sums), c.number(1.0))), [c.add("Softsign", sums)]


def _memory(c: Cell, out: str, memory: str, gate: str, fresh: str) -> tuple[str, str]:
    """A read by attention over the slots of a memory, and the memory that the same weights have written."""
    query = c.column(c.linear(out, c.units))
    weights = c.add("Softmax", c.add("MatMul", memory, query), axis=1)
    read = c.add("Squeeze", c.add("MatMul", c.add("Transpose", weights, perm=[0, 2, 1]), memory), c.ints(1))
    written = c.plus(memory, c.mul(weights, c.row(c.add("Sub", c.mul(gate, fresh), read))))
    return read, written
