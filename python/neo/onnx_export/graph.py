"""neo's graph as an ONNX graph: names, constants, bodies, and the few operators that ONNX has otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from neo import _native
from neo.errors import UnsupportedError
from neo.onnx_export.opsets import Use, choose_opsets, newest_schema
from neo.onnx_export.sizes import SizeWriter, UnknownSizeError
from neo.onnx_export.tensors import TensorStore
from neo.onnx_export.types import element_type, schema_type, type_of_text, value_info

__all__ = ["ModelWriter"]

# A constant of one repeated element that is larger is written as the element and its sizes.
_MAX_REPEATED_BYTES = 1 << 16
_SWISH_OPSET = 24


class ModelWriter:
    """Writes one graph with its bodies. Every name is given once in the whole model."""

    def __init__(
        self,
        graph: _native.Graph,
        tensors: TensorStore,
        symbols: Mapping[str, str],
        declared: Mapping[str, Sequence[int | str | None]],
        source_opset: int,
    ) -> None:
        """Take the graph of a model of an opset.

        `symbols` has the model's names of its sizes, `declared` the shapes of its outputs.
        """
        self._graph = graph
        self.tensors = tensors
        self.symbols = symbols
        self.declared = declared
        self.source_opset = source_opset
        self.uses: list[Use] = []
        self._values = {v.name for v in (*graph.inputs, *graph.outputs)}
        self._nodes: set[str] = set()

    def write(self) -> onnx.ModelProto:
        """The model, all constants in the store."""
        proto = onnx.ModelProto()
        _GraphWriter(self, self._graph, proto.graph).write_main()
        proto.opset_import.extend(choose_opsets(self.uses, self.source_opset))
        proto.ir_version = max(8, onnx.helper.find_min_ir_version_for(list(proto.opset_import), ignore_unknown=True))
        return proto

    def value_name(self, wanted: str) -> str:
        """A name that no value has."""
        return _unique(wanted or "value", self._values)

    def node_name(self, wanted: str) -> str:
        """A name that no node has; none where none is wanted."""
        return _unique(wanted, self._nodes) if wanted else ""


class _GraphWriter:
    """Writes one graph into a message."""

    def __init__(
        self, model: ModelWriter, graph: _native.Graph, proto: onnx.GraphProto, outer: _GraphWriter | None = None
    ) -> None:
        self._model = model
        self._graph = graph
        self._proto = proto
        self._outer = outer
        self._names: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._sources: dict[str, tuple[str, int]] = {}
        self._sizes = SizeWriter(self._emit_size, self.constant, self._find_symbol, graph.formulas)
        self._readers: dict[str, list[tuple[str, int]]] = {}
        for node in graph.nodes:
            for i, v in enumerate(node.inputs):
                if v is not None:
                    self._readers.setdefault(v.name, []).append((node.op, i))
        proto.name = graph.name or "graph"

    def write_main(self) -> None:
        """A whole model: inputs and outputs have their own names."""
        graph = self._graph
        inputs = {v.name for v in graph.inputs}
        outputs = {v.name for v in graph.outputs}
        made = {v.name for node in graph.nodes for v in node.outputs if v is not None}
        for v in graph.inputs:
            self._names[v.name] = v.name
            self._proto.input.append(value_info(v.name, v, self._model.symbols))
        self._names.update({name: name for name in outputs & made})
        self._write_nodes()
        for v in graph.outputs:
            if v.name not in made:
                if v.name in inputs:
                    msg = f"[optimize] an output must not be an input. Got {v.name!r}"
                    raise UnsupportedError(msg)
                self._copy(v, v.name)
            self._proto.output.append(value_info(v.name, v, self._model.symbols, self._model.declared.get(v.name)))

    def write_body(self, arguments: Mapping[str, str], formal: Sequence[_native.Value]) -> None:
        """A body: `arguments` has the outer names of what it captures, `formal` are its own inputs."""
        self._names.update(arguments)
        for v in formal:
            name = self._names[v.name] = self._model.value_name(v.name)
            self._proto.input.append(value_info(name, v, self._model.symbols))
        made = {v.name for node in self._graph.nodes for v in node.outputs if v is not None}
        self._write_nodes()
        given: set[str] = set()
        for v in self._graph.outputs:
            name = self._names.get(v.name, "")
            if v.name not in made or name in given:
                # A value from outside, from a constant or given twice is no result of a body.
                name = self._model.value_name(v.name)
                self._copy(v, name)
            given.add(name)
            self._proto.output.append(value_info(name, v, self._model.symbols))

    def _copy(self, value: _native.Value, name: str) -> None:
        """A value that no node of this graph makes under another name: a constant as a node, others copied."""
        if value.name in self._names or value.constant is None:
            self._add("Identity", [self.read(value)], [name], {}, "", [value.type])
            return
        tensor = onnx.TensorProto()
        self._model.tensors.fill(tensor, "", value.dtype, value.constant, is_movable=False)
        self._add("Constant", [], [name], {"value": tensor}, "", [])

    def read(self, value: _native.Value) -> str:
        """The name under which nodes read a value."""
        if value.name not in self._names:
            assert value.constant is not None
            self._names[value.name] = self.constant(value.name, value.constant, value.dtype)
        return self._names[value.name]

    def constant(self, name: str, array: np.ndarray[Any, Any], dtype: str = "int64") -> str:
        """A constant of this graph, equal small ones once."""
        key = f"{dtype}{array.shape}{array.tobytes()!r}" if array.nbytes <= 64 and dtype != "string" else ""
        if key and key in self._constants:
            return self._constants[key]
        given = self._model.value_name(name)
        if array.nbytes > _MAX_REPEATED_BYTES and dtype != "string" and _repeats(array):
            element = onnx.TensorProto()
            self._model.tensors.fill(element, "", dtype, array[(0,) * array.ndim].reshape(1), is_movable=False)
            sizes = self.constant(f"{name}.sizes", np.array(array.shape, np.int64))
            self._add("ConstantOfShape", [sizes], [given], {"value": element}, "", ["int64[1]"])
        else:
            self._model.tensors.fill(self._proto.initializer.add(), given, dtype, array)
        if key:
            self._constants[key] = given
        return given

    def _write_nodes(self) -> None:
        for v in self._graph.inputs:
            self._note_sizes(v)
        for node in self._graph.nodes:
            for v in node.outputs:
                if v is not None and v.name not in self._names:
                    self._names[v.name] = self._model.value_name(v.name)
            special = _SPECIAL.get(node.op)
            if special is None or not special(self, node):
                self.add_node(node, node.op, node.attrs)
            for v in node.outputs:
                if v is not None:
                    self._note_sizes(v)

    def add_node(
        self,
        node: _native.Node,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[_native.Value | None] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        """Add the node that ONNX has for a node."""
        read = list(node.inputs if inputs is None else inputs)
        while read and read[-1] is None:
            read.pop()
        made = list(outputs or [self._names[v.name] if v is not None else "" for v in node.outputs])
        while made and not made[-1]:
            made.pop()
        self._add(
            op,
            [self.read(v) if v is not None else "" for v in read],
            made,
            attrs,
            node.name,
            [None if v is None else v.type for v in read],
            () if outputs else [None if v is None else v.type for v in node.outputs[: len(made)]],
        )

    def _add(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attrs: Mapping[str, Any],
        name: str,
        types: Sequence[str | None],
        made: Sequence[str | None] = (),
    ) -> onnx.NodeProto:
        domain, _, own = op.rpartition(".")
        if domain == "neo":  # names of operators that ONNX lacks
            domain, own = "", op
        op = own
        proto: onnx.NodeProto = self._proto.node.add(op_type=op, domain=domain, name=self._model.node_name(name))
        proto.input.extend(inputs)
        proto.output.extend(outputs)
        schema = newest_schema(domain, op)
        least = 0 if schema is None else schema.min_output
        proto.output.extend(self._model.value_name("unused") for _ in range(least - len(outputs)))
        for key, value in attrs.items():
            attribute = _attribute(key, value, schema)
            if attribute is not None:
                proto.attribute.append(attribute)
        read, given = (tuple(None if t is None else schema_type(t) for t in texts) for texts in (types, made))
        used = frozenset(a.name for a in proto.attribute)
        self._model.uses.append(Use(domain, op, used, read, given or (None,) * len(outputs)))
        return proto

    def _emit_size(self, op: str, inputs: Sequence[str], attrs: Mapping[str, Any], wanted: str) -> str:
        name = self._model.value_name(wanted)
        types: list[str | None] = ["int64[1]"] * len(inputs)
        if op == "Where":
            types[0] = "bool[1]"
        if op == "Shape":
            types = [None]
        self._add(op, inputs, [name], attrs, "", types)
        return name

    def _find_symbol(self, symbol: str) -> tuple[str, int]:
        """A value of this graph, or of one around it, that has the size and is made by now."""
        if symbol in self._sources:
            return self._sources[symbol]
        if self._outer is None:
            raise UnknownSizeError(symbol)
        return self._outer._find_symbol(symbol)

    def _note_sizes(self, value: _native.Value) -> None:
        if value.kind == "tensor" and value.shape is not None:
            for axis, d in enumerate(value.shape):
                if isinstance(d, str):
                    self._sources.setdefault(d, (self._names[value.name], axis))

    # Operators that ONNX has otherwise. Each says whether it wrote the node.

    def write_sizes(self, node: _native.Node) -> bool:
        """neo.Dims: sizes that a formula tells."""
        (value,) = node.outputs
        dims: list[int | str] = list(node.attrs["dims"])
        open_dims = [i for i, d in enumerate(dims) if isinstance(d, str)]
        readers = self._readers.get(value.name, [])
        is_result = any(v.name == value.name for v in self._graph.outputs)
        only_shape = bool(readers) and all(reader == ("Reshape", 1) for reader in readers) and not is_result
        if only_shape and len(open_dims) == 1 and all(isinstance(d, str) or d > 0 for d in dims):
            rest = np.array([-1 if isinstance(d, str) else d for d in dims], np.int64)
            self._names[value.name] = self.constant(value.name, rest)
            return True
        name = self._names[value.name]
        dtype, is_scalar = node.attrs["dtype"], bool(node.attrs["scalar"])
        parts = self._sizes.vector(dims)
        todo: list[tuple[str, list[str], dict[str, Any]]] = []
        if len(parts) != 1:
            todo.append(("Concat", parts, {"axis": 0}))
        if is_scalar:
            todo.append(("Squeeze", [], {}))
        if dtype != "int64":
            todo.append(("Cast", [], {"to": element_type(dtype)}))
        if not todo:
            todo.append(("Identity", [], {}))
        last = parts[0]
        for i, (op, inputs, attrs) in enumerate(todo):
            made = name if i + 1 == len(todo) else self._model.value_name(value.name)
            read = inputs or [last]
            self._add(op, read, [made], attrs, node.name, ["int64[1]"] * len(read))
            last = made
        return True

    def write_product(self, node: _native.Node) -> bool:
        """MatMul with a bias: Gemm where that has the ranks, else an addition behind it."""
        if len(node.inputs) < 3 or node.inputs[2] is None:
            return False
        a, b, bias = node.inputs
        (y,) = node.outputs
        ranks = [None if v.shape is None else len(v.shape) for v in (a, b)]
        if ranks == [2, 2]:
            self.add_node(node, "Gemm", node.attrs)
            return True
        product = self._model.value_name(f"{y.name}.product")
        self.add_node(node, "MatMul", node.attrs, [a, b], [product])
        self._add("Add", [product, self.read(bias)], [self._names[y.name]], {}, node.name, [y.type, bias.type])
        return True

    def write_dequantize(self, node: _native.Node) -> bool:
        """ONNX cannot say that rows which meet the numbers may be rounded."""
        self.add_node(node, node.op, {key: value for key, value in node.attrs.items() if key != "row_bits"})
        return True

    def write_norm(self, node: _native.Node) -> bool:
        """ONNX Runtime's name of RMSNormalization."""
        if any(v is not None for v in node.outputs[1:]):
            return False
        self.add_node(node, "RMSNormalization", node.attrs)
        return True

    def write_swish(self, node: _native.Node) -> bool:
        """Swish in the two nodes that it came from, which need no new opset."""
        if self._model.source_opset >= _SWISH_OPSET or node.attrs.get("alpha", 1.0) != 1.0:
            return False
        (x,), (y,) = node.inputs, node.outputs
        gate = self._model.value_name(f"{y.name}.gate")
        self._add("Sigmoid", [self.read(x)], [gate], {}, node.name, [x.type])
        self._add("Mul", [self.read(x), gate], [self._names[y.name]], {}, node.name, [x.type, x.type])
        return True

    def write_scatter(self, node: _native.Node) -> bool:
        """Scatter is an old name."""
        self.add_node(node, "ScatterElements", node.attrs)
        return True

    def write_control(self, node: _native.Node) -> bool:
        """If, Loop and Scan: bodies name what they use from around them."""
        first = 1 if node.op == "If" else len(node.inputs) - int(node.attrs["num_captured"])
        captured = [self.read(v) for v in node.inputs[first:]]
        inputs, types = [], []
        for v in node.inputs[:first]:
            inputs.append("" if v is None else self.read(v))
            types.append(None if v is None else v.type)
        attrs = {k: v for k, v in node.attrs.items() if k != "num_captured"}
        outputs = [self._names[v.name] if v is not None else "" for v in node.outputs]
        if node.op == "If":
            # A branch may give more than anybody reads.
            count = max(len(body.outputs) for body in node.bodies.values())
            outputs += [self._model.value_name("unused") for _ in range(count - len(outputs))]
        proto = self._add(node.op, inputs, outputs, attrs, node.name, types)
        for key, body in node.bodies.items():
            formal = [] if node.op == "If" else list(body.inputs)[:first]
            inner = list(body.inputs)[len(formal) :]
            graph = proto.attribute.add(name=key, type=onnx.AttributeProto.GRAPH).g
            writer = _GraphWriter(self._model, body, graph, self)
            writer.write_body({v.name: name for v, name in zip(inner, captured, strict=True)}, formal)
        return True


