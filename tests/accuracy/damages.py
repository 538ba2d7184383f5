"""Models damaged at seeded random in one node: a weight perturbed, a routine made wrong, a precision lowered."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import neo
import numpy as np
import onnx
from neo.testing import seeded_inputs
from onnx import TensorProto, helper, numpy_helper

from tests.built import load_extension

KINDS = ("weight", "routine", "precision")
_LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN")
_WEIGHTED = (*_LINEAR, "BatchNormalization", "LayerNormalization", "DequantizeLinear", "Add", "Mul")


@functools.cache
def wrong_routines() -> Any:
    """Return the extension that makes routines wrong, which lies beside the one of neo; None where it was not built."""
    try:
        return load_extension("_wrong_routines")
    except ModuleNotFoundError:
        return None


@dataclass(frozen=True)
class Damaged:
    """A damaged model.

    ``model`` is what was compiled to ``module``; ``against`` is what is right (``float64`` where the model itself is).
    The cause is right where it names one of ``nodes``, or ``value``, which the wrong step wrote.
    """

    model: onnx.ModelProto
    module: neo.Module
    against: Any
    nodes: frozenset[str]
    value: str
    text: str


def damage(model: onnx.ModelProto, kind: str, random: np.random.Generator, feeds: Mapping[str, Any]) -> Damaged | None:
    """Damage a model in one node; None where the damage drawn changes no output on these inputs."""
    if kind == "routine":
        return _wrong_routine(model, random, feeds)
    drawn = _perturbed(model, random) if kind == "weight" else _lowered(model, random)
    if drawn is None:
        return None
    changed, nodes, text = drawn
    right, module = neo.compile(model, threads=1), neo.compile(changed, threads=1)
    if _same(right.run(feeds), module.run(feeds)):
        return None
    return Damaged(changed, module, model, nodes, "", text)


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)


def _label(node: onnx.NodeProto) -> str:
    return node.name or node.output[0]


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _readers(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if name in node.input]


def _users(model: onnx.ModelProto, weight: str) -> frozenset[str]:
    """Return the nodes that read a weight, through a DequantizeLinear or a move of its elements as well."""
    found = []
    for node in _readers(model, weight):
        found.append(_label(node))
        if node.op_type in ("DequantizeLinear", "Transpose", "Reshape", "Identity", "Unsqueeze"):
            found += _users(model, node.output[0])
    return frozenset(found)


def _weights(model: onnx.ModelProto, ops: tuple[str, ...]) -> list[tuple[onnx.NodeProto, str]]:
    """Return every weight of the graph's nodes that one node reads."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    found = []
    for node in model.graph.node:
        if node.op_type not in ops:
            continue
        first = 0 if node.op_type in ("DequantizeLinear", "MatMul", "Add", "Mul") else 1
        for name in list(node.input)[first : first + 1] if node.op_type == "DequantizeLinear" else node.input[first:]:
            dtypes = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8)
            if name in stored and stored[name].data_type in dtypes and len(_readers(model, name)) == 1:
                found.append((node, name))
    return found


def _replace(model: onnx.ModelProto, name: str, values: np.ndarray) -> onnx.ModelProto:
    copy = _copy(model)
    tensor = next(t for t in copy.graph.initializer if t.name == name)
    tensor.CopyFrom(numpy_helper.from_array(values, name))
    return copy


def _perturbed(
    model: onnx.ModelProto, random: np.random.Generator
) -> tuple[onnx.ModelProto, frozenset[str], str] | None:
    """Change one element of one weight by about as much as the weights are large."""
    found = _weights(model, _WEIGHTED)
    if not found:
        return None
    node, name = found[random.integers(len(found))]
    values = numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == name)).copy()
    if not values.size:
        return None
    at = tuple(int(random.integers(n)) for n in values.shape)
    if values.dtype == np.float32:
        size = float(np.std(values)) or float(np.abs(values).max()) or 1.0
        values[at] += random.choice([-1, 1]) * random.uniform(0.5, 2.0) * size
    else:
        limits = np.iinfo(values.dtype)
        moved = int(values[at]) + int(random.integers(40, 90)) * (-1 if int(values[at]) > 0 else 1)
        values[at] = np.clip(moved, limits.min, limits.max)
    return _replace(model, name, values), _users(model, name), f"{name}{list(at)} of {_label(node)} ({node.op_type})"


