"""What a converter sees of one node, and how it builds nodes of neo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neo.errors import ModelError, UnsupportedError
from neo.frontend.onnx.types import numpy_dtype

if TYPE_CHECKING:
    from neo import _native
    from neo.frontend.onnx.importer import Importer
    from neo.frontend.onnx.scope import Scope

__all__ = ["Call", "Results"]

Results = Sequence["_native.Value | None"]


class Call:
    """One ONNX node with its inputs resolved.

    Attributes
    ----------
    op, domain, opset, name
        Of the ONNX node; `opset` is the model's for that domain.
    inputs : list of Value or None
        None where an optional input was left out.
    outputs : list of str
        Names; empty where an output was left out.
    attrs : dict
        Attributes as Python values: numbers, strings, lists, arrays. Bodies are not in it.
    importer : Importer
        Of the whole model, for what one node does not tell.
    """

    def __init__(
        self,
        scope: Scope,
        domain: str,
        op: str,
        opset: int,
        name: str,
        inputs: list[_native.Value | None],
        outputs: list[str],
        attrs: dict[str, Any],
        importer: Importer,
    ) -> None:
        self.scope = scope
        self.domain = domain
        self.op = op
        self.opset = opset
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.importer = importer

    def input(self, index: int) -> _native.Value | None:
        """The input, or None where it was left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def need(self, index: int) -> _native.Value:
        """An input that must be there."""
        value = self.input(index)
        if value is None:
            msg = f"[{self.op}] input {index} must be given. Got none"
            raise ModelError(msg)
        return value

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """The elements of a constant input; None where it is left out or not a constant."""
        value = self.input(index)
        return None if value is None else value.constant

    def need_constant(self, index: int, what: str) -> np.ndarray[Any, Any]:
        """The elements of an input that this operator takes over only as a constant."""
        array = self.constant(index)
        if array is None:
            raise self.refuse(f"{what} must be a constant")
        return array

    def positive(self, name: str) -> int:
        """An attribute that must be a number above 0."""
        value = int(self.attrs.get(name, 0))
        if value < 1:
            msg = f"[{self.op}] attribute {name!r} must be positive. Got {value}"
            raise ModelError(msg)
        return value

    def shape(self, index: int) -> tuple[int | str, ...]:
        """The sizes of an input whose rank must be known."""
        shape = self.need(index).shape
        if shape is None:
            raise self.refuse(f"the rank of input {index} must be known")
        return shape

    def rank(self, index: int) -> int:
        """The number of axes of an input, which must be known."""
        return len(self.shape(index))

    def size(self, index: int, axis: int, what: str) -> int:
        """One size of an input, which must be a number."""
        shape = self.shape(index)
        if not -len(shape) <= axis < len(shape):
            msg = f"[{self.op}] input {index} must have axis {axis}. Got {list(shape)}"
            raise ModelError(msg)
        size = shape[axis]
        if not isinstance(size, int):
            raise self.refuse(f"{what} must be known. Got {size}")
        return size

    def wants(self, index: int) -> bool:
        """Whether the model names this output."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def array(self, elements: Any, dtype: str = "int64") -> _native.Value:
        """A new constant."""
        return self.scope.graph.add_constant(f"{self._stem()}.const", np.asarray(elements, dtype=numpy_dtype(dtype)))

    def strings(self, elements: Sequence[str]) -> _native.Value:
        """A new constant of strings, of one axis."""
        return self.scope.graph.add_constant(f"{self._stem()}.const", np.array(elements, dtype=object))

    def add(
        self,
        op: str,
        inputs: Sequence[_native.Value | None],
        attrs: dict[str, Any] | None = None,
        *,
        outputs: int = 1,
    ) -> Any:
        """Append a node of neo on the way to the results.

        Returns its output, or the list of them where `outputs` is more than 1.
        """
        names = [f"{self._stem()}.{op.rpartition('.')[2]}{i or ''}" for i in range(outputs)]
        made = self._node(op, inputs, attrs, names)
        return made[0] if outputs == 1 else made

    def finish(self, op: str, inputs: Sequence[_native.Value | None], attrs: dict[str, Any] | None = None) -> list[Any]:
        """Append the node that makes this ONNX node's results."""
        return self._node(op, inputs, attrs, self.outputs)

    def _stem(self) -> str:
        return next((name for name in self.outputs if name), self.name or self.op)

    def _node(
        self, op: str, inputs: Sequence[_native.Value | None], attrs: dict[str, Any] | None, names: Sequence[str]
    ) -> list[Any]:
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        return list(self.scope.graph.add_node(op, given, list(names), attrs or {}, self.name).outputs)

    def refuse(self, reason: str) -> UnsupportedError:
        """The error that says why this node cannot be imported; raise it."""
        return UnsupportedError(reason)
