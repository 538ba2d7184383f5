"""A graph in double precision, node by node: what its values are without the rounding of its dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from neo import _native
from neo.errors import Error
from neo.testing.arrays import is_float

__all__ = ["RANDOM", "ExactGraph", "widen"]

#: Operators that are no function of their inputs: what a run drew is taken as it is.
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

_NORMALIZATIONS = frozenset(
    {"GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "LRN"}
    | {"MeanVarianceNormalization", "RMSNormalization", "Softmax", "LogSoftmax", "CumSum", "DFT", "STFT"}
)


def widen(value: Any) -> Any:
    """A float array in double precision; anything else as it is."""
    if not isinstance(value, np.ndarray) or not is_float(value.dtype):
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


class ExactGraph:
    """The nodes of an imported graph, evaluated one at a time on values in double precision.

    Parameters
    ----------
    graph : _native.Graph
        As imported: with the model's own names of values.
    """

    def __init__(self, graph: _native.Graph) -> None:
        self._graph = graph  # keeps the nodes alive
        self.nodes = list(graph.nodes)
        self.inputs = [[None if v is None else v.name for v in node.inputs] for node in self.nodes]
        self.outputs = [[None if v is None else v.name for v in node.outputs] for node in self.nodes]
        self.input_names = [v.name for v in graph.inputs]
        self.output_names = [v.name for v in graph.outputs]
        self.producer = {name: i for i, names in enumerate(self.outputs) for name in names if name}
        self.dtypes = {
            v.name: v.dtype for node in self.nodes for v in (*node.inputs, *node.outputs) if v and v.kind == "tensor"
        }
        self._constants = {
            v.name: v for node in self.nodes for v in node.inputs if v is not None and v.constant is not None
        }
        self._constants.update({v.name: v for v in graph.outputs if v.constant is not None})
        self._wide: dict[str, Any] = {}
        self.last_use = {name: i for i, names in enumerate(self.inputs) for name in names if name}

    def is_constant(self, name: str) -> bool:
        """Whether a value is known before the run."""
        return name in self._constants

    def constant(self, name: str) -> Any:
        """The elements of a constant, floats in double precision."""
        if name not in self._wide:
            self._wide[name] = widen(np.asarray(self._constants[name].constant))
        return self._wide[name]

    def operands(self, index: int, values: Mapping[str, Any]) -> list[Any]:
        """The inputs of a node among values by name; None for one left out."""
        return [
            None if name is None else values[name] if name in values else self.constant(name)
            for name in self.inputs[index]
        ]

    def evaluate(self, index: int, operands: Sequence[Any]) -> dict[str, Any]:
        """What a node makes of its inputs, by the names of its outputs, floats in double precision.

        Where an operator cannot take wider floats (a body with constants of its own), it runs in the graph's dtypes.
        """
        node = self.nodes[index]
        given = list(operands)
        while len(given) < len(node.inputs):
            given.append(None)
        if node.op == "CastLike":
            given[1] = self.in_own_dtype(self.inputs[index][1] or "", given[1])
        try:
            results = node.evaluate(given)
        except Error:
            results = node.evaluate(
                [
                    x if name is None else self.in_own_dtype(name, x)
                    for name, x in zip(self.inputs[index], given, strict=True)
                ]
            )
        return {name: widen(x) for name, x in zip(self.outputs[index], results, strict=True) if name}

    def in_own_dtype(self, name: str, value: Any) -> Any:
        """A value rounded to the dtype that the graph gives it."""
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            return value
        dtype = to_dtype(self.dtypes.get(name, "float32"))
        with np.errstate(over="ignore", invalid="ignore"):
            return value.astype(dtype) if is_float(dtype) else value

    def segment(self, name: str, known: Mapping[str, Any]) -> list[int]:
        """The nodes that lie between known values and this one, in order."""
        wanted: set[int] = set()
        stack = [self.producer[name]]
        while stack:
            index = stack.pop()
            if index in wanted:
                continue
            wanted.add(index)
            stack += [
                self.producer[source]
                for source in self.inputs[index]
                if source and source in self.producer and source not in known
            ]
        return sorted(wanted)

    def run_segment(
        self, indices: Sequence[int], known: Mapping[str, Any], *, jitter: float = 0.0, seed: int = 0
    ) -> dict[str, Any]:
        """Everything the nodes of a segment make.

        With ``jitter`` every float that a node reads moves by up to this share of itself, which shows how much the
        results depend on the last digits of what they are made of.
        """
        random = np.random.default_rng(seed)
        made: dict[str, Any] = {}
        moved: dict[str, Any] = {}
        for index in indices:
            operands = []
            for name in self.inputs[index]:
                if name is None:
                    operands.append(None)
                    continue
                value = made[name] if name in made else widen(known[name]) if name in known else self.constant(name)
                if jitter and isinstance(value, np.ndarray) and value.dtype == np.float64:
                    if name not in moved:
                        moved[name] = value * (1.0 + jitter * random.uniform(-1.0, 1.0, value.shape))
                    value = moved[name]
                operands.append(value)
            made.update(self.evaluate(index, operands))
        return made

    def walk(self) -> Iterator[tuple[int, list[str]]]:
        """The nodes in order, each with the values nobody reads after it."""
        kept = set(self.output_names)
        done: dict[int, list[str]] = {}
        for name, index in self.last_use.items():
            if name not in kept:
                done.setdefault(index, []).append(name)
        for index in range(len(self.nodes)):
            yield index, done.get(index, [])


def to_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a name, those of ml_dtypes included."""
    try:
        found: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, name))
    return found


def terms(op: str, operands: Sequence[Any], results: Sequence[Any]) -> int:
    """How many values one output element of an operator sums on these arrays; 1 where it sums none."""
    shapes: list[tuple[int, ...]] = [x.shape if isinstance(x, np.ndarray) else () for x in operands]
    base = op.rpartition(".")[2].removeprefix("Fused").removeprefix("QLinear")
    if base in ("Conv", "ConvInteger", "DeformConv"):
        weight = shapes[3] if op.endswith("QLinearConv") else shapes[1]
        return max(1, math.prod(weight[1:]))
    if base == "ConvTranspose":
        return max(1, math.prod(shapes[1]) // max(1, shapes[1][1]))
    if base in ("MatMul", "MatMulInteger", "Gemm", "MatMulNBits", "Einsum"):
        return max((d for shape in shapes[:4] for d in shape), default=1)
    if base in ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"):
        return (shapes[1][-1] + shapes[2][-1]) * max(1, shapes[0][0] if shapes[0] else 1)
    if base in ("Attention", "MultiHeadAttention", "Loop", "Scan", "If", "LinearAttention"):
        return max(4096, *(math.prod(shape) for shape in shapes))
    if base in _NORMALIZATIONS:
        return max(1, math.prod(shapes[0][1:]))
    largest = max((math.prod(shape) for shape in shapes), default=1)
    made = max((x.size for x in results if isinstance(x, np.ndarray)), default=1)
    return max(1, largest // max(1, made))
