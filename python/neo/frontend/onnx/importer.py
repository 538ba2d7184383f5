"""ONNX to neo's graph: names, constants, functions; operators by their converters, control flow by control.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from neo import _native
from neo.errors import DTypeError, Error, ModelError, UnsupportedError
from neo.frontend.onnx import control
from neo.frontend.onnx.attributes import attribute_value, dense_array, tensor_array
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.functions import schema_function, without_inputs
from neo.frontend.onnx.load import GENERATION, Loaded
from neo.frontend.onnx.messages import AttributeType
from neo.frontend.onnx.microsoft_nchwc import block_size
from neo.frontend.onnx.order import body_graphs, constant_names, names_read, node_order
from neo.frontend.onnx.registry import Converter, find_converter
from neo.frontend.onnx.scope import Scope
from neo.frontend.onnx.signature import Form, check_signature, described_opset, find_form
from neo.frontend.onnx.types import check_names, dims_of, dtype_name, type_text
from neo.frontend.onnx.versions import KNOWN_DOMAINS, WITHOUT_SCHEMA, find_version, newest_opset
from neo.limits import Limits, whole

if TYPE_CHECKING:
    import onnx

__all__ = ["Context", "Importer", "Refusal"]

_MAX_DEPTH = 64
_OWN_DOMAINS = frozenset({"com.microsoft", "neo"})  # whose operators have one version
_MOST_VERSION = 2**31 - 1  # of an opset of a domain that nobody knows
# Attributes that 1 sets and every other number clears.
_FLAGS = frozenset({"is_causal", "keepdims", "noop_with_empty_axes", "sorted"})
_GRAPH_TYPES: frozenset[int] = frozenset({AttributeType.GRAPH, AttributeType.GRAPHS})
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_RESERVED = frozenset({"floordiv", "ceildiv", "mod", "min", "max", "broadcast"})


@dataclass(frozen=True)
class Refusal:
    """A node neo cannot run: where it is, what it is, and why."""

    node: str
    op: str
    opset: int
    dtype: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op} (opset {self.opset}, {self.dtype or 'dtype not known'}): {self.reason} - at {self.node}"


@dataclass
class Context:
    """What the nodes of one graph or function body share."""

    opsets: dict[str, int]
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict)  # of the function call around
    place: str = "graph"


class Importer:
    """Builds one graph; collects what it refuses instead of stopping at the first."""

    def __init__(
        self, loaded: Loaded, shapes: Mapping[str, int | tuple[int, int]], limits: Limits | None = None
    ) -> None:
        self._model = loaded.proto
        self._folders = loaded.folders
        self._tensors = loaded.tensors
        self._shapes = _checked_shapes(shapes)
        self._functions = {(_domain(f.domain), f.name, f.overload): f for f in loaded.proto.functions}
        self._ops = frozenset(_native.op_names())
        self._symbols: dict[str, str] = {}
        self._count = 0
        self._most_nodes = (limits or Limits()).nodes
        self.refusals: list[Refusal] = []

    @cached_property
    def channel_block(self) -> int:
        """Channels of a block, in models that ONNX Runtime saved with their channels in blocks; else 0."""
        return block_size(self._model)

    def run(self) -> _native.Graph:
        """The graph; where `refusals` is not empty it lacks nodes and must not be used.

        Raises
        ------
        neo.ModelError
            The model contradicts itself or ONNX.
        """
        try:
            return self._run()
        except RecursionError as error:
            msg = f"[import] bodies and functions may nest {_MAX_DEPTH} deep. Got more"
            raise ModelError(msg) from error

    def _run(self) -> _native.Graph:
        proto = self._model.graph
        check_names(proto.name, *(o.domain for o in self._model.opset_import))
        for function in self._model.functions:
            check_names(function.domain, function.name, function.overload, *function.input, *function.output)
            check_names(*(o.domain for o in function.opset_import))
        graph = _native.Graph()
        graph.name = proto.name
        scope = Scope(graph)
        context = Context(_opsets_of(self._model.opset_import) or {"": 1})
        self._add_initializers(scope, proto, self._tensors)
        constants = constant_names(proto.node)
        seen = set()
        for value in proto.input:
            check_names(value.name)
            if value.name in seen or not value.name:
                msg = f"[import] an input must have a name of its own. Got {value.name!r}"
                raise ModelError(msg)
            seen.add(value.name)
            # An initializer or a Constant of its name is what the caller may not replace: neo folds it.
            if value.name not in scope.values and value.name not in constants:
                scope.define(value.name, self._add_input(graph, value), "graph inputs")
        unknown = set(self._shapes) - set(self._symbols)
        if unknown:
            expected = ", ".join(map(repr, self._symbols)) or "none"
            msg = f"[import] shapes must name symbols of the model. Got {sorted(unknown)[0]!r}, expected {expected}"
            raise ModelError(msg)
        self.convert_nodes(scope, proto.node, context)
        self._set_outputs(scope, proto)
        return graph

    def _add_input(self, graph: _native.Graph, value: onnx.ValueInfoProto) -> _native.Value:
        place = f"input {value.name!r}"
        if value.type.WhichOneof("value") != "tensor_type":
            return graph.add_input(value.name, type_text(value.type, place))
        tensor = value.type.tensor_type
        dtype = dtype_name(tensor.elem_type, place)
        dims = dims_of(tensor, place)
        return graph.add_input(value.name, dtype, None if dims is None else [self._size(d) for d in dims])

    def _size(self, dim: int | str | None) -> int | str | None:
        if not isinstance(dim, str):
            return dim
        if dim not in self._symbols:
            plain = (
                dim
                if _SYMBOL.fullmatch(dim) and dim not in _RESERVED
                else "_" + re.sub(r"\W", "_", dim, flags=re.ASCII)
            )
            while plain in self._symbols.values():
                plain += "_"
            self._symbols[dim] = plain
        size = self._shapes.get(dim)
        if size is None:
            return self._symbols[dim]
        return size if isinstance(size, int) else f"{self._symbols[dim]} in [{size[0]},{size[1]}]"

    def _set_outputs(self, scope: Scope, proto: onnx.GraphProto) -> None:
        names = [value.name for value in proto.output]
        made = self._results(scope, proto)
        if self.refusals:
            return
        scope.graph.outputs = made
        for value, name in zip(made, names, strict=True):
            if value.name != name:
                scope.graph.rename(value, name)

    def declared_outputs(self) -> dict[str, tuple[int | str | None, ...]]:
        """The shapes that the model declares for outputs that are tensors, by name; None for a size nobody named."""
        shapes = {}
        for value in self._model.graph.output:
            if value.type.WhichOneof("value") != "tensor_type":
                continue
            dims = dims_of(value.type.tensor_type, f"output {value.name!r}")
            if dims is not None:
                shapes[value.name] = tuple(self._told(dim) for dim in dims)
        return shapes

    def symbol_names(self) -> dict[str, str]:
        """The model's names of its sizes by neo's."""
        return {mine: theirs for theirs, mine in self._symbols.items()}

    def _told(self, dim: int | str | None) -> int | str | None:
        if not isinstance(dim, str):
            return dim
        fixed = self._shapes.get(dim)
        return fixed if isinstance(fixed, int) else self._symbols.get(dim, dim)

    def _results(self, scope: Scope, proto: onnx.GraphProto) -> list[_native.Value]:
        values = []
        for output in proto.output:
            check_names(output.name)
            value = scope.find(output.name)
            if value is not None:
                values.append(value)
            elif not scope.is_missing(output.name):
                msg = f"[import] an output must be defined. Got {output.name!r}, which no node makes"
                raise ModelError(msg)
        return values

    def _add_initializers(
        self, scope: Scope, proto: onnx.GraphProto, large: Mapping[int, np.ndarray[Any, Any]]
    ) -> None:
        # The last of one name counts, and a Constant node before them, as in ONNX Runtime.
        last = {tensor.name: index for index, tensor in enumerate(proto.initializer)}
        for name in constant_names(proto.node):
            last.pop(name, None)
        for index, tensor in enumerate(proto.initializer):
            check_names(tensor.name)
            if not tensor.name:
                msg = "[import] an initializer must have a name. Got none"
                raise ModelError(msg)
            if last.get(tensor.name) != index:
                continue
            array = large.get(index)
            if array is None:
                array = tensor_array(tensor, self._folders, f"initializer {tensor.name!r}")
            scope.define(tensor.name, scope.graph.add_constant(tensor.name, array), "initializers")
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            check_names(name)
            array = dense_array(sparse, self._folders, f"sparse initializer {name!r}")
            scope.define(name, scope.graph.add_constant(name, array), "sparse initializers")

    def add_function(self, function: onnx.FunctionProto) -> None:
        """Make a function callable by nodes that are written out on import."""
        self._functions[_domain(function.domain), function.name, function.overload] = function

    def fill_body(self, body: Scope, proto: onnx.GraphProto, context: Context) -> bool:
        """Convert the graph of a control flow node; False where some of it was refused."""
        refused = len(self.refusals)
        self._add_initializers(body, proto, {})
        self.convert_nodes(body, proto.node, context)
        results = self._results(body, proto)
        if len(self.refusals) > refused or len(results) < len(proto.output):
            return False
        body.graph.outputs = results
        return True

    def convert_nodes(self, scope: Scope, nodes: Sequence[onnx.NodeProto], context: Context) -> None:
        """Convert the nodes of one graph or function."""
        self._check_depth(scope.depth)
        for node in nodes:
            check_names(node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for index in node_order(nodes, scope.values):
            self._convert_node(scope, nodes[index], context, index)

    def _check_depth(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            msg = f"[import] bodies and functions may nest {_MAX_DEPTH} deep. Got more"
            raise ModelError(msg)

    def _convert_node(self, scope: Scope, node: onnx.NodeProto, context: Context, index: int) -> None:
        place = self._enter(node, context, index)
        outputs = [name for name in node.output if name]
        if not outputs and node.op_type in control.OPERATORS and _domain(node.domain) == "":
            return  # it computes nothing that anybody could read
        if self.refusals and any(scope.is_missing(name) for name in names_read(node)):
            self._survey(node, context, place, scope.depth)
            for name in outputs:
                scope.define(name, None, place)
            return
        inputs: list[_native.Value | None] = []
        for name in node.input:
            value = scope.find(name) if name else None
            if name and value is None:
                msg = f"[import] an input must be defined. Got {name!r}, which no node makes - at {place}"
                raise ModelError(msg)
            inputs.append(value)
        refused = len(self.refusals)
        try:
            values = self._apply(scope, node, inputs, context, place)
        except UnsupportedError as error:
            dtype = next((v.dtype if v.kind == "tensor" else v.type for v in inputs if v is not None), "")
            self._refuse(node, context, place, dtype, str(error))
            values = []
        except Error as error:
            if " - at " in str(error):
                raise
            text, newline, hint = str(error).partition("\n")
            raise type(error)(f"{text} - at {place}{newline}{hint}") from error
        for i, name in enumerate(node.output):
            if not name:
                continue
            made = values[i] if i < len(values) else None
            if made is None and len(self.refusals) == refused:
                msg = f"[{node.op_type}] an output must be made. Got none for {name!r} - at {place}"
                raise ModelError(msg)
            scope.define(name, made, place)

    def _enter(self, node: onnx.NodeProto, context: Context, index: int) -> str:
        self._count += 1
        _native.checkpoint()
        if self._count > self._most_nodes:
            msg = (
                f"[import] a model may have {self._most_nodes} nodes when its functions are written out. Got more"
                "\nHint: neo.Limits(nodes=...) sets the limit."
            )
            raise ModelError(msg)
        if not node.name:
            return f"{context.place}.nodes[{index}] ({node.op_type})"
        return f'node "{node.name}"' if context.place == "graph" else f'node "{node.name}" in {context.place}'

    def _refuse(self, node: onnx.NodeProto, context: Context, place: str, dtype: str, reason: str) -> None:
        domain = _domain(node.domain)
        op = f"{domain}.{node.op_type}" if domain else node.op_type
        reason = reason.split("\n")[0].removeprefix(f"[{node.op_type}] ").partition(" - at ")[0]
        self.refusals.append(Refusal(place, op, context.opsets.get(domain, 1), dtype, reason))

    def _survey(self, node: onnx.NodeProto, context: Context, place: str, depth: int) -> None:
        """Report what would be refused of a node whose inputs nobody knows."""
        self._check_depth(depth)
        domain = _domain(node.domain)
        function = self._functions.get((domain, node.op_type, node.overload))
        if function is not None:
            inner = Context({**context.opsets, **_opsets_of(function.opset_import)}, {}, place)
            for i, n in enumerate(function.node):
                self._survey(n, inner, self._enter(n, inner, i), depth + 1)
            return
        for graph in body_graphs(node):
            inner = Context(context.opsets, context.attributes, f"{place}.{graph.name or 'body'}")
            for i, n in enumerate(graph.node):
                self._survey(n, inner, self._enter(n, inner, i), depth + 1)
        opset = self._opset(domain, context, place)
        try:
            known = (
                (domain == "" and node.op_type in control.OPERATORS)
                or (domain == "com.microsoft" and node.op_type in GENERATION)
                or self._converter(node.op_type, domain, opset) is not None
                or self._name(node.op_type, domain) in self._ops
            )
        except UnsupportedError as error:
            self._refuse(node, context, place, "", str(error))
            return
        form = find_form(domain, node.op_type, opset)
        if not known and not (form and form.has_function):
            self._refuse(node, context, place, "", "neo has no such operator")

    def _opset(self, domain: str, context: Context, place: str) -> int:
        """The opset of a domain; the newest where the model does not import it and the domain is known."""
        opset = context.opsets.get(domain)
        if opset is None:
            opset = 1 if domain in _OWN_DOMAINS else newest_opset(domain)
        if opset is None:
            msg = f"[import] the model must import the domain of each node. Got {domain!r} - at {place}"
            raise ModelError(msg)
        return opset

    @staticmethod
    def _name(op: str, domain: str) -> str:
        return f"{domain}.{op}" if domain else op

    def _converter(self, op: str, domain: str, opset: int) -> Any:
        """The converter for an operator; None where it is taken over as it is.

        Raises
        ------
        neo.UnsupportedError
            The opset has no such operator, or a version nobody has looked at.
        """
        converter = find_converter(domain, op, opset)
        if converter is not None or domain not in KNOWN_DOMAINS or (domain == "" and op in control.OPERATORS):
            return converter
        form = find_form(domain, op, opset)
        if form is None:
            if op in WITHOUT_SCHEMA:
                return None
            msg = f"opset {opset} has no such operator"
            raise UnsupportedError(msg)
        version = find_version(domain, op)
        if version is not None and not version.since <= form.since <= version.newest:
            msg = f"version {form.since} of the operator is not supported"
            raise UnsupportedError(msg)
        return None

    def attributes_of(self, node: onnx.NodeProto, context: Context) -> dict[str, onnx.AttributeProto]:
        """The node's attributes, those that refer to the function call around it resolved."""
        attributes = {}
        for a in node.attribute:
            actual = context.attributes.get(a.ref_attr_name) if a.ref_attr_name else a
            if actual is None:
                continue
            check_names(a.name, a.ref_attr_name)
            if a.name in attributes:
                msg = f"[import] an attribute must be given once. Got {a.name!r} twice"
                raise ModelError(msg)
            attributes[a.name] = actual
        return attributes

    def value_of(self, attribute: onnx.AttributeProto, place: str) -> Any:
        """The value of an attribute that is not a graph."""
        return attribute_value(attribute, self._folders, place)

    def _apply(
        self,
        scope: Scope,
        node: onnx.NodeProto,
        inputs: list[_native.Value | None],
        context: Context,
        place: str,
    ) -> Sequence[_native.Value | None]:
        domain = _domain(node.domain)
        op = node.op_type
        attributes = self.attributes_of(node, context)
        function = self._functions.get((domain, op, node.overload))
        if function is not None:
            opsets = {**context.opsets, **_opsets_of(function.opset_import)}
            return self._inline(scope, function, inputs, attributes, opsets, place)
        opset = self._opset(domain, context, place)
        converter = self._converter(op, domain, opset)
        form = find_form(domain, op, opset)
        if form is not None:
            check_signature(form, node, attributes, place)
        if domain == "" and op in control.OPERATORS:
            return control.convert(self, scope, node, inputs, attributes, context, place)
        if domain == "com.microsoft" and op in GENERATION:
            from neo.frontend.onnx import generation

            return generation.convert(self, scope, node, attributes, context, place)
        graphs = {n for n, a in attributes.items() if a.type in _GRAPH_TYPES}
        name = self._name(op, domain)
        if converter is not None or (name in self._ops and not graphs):
            values = {n: self.value_of(a, place) for n, a in attributes.items() if n not in graphs}
            if form is not None:
                values |= {n: int(values[n] == 1) for n in _FLAGS & values.keys()}
            call = Call(scope, domain, op, opset, node.name, inputs, _output_names(node, form), values, self)
            if converter is None:
                return call.finish(name, inputs, values)
            return converter(call) if form is not None else _convert_unchecked(converter, call)
        body = schema_function(node, domain, opset, inputs) if form is not None and form.has_function else None
        if body is not None:
            return self._inline(
                scope, body, inputs, attributes, {**context.opsets, **_opsets_of(body.opset_import)}, place
            )
        msg = "neo has no such operator"
        raise UnsupportedError(msg)

    def _inline(
        self,
        scope: Scope,
        function: onnx.FunctionProto,
        inputs: Sequence[_native.Value | None],
        attributes: Mapping[str, onnx.AttributeProto],
        opsets: dict[str, int],
        place: str,
    ) -> list[_native.Value | None]:
        if len(inputs) > len(function.input):
            msg = (
                f"[{function.name}] a function must be called with its inputs. "
                f"Got {len(inputs)}, expected at most {len(function.input)} - at {place}"
            )
            raise ModelError(msg)
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
        self.convert_nodes(inner, without_inputs(function.node, absent), Context(opsets, actual, place))
        results: list[_native.Value | None] = []
        for name in function.output:
            value = inner.find(name)
            if value is None and not inner.is_missing(name) and name not in absent:
                msg = (
                    "[import] an output must be defined. "
                    f"Got {name!r}, which no node of the function makes - at {place}"
                )
                raise ModelError(msg)
            results.append(value)
        return results


