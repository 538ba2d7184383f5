"""ONNX to neo's graph: names, constants, functions, control flow; operators by their converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from neo import _native
from neo.errors import Error, ModelError, UnsupportedError
from neo.frontend.onnx.attributes import attribute_value, tensor_array
from neo.frontend.onnx.call import Call
from neo.frontend.onnx.registry import find_converter
from neo.frontend.onnx.scope import Scope
from neo.frontend.onnx.types import add_input, type_proto

__all__ = ["Importer", "Refusal"]

_MAX_DEPTH = 64
_OLDEST_OPSET = 1


@dataclass(frozen=True)
class Refusal:
    """A node neo cannot run: where it is, what it is, and why."""

    node: str
    op: str
    opset: int
    dtype: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op} (opset {self.opset}, {self.dtype or 'no input'}): {self.reason} - at {self.node}"


@dataclass
class _Context:
    """What the nodes of one graph or function body share."""

    opsets: dict[str, int]
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)  # of the function call around
    place: str = ""


class Importer:
    """Builds one graph; collects what it refuses instead of stopping at the first."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, shapes: Mapping[str, int | tuple[int, int]]) -> None:
        self._model = model
        self._folder = folder
        self._shapes = shapes
        self._functions = {(_domain(f.domain), f.name): f for f in model.functions}
        self._ops = frozenset(_native.op_names())
        self.refusals: list[Refusal] = []

    def run(self) -> _native.Graph:
        """The graph; where `refusals` is not empty it has placeholders and must not be used."""
        opsets = {_domain(o.domain): o.version for o in self._model.opset_import}
        opsets.setdefault("", 1)
        newest = onnx.defs.onnx_opset_version()
        if opsets[""] > newest:
            msg = f"[import] opset must be known. Got {opsets['']}, expected {_OLDEST_OPSET} to {newest}\nHint: a newer onnx package knows more."
            raise ModelError(msg)
        proto = self._model.graph
        graph = _native.Graph()
        graph.name = proto.name
        scope = Scope(graph)
        self._add_initializers(scope, proto)
        for value in proto.input:
            if value.name in scope.values:
                continue  # an initializer that the caller may not replace: neo folds it
            scope.define(value.name, add_input(graph, value.name, value.type, self._shapes), "graph inputs")
        self._convert_nodes(scope, proto.node, _Context(opsets))
        graph.outputs = [self._result(scope, o.name) for o in proto.output]
        self._keep_names(graph, proto)
        return graph

    @staticmethod
    def _keep_names(graph: _native.Graph, proto: onnx.GraphProto) -> None:
        for value, declared in zip(graph.outputs, proto.output, strict=True):
            if value.name != declared.name:
                graph.rename(value, declared.name)

    def _result(self, scope: Scope, name: str) -> _native.Value:
        value = scope.find(name)
        if value is None:
            msg = f"[import] an output must be defined. Got {name!r}, which no node makes"
            raise ModelError(msg)
        return value

    def _add_initializers(self, scope: Scope, proto: onnx.GraphProto) -> None:
        for tensor in proto.initializer:
            if not tensor.name:
                msg = "[import] an initializer must have a name. Got none"
                raise ModelError(msg)
            array = tensor_array(tensor, self._folder, f"initializer {tensor.name!r}")
            scope.define(tensor.name, scope.graph.add_constant(tensor.name, array), "initializers")
        for sparse in proto.sparse_initializer:
            array = _dense(sparse, self._folder)
            scope.define(sparse.values.name, scope.graph.add_constant(sparse.values.name, array), "sparse initializers")

    def _convert_nodes(self, scope: Scope, nodes: Sequence[onnx.NodeProto], context: _Context) -> None:
        if scope.depth > _MAX_DEPTH:
            msg = f"[import] bodies and functions may nest {_MAX_DEPTH} deep. Got more"
            raise ModelError(msg)
        for index in _order(nodes, scope):
            self._convert_node(scope, nodes[index], context, index)

    def _convert_node(self, scope: Scope, node: onnx.NodeProto, context: _Context, index: int) -> None:
        domain = _domain(node.domain)
        place = f'node "{node.name}"' if node.name else f"{context.place or 'graph'}.nodes[{index}] ({node.op_type})"
        inputs: list[_native.Value | None] = []
        for name in node.input:
            value = scope.find(name) if name else None
            if name and value is None:
                msg = f"[import] an input must be defined. Got {name!r}, which no node makes - at {place}"
                raise ModelError(msg)
            inputs.append(value)
        opset = context.opsets.get(domain)
        if opset is None:
            if (domain, node.op_type) not in self._functions and domain != "com.microsoft":
                msg = f"[import] the model must import the domain of each node. Got {domain!r} - at {place}"
                raise ModelError(msg)
            opset = 1
        attributes = self._attributes(node, context)
        try:
            values = self._apply(scope, node, domain, opset, inputs, attributes, context, place)
        except UnsupportedError as error:
            dtype = next((v.dtype if v.kind == "tensor" else v.type for v in inputs if v is not None), "")
            full = node.op_type if not domain else f"{domain}.{node.op_type}"
            self.refusals.append(Refusal(place, full, opset, dtype, str(error).split("\n")[0]))
            values = [scope.graph.add_input(name, "float32") for name in node.output if name]
        except Error as error:
            if " - at " in str(error):
                raise
            raise type(error)(f"{error} - at {place}") from error
        for name, value in zip([n for n in node.output if n], [v for v in values if v is not None], strict=False):
            scope.define(name, value, place)

    def _attributes(self, node: onnx.NodeProto, context: _Context) -> dict[str, onnx.AttributeProto]:
        attributes = {}
        for a in node.attribute:
            if a.ref_attr_name:
                actual = context.attributes.get(a.ref_attr_name)
                if actual is not None:
                    attributes[a.name] = actual
            else:
                attributes[a.name] = a
        return attributes

    def _apply(
        self,
        scope: Scope,
        node: onnx.NodeProto,
        domain: str,
        opset: int,
        inputs: list[_native.Value | None],
        attributes: dict[str, onnx.AttributeProto],
        context: _Context,
        place: str,
    ) -> list[_native.Value | None]:
        function = self._functions.get((domain, node.op_type))
        if function is not None:
            return self._inline(scope, function, inputs, attributes, place)
        if domain == "" and node.op_type in {"If", "Loop", "Scan"} and not (node.op_type == "Scan" and opset < 9):
            return self._control(scope, node, inputs, attributes, context, place)
        graphs = [name for name, a in attributes.items() if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)]
        values = {name: attribute_value(a, self._folder, place) for name, a in attributes.items() if name not in graphs}
        outputs = list(node.output)
        call = Call(scope, domain, node.op_type, opset, node.name, inputs, outputs, values)
        converter = find_converter(domain, node.op_type, opset)
        if converter is not None:
            return converter(call)
        name = node.op_type if not domain else f"{domain}.{node.op_type}"
        if name in self._ops and not graphs:
            return call.finish(name, inputs, values)
        body = self._schema_function(node, domain, opset, inputs)
        if body is not None:
            return self._inline(scope, body, inputs, attributes, place)
        msg = "neo has no such operator"
        raise UnsupportedError(msg)

    @staticmethod
    def _schema_function(
        node: onnx.NodeProto, domain: str, opset: int, inputs: Sequence[_native.Value | None]
    ) -> onnx.FunctionProto | None:
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, domain)
        except onnx.defs.SchemaError:
            return None
        if schema.has_function:
            return schema.function_body
        if not schema.has_context_dependent_function:
            return None
        types = [(type_proto(v) if v is not None else onnx.TypeProto()).SerializeToString() for v in inputs]
        raw = schema.get_context_dependent_function(node.SerializeToString(), types)
        if not raw:
            return None
        body = onnx.FunctionProto()
        body.ParseFromString(raw)
        return body

    def _inline(
        self,
        scope: Scope,
        function: onnx.FunctionProto,
        inputs: Sequence[_native.Value | None],
        attributes: Mapping[str, onnx.AttributeProto],
        place: str,
    ) -> list[_native.Value | None]:
        inner = Scope(scope.graph)
        inner.depth = scope.depth + 1
        absent = set()
        for i, name in enumerate(function.input):
            value = inputs[i] if i < len(inputs) else None
            if value is None:
                absent.add(name)
            else:
                inner.values[name] = value
        actual = {a.name: a for a in function.attribute_proto}
        actual.update(attributes)
        context = _Context({_domain(o.domain): o.version for o in function.opset_import}, actual, place)
        nodes = []
        for node in function.node:
            if absent & set(node.input):
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                for i, name in enumerate(copy.input):
                    if name in absent:
                        copy.input[i] = ""
                nodes.append(copy)
            else:
                nodes.append(node)
        self._convert_nodes(inner, nodes, context)
        return [inner.find(name) for name in function.output]

    def _control(
        self,
        scope: Scope,
        node: onnx.NodeProto,
        inputs: list[_native.Value | None],
        attributes: dict[str, onnx.AttributeProto],
        context: _Context,
        place: str,
    ) -> list[_native.Value | None]:
        inputs = list(inputs)
        if node.op_type == "If":
            return self._branches(scope, node, inputs, attributes, context, place)
        body_proto = self._body_of(attributes, "body", place)
        count = len(body_proto.input)
        attrs: dict[str, Any] = {
            name: attribute_value(a, self._folder, place) for name, a in attributes.items() if name != "body"
        }
        if node.op_type == "Loop":
            inputs += [None] * (2 - len(inputs))
            if count != len(inputs):
                msg = f"[Loop] the body must take the iteration, the condition and each carried value. Got {count} inputs, expected {len(inputs)} - at {place}"
                raise ModelError(msg)
            types = ["int64[]", "bool[]", *(v.type if v is not None else "float32[*]" for v in inputs[2:])]
        else:
            scanned = int(attrs.get("num_scan_inputs", 0))
            if count != len(inputs) or not 0 < scanned <= count:
                msg = f"[Scan] the body must take each state and each scanned slice. Got {count} inputs, expected {len(inputs)} - at {place}"
                raise ModelError(msg)
            axes = list(attrs.get("scan_input_axes", [0] * scanned))
            states = len(inputs) - scanned
            types = [v.type if v is not None else "float32[*]" for v in inputs[:states]]
            types += [_slice_type(v, axis) for v, axis in zip(inputs[states:], axes, strict=False)]
        body = Scope(scope.graph.subgraph(), scope)
        body.graph.name = body_proto.name
        for formal, type_text in zip(body_proto.input, types, strict=True):
            body.define(formal.name, body.graph.add_input(formal.name, type_text), place)
        self._fill_body(body, body_proto, context)
        attrs["num_captured"] = len(body.captured)
        made = scope.graph.add_node(
            node.op_type, [*inputs, *body.captured.values()], list(node.output), attrs, node.name, {"body": body.graph}
        )
        return list(made.outputs)

    def _branches(
        self,
        scope: Scope,
        node: onnx.NodeProto,
        inputs: list[_native.Value | None],
        attributes: dict[str, onnx.AttributeProto],
        context: _Context,
        place: str,
    ) -> list[_native.Value | None]:
        bodies = {}
        for name in ("then_branch", "else_branch"):
            proto = self._body_of(attributes, name, place)
            body = Scope(scope.graph.subgraph(), scope)
            body.graph.name = proto.name
            self._fill_body(body, proto, context)
            bodies[name] = body
        names = list(dict.fromkeys(n for body in bodies.values() for n in body.captured))
        for body in bodies.values():
            by_name = {n: body.values[n] for n in body.captured}
            for name in names:
                if name not in by_name:
                    outer = scope.capture(name)
                    by_name[name] = body.graph.add_input_like(f"{name}.unused", outer)
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

    @staticmethod
    def _body_of(attributes: Mapping[str, onnx.AttributeProto], name: str, place: str) -> onnx.GraphProto:
        if name not in attributes or attributes[name].type != onnx.AttributeProto.GRAPH:
            msg = f"[import] control flow must have its body. Got no {name} - at {place}"
            raise ModelError(msg)
        return attributes[name].g

    def _fill_body(self, body: Scope, proto: onnx.GraphProto, context: _Context) -> None:
        self._add_initializers(body, proto)
        self._convert_nodes(body, proto.node, context)
        body.graph.outputs = [self._result(body, o.name) for o in proto.output]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _slice_type(value: _native.Value | None, axis: int) -> str:
    if value is None or value.shape is None:
        return f"{'float32' if value is None else value.dtype}[*]"
    dims = list(value.shape)
    del dims[axis]
    return f"{value.dtype}[{','.join(str(d) for d in dims)}]"


