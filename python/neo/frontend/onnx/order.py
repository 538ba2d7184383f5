"""The order of a graph's nodes, and the names each of them reads."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from neo.errors import ModelError
from neo.frontend.onnx.messages import AttributeType

if TYPE_CHECKING:
    import onnx

__all__ = ["body_graphs", "constant_names", "names_read", "node_order"]


def body_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    graphs = []
    for attribute in node.attribute:
        if attribute.type == AttributeType.GRAPH:
            graphs.append(attribute.g)
        elif attribute.type == AttributeType.GRAPHS:
            graphs.extend(attribute.graphs)
    return graphs


def constant_names(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    """Names of the values that Constant nodes make."""
    return {name for node in nodes if node.op_type == "Constant" for name in node.output}


def names_read(node: onnx.NodeProto) -> list[str]:
    """Names of the values a node needs, those that its bodies take from around it included."""
    names = [name for name in node.input if name]
    for graph in body_graphs(node) if node.attribute else ():
        local = {name for inner in graph.node for name in inner.output}
        local.update(tensor.name for tensor in graph.initializer)
        local.update(tensor.values.name for tensor in graph.sparse_initializer)
        local.update(value.name for value in graph.input)
        names.extend(name for inner in graph.node for name in names_read(inner) if name not in local)
        names.extend(value.name for value in graph.output if value.name not in local)
    return names


def node_order(nodes: Sequence[onnx.NodeProto], known: Container[str]) -> list[int]:
    """Indices in an order in which every value is made before it is read; the file's own where that is one.

    Only the last of several Constant nodes of one name is in it, as in ONNX Runtime.

    Raises
    ------
    neo.ModelError
        There is a cycle.
    """
    maker: dict[str, int] = {}
    replaced = set()
    for i, node in enumerate(nodes):
        for name in node.output:
            first = maker.setdefault(name, i)
            if first != i and node.op_type == nodes[first].op_type == "Constant":
                replaced.add(first)
                maker[name] = i
    maker.pop("", None)
    needs = [[maker[n] for n in names_read(node) if n in maker and n not in known] for node in nodes]
    if all(j < i for i, makers in enumerate(needs) for j in makers):
        return [i for i in range(len(needs)) if i not in replaced]
    order: list[int] = []
    state = bytearray(len(nodes))  # 0 new, 1 open, 2 done
    for start in range(len(nodes)):
        stack = [] if start in replaced else [start]
        while stack:
            i = stack[-1]
            if state[i] == 2:
                stack.pop()
                continue
            state[i] = 1
            waiting = [j for j in needs[i] if state[j] != 2]
            if any(state[j] == 1 for j in waiting):
                msg = f"[import] the graph must not have cycles. Got one through {_place(nodes, i)}"
                raise ModelError(msg)
            if waiting:
                stack.append(waiting[0])
            else:
                state[i] = 2
                order.append(i)
                stack.pop()
    return order


def _place(nodes: Sequence[onnx.NodeProto], index: int) -> str:
    node = nodes[index]
    return f'node "{node.name}" ({node.op_type})' if node.name else f"nodes[{index}] ({node.op_type})"
