"""The model's own nodes behind the values of an imported graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neo.accuracy.exact import ExactGraph
from neo.frontend.onnx.load import load_model

__all__ = ["ModelNode", "Owners", "model_nodes"]


@dataclass(frozen=True)
class ModelNode:
    """A node of the model: its name (that of its first output where it has none), operator, inputs and outputs."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def model_nodes(model: Any) -> list[ModelNode]:
    """The nodes of a model's graph, in its order."""
    proto = load_model(model).proto
    return [
        ModelNode(
            node.name or next((name for name in node.output if name), node.op_type),
            node.op_type,
            tuple(node.input),
            tuple(name for name in node.output if name),
        )
        for node in proto.graph.node
    ]


class Owners:
    """Which node of the model each node of an imported graph belongs to."""

    def __init__(self, graph: ExactGraph, nodes: Sequence[ModelNode]) -> None:
        self.nodes = list(nodes)
        self._makers: Mapping[str, ModelNode] = {name: node for node in nodes for name in node.outputs}
        self._owner: list[ModelNode | None] = [None] * len(graph.nodes)
        readers: dict[str, int] = {}
        for index in reversed(range(len(graph.nodes))):
            made = [name for name in graph.outputs[index] if name]
            owner = next((self._makers[name] for name in made if name in self._makers), None)
            if owner is None:
                reader = next((readers[name] for name in made if name in readers), None)
                owner = None if reader is None else self._owner[reader]
            self._owner[index] = owner
            for name in graph.inputs[index]:
                if name:
                    readers[name] = index

    def of(self, index: int) -> ModelNode | None:
        """The model's node that a node of the graph belongs to."""
        return self._owner[index]

    def of_segment(self, segment: Sequence[int]) -> list[ModelNode]:
        """The model's nodes of a segment, once each, in order."""
        found: dict[str, ModelNode] = {}
        for index in segment:
            owner = self._owner[index]
            if owner is not None:
                found.setdefault(owner.name, owner)
        return list(found.values())

    def maker(self, value: str) -> ModelNode | None:
        """The model's node that makes a value."""
        return self._makers.get(value)