def _dense(sparse: onnx.SparseTensorProto, folder: Path | None) -> np.ndarray[Any, Any]:
    place = f"sparse initializer {sparse.values.name!r}"
    values = tensor_array(sparse.values, folder, place)
    indices = tensor_array(sparse.indices, folder, place)
    dims = tuple(sparse.dims)
    dense = np.zeros(dims, values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except IndexError:
        msg = f"[import] indices must lie inside the tensor. Got dims {list(dims)} - at {place}"
        raise ModelError(msg) from None
    return dense


def _order(nodes: Sequence[onnx.NodeProto], scope: Scope) -> list[int]:
    """Indices in an order in which every input is made before it is read; files keep it, mostly."""
    maker = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            if name:
                maker.setdefault(name, i)
    order: list[int] = []
    state = bytearray(len(nodes))  # 0 new, 1 open, 2 done
    needs = [[maker[n] for n in _names_read(node) if n in maker and n not in scope.values] for node in nodes]
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            i = stack[-1]
            if state[i] == 2:
                stack.pop()
                continue
            waiting = [j for j in needs[i] if state[j] != 2 and j != i]
            if i in needs[i] or (state[i] == 1 and any(state[j] == 1 for j in waiting)):
                msg = f'[import] the graph must not have cycles. Got one through node "{nodes[i].name}" ({nodes[i].op_type})'
                raise ModelError(msg)
            if not waiting:
                state[i] = 2
                order.append(i)
                stack.pop()
                continue
            state[i] = 1
            stack.extend(reversed(waiting))
    return order


def _names_read(node: onnx.NodeProto) -> list[str]:
    names = [n for n in node.input if n]
    for a in node.attribute:
        for graph in [a.g, *a.graphs] if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) else []:
            local = {n for inner in graph.node for n in inner.output} | {i.name for i in graph.initializer}
            local |= {i.name for i in graph.input}
            names += [n for inner in graph.node for n in _names_read(inner) if n not in local]
            names += [o.name for o in graph.output if o.name not in local]
    return names
