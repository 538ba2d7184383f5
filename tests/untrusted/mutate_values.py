"""Damages of inputs, tensors and attributes. Each says whether it changed the model."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.untrusted.hostile import (
    EQUATIONS,
    EXTERNAL_FILE_BYTES,
    FLOATS,
    LOCATIONS,
    NEWEST,
    PATTERNS,
    STRINGS,
    hostile_int,
    hostile_name,
    nodes_of,
    random_array,
    tensors_of,
)

__all__ = [
    "change_attribute_shape",
    "change_attribute_value",
    "change_input_shape",
    "change_input_type",
    "change_tensor_data",
    "change_tensor_dims",
    "change_tensor_numbers",
    "fix_input",
    "make_external",
    "make_sparse",
    "random_attribute",
]


def change_input_shape(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    value = rng.choice(model.graph.input)
    shape = value.type.tensor_type.shape
    kind = rng.randrange(6)
    if kind == 0:
        value.type.tensor_type.ClearField("shape")
    elif kind == 1:
        shape.dim.add().dim_value = hostile_int(rng)
    elif kind == 2 and shape.dim:
        del shape.dim[rng.randrange(len(shape.dim))]
    elif shape.dim:
        dim = rng.choice(shape.dim)
        if rng.random() < 0.4:
            dim.dim_param = rng.choice(("N", "M", "N", hostile_name(rng)))
        else:
            dim.dim_value = hostile_int(rng)
    return True


def change_input_type(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    value = rng.choice(model.graph.input)
    if rng.random() < 0.7:
        value.type.tensor_type.elem_type = rng.choice((*range(1, 27), 0, -1, 1 << 30))
        return True
    inner = onnx.TypeProto()
    inner.CopyFrom(value.type)
    value.type.Clear()
    for _i in range(rng.choice((1, 1, 2, 40))):
        outer = onnx.TypeProto()
        (outer.sequence_type if rng.random() < 0.5 else outer.optional_type).elem_type.CopyFrom(inner)
        inner = outer
    value.type.CopyFrom(inner)
    return True


def fix_input(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """An input becomes a constant of its type, often of hostile numbers."""
    index = rng.randrange(len(model.graph.input))
    value = model.graph.input[index]
    tensor = value.type.tensor_type
    dims = [d.dim_value if 0 < d.dim_value < 64 else 1 for d in tensor.shape.dim]
    if np.prod(dims) > 4096:
        return False
    array = random_array(rng, dims, tensor.elem_type)
    model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    if rng.random() < 0.9:
        del model.graph.input[index]
    return True


def change_tensor_numbers(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """Elements of a small tensor, of integers rather than of others: sizes, axes, indices, scales."""
    tensors = [t for t in tensors_of(model) if 0 < int(np.prod(t.dims)) <= 64]
    ints = [t for t in tensors if t.data_type in (TensorProto.INT64, TensorProto.INT32)]
    tensor = rng.choice(ints if ints and rng.random() < 0.8 else tensors)
    array = numpy_helper.to_array(tensor).copy()
    flat = array.reshape(-1)
    for _i in range(rng.choice((1, 1, 2, flat.size))):
        at = rng.randrange(flat.size)
        flat[at] = random_array(rng, [1], tensor.data_type)[0]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return True


def change_tensor_dims(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """Other sizes: most often with data that fits them."""
    tensor = rng.choice(tensors_of(model))
    dims = list(tensor.dims)
    kind = rng.randrange(4)
    if kind == 0 or not dims:
        dims.insert(rng.randint(0, len(dims)), rng.choice((1, 1, 2, hostile_int(rng))))
    elif kind == 1:
        del dims[rng.randrange(len(dims))]
    else:
        dims[rng.randrange(len(dims))] = hostile_int(rng)
    count = int(np.prod([float(d) for d in dims]))
    if rng.random() < 0.75 and 0 <= count <= 65536 and min(dims, default=0) >= 0:
        old = numpy_helper.to_array(tensor).reshape(-1)
        if not old.size:
            old = random_array(rng, [1], tensor.data_type)
        tensor.CopyFrom(numpy_helper.from_array(np.resize(old, dims), tensor.name))
    else:
        del tensor.dims[:]
        tensor.dims.extend(dims)
    return True


def change_tensor_data(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    tensor = rng.choice(tensors_of(model))
    kind = rng.randrange(7)
    if kind == 0:
        tensor.data_type = rng.choice((*range(27), -1, 1000))
    elif kind == 1:
        tensor.raw_data = tensor.raw_data[: rng.randint(0, len(tensor.raw_data))]
    elif kind == 2:
        tensor.raw_data = tensor.raw_data + rng.randbytes(rng.randint(1, 16))
    elif kind == 3:
        tensor.float_data.extend([1.0, 2.0])
    elif kind == 4:
        tensor.int64_data.append(hostile_int(rng))
    elif kind == 5:
        tensor.segment.begin = hostile_int(rng)
    else:
        array = numpy_helper.to_array(tensor)
        other = rng.choice(
            (
                TensorProto.FLOAT,
                TensorProto.INT64,
                TensorProto.INT32,
                TensorProto.UINT8,
                TensorProto.FLOAT16,
                TensorProto.BFLOAT16,
                TensorProto.BOOL,
                TensorProto.DOUBLE,
                TensorProto.INT4,
                TensorProto.FLOAT8E4M3FN,
            )
        )
        with np.errstate(all="ignore"):
            tensor.CopyFrom(numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(other)), tensor.name))
    return True


def make_external(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    tensor = rng.choice(model.graph.initializer)
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    facts = {"location": rng.choice(LOCATIONS)}
    if rng.random() < 0.7:
        facts["offset"] = str(
            rng.choice((0, 0, 64, EXTERNAL_FILE_BYTES - size, EXTERNAL_FILE_BYTES - size + 1, hostile_int(rng)))
        )
    if rng.random() < 0.7:
        facts["length"] = str(rng.choice((size, size, size + 1, hostile_int(rng))))
    if rng.random() < 0.1:
        facts[rng.choice(tuple(facts))] = hostile_name(rng)
    for key, text in facts.items():
        tensor.external_data.add(key=key, value=text)
    return True


def make_sparse(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    index = rng.randrange(len(model.graph.initializer))
    tensor = model.graph.initializer[index]
    array = numpy_helper.to_array(tensor)
    if array.size > 4096 or array.dtype.kind not in "fiu":
        return False
    flat = np.flatnonzero(array)
    indices = flat.astype(np.int64)
    if rng.random() < 0.4 and array.ndim:
        indices = np.stack(np.unravel_index(flat, array.shape), 1).astype(np.int64)
    if indices.size and rng.random() < 0.4:
        indices.reshape(-1)[rng.randrange(indices.size)] = hostile_int(rng)
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(array.reshape(-1)[flat], tensor.name))
    sparse.indices.CopyFrom(numpy_helper.from_array(indices))
    sparse.dims.extend(d if rng.random() < 0.9 else hostile_int(rng) for d in array.shape)
    del model.graph.initializer[index]
    return True


def change_attribute_value(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    a = rng.choice([a for node in nodes_of(model) for a in node.attribute if a.type != AttributeProto.GRAPH])
    if a.type == AttributeProto.INT:
        a.i = hostile_int(rng)
    elif a.type == AttributeProto.FLOAT:
        a.f = rng.choice(FLOATS)
    elif a.type == AttributeProto.STRING:
        choices = EQUATIONS if a.name == "equation" else PATTERNS if a.name == "pattern" else STRINGS
        a.s = rng.choice((*choices, hostile_name(rng))).encode() if rng.random() < 0.95 else b"\xff\xfe"
    elif a.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        items = {AttributeProto.INTS: a.ints, AttributeProto.FLOATS: a.floats}.get(a.type, a.strings)
        kind = rng.randrange(5)
        made = {AttributeProto.INTS: hostile_int(rng), AttributeProto.FLOATS: rng.choice(FLOATS)}.get(
            a.type, rng.choice(STRINGS).encode()
        )
        if kind == 0 or not items:
            items.append(made)
        elif kind == 1:
            del items[rng.randrange(len(items))]
        elif kind == 2:
            del items[:]
        else:
            items[rng.randrange(len(items))] = made
    else:
        return False
    return True


def change_attribute_shape(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    node = rng.choice(nodes_of(model))
    kind = rng.randrange(4)
    if kind == 0 and node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
        return True
    if kind == 1 and node.attribute:
        rng.choice(node.attribute).type = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 11))
        return True
    if kind == 2 and node.attribute:
        node.attribute.add().CopyFrom(rng.choice(node.attribute))
        return True
    schema = onnx.defs.get_schema(node.op_type, NEWEST, node.domain)
    made = random_attribute(rng, rng.choice(sorted(schema.attributes.items()))[1])
    if made is None or any(a.name == made.name for a in node.attribute):
        return False
    node.attribute.append(made)
    return True


def random_attribute(rng: random.Random, known: object) -> AttributeProto | None:
    kind = known.type.value
    if kind == AttributeProto.INT:
        return helper.make_attribute(known.name, rng.choice((0, 1, 2, -1, 3, hostile_int(rng))))
    if kind == AttributeProto.FLOAT:
        return helper.make_attribute(known.name, rng.choice(FLOATS))
    if kind == AttributeProto.STRING:
        choices = EQUATIONS if known.name == "equation" else PATTERNS if known.name == "pattern" else STRINGS
        return helper.make_attribute(known.name, rng.choice(choices))
    if kind == AttributeProto.INTS:
        numbers = [rng.choice((0, 1, 1, 1, 2, 3, -1, hostile_int(rng))) for _ in range(rng.choice((0, 1, 2, 2, 4, 6)))]
        return helper.make_attribute(known.name, numbers, attr_type=AttributeProto.INTS)
    if kind == AttributeProto.FLOATS:
        return helper.make_attribute(
            known.name, [rng.choice(FLOATS) for _ in range(rng.randrange(4))], attr_type=AttributeProto.FLOATS
        )
    if kind == AttributeProto.STRINGS:
        return helper.make_attribute(
            known.name, [rng.choice(STRINGS) for _ in range(rng.randrange(4))], attr_type=AttributeProto.STRINGS
        )
    if kind == AttributeProto.TENSOR:
        dims = [rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(3))]
        kinds = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL, TensorProto.FLOAT16)
        return helper.make_attribute(known.name, numpy_helper.from_array(random_array(rng, dims, rng.choice(kinds))))
    return None
