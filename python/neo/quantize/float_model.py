"""The float model that is quantized: what neo's passes leave of the user's, indexed by its values."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from neo import _native
from neo.errors import ModelError, UnsupportedError
from neo.frontend.onnx import read_model
from neo.frontend.onnx.load import load_model
from neo.onnx_export import optimize
from neo.quantize.fold_pads import fold_pads

__all__ = ["FloatModel", "prepare", "read_values"]

_LINEAR = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
_HALVES = frozenset({onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16})


class FloatModel:
    """A model's main graph, whose nodes all have names.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model; never changed.
    nodes : list of onnx.NodeProto
        The nodes of the main graph, producers before readers.
    constants : dict of str to TensorProto
        Initializers by name.
    producer : dict of str to int
        The node that makes each value.
    readers : dict of str to list of int
        The nodes that read each value, those whose bodies read it included; one entry for each operand.
    inputs, outputs : list of str
        The graph's, in order.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        graph = proto.graph
        self.nodes = list(graph.node)
        self.constants = {t.name: t for t in graph.initializer}
        self.producer = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.readers: dict[str, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for name in read_values(node):
                self.readers.setdefault(name, []).append(i)
        self.inputs = [v.name for v in graph.input if v.name not in self.constants]
        self.outputs = [v.name for v in graph.output]

    @cached_property
    def types(self) -> Mapping[str, tuple[str, tuple[int | str | None, ...] | None]]:
        """Dtype and shape of each value that inference finds; a size is a number, or text, equal where sizes are."""
        graph = read_model(self.proto)[0]
        found: dict[str, tuple[str, tuple[int | str | None, ...] | None]] = {}

        def note(value: _native.Value | None) -> None:
            if value is not None and value.kind == "tensor":
                found[value.name] = (value.dtype, value.shape)

        for value in graph.inputs:
            note(value)
        for node in graph.nodes:
            for value in node.outputs:
                note(value)
        return found

    def is_float(self, name: str) -> bool:
        """Whether a value is a float32 tensor that the graph computes or takes."""
        return name not in self.constants and self.types.get(name, ("", None))[0] == "float32"

    def shape(self, name: str) -> tuple[int | str | None, ...] | None:
        """The shape of a value; None where its rank is not known."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        return self.types.get(name, ("", None))[1]

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """A constant."""
        return numpy_helper.to_array(self.constants[name])

    def attribute(self, node: onnx.NodeProto, name: str, default: Any) -> Any:
        """An attribute of a node."""
        return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def read_values(node: onnx.NodeProto) -> list[str]:
    """The values that a node reads, those included that its bodies read and do not make."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            made = {v.name for v in body.input} | {t.name for t in body.initializer}
            made |= {name for inner in body.node for name in inner.output}
            used = [name for inner in body.node for name in read_values(inner)]
            used += [v.name for v in body.output]
            found += [name for name in used if name and name not in made]
    return found


def prepare(model: Any, shapes: Mapping[str, int | tuple[int, int]] | None) -> FloatModel:
    """Fold and fuse a model as :func:`neo.optimize` does, name its nodes, and check that it can be quantized.

    Raises
    ------
    neo.ModelError
        It computes in half precision, or is quantized throughout.
    """
    loaded = load_model(model)
    linear = sum(node.op_type in _LINEAR or node.op_type.startswith("QLinear") for node in loaded.proto.graph.node)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "float.onnx"
        optimize(model, path, shapes=shapes)
        if path.with_name(path.name + ".data").exists():
            msg = "[quantize] a model must have less than 2 GB of weights. Got more"
            raise UnsupportedError(msg)
        proto = load_model(path, whole=True).proto
    fold_pads(proto.graph)
    halves = [v.name for v in proto.graph.input if v.type.tensor_type.elem_type in _HALVES]
    halves += [t.name for t in proto.graph.initializer if t.data_type in _HALVES and t.dims]
    if halves:
        msg = f"[quantize] the model must compute in float32. Got half precision in {halves[0]!r}"
        raise ModelError(msg)
    taken: set[str] = set()
    for node in proto.graph.node:
        stem = node.name or f"{node.op_type}/{next((o for o in node.output if o), '')}"
        node.name, count = stem, 1
        while node.name in taken:
            node.name, count = f"{stem}_{count}", count + 1
        taken.add(node.name)
    found = FloatModel(proto)
    if linear and not any(
        node.op_type in ("Conv", "MatMul", "Gemm") and node.input[1] in found.constants for node in found.nodes
    ):
        msg = f"[quantize] the model must not be quantized. Got {linear} nodes that quantize"
        raise ModelError(msg)
    return found
