"""What a converter sees of one node, and how it builds nodes of neo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neo.errors import UnsupportedError

if TYPE_CHECKING:
    from neo import _native
    from neo.frontend.onnx.scope import Scope

__all__ = ["Call"]


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
    ) -> None:
        self.scope = scope
        self.domain = domain
        self.op = op
        self.opset = opset
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs

    def input(self, index: int) -> _native.Value | None:
        """The input, or None where it was left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """The elements of a constant input; None where it is left out or not a constant."""
        value = self.input(index)
        return None if value is None else value.constant

    def rank(self, index: int) -> int | None:
        """The number of axes of an input, where known."""
        value = self.input(index)
        return None if value is None or value.shape is None else len(value.shape)

    def array(self, elements: Any, dtype: str = "int64") -> _native.Value:
        """A new constant."""
        return self.scope.graph.add_constant(f"{self.name or self.op}.const", np.asarray(elements, dtype=dtype))

    def add(
        self,
        op: str,
        inputs: Sequence[_native.Value | None],
        attrs: dict[str, Any] | None = None,
        *,
        outputs: Sequence[str] | None = None,
        stem: str = "",
    ) -> Any:
        """Append a node of neo.

        Returns the one output when `outputs` is None, else a list with None for outputs left out. Pass ``call.outputs`` for
        the node that makes the ONNX node's results.
        """
        names = [f"{self.outputs[0] if self.outputs else self.op}.{stem or op}"] if outputs is None else list(outputs)
        node = self.scope.graph.add_node(op, list(inputs), names, attrs or {}, self.name)
        made = node.outputs
        return made[0] if outputs is None else list(made)

    def finish(self, op: str, inputs: Sequence[_native.Value | None], attrs: dict[str, Any] | None = None) -> list[Any]:
        """Append the node that makes this ONNX node's results."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        return list(self.add(op, inputs, attrs, outputs=self.outputs))

    def refuse(self, reason: str) -> UnsupportedError:
        """The error that says why this node cannot be imported; raise it."""
        return UnsupportedError(reason)
