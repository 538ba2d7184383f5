"""Small models, right ones and such as no tool would write."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def info(name: str, shape: Any = (2, 3), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[onnx.NodeProto],
    outputs: tuple[str, ...] = ("y",),
    *,
    inputs: list[onnx.ValueInfoProto] | None = None,
    initializers: list[onnx.TensorProto] | None = None,
    opset: int = 21,
    functions: list[onnx.FunctionProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [info("x")] if inputs is None else inputs,
        [onnx.ValueInfoProto(name=n) for n in outputs],
        initializers or [],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [])


def node(op: str, inputs: list[str], outputs: list[str], **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attrs)


RELU = node("Relu", ["x"], ["y"], name="first")


def changed(change: Callable[[onnx.ModelProto], Any], base: onnx.ModelProto | None = None) -> onnx.ModelProto:
    result = copy.deepcopy(base or model([copy.deepcopy(RELU)]))
    change(result)
    return result


def constant(**fields: Any) -> onnx.ModelProto:
    """A model with one initializer that is written field by field."""
    tensor = TensorProto(name="w", data_type=FLOAT)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return model([node("Add", ["x", "w"], ["y"], name="sum")], initializers=[tensor])
