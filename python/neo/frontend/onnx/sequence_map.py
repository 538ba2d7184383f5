"""SequenceMap: a loop over the elements of a sequence that puts each result into a sequence of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neo.errors import ModelError
from neo.frontend.onnx.scope import Scope
from neo.frontend.onnx.types import element_type

if TYPE_CHECKING:
    import onnx

    from neo import _native
    from neo.frontend.onnx.importer import Context, Importer

__all__ = ["sequence_map"]


def sequence_map(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    inputs: Sequence[_native.Value | None],
    body_proto: onnx.GraphProto,
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    """The outputs of the node; none where something in the body was refused."""
    given = _checked(node, inputs, body_proto, place)
    body = Scope(scope.graph.subgraph(), scope)
    graph = body.graph
    graph.name = body_proto.name
    step = graph.add_input("step", "int64[]")
    go = graph.add_input("go", "bool[]")
    handed = [graph.add_input_like(f"{formal.name}.all", v) for formal, v in zip(body_proto.input, given, strict=True)]
    for i, (formal, value) in enumerate(zip(body_proto.input, handed, strict=True)):
        if i == 0 or value.kind == "sequence":
            value = graph.add_node("SequenceAt", [value, step], [formal.name], {}, "").outputs[0]
        body.define(formal.name, value, place)
    if not importer.fill_body(body, body_proto, context):
        return []
    captured = graph.inputs[2:]
    results = list(graph.outputs)[: len(node.output)]
    empty: list[_native.Value] = []
    grown: list[_native.Value] = []
    carried: list[_native.Value] = []
    for result, name in zip(results, node.output, strict=True):
        if result.kind != "tensor":
            msg = f"[SequenceMap] the body must give tensors. Got {result.type} - at {place}"
            raise ModelError(msg)
        dtype = {"dtype": element_type(result.dtype)}
        empty.append(scope.graph.add_node("SequenceEmpty", [], [f"{name}.empty"], dtype, node.name).outputs[0])
        carried.append(graph.add_input_like(f"{name}.before", empty[-1]))
        grown.append(graph.add_node("SequenceInsert", [carried[-1], result], [f"{name}.after"], {}, "").outputs[0])
    graph.inputs = [step, go, *carried, *captured]
    graph.outputs = [graph.add_node("Identity", [go], ["go_on"], {}, "").outputs[0], *grown]
    length = scope.graph.add_node("SequenceLength", [given[0]], ["length"], {}, node.name).outputs[0]
    made = scope.graph.add_node(
        "Loop",
        [length, None, *empty, *given, *body.captured.values()],
        list(node.output),
        {"num_captured": len(captured)},
        node.name,
        {"body": graph},
    )
    return list(made.outputs)


def _checked(
    node: onnx.NodeProto, inputs: Sequence[_native.Value | None], body: onnx.GraphProto, place: str
) -> list[_native.Value]:
    given = [value for value in inputs if value is not None]
    if len(body.input) != len(inputs) or len(given) != len(inputs) or not given:
        msg = (
            "[SequenceMap] the body must take an element of each input. "
            f"Got {len(body.input)} inputs, expected {len(given)} - at {place}"
        )
        raise ModelError(msg)
    if given[0].kind != "sequence":
        msg = f"[SequenceMap] the first input must be a sequence. Got {given[0].type} - at {place}"
        raise ModelError(msg)
    if len(body.output) < len(node.output):
        msg = (
            "[SequenceMap] the body must give each output of the node. "
            f"Got {len(body.output)}, expected {len(node.output)} - at {place}"
        )
        raise ModelError(msg)
    return given