_SPECIAL = {
    "neo.Dims": _GraphWriter.write_sizes,
    "MatMul": _GraphWriter.write_product,
    "DequantizeLinear": _GraphWriter.write_dequantize,
    "SimplifiedLayerNormalization": _GraphWriter.write_norm,
    "Swish": _GraphWriter.write_swish,
    "Scatter": _GraphWriter.write_scatter,
    "If": _GraphWriter.write_control,
    "Loop": _GraphWriter.write_control,
    "Scan": _GraphWriter.write_control,
}


def _repeats(array: np.ndarray[Any, Any]) -> bool:
    """Whether a large array is one element many times, bit for bit."""
    if not any(array.strides):
        return True
    rows = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    return bool((rows[-1] == rows[0]).all() and (rows == rows[0]).all())


def _unique(wanted: str, taken: set[str]) -> str:
    name = wanted
    for i in itertools.count(1):
        if name not in taken:
            break
        name = f"{wanted}_{i}"
    taken.add(name)
    return name


def _attribute(key: str, value: Any, schema: Any) -> onnx.AttributeProto | None:
    """An attribute of the type that the operator's schema says; None for an empty list that no schema types."""
    known = schema.attributes.get(key) if schema is not None else None
    kind = onnx.AttributeProto.UNDEFINED if known is None else known.type.value
    if isinstance(value, onnx.TensorProto):
        return onnx.helper.make_attribute(key, value)
    if kind == onnx.AttributeProto.TYPE_PROTO:
        return onnx.helper.make_attribute(key, type_of_text(value))
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            strings = [s if isinstance(s, bytes) else str(s).encode() for s in value.ravel()]
            return onnx.helper.make_attribute(
                key, onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=value.shape, string_data=strings)
            )
        return onnx.helper.make_attribute(key, onnx.numpy_helper.from_array(value))
    if kind == onnx.AttributeProto.UNDEFINED:
        return None if value == [] else onnx.helper.make_attribute(key, value)
    if kind == onnx.AttributeProto.FLOATS:
        value = [float(x) for x in value]
    elif kind == onnx.AttributeProto.FLOAT:
        value = float(value)
    return onnx.helper.make_attribute(key, value, attr_type=kind)
