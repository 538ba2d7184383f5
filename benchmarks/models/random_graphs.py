"""Small graphs of random operators, each of which reads what those before it have made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["chain"]

_OPSET = 20


class _Chain:
    """The nodes so far, and the value that the next one reads."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        rank = int(random.integers(2, 5))
        elements = np.exp(random.uniform(np.log(200), np.log(300000)))
        self.dims = [max(2, round(float(elements**s))) for s in random.dirichlet(np.full(rank, 3.0))]
        self.input = list(self.dims)
        self.value = "x"
        self.values: list[tuple[str, tuple[int, ...]]] = [("x", tuple(self.dims))]

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def floats(self, *dims: int) -> str:
        return self.constant(self.random.uniform(-1, 1, dims).astype(np.float32))

    def add(self, op: str, *inputs: str, dims: list[int] | None = None, **attributes: Any) -> str:
        """Append a node, whose result the next one reads where `dims` says its sizes."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        if dims is not None:
            self.value, self.dims = name, dims
            self.values.append((name, tuple(dims)))
        return name


def _unary(c: _Chain) -> None:
    op = ("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "Softplus", "HardSwish", "Gelu")[c.number(0, 9)]
    if op == "Exp":
        c.add("Tanh", c.value, dims=c.dims)
    c.add(op, c.value, dims=c.dims)


def _with_constant(c: _Chain) -> None:
    dims = [d if c.number(0, 1) else 1 for d in c.dims]
    op = ("Add", "Mul", "Sub", "Max", "Min")[c.number(0, 4)]
    c.add(op, c.value, c.floats(*dims[c.number(0, len(dims) - 1) :]), dims=c.dims)


def _with_earlier(c: _Chain) -> None:
    same = [name for name, dims in c.values if dims == tuple(c.dims)]
    c.add(("Add", "Mul", "Sub")[c.number(0, 2)], c.value, same[c.number(0, len(same) - 1)], dims=c.dims)


def _centred(c: _Chain) -> None:
    axes = sorted({c.number(0, len(c.dims) - 1) for _ in range(c.number(1, 2))})
    op = ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2")[c.number(0, 3)]
    reduced = c.add(op, c.value, c.constant(np.asarray(axes, np.int64)), keepdims=1)
    c.add("Sub", c.value, reduced, dims=c.dims)


def _softmax(c: _Chain) -> None:
    c.add("Softmax", c.value, dims=c.dims, axis=c.number(0, len(c.dims) - 1))


def _transpose(c: _Chain) -> None:
    perm = [int(a) for a in c.random.permutation(len(c.dims))]
    c.add("Transpose", c.value, dims=[c.dims[a] for a in perm], perm=perm)


def _reshape(c: _Chain) -> None:
    at = c.number(0, len(c.dims) - 2)
    dims = [*c.dims[:at], c.dims[at] * c.dims[at + 1], *c.dims[at + 2 :]]
    if len(dims) < 2:
        dims = [1, *dims]
    c.add("Reshape", c.value, c.constant(np.asarray(dims, np.int64)), dims=dims)


def _slice(c: _Chain) -> None:
    axis = c.number(0, len(c.dims) - 1)
    if c.dims[axis] < 4:
        return
    step = c.number(1, 2)
    begin = c.number(0, c.dims[axis] // 3)
    dims = list(c.dims)
    dims[axis] = -(-(c.dims[axis] - begin) // step)
    lists = (c.constant(np.asarray([v], np.int64)) for v in (begin, 1 << 40, axis, step))
    c.add("Slice", c.value, *lists, dims=dims)


def _concat(c: _Chain) -> None:
    axis = c.number(0, len(c.dims) - 1)
    dims = list(c.dims)
    dims[axis] *= 2
    if np.prod(dims) < 400000:
        other = c.add("Neg", c.value)
        c.add("Concat", c.value, other, dims=dims, axis=axis)


def _masked(c: _Chain) -> None:
    mask = c.add("Greater", c.value, c.floats())
    c.add("Where", mask, c.value, c.floats(c.dims[-1]), dims=c.dims)


def _matmul(c: _Chain) -> None:
    columns = c.number(1, 100)
    if np.prod(c.dims) * columns < 3e7:
        c.add("MatMul", c.value, c.floats(c.dims[-1], columns), dims=[*c.dims[:-1], columns])


def _scores(c: _Chain) -> None:
    """The products of all rows with each other."""
    rows = c.dims[-2]
    if np.prod(c.dims) * rows < 3e7 and np.prod(c.dims[:-1]) * rows < 400000:
        perm = [*range(len(c.dims) - 2), len(c.dims) - 1, len(c.dims) - 2]
        turned = c.add("Transpose", c.value, perm=perm)
        c.add("MatMul", c.value, turned, dims=[*c.dims[:-1], rows])


def _norm(c: _Chain) -> None:
    size = c.dims[-1]
    c.add("LayerNormalization", c.value, c.floats(size), c.floats(size), dims=c.dims, axis=-1)


def _convolution(c: _Chain) -> None:
    if len(c.dims) != 4 or c.dims[1] > 64 or min(c.dims[2:]) < 2:
        return
    outputs = c.number(1, 32)
    if np.prod(c.dims) * outputs * 9 < 1e8:
        dims = [c.dims[0], outputs, *c.dims[2:]]
        c.add("Conv", c.value, c.floats(outputs, c.dims[1], 3, 3), c.floats(outputs), dims=dims, pads=[1, 1, 1, 1])


def _gather(c: _Chain) -> None:
    axis = c.number(0, len(c.dims) - 1)
    dims = list(c.dims)
    dims[axis] = c.number(1, c.dims[axis])
    at = c.random.integers(0, c.dims[axis], dims[axis])
    c.add("Gather", c.value, c.constant(at), dims=dims, axis=axis)


def _pad(c: _Chain) -> None:
    pads = [c.number(0, 2) if c.number(0, 1) else 0 for _ in range(2 * len(c.dims))]
    rank = len(c.dims)
    dims = [d + pads[i] + pads[i + rank] for i, d in enumerate(c.dims)]
    c.add("Pad", c.value, c.constant(np.asarray(pads, np.int64)), dims=dims)


def _cast(c: _Chain) -> None:
    to = (TensorProto.FLOAT16, TensorProto.INT32, TensorProto.DOUBLE, TensorProto.INT64)[c.number(0, 3)]
    inner = c.add("Cast", c.value, to=to)
    c.add("Cast", inner, dims=c.dims, to=TensorProto.FLOAT)


def _cum_sum(c: _Chain) -> None:
    c.add("CumSum", c.value, c.constant(np.asarray(c.number(0, len(c.dims) - 1))), dims=c.dims)


_STEPS: tuple[Callable[[_Chain], None], ...] = (
    _unary,
    _unary,
    _with_constant,
    _with_constant,
    _with_earlier,
    _centred,
    _softmax,
    _transpose,
    _reshape,
    _slice,
    _concat,
    _masked,
    _matmul,
    _scores,
    _norm,
    _convolution,
    _gather,
    _pad,
    _cast,
    _cum_sum,
)


def chain(random: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray], str]:
    """Return a model of some operators, its input, and the operators' names.

    Parameters
    ----------
    random : numpy.random.Generator
        What the operators and their sizes come from.
    """
    c = _Chain(random)
    count = c.number(2, 6)
    while not c.nodes or count > 0:
        _STEPS[c.number(0, len(_STEPS) - 1)](c)
        count -= 1
    dims: list[int | str] = list(c.input)
    is_dynamic = random.random() < 0.2
    if is_dynamic and not any(n.op_type in ("Reshape",) for n in c.nodes):
        dims[0] = "N"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    result = onnx.ValueInfoProto(name=c.value)
    graph = helper.make_graph(c.nodes, "chain", [x], [result], c.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    feeds = {"x": random.uniform(-1, 1, c.input).astype(np.float32)}
    sizes = "x".join(map(str, c.input))
    return model, feeds, f"{sizes} {' '.join(n.op_type for n in c.nodes)}"
