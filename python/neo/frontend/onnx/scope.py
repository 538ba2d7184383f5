"""Names while a graph is imported; bodies of control flow are closed on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neo.errors import ModelError

if TYPE_CHECKING:
    from neo import _native

__all__ = ["Scope"]


class Scope:
    """The values a graph's nodes may name.

    A body sees the names of the graphs around it. An outer constant becomes a constant of the body; any other outer
    value becomes an input of the body and is recorded in `captured`, to be given by the node that holds the body.

    A name in `missing` is defined, but nobody knows its value: the node that makes it was refused.
    """

    def __init__(self, graph: _native.Graph, parent: Scope | None = None) -> None:
        self.graph = graph
        self.parent = parent
        self.values: dict[str, _native.Value] = {}
        self.captured: dict[str, _native.Value] = {}
        self.missing: set[str] = set()
        self.depth: int = 0 if parent is None else parent.depth + 1

    def define(self, name: str, value: _native.Value | None, place: str) -> None:
        """Bind a name, None to a value that is missing; a graph binds each once."""
        if (name in self.values and name not in self.captured) or name in self.missing:
            msg = f"[import] a value must be defined once. Got {name!r} again - at {place}"
            raise ModelError(msg)
        if value is None:
            self.missing.add(name)
        else:
            self.values[name] = value

    def is_missing(self, name: str) -> bool:
        """Whether a name stands for a value that nobody knows."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.missing:
                return True
            if name in scope.values:
                return False
            scope = scope.parent
        return False

    def find(self, name: str) -> _native.Value | None:
        """The value of a name, captured from around where it is not local; None where nobody defines it."""
        if name in self.values:
            return self.values[name]
        if self.parent is None:
            return None
        outer = self.parent.find(name)
        if outer is None:
            return None
        constant = outer.constant
        if constant is not None:
            value = self.graph.add_constant(name, constant)
        else:
            value = self.graph.add_input_like(name, outer)
            self.captured[name] = outer
        self.values[name] = value
        return value

    def capture(self, name: str) -> _native.Value:
        """As :meth:`find` for a name that is known to be an outer value."""
        value = self.find(name)
        if value is None:
            msg = f"[import] a captured value must exist. Got {name!r}"
            raise ModelError(msg)
        return value
