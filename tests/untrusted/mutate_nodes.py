"""Damages of nodes, names, bodies and functions. Each says whether it changed the model."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.untrusted.hostile import (
    NEWEST,
    add_constant,
    fresh_name,
    graphs_of,
    hostile_int,
    hostile_name,
    nodes_of,
    random_array,
    values_of,
)
from tests.untrusted.mutate_values import random_attribute

__all__ = [
    "add_node",
    "change_names",
    "change_operator",
    "change_opset",
    "change_output",
    "change_wiring",
    "nest_in_if",
    "nest_in_loop",
    "quantize_edge",
    "splice_model",
    "wrap_in_function",
]


def change_wiring(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = rng.choice(list(graphs_of(model.graph)))
    node = rng.choice(graph.node)
    values = values_of(graph)
    kind = rng.randrange(9)
    if kind == 0 and node.input:
        del node.input[rng.randrange(len(node.input))]
    elif kind == 1:
        node.input.append(rng.choice(values))
    elif kind == 2 and node.output:
        node.output.append(fresh_name(model, "extra"))
    elif kind == 3 and len(node.output) > 1:
        del node.output[rng.randrange(len(node.output))]
    elif kind == 4 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(("", "nowhere", *node.output))
    elif kind == 5 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(("", *values))
    elif kind == 6 and len(graph.node) > 1:
        at = rng.randrange(len(graph.node))
        copy = onnx.NodeProto()
        copy.CopyFrom(graph.node[at])
        del graph.node[at]
        if rng.random() < 0.6:
            graph.node.append(copy)
    elif node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(values)
    else:
        return False
    return True


def change_operator(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    node = rng.choice(nodes_of(model))
    if rng.random() < 0.1:
        node.domain = rng.choice(("ai.onnx", "ai.onnx.ml", "com.microsoft", "neo", hostile_name(rng)))
        return True
    alike = [s.name for s in _schemas() if s.min_input <= len(node.input) <= s.max_input and s.domain == node.domain]
    node.op_type = rng.choice(alike)
    if rng.random() < 0.5:
        del node.attribute[:]
    return True


_KNOWN_SCHEMAS: list[object] = []


def _schemas() -> list[object]:
    if not _KNOWN_SCHEMAS:
        known = onnx.defs.get_all_schemas()
        _KNOWN_SCHEMAS.extend(s for s in known if s.domain in ("", "ai.onnx.ml") and not s.deprecated)
        _KNOWN_SCHEMAS.sort(key=lambda s: (s.domain, s.name))
    return _KNOWN_SCHEMAS


def add_node(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """A node of any operator behind what is there, its result an output."""
    schema = rng.choice([s for s in _schemas() if s.domain == ""])
    graph = model.graph
    values = values_of(graph)
    count = rng.randint(schema.min_input, min(schema.max_input, schema.min_input + 4))
    names = []
    for i in range(count):
        slot = schema.inputs[min(i, len(schema.inputs) - 1)]
        if rng.random() < 0.45 and values:
            names.append(rng.choice(values[-6:]))
        else:
            kinds = [
                k
                for k in ("tensor(float)", "tensor(int64)", "tensor(bool)", "tensor(string)", "tensor(uint8)")
                if k in slot.types
            ]
            kind = {"float": 1, "int64": 7, "bool": 9, "string": 8, "uint8": 2}[rng.choice(kinds)[7:-1]]
            dims = [rng.choice((1, 2, 3, 4, 0)) for _ in range(rng.choice((0, 1, 1, 2, 3, 4)))]
            names.append(add_constant(model, random_array(rng, dims, kind), rng))
    attributes = []
    for _name, known in sorted(schema.attributes.items()):
        if known.required or rng.random() < 0.3:
            made = random_attribute(rng, known)
            if made is None:
                return False
            attributes.append(made)
    outputs = [
        f"{fresh_name(model, 'made')}_{i}"
        for i in range(rng.randint(schema.min_output, min(schema.max_output, schema.min_output + 1)))
    ]
    node = helper.make_node(schema.name, names, outputs)
    node.attribute.extend(attributes)
    graph.node.append(node)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return True


def change_opset(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    opset = rng.choice(model.opset_import)
    if rng.random() < 0.8:
        opset.version = rng.randint(6, NEWEST)
    else:
        opset.version = rng.choice((0, -1, 1, 1 << 40, NEWEST + 1))
    return True


def change_output(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = model.graph
    kind = rng.randrange(5)
    if kind == 0:
        graph.output.add().CopyFrom(rng.choice(graph.output))
    elif kind == 1 and graph.output:
        rng.choice(graph.output).name = rng.choice(("nowhere", "", *values_of(graph)))
    elif kind == 2 and len(graph.output) > 1:
        del graph.output[rng.randrange(len(graph.output))]
    elif kind == 3 and graph.output:
        dims = rng.choice(graph.output).type.tensor_type.shape.dim
        dims.add().dim_value = hostile_int(rng)
    else:
        graph.output.add(name=rng.choice(values_of(graph)))
    return True


def change_names(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    name = hostile_name(rng)
    kind = rng.randrange(6)
    if kind == 0:
        model.graph.name = name
    elif kind == 1:
        model.doc_string = name * 100
    elif kind == 2:
        model.metadata_props.add(key=name, value=hostile_name(rng))
    elif kind == 3:
        rng.choice(nodes_of(model)).name = name
    elif kind == 4:
        rng.choice(model.graph.initializer).name = name
    else:
        old = rng.choice(values_of(model.graph))
        for node in model.graph.node:
            for names in (node.input, node.output):
                for i, n in enumerate(names):
                    if n == old:
                        names[i] = name
        for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
            if value.name == old:
                value.name = name
    return True


def _branch(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], name: str) -> onnx.GraphProto:
    graph = onnx.GraphProto(name=name)
    graph.node.extend(nodes)
    graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs)
    return graph


def nest_in_if(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """The whole graph inside branches, one inside the other."""
    graph = model.graph
    deep = rng.choice((1, 1, 1, 2, 3, 10, 20, 30))  # protobuf itself ends at about 33
    condition = add_constant(model, np.array(rng.random() < 0.5), rng)
    if rng.random() < 0.3:
        graph.input.append(helper.make_tensor_value_info(condition, TensorProto.BOOL, []))
        del graph.initializer[-1]
    outputs = [value.name for value in graph.output]
    nodes = list(graph.node)
    for level in range(deep):
        then = _branch(nodes, outputs, f"then{level}")
        other = _branch(nodes if deep < 6 or rng.random() < 0.1 else _zeros(outputs), outputs, f"else{level}")
        if then.ByteSize() > 1 << 18:
            break
        node = helper.make_node("If", [condition], outputs)
        node.attribute.extend([helper.make_attribute("then_branch", then), helper.make_attribute("else_branch", other)])
        nodes = [node]
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _zeros(names: Sequence[str]) -> list[onnx.NodeProto]:
    return [helper.make_node("Constant", [], [name], value_float=0.0) for name in names]


def nest_in_loop(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = model.graph
    trips = rng.choice((0, 1, 2, 3, 5, -1, 1 << 20, 1 << 40, (1 << 63) - 1))
    count = add_constant(model, np.array(trips, np.int64), rng)
    body = _branch(list(graph.node), [], "body")
    body.input.append(helper.make_tensor_value_info("step_", TensorProto.INT64, []))
    body.input.append(helper.make_tensor_value_info("go_", TensorProto.BOOL, []))
    body.node.append(helper.make_node("Identity", ["go_"], ["go_on_"]))
    body.output.append(onnx.ValueInfoProto(name="go_on_"))
    body.output.extend(graph.output)
    node = helper.make_node("Loop", [count, ""], [value.name for value in graph.output])
    node.attribute.append(helper.make_attribute("body", body))
    for value in graph.output:
        value.type.Clear()
    del graph.node[:]
    graph.node.append(node)
    return True


def wrap_in_function(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """A node becomes the call of a function; some functions call themselves or each other many times over."""
    node = rng.choice(model.graph.node)
    kind = rng.randrange(5)
    name = fresh_name(model, "Function")
    inputs = [f"a{i}" for i in range(len(node.input))]
    outputs = [f"b{i}" for i in range(len(node.output))]
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    del inner.input[:], inner.output[:]
    inner.input.extend(a if n else "" for a, n in zip(inputs, node.input, strict=True))
    inner.output.extend(b if n else "" for b, n in zip(outputs, node.output, strict=True))
    nodes = [inner]
    if kind == 1:
        inner.domain, inner.op_type = "f", name
    function = helper.make_function("f", name, inputs, outputs, nodes, list(model.opset_import))
    if kind != 2:
        function.opset_import.add(domain="f", version=1)
    model.functions.append(function)
    if kind == 3:
        for level in range(rng.choice((3, 20, 70))):
            calls = [
                helper.make_node(name, inputs, outputs if i == 0 else [f"c{i}_{b}" for b in outputs], domain="f")
                for i in range(rng.choice((1, 2, 10)))
            ]
            name = f"{name}_{level}"
            made = helper.make_function("f", name, inputs, outputs, calls, list(model.opset_import))
            made.opset_import.add(domain="f", version=1)
            model.functions.append(made)
    node.domain, node.op_type = "f", name
    if kind != 4:
        del node.attribute[:]
    model.opset_import.add(domain="f", version=1)
    return True


def quantize_edge(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """QuantizeLinear and DequantizeLinear between a value and a node that reads it."""
    node = rng.choice([n for n in model.graph.node if n.input])
    at = rng.randrange(len(node.input))
    dims = rng.choice(([], [], [1], [2], [3], [0]))
    scale = random_array(rng, dims, TensorProto.FLOAT) if rng.random() < 0.4 else np.full(dims, 0.1, np.float32)
    zero = rng.choice((np.uint8, np.int8, np.int8, np.uint16, np.int32))
    names = [add_constant(model, scale, rng), ""]
    names[1] = add_constant(model, np.full(dims, 3, zero), rng)
    stem = fresh_name(model, "q")
    extra = {"axis": hostile_int(rng)} if rng.random() < 0.5 else {}
    place = list(model.graph.node).index(node)
    quantize = helper.make_node("QuantizeLinear", [node.input[at], *names], [f"{stem}q"], **extra)
    dequantize = helper.make_node("DequantizeLinear", [f"{stem}q", *names], [f"{stem}d"], **extra)
    node.input[at] = f"{stem}d"
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*rest[:place], quantize, dequantize, *rest[place:]])
    return True


def splice_model(rng: random.Random, model: onnx.ModelProto, others: Sequence[onnx.ModelProto]) -> bool:
    """Another model behind this one, its first input this one's last value."""
    other = onnx.ModelProto()
    other.CopyFrom(rng.choice(others))
    if other.ByteSize() > 1 << 15 or not other.graph.input:
        return False
    joined = other.graph.input[0].name
    last = rng.choice(values_of(model.graph))
    prefix = fresh_name(model, "s") + "_"

    def rename(name: str) -> str:
        return last if name == joined else prefix + name if name else name

    for graph in graphs_of(other.graph):
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = rename(name)
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = rename(value.name)
    model.graph.node.extend(other.graph.node)
    model.graph.initializer.extend(other.graph.initializer)
    model.graph.input.extend(other.graph.input[1:])
    model.graph.output.extend(other.graph.output)
    model.functions.extend(other.functions)
    known = {o.domain for o in model.opset_import}
    model.opset_import.extend(o for o in other.opset_import if o.domain not in known)
    return True
