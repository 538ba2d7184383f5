"""The quantized model as ONNX: QuantizeLinear and DequantizeLinear around the operators of the float model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neo.quantize.float_model import FloatModel
from neo.quantize.place import Layer, Placement
from neo.quantize.ranges import Grid
from neo.quantize.weights import Codes
from neo.version import __version__

__all__ = ["QdqWriter", "write_qdq"]


class QdqWriter:
    """A copy of a model in which values and weights are replaced; names are those of the values they stand for."""

    def __init__(self, model: FloatModel) -> None:
        self.model = model
        self.proto = onnx.ModelProto()
        self.proto.CopyFrom(model.proto)
        self._taken = {*model.producer, *model.inputs, *model.constants}
        self._before: dict[int, list[onnx.NodeProto]] = {}
        self._behind: dict[str, list[onnx.NodeProto]] = {}
        self._renamed: dict[str, str] = {}
        self.replaced: dict[tuple[int, int], str] = {}

    def name(self, stem: str) -> str:
        """A name that no value has."""
        name, count = stem, 1
        while name in self._taken:
            name, count = f"{stem}_{count}", count + 1
        self._taken.add(name)
        return name

    def constant(self, stem: str, array: np.ndarray[Any, Any]) -> str:
        """A new initializer."""
        name = self.name(stem)
        self.proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def round_value(self, value: str, grid: Grid) -> None:
        """Let everybody who reads a value read what its codes stand for."""
        scale = self.constant(f"{value}/scale", np.array(grid.scale, np.float32))
        zero = self.constant(f"{value}/zero", np.array(grid.zero, grid.dtype))
        codes, real = self.name(f"{value}/codes"), self.name(f"{value}/rounded")
        self._behind[value] = [
            helper.make_node("QuantizeLinear", [value, scale, zero], [codes], name=codes),
            helper.make_node("DequantizeLinear", [codes, scale, zero], [real], name=real),
        ]
        self._renamed[value] = real

    def set_weights(self, layer: Layer, codes: Codes, x_scale: float | None) -> None:
        """Let a layer read its weights and bias from codes."""
        node = self.model.nodes[layer.node]
        zeros = np.zeros(codes.scales.shape, np.int8)
        is_one = codes.scales.size == 1
        scales, zeros = (codes.scales.reshape(()), zeros.reshape(())) if is_one else (codes.scales, zeros)
        real = self.name(f"{node.name}/weights")
        read = [
            self.constant(f"{real}/{part}", a)
            for part, a in (("codes", codes.weights), ("scale", scales), ("zero", zeros))
        ]
        self._add_before(layer.node, helper.make_node("DequantizeLinear", read, [real], name=real, axis=layer.axis))
        self.replaced[layer.node, 1] = real
        if codes.float_bias is not None:
            self.replaced[layer.node, 2] = self.constant(f"{node.name}/bias", codes.float_bias)
        elif codes.bias is not None and x_scale is not None:
            real = self.name(f"{node.name}/bias")
            unit = (np.float32(x_scale) * codes.scales).astype(np.float32)
            unit = unit.reshape(()) if is_one else unit
            read = [self.constant(f"{real}/codes", codes.bias), self.constant(f"{real}/scale", unit)]
            self._add_before(layer.node, helper.make_node("DequantizeLinear", read, [real], name=real, axis=0))
            self.replaced[layer.node, 2] = real

    def _add_before(self, index: int, node: onnx.NodeProto) -> None:
        self._before.setdefault(index, []).append(node)

    def replace_node(self, index: int, nodes: list[onnx.NodeProto]) -> None:
        """Put nodes in the place of one."""
        self._before[index] = [*self._before.get(index, []), *nodes]
        self.replaced[index, -1] = ""

    def finish(self, note: Mapping[str, str]) -> onnx.ModelProto:
        """The model, with notes in its metadata."""
        graph = self.proto.graph
        outputs = set(self.model.outputs)
        nodes: list[onnx.NodeProto] = []
        for value in self.model.inputs:
            nodes += self._behind.get(value, [])
        raw = {
            value: self.name(f"{value}/unrounded")
            for value in self._renamed
            if value in outputs and value in self.model.producer
        }
        for index, node in enumerate(self.model.nodes):
            nodes += self._before.get(index, [])
            if (index, -1) not in self.replaced:
                made = onnx.NodeProto()
                made.CopyFrom(node)
                _rename_reads(made, self._renamed)
                for (at, operand), name in self.replaced.items():
                    if at == index:
                        made.input[operand] = name
                for i, name in enumerate(made.output):
                    made.output[i] = raw.get(name, name)
                nodes.append(made)
            for name in node.output:
                nodes += self._behind.get(name, [])
        # A rounded output keeps its name: what it was rounded from takes another.
        real_names = {self._renamed[value]: value for value in raw}
        for node in nodes:
            if node.op_type == "QuantizeLinear" and node.input[0] in raw:
                node.input[0] = raw[node.input[0]]
            if real_names:
                _rename_reads(node, real_names)
                for i, name in enumerate(node.output):
                    node.output[i] = real_names.get(name, name)
        del graph.node[:]
        graph.node.extend(nodes)
        _drop_unread(graph)
        self.proto.producer_name, self.proto.producer_version = "neo", __version__
        others = [p for p in self.proto.metadata_props if p.key not in note]
        del self.proto.metadata_props[:]
        self.proto.metadata_props.extend(others)
        for key, text in note.items():
            self.proto.metadata_props.add(key=key, value=text)
        return self.proto


def _rename_reads(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    for i, name in enumerate(node.input):
        node.input[i] = names.get(name, name)
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            made = {v.name for v in body.input} | {t.name for t in body.initializer}
            made |= {name for inner in body.node for name in inner.output}
            outer = {old: new for old, new in names.items() if old not in made}
            for inner in body.node:
                _rename_reads(inner, outer)


def _drop_unread(graph: onnx.GraphProto) -> None:
    read: set[str] = {v.name for v in graph.output}

    def note(nodes: Any) -> None:
        for node in nodes:
            read.update(node.input)
            for attribute in node.attribute:
                for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                    read.update(v.name for v in body.output)
                    note(body.node)

    note(graph.node)
    kept = [t for t in graph.initializer if t.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.value_info[:]


def write_qdq(
    model: FloatModel,
    placement: Placement,
    grids: Mapping[str, Grid],
    codes: Mapping[str, Codes],
    note: Mapping[str, str],
) -> onnx.ModelProto:
    """Write a model whose layers read codes.

    Parameters
    ----------
    model : FloatModel
    placement : Placement
    grids : mapping of str to Grid
        By the values that `placement.rounded` names.
    codes : mapping of str to Codes
        By layer.
    note : mapping of str to str
        Kept in the file's metadata.
    """
    writer = QdqWriter(model)
    for value, owner in placement.rounded.items():
        writer.round_value(value, grids[owner])
    for layer in placement.layers:
        writer.set_weights(layer, codes[layer.name], grids[placement.rounded[layer.x]].scale)
    return writer.finish(note)
