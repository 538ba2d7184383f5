"""Bodies of operators that are functions: the model's own, and those ONNX defines by other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neo.frontend.onnx.messages import to_proto, with_inputs
from neo.frontend.onnx.signature import find_schema
from neo.frontend.onnx.types import type_proto

if TYPE_CHECKING:
    import onnx

    from neo import _native

__all__ = ["schema_function", "without_inputs"]


# Operators whose builders in onnx bear a body of any kind; that of SequenceMap ends the process where a type is missing.
_BODIES_CHECKED = frozenset({"FlexAttention"})


def schema_function(
    node: onnx.NodeProto, domain: str, opset: int, inputs: Sequence[_native.Value | None]
) -> onnx.FunctionProto | None:
    """What ONNX itself says an operator consists of, for these input types; None where it says nothing."""
    schema = find_schema(domain, node.op_type, opset)
    if schema is None:
        return None
    if schema.has_function:
        body: onnx.FunctionProto = schema.function_body
        return body
    if not schema.has_context_dependent_function:
        return None
    if node.op_type not in _BODIES_CHECKED and any(a.HasField("g") or a.graphs for a in node.attribute):
        return None
    import onnx

    types = [(type_proto(v) if v is not None else onnx.TypeProto()).SerializeToString() for v in inputs]
    raw = schema.get_context_dependent_function(to_proto(node).SerializeToString(), types)
    if not raw:
        return None
    body = onnx.FunctionProto()
    body.ParseFromString(raw)
    return body


def without_inputs(nodes: Sequence[onnx.NodeProto], absent: set[str]) -> list[onnx.NodeProto]:
    """The nodes of a function that is called without some of its inputs."""
    return [
        with_inputs(node, ["" if name in absent else name for name in node.input]) if absent & set(node.input) else node
        for node in nodes
    ]
