"""Which nodes run on codes, and which values are rounded for them.

Layers (Conv, MatMul and Gemm with constant weights) are what quantizing pays for. What lies between two layers
follows: sums, pools, concatenations and elementwise functions run on codes where all they read is made on codes and
something quantized reads what they make. Only a value that such a node reads is rounded, and not inside what one
routine computes in a piece: a clamp behind a product or a sum, a chain of functions of one value. A product whose
readers are all float keeps its float sums. What neo's groups need (docs/accuracy.md) is also what ONNX Runtime's need.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neo.errors import ModelError
from neo.quantize.float_model import FloatModel, read_values

__all__ = ["LAYER_OPS", "Layer", "Placement", "find_layers", "matching", "place"]

#: Operators whose second input are weights.
LAYER_OPS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

_CLAMPS = frozenset({"Relu", "Clip"})
_UNARY = frozenset(
    {"Relu", "Clip", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus"}
    | {"Softsign", "Gelu", "Mish", "Swish", "Abs", "Neg", "Sqrt", "Exp", "Erf", "ThresholdedRelu"}
)
_BINARY = frozenset({"Add", "Sub", "Mul"})
_AVERAGES = frozenset({"AveragePool", "GlobalAveragePool"})
_MOVERS = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "DepthToSpace", "SpaceToDepth"}
    | {"Expand", "Tile", "Gather", "Identity"}
)
_GATES = frozenset({"Sigmoid", "HardSigmoid"})


@dataclass(frozen=True)
class Layer:
    """A node with constant weights.

    Attributes
    ----------
    node : int
        Its place among the model's nodes.
    name, op : str
        Its name and operator.
    x, w, y : str
        The values that it reads and makes.
    bias : str
        A constant of one element for each output channel; empty where it has none.
    axis : int
        The output channels in the weights.
    """

    node: int
    name: str
    op: str
    x: str
    w: str
    bias: str
    y: str
    axis: int


@dataclass(frozen=True)
class Placement:
    """The quantized layers and the rounded values.

    Attributes
    ----------
    layers : tuple of Layer
        The products on codes.
    rounded : mapping of str to str
        Each value that is rounded to codes, and the value whose scale and zero point it has: its own mostly.
    """

    layers: tuple[Layer, ...]
    rounded: Mapping[str, str]


@dataclass
class _Unit:
    """Nodes that are one function: a product with a gate has two, all others one.

    Attributes
    ----------
    kind : str
        ``layer``; ``bias``, a sum with a constant for each channel; ``clamp``; ``unary``, a function of one element;
        ``binary``; ``average``; ``mover``, whose inputs and outputs have one scale; ``float``.
    nodes : tuple of int
    inputs : tuple of str
        The float32 values that it reads and the graph computes or takes.
    outputs : tuple of str
    on_codes : bool
    """

    kind: str
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    on_codes: bool = False


def find_layers(model: FloatModel, ops: Collection[str]) -> tuple[list[Layer], dict[str, str]]:
    """The nodes of some operators whose weights can be codes, and why others cannot."""
    layers: list[Layer] = []
    reasons: dict[str, str] = {}
    for index, node in enumerate(model.nodes):
        if node.op_type not in ops or node.domain not in ("", "ai.onnx"):
            continue
        reason = _refusal(model, index)
        if reason:
            reasons[node.name] = reason
            continue
        w = model.shape(node.input[1]) or ()
        axis = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}.get(node.op_type, 1 - model.attribute(node, "transB", 0))
        bias = node.input[2] if len(node.input) > 2 else ""
        channels = w[axis]
        if node.op_type == "ConvTranspose":
            channels = int(channels or 0) * model.attribute(node, "group", 1)
        if bias and not (bias in model.constants and model.array(bias).size == channels == model.array(bias).shape[-1]):
            reasons[node.name] = "its bias is no constant of one element for each channel"
            continue
        layers.append(Layer(index, node.name, node.op_type, node.input[0], node.input[1], bias, node.output[0], axis))
    return layers, reasons


def _refusal(model: FloatModel, index: int) -> str:
    node = model.nodes[index]
    x, w = node.input[0], node.input[1]
    if w not in model.constants:
        return "its weights are not constant"
    array = model.array(w)
    if array.dtype != np.float32 or not model.is_float(x):
        return "it is not float32"
    if not array.size or not np.isfinite(array).all():
        return "its weights are empty" if not array.size else "its weights are not finite"
    if node.op_type == "MatMul" and (array.ndim != 2 or len(model.shape(x) or ()) < 2):
        return "its weights are no matrix"
    if node.op_type == "Gemm":
        scaled = model.attribute(node, "alpha", 1.0) != 1.0 or model.attribute(node, "beta", 1.0) != 1.0
        if scaled or model.attribute(node, "transA", 0):
            return "its operands are scaled or transposed"
    return ""


def matching(model: FloatModel, patterns: Sequence[str]) -> set[str]:
    """The names of nodes that patterns match.

    Raises
    ------
    neo.ModelError
        A pattern matches none.
    """
    names = [node.name for node in model.nodes]
    found: set[str] = set()
    for pattern in patterns:
        matched = fnmatch.filter(names, pattern)
        if not matched:
            msg = f"[quantize] a pattern must match a node. Got {pattern!r}, which matches none"
            raise ModelError(msg)
        found.update(matched)
    return found


def place(model: FloatModel, layers: Sequence[Layer], skipped: Collection[str] = ()) -> Placement:
    """Choose what runs on codes.

    Parameters
    ----------
    model : FloatModel
    layers : sequence of Layer
        Those that may.
    skipped : collection of str
        Names of nodes, layers or not, that stay float.
    """
    chosen = {layer.node: layer for layer in layers if layer.name not in skipped}
    units = _units(model, chosen, skipped)
    maker = {name: unit for unit in units for name in unit.outputs}
    readers: dict[str, list[_Unit]] = {}
    for unit in units:
        for name in dict.fromkeys(unit.inputs):
            readers.setdefault(name, []).append(unit)

    def is_made_on_codes(name: str) -> bool:
        return name in maker and maker[name].on_codes

    for unit in units:
        unit.on_codes = unit.kind == "layer" or (unit.kind != "float" and all(map(is_made_on_codes, unit.inputs)))
    for unit in reversed(units):
        if unit.on_codes and unit.kind != "layer":
            unit.on_codes = any(r.on_codes for name in unit.outputs for r in readers.get(name, []))
    rounded: dict[str, None] = {}
    ties = _Ties()
    for unit in units:
        if not unit.on_codes:
            continue
        for name in unit.inputs:
            before = maker.get(name)
            alone = len(readers[name]) == 1 and name not in model.outputs
            if alone and before is not None and before.on_codes and _is_inside(before, unit, readers, model):
                continue
            rounded[name] = None
        if unit.kind == "mover":
            for name in (*unit.inputs[1:], *unit.outputs):
                ties.join(unit.inputs[0], name)
    return Placement(tuple(chosen.values()), {name: ties.of(name) for name in rounded})


def _is_inside(before: _Unit, unit: _Unit, readers: Mapping[str, list[_Unit]], model: FloatModel) -> bool:
    """Whether one routine computes both units, whose value between nobody else reads."""
    if unit.kind == "bias":
        return True
    if unit.kind == "clamp":
        return before.kind in ("layer", "binary", "unary", "bias")
    if unit.kind != "unary":
        return False
    # A chain begins with codes, so what is clamped with a product before it is none of its links.
    return before.kind == "unary" or (before.kind == "clamp" and not _is_fused(before, readers, model))


def _is_fused(clamp: _Unit, readers: Mapping[str, list[_Unit]], model: FloatModel) -> bool:
    name = clamp.inputs[0]
    return len(readers[name]) == 1 and name not in model.outputs


def _units(model: FloatModel, layers: Mapping[int, Layer], skipped: Collection[str]) -> list[_Unit]:
    """The nodes as units, in order."""
    gates = {gate: index for index in range(len(model.nodes)) for gate in _gate_of(model, index)}
    units = []
    for index, node in enumerate(model.nodes):
        if index in gates:
            continue
        members = (*(g for g, m in gates.items() if m == index), index)
        read = dict.fromkeys(name for m in members for name in read_values(model.nodes[m]) if model.is_float(name))
        made = tuple(name for name in node.output if name)
        inner = {name for m in members[:-1] for name in model.nodes[m].output}
        inputs = tuple(name for name in read if name not in inner)
        kind = "float"
        if index in layers:
            kind = "layer"
        elif not skipped or not any(model.nodes[m].name in skipped for m in members):
            kind = "unary" if len(members) > 1 else _kind(model, index, inputs)
        if kind != "layer" and not all(map(model.is_float, made)):
            kind = "float"
        units.append(_Unit(kind, members, inputs, made))
    return units


def _gate_of(model: FloatModel, index: int) -> list[int]:
    """The Sigmoid or HardSigmoid of x that a node multiplies x by; nobody else reads it."""
    node = model.nodes[index]
    if node.op_type != "Mul" or len(node.input) != 2:
        return []
    for value, other in (tuple(node.input), tuple(node.input)[::-1]):
        gate = model.producer.get(value)
        if gate is None or model.nodes[gate].op_type not in _GATES or model.nodes[gate].input[0] != other:
            continue
        if len(model.readers[value]) == 1 and value not in model.outputs:
            return [gate]
    return []


def _kind(model: FloatModel, index: int, inputs: Sequence[str]) -> str:
    node = model.nodes[index]
    op = node.op_type
    if node.domain not in ("", "ai.onnx") or any(a.HasField("g") or a.graphs for a in node.attribute):
        return "float"
    constants = [name for name in node.input if name in model.constants]
    if op in _CLAMPS:
        return "clamp" if len(inputs) == 1 and len(constants) == len([n for n in node.input[1:] if n]) else "float"
    if op in _UNARY:
        return "unary" if len(inputs) == 1 else "float"
    if op in _BINARY:
        return _binary_kind(model, node.input, inputs, constants, is_sum=op == "Add")
    if op in _AVERAGES:
        rank = len(model.shape(node.input[0]) or ())
        return "average" if rank in (3, 4) else "float"
    if op == "MaxPool":
        plain = len([o for o in node.output if o]) == 1
        return "mover" if plain and len(model.shape(node.input[0]) or ()) in (3, 4) else "float"
    if op == "Concat":
        return "mover" if len(inputs) == len(set(node.input)) and len(inputs) > 1 else "float"
    if op == "Resize":
        nearest = model.attribute(node, "mode", b"nearest") == b"nearest"
        return "mover" if nearest and len(inputs) == 1 else "float"
    return "mover" if op in _MOVERS and len(inputs) == 1 and inputs[0] == node.input[0] else "float"


def _binary_kind(
    model: FloatModel, operands: Sequence[str], inputs: Sequence[str], constants: Sequence[str], *, is_sum: bool
) -> str:
    shapes = [model.shape(name) for name in operands]
    if len(inputs) == 2 and shapes[0] is not None and shapes[0] == shapes[1] and None not in shapes[0]:
        return "binary"
    if len(inputs) != 1 or len(constants) != 1:
        return "float"
    if model.array(constants[0]).size == 1:
        return "unary"
    maker = model.producer.get(inputs[0])
    # The sum of a product and its bias, which the exporter has kept apart.
    is_bias = (
        is_sum and model.array(constants[0]).ndim == 1 and maker is not None and model.nodes[maker].op_type == "MatMul"
    )
    return "bias" if is_bias and len(model.readers[inputs[0]]) == 1 else "float"


class _Ties:
    """Values that share a scale and zero point; a set is named after its first value."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, name: str) -> str:
        while name in self._parent:
            name = self._parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        a, b = self.of(a), self.of(b)
        if a != b:
            self._parent[b] = a
