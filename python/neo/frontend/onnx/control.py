"""If, Loop, Scan and SequenceMap: bodies become graphs of their own that take what they use from around them as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError, UnsupportedError
from neo.frontend.onnx.messages import AttributeType
from neo.frontend.onnx.scope import Scope
from neo.frontend.onnx.sequence_map import sequence_map
from neo.frontend.onnx.types import check_names

if TYPE_CHECKING:
    import onnx

    from neo import _native
    from neo.frontend.onnx.importer import Context, Importer

__all__ = ["OPERATORS", "convert"]

OPERATORS = frozenset({"If", "Loop", "Scan", "SequenceMap"})

_ANY = "float32[*]"


def convert(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    inputs: list[_native.Value | None],
    attributes: Mapping[str, onnx.AttributeProto],
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    """The outputs of a control flow node; none where something in a body was refused."""
    if node.op_type == "If":
        return _if(importer, scope, node, inputs, attributes, context, place)
    if node.op_type == "SequenceMap":
        body = _body(attributes, "body", place)
        return sequence_map(importer, scope, node, inputs, body, _inside(context, place, "body"), place)
    if node.op_type == "Scan" and context.opsets[""] < 9:
        return _scan_over_batch(importer, scope, node, inputs, attributes, context, place)
    return _repeat(importer, scope, node, inputs, attributes, context, place)


def _repeat(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    inputs: list[_native.Value | None],
    attributes: Mapping[str, onnx.AttributeProto],
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    body_proto = _body(attributes, "body", place)
    attrs: dict[str, Any] = {name: importer.value_of(a, place) for name, a in attributes.items() if name != "body"}
    if node.op_type == "Loop":
        inputs = [*inputs, *[None] * (2 - len(inputs))]
        scalars = [_scalar_type(*pair) for pair in zip(body_proto.input[:2], ("int64", "bool"), strict=False)]
        types = [*scalars, *(v.type if v is not None else _ANY for v in inputs[2:])]
    else:
        types = _scan_types(inputs, attrs, place)
    _check_arity(node, body_proto, inputs, attrs, place)
    body = Scope(scope.graph.subgraph(), scope)
    body.graph.name = body_proto.name
    for formal, type_text in zip(body_proto.input, types, strict=True):
        body.define(formal.name, body.graph.add_input(formal.name, type_text), place)
    if not importer.fill_body(body, body_proto, _inside(context, place, "body")):
        return []
    attrs["num_captured"] = len(body.captured)
    first = 2 if node.op_type == "Loop" else 0
    opened = _wrap_optionals(body.graph, inputs[first:], first // 2)
    names = [f"{name}.optional" if i in opened and name else name for i, name in enumerate(node.output)]
    made = scope.graph.add_node(
        node.op_type, [*inputs, *body.captured.values()], names, attrs, node.name, {"body": body.graph}
    )
    results = list(made.outputs)
    for i in opened:
        if i < len(results) and results[i] is not None:
            get = scope.graph.add_node("OptionalGetElement", [results[i]], [node.output[i]], {}, node.name)
            results[i] = get.outputs[0]
    return results


def _scalar_type(formal: onnx.ValueInfoProto, dtype: str) -> str:
    """The type of a loop's iteration number or condition, of one axis where the body declares it so."""
    return f"{dtype}[1]" if len(formal.type.tensor_type.shape.dim) == 1 else f"{dtype}[]"


def _wrap_optionals(body: _native.Graph, carried: Sequence[_native.Value | None], first: int) -> list[int]:
    """Carry an optional where a body turns an optional into what it holds; the positions of such carried values."""
    outputs = list(body.outputs)
    opened = []
    for i, value in enumerate(carried):
        at = first + i
        if value is None or value.kind != "optional" or at >= len(outputs) or outputs[at].kind == "optional":
            continue
        outputs[at] = body.add_node("Optional", [outputs[at]], [f"{outputs[at].name}.optional"], {}, "").outputs[0]
        opened.append(i)
    body.outputs = outputs
    return opened