def _lowered(model: onnx.ModelProto, random: np.random.Generator) -> tuple[onnx.ModelProto, frozenset[str], str] | None:
    """Round the weights of one node to half of their bits, or compute one node in float16."""
    if random.random() < 0.5:
        stored = {t.name: t for t in model.graph.initializer}
        found = [
            (node, name)
            for node, name in _weights(model, _LINEAR)
            if len(stored[name].dims) >= 2 and stored[name].data_type == TensorProto.FLOAT
        ]
        if not found:
            return None
        node, name = found[random.integers(len(found))]
        dtype = ("float16", "bfloat16")[random.integers(2)]
        values = numpy_helper.to_array(stored[name])
        rounded = _rounded(values, dtype)
        if np.array_equal(values, rounded):
            return None
        return _replace(model, name, rounded), _users(model, name), f"{name} of {_label(node)} in {dtype}"
    copy = _copy(model)
    floats = _float_values(model)
    ops = ("Conv", "Gemm", "MatMul", "Add", "Mul", "Softmax", "Tanh", "Sigmoid", "Elu", "ReduceMean", "AveragePool")
    fitting = [n for n in copy.graph.node if n.op_type in ops and n.output[0] in floats]
    if not fitting:
        return None
    node = fitting[random.integers(len(fitting))]
    nodes = []
    for i, name in enumerate(node.input):
        if name and name in floats:
            nodes.append(helper.make_node("Cast", [name], [f"{name}/{i}/half"], to=TensorProto.FLOAT16))
            node.input[i] = f"{name}/{i}/half"
    back = helper.make_node("Cast", [f"{node.output[0]}/half"], [node.output[0]], to=TensorProto.FLOAT)
    node.output[0] = f"{node.output[0]}/half"
    at = list(copy.graph.node).index(node)
    ordered = [*copy.graph.node[:at], *nodes, node, back, *copy.graph.node[at + 1 :]]
    label = node.name or back.output[0]
    fresh = [onnx.NodeProto.FromString(n.SerializeToString()) for n in ordered]
    del copy.graph.node[:]
    copy.graph.node.extend(fresh)
    return copy, frozenset({label}), f"{label} ({node.op_type}) computed in float16"


def _rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def _float_values(model: onnx.ModelProto) -> set[str]:
    """Return the names of every float32 value of the graph."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    named = [*inferred.value_info, *inferred.input, *inferred.output]
    floats = {v.name for v in named if v.type.tensor_type.elem_type == TensorProto.FLOAT}
    return floats | {t.name for t in model.graph.initializer if t.data_type == TensorProto.FLOAT}


def _wrong_routine(model: onnx.ModelProto, random: np.random.Generator, feeds: Mapping[str, Any]) -> Damaged | None:
    """Make the routine that was chosen for one node wrong, in the module alone."""
    extension = wrong_routines()
    right = neo.compile(model, threads=1)
    problem, choices = right._selection.problem, right._selection.choice
    nodes = problem.nodes
    fitting = [
        i
        for i in range(len(nodes))
        if "routine" in nodes[i]["choices"][choices[i]] and extension.can_be_wrong(problem, i, choices[i])
    ]
    node = int(fitting[random.integers(len(fitting))])
    faults = list(extension.Fault.__members__.values())
    fault = faults[random.integers(len(faults))]
    extension.make_wrong(problem, node, choices[node], fault)
    native = problem.lower(choices, float(right._native.estimate_us), right.threads)
    module = right._with(native)
    if _same(right.run(feeds), module.run(feeds)):
        return None
    entry = nodes[node]["choices"][choices[node]]
    text = f"{entry['routine'].split('@')[0]} of {nodes[node]['name']} {fault.name}"
    return Damaged(model, module, "float64", frozenset(), nodes[node]["outputs"][0], text)


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, Any]:
    """Return seeded inputs of a model whose sizes are numbers."""
    return seeded_inputs(neo.compile(model, threads=1), seed)