def _convert_unchecked(converter: Converter, call: Call) -> Results:
    """The results of a converter whose operator ONNX does not describe: nobody has looked at its attributes and inputs."""
    try:
        return converter(call)
    except Error:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        msg = f"[{call.op}] inputs and attributes must be those of the operator. Got {type(error).__name__}: {error}"
        raise ModelError(msg) from error


def _output_names(node: onnx.NodeProto, form: Form | None) -> list[str]:
    """Return a name for every result of a node; a result that the operator always has gets one though nobody reads it."""
    required = 1 if form is None else form.outputs[0]
    return [name or ("unread" if i < required else "") for i, name in enumerate(node.output)]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Version by domain, of a model or a function."""
    opsets = {_domain(o.domain): o.version for o in imports}
    for domain, version in opsets.items():
        if 1 <= version <= described_opset(domain):
            continue
        newest = newest_opset(domain)
        if not 1 <= version <= (newest or _MOST_VERSION):
            msg = (
                "[import] opset must be known. "
                f"Got {version} of {domain or 'ai.onnx'}, expected 1 to {newest or 'any'}"
                "\nHint: a newer onnx package may know more."
            )
            raise ModelError(msg)
    return opsets


def _checked_shapes(shapes: Mapping[str, int | tuple[int, int]]) -> dict[str, int | tuple[int, int]]:
    if not isinstance(shapes, Mapping):
        msg = f"[import] shapes must be a mapping of symbols to sizes. Got {type(shapes).__name__}, expected a dict"
        raise DTypeError(msg)
    checked: dict[str, int | tuple[int, int]] = {}
    for name, size in shapes.items():
        given = size if isinstance(size, tuple) else (size, size)
        bounds = [n for n in map(whole, given) if n is not None]
        if len(given) != 2 or len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] < 1 << 46:
            msg = f"[import] shapes must be sizes or (least, most). Got {size!r} for {name!r}, expected 0 to 2^46"
            raise ModelError(msg)
        checked[name] = (bounds[0], bounds[1]) if isinstance(size, tuple) else bounds[0]
    return checked