def _if(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    inputs: list[_native.Value | None],
    attributes: Mapping[str, onnx.AttributeProto],
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    bodies = {}
    whole = True
    for name in ("then_branch", "else_branch"):
        proto = _body(attributes, name, place)
        if len(proto.output) != len(node.output):
            msg = (
                f"[If] a branch must give every output of the node. "
                f"Got {len(proto.output)}, expected {len(node.output)} - at {place}.{name}"
            )
            raise ModelError(msg)
        if proto.input:
            msg = f"[If] a branch must have no inputs. Got {proto.input[0].name!r} - at {place}.{name}"
            raise ModelError(msg)
        body = Scope(scope.graph.subgraph(), scope)
        body.graph.name = proto.name
        whole = importer.fill_body(body, proto, _inside(context, place, name)) and whole
        bodies[name] = body
    if not whole:
        return []
    names = list(dict.fromkeys(n for body in bodies.values() for n in body.captured))
    for body in bodies.values():
        by_name = {n: body.values[n] for n in body.captured}
        for name in names:
            if name not in by_name:
                by_name[name] = body.graph.add_input_like(f"{name}.unused", scope.capture(name))
        body.graph.inputs = [by_name[n] for n in names]
    made = scope.graph.add_node(
        "If",
        [*inputs, *(scope.capture(n) for n in names)],
        list(node.output),
        {},
        node.name,
        {name: body.graph for name, body in bodies.items()},
    )
    return list(made.outputs)


def _inside(context: Context, place: str, name: str) -> Context:
    return type(context)(context.opsets, context.attributes, f"{place}.{name}")


def _body(attributes: Mapping[str, onnx.AttributeProto], name: str, place: str) -> onnx.GraphProto:
    if name not in attributes or int(attributes[name].type) != AttributeType.GRAPH:
        msg = f"[import] control flow must have its body. Got no {name} - at {place}"
        raise ModelError(msg)
    body = attributes[name].g
    check_names(body.name, *(value.name for value in body.input))
    return body


def _check_arity(
    node: onnx.NodeProto,
    body: onnx.GraphProto,
    inputs: Sequence[_native.Value | None],
    attrs: Mapping[str, Any],
    place: str,
) -> None:
    op = node.op_type
    if len(body.input) != len(inputs):
        what = "the iteration, the condition and each carried value" if op == "Loop" else "each state and each slice"
        msg = f"[{op}] the body must take {what}. Got {len(body.input)} inputs, expected {len(inputs)} - at {place}"
        raise ModelError(msg)
    carried = len(inputs) - 2 if op == "Loop" else len(inputs) - int(attrs["num_scan_inputs"])
    least = carried + (1 if op == "Loop" else 0)
    if len(body.output) < least or len(node.output) > len(body.output) - (least - carried):
        msg = (
            f"[{op}] the body must give {'the condition and ' if op == 'Loop' else ''}each output of the node. "
            f"Got {len(body.output)}, expected {max(least, len(node.output) + least - carried)} - at {place}"
        )
        raise ModelError(msg)


def _scan_types(inputs: Sequence[_native.Value | None], attrs: Mapping[str, Any], place: str) -> list[str]:
    scanned = int(attrs["num_scan_inputs"])
    if not 0 < scanned <= len(inputs):
        msg = f"[Scan] num_scan_inputs must be 1 to the number of inputs. Got {scanned} of {len(inputs)} - at {place}"
        raise ModelError(msg)
    axes = list(attrs.get("scan_input_axes", [0] * scanned))
    if len(axes) != scanned:
        msg = (
            "[Scan] scan_input_axes must have one entry per scanned input. "
            f"Got {len(axes)}, expected {scanned} - at {place}"
        )
        raise ModelError(msg)
    states = len(inputs) - scanned
    types = [v.type if v is not None else _ANY for v in inputs[:states]]
    return types + [_slice_type(v, axis, place) for v, axis in zip(inputs[states:], axes, strict=True)]


def _slice_type(value: _native.Value | None, axis: int, place: str) -> str:
    if value is None or value.shape is None:
        return _ANY if value is None else f"{value.dtype}[*]"
    dims = list(value.shape)
    if not -len(dims) <= axis < len(dims):
        msg = (
            "[Scan] an axis must be one of the input's. "
            f"Got {axis}, expected {-len(dims)} to {len(dims) - 1} - at {place}"
        )
        raise ModelError(msg)
    del dims[axis]
    return f"{value.dtype}[{','.join(str(d) for d in dims)}]"


def _scan_over_batch(
    importer: Importer,
    scope: Scope,
    node: onnx.NodeProto,
    inputs: list[_native.Value | None],
    attributes: Mapping[str, onnx.AttributeProto],
    context: Context,
    place: str,
) -> Sequence[_native.Value | None]:
    """A Scan of opset 8 as one of opset 9 inside another that goes over the batch, axis 0 of everything."""
    if inputs[0] is not None:
        msg = "a Scan of opset 8 must not have sequence_lens"
        raise UnsupportedError(msg)
    attributes = dict(attributes)
    directions = attributes.pop("directions", None)
    if directions is not None:
        attributes["scan_input_directions"] = directions
    body = Scope(scope.graph.subgraph(), scope)
    slices: list[_native.Value | None] = []
    for i, value in enumerate(inputs[1:]):
        slices.append(body.graph.add_input(f"{node.input[i + 1]}.slice", _slice_type(value, 0, place)))
    made = _repeat(importer, body, node, slices, attributes, context, place)
    if not made:
        return []
    body.graph.outputs = [value for value in made if value is not None]
    attrs = {"num_scan_inputs": len(slices), "num_captured": len(body.captured)}
    outer = [*inputs[1:], *body.captured.values()]
    return list(scope.graph.add_node("Scan", outer, list(node.output), attrs, node.name, {"body": body.graph}).outputs)
