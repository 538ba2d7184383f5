"""Damaged ONNX models: a seed's fields changed as their meaning suggests, then, now and then, its bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

__all__ = ["EXTERNAL_FILE", "EXTERNAL_FILE_BYTES", "damage", "damage_bytes", "hostile_int", "hostile_name"]

#: A file of this name and size lies beside every damaged model.
EXTERNAL_FILE = "weights.bin"
EXTERNAL_FILE_BYTES = 4096

_SMALL = (0, 1, 2, 3, -1, -2, 4, 5, 7, 8, 16, 31, 64, 100)
_LARGE = (255, 1000, 65536, 1 << 20, 1 << 24, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40)
_HUGE = ((1 << 46) - 1, 1 << 46, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 31), -(1 << 31) - 1, -(1 << 62))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan"), 1e-45)
_STRINGS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "cubic", "nearest", "constant", "edge", "wrap")
_STRINGS += ("reflect", "floor", "ceil", "DCR", "CRD", "LR", "RL", "TB", "none", "add", "mul", "max", "min", "tanh")
_STRINGS += ("asymmetric", "align_corners", "tf_crop_and_resize", "bidirectional", "reverse", "mean", "sum", "border")
_EQUATIONS = (
    "ij,jk->ik",
    "...ii->...i",
    "i,j,k,l,m,n,o,p->",
    "ij->ji->",
    "->",
    ",",
    "a" * 60 + "->a",
    "...,...->...",
    "ii",
)
_EQUATIONS += ("i.j->k", "ab,bc,cd,de,ef->af", "A,a->Aa", "..->", "ij,,->", "i->ii", "ab...->...ba", "\0,\xff")
_PATTERNS = (
    "(a+)+$",
    "(a|a)*b",
    "((((((((a{1000}){1000}){1000}))))))",
    "[",
    "(",
    "a{99999999}",
    "\\",
    "(?=a)",
    ".*.*.*.*x",
)
_NAMES = (
    "",
    "x",
    "é",
    "名",
    "a\nb",
    "a\0b",
    "../x",
    "x" * 300,
    "%s%n",
    "[]",
    "n,m",
    "N*M+1",
    "\u202e",
    "floordiv",
    "'\"",
)
_LOCATIONS = (
    EXTERNAL_FILE,
    EXTERNAL_FILE,
    EXTERNAL_FILE,
    "../" + EXTERNAL_FILE,
    "/etc/passwd",
    "/dev/zero",
    "..\\x",
    "",
)
_LOCATIONS += (
    ".",
    "a\0b",
    "./" + EXTERNAL_FILE,
    "sub/../" + EXTERNAL_FILE,
    "file:///etc/passwd",
    "x" * 5000,
    "/proc/self/mem",
)
_NEWEST = max(version for version in range(1, 100) if version <= onnx.defs.onnx_opset_version())


def hostile_int(rng: random.Random) -> int:
    """A number, most often one that a small model can bear."""
    kind = rng.random()
    if kind < 0.65:
        return rng.choice(_SMALL)
    return rng.choice(_LARGE) if kind < 0.85 else rng.choice(_HUGE)


def hostile_name(rng: random.Random) -> str:
    """A name, most of them odd."""
    return rng.choice(_NAMES)


def damage(rng: random.Random, model: onnx.ModelProto, others: Sequence[onnx.ModelProto]) -> list[str]:
    """Change a model in one to four places; says how. `others` are models that parts may be taken from."""
    done = []
    wanted = 1 + sum(rng.random() < 0.4 for _ in range(3))
    for _ in range(wanted * 6):
        name, change = rng.choices(_DAMAGES, _WEIGHTS)[0]
        try:
            changed = change(rng, model, others)
        except Exception:  # the damage does not fit this model, or what was done to it before
            changed = False
        if changed:
            done.append(name)
        if len(done) == wanted:
            break
    return done


def damage_bytes(rng: random.Random, raw: bytes) -> bytes:
    """Change a few bytes anywhere."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            del data[at : at + rng.randint(1, 12)]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randint(1, 12))
        elif kind == 4:
            stop = at + rng.randint(1, 60)
            data[at:at] = data[at:stop]
        elif kind == 5:
            data[at : at + 9] = b"\xff" * 9
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


# Parts of a model.


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    nodes = [node for graph in _graphs(model.graph) for node in graph.node]
    return nodes + [node for function in model.functions for node in function.node]


def _tensors(model: onnx.ModelProto) -> list[TensorProto]:
    tensors = [tensor for graph in _graphs(model.graph) for tensor in graph.initializer]
    return tensors + [a.t for node in _nodes(model) for a in node.attribute if a.type == AttributeProto.TENSOR]


def _values(graph: onnx.GraphProto) -> list[str]:
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    return names + [name for node in graph.node for name in node.output if name]


def _fresh(model: onnx.ModelProto, stem: str) -> str:
    return f"{stem}_{len(model.graph.node)}_{len(model.graph.initializer)}"


def _random_array(rng: random.Random, dims: Sequence[int], kind: int) -> np.ndarray:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    count = int(np.prod(dims))
    if kind == TensorProto.STRING:
        return np.array(
            [rng.choice(("a", "b c", "", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")) for _ in range(count)], object
        ).reshape(dims)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([min(max(hostile_int(rng), info.min), info.max) for _ in range(count)], dtype).reshape(dims)
    if dtype.kind == "b":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(dims)
    with np.errstate(all="ignore"):
        return (
            np.array([rng.choice(_FLOATS) if rng.random() < 0.3 else rng.gauss(0, 1) for _ in range(count)])
            .astype(dtype)
            .reshape(dims)
        )


def _add_constant(model: onnx.ModelProto, array: np.ndarray, rng: random.Random) -> str:
    name = _fresh(model, "constant")
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    return name


# Damages: each says whether it changed the model.

_Damage = Callable[[random.Random, onnx.ModelProto, Sequence[onnx.ModelProto]], bool]


def _input_shape(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
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


def _input_type(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
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


def _fix_input(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """An input becomes a constant of its type, often of hostile numbers."""
    index = rng.randrange(len(model.graph.input))
    value = model.graph.input[index]
    tensor = value.type.tensor_type
    dims = [d.dim_value if 0 < d.dim_value < 64 else 1 for d in tensor.shape.dim]
    if np.prod(dims) > 4096:
        return False
    array = _random_array(rng, dims, tensor.elem_type)
    model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    if rng.random() < 0.9:
        del model.graph.input[index]
    return True


def _tensor_numbers(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """Elements of a small tensor, of integers rather than of others: sizes, axes, indices, scales."""
    tensors = [t for t in _tensors(model) if 0 < int(np.prod(t.dims)) <= 64]
    ints = [t for t in tensors if t.data_type in (TensorProto.INT64, TensorProto.INT32)]
    tensor = rng.choice(ints if ints and rng.random() < 0.8 else tensors)
    array = numpy_helper.to_array(tensor).copy()
    flat = array.reshape(-1)
    for _i in range(rng.choice((1, 1, 2, flat.size))):
        at = rng.randrange(flat.size)
        flat[at] = _random_array(rng, [1], tensor.data_type)[0]
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return True


def _tensor_dims(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """Other sizes: most often with data that fits them."""
    tensor = rng.choice(_tensors(model))
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
            old = _random_array(rng, [1], tensor.data_type)
        tensor.CopyFrom(numpy_helper.from_array(np.resize(old, dims), tensor.name))
    else:
        del tensor.dims[:]
        tensor.dims.extend(dims)
    return True


def _tensor_data(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    tensor = rng.choice(_tensors(model))
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


def _external(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    tensor = rng.choice(model.graph.initializer)
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    facts = {"location": rng.choice(_LOCATIONS)}
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


def _sparse(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
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


def _attribute_value(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    a = rng.choice([a for node in _nodes(model) for a in node.attribute if a.type != AttributeProto.GRAPH])
    if a.type == AttributeProto.INT:
        a.i = hostile_int(rng)
    elif a.type == AttributeProto.FLOAT:
        a.f = rng.choice(_FLOATS)
    elif a.type == AttributeProto.STRING:
        choices = _EQUATIONS if a.name == "equation" else _PATTERNS if a.name == "pattern" else _STRINGS
        a.s = rng.choice((*choices, hostile_name(rng))).encode() if rng.random() < 0.95 else b"\xff\xfe"
    elif a.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        items = {AttributeProto.INTS: a.ints, AttributeProto.FLOATS: a.floats}.get(a.type, a.strings)
        kind = rng.randrange(5)
        made = {AttributeProto.INTS: hostile_int(rng), AttributeProto.FLOATS: rng.choice(_FLOATS)}.get(
            a.type, rng.choice(_STRINGS).encode()
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


def _attribute_shape(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    node = rng.choice(_nodes(model))
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
    schema = onnx.defs.get_schema(node.op_type, _NEWEST, node.domain)
    made = _random_attribute(rng, rng.choice(sorted(schema.attributes.items()))[1])
    if made is None or any(a.name == made.name for a in node.attribute):
        return False
    node.attribute.append(made)
    return True


def _random_attribute(rng: random.Random, known: object) -> AttributeProto | None:
    kind = known.type.value
    if kind == AttributeProto.INT:
        return helper.make_attribute(known.name, rng.choice((0, 1, 2, -1, 3, hostile_int(rng))))
    if kind == AttributeProto.FLOAT:
        return helper.make_attribute(known.name, rng.choice(_FLOATS))
    if kind == AttributeProto.STRING:
        choices = _EQUATIONS if known.name == "equation" else _PATTERNS if known.name == "pattern" else _STRINGS
        return helper.make_attribute(known.name, rng.choice(choices))
    if kind == AttributeProto.INTS:
        numbers = [rng.choice((0, 1, 1, 1, 2, 3, -1, hostile_int(rng))) for _ in range(rng.choice((0, 1, 2, 2, 4, 6)))]
        return helper.make_attribute(known.name, numbers, attr_type=AttributeProto.INTS)
    if kind == AttributeProto.FLOATS:
        return helper.make_attribute(
            known.name, [rng.choice(_FLOATS) for _ in range(rng.randrange(4))], attr_type=AttributeProto.FLOATS
        )
    if kind == AttributeProto.STRINGS:
        return helper.make_attribute(
            known.name, [rng.choice(_STRINGS) for _ in range(rng.randrange(4))], attr_type=AttributeProto.STRINGS
        )
    if kind == AttributeProto.TENSOR:
        dims = [rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(3))]
        kinds = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL, TensorProto.FLOAT16)
        return helper.make_attribute(known.name, numpy_helper.from_array(_random_array(rng, dims, rng.choice(kinds))))
    return None


def _wiring(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = rng.choice(list(_graphs(model.graph)))
    node = rng.choice(graph.node)
    values = _values(graph)
    kind = rng.randrange(9)
    if kind == 0 and node.input:
        del node.input[rng.randrange(len(node.input))]
    elif kind == 1:
        node.input.append(rng.choice(values))
    elif kind == 2 and node.output:
        node.output.append(_fresh(model, "extra"))
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


def _operator(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    node = rng.choice(_nodes(model))
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


def _new_node(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """A node of any operator behind what is there, its result an output."""
    schema = rng.choice([s for s in _schemas() if s.domain == ""])
    graph = model.graph
    values = _values(graph)
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
            names.append(_add_constant(model, _random_array(rng, dims, kind), rng))
    attributes = []
    for _name, known in sorted(schema.attributes.items()):
        if known.required or rng.random() < 0.3:
            made = _random_attribute(rng, known)
            if made is None:
                return False
            attributes.append(made)
    outputs = [
        f"{_fresh(model, 'made')}_{i}"
        for i in range(rng.randint(schema.min_output, min(schema.max_output, schema.min_output + 1)))
    ]
    node = helper.make_node(schema.name, names, outputs)
    node.attribute.extend(attributes)
    graph.node.append(node)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return True


def _opset(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    opset = rng.choice(model.opset_import)
    if rng.random() < 0.8:
        opset.version = rng.randint(6, _NEWEST)
    else:
        opset.version = rng.choice((0, -1, 1, 1 << 40, _NEWEST + 1))
    return True


def _output(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = model.graph
    kind = rng.randrange(5)
    if kind == 0:
        graph.output.add().CopyFrom(rng.choice(graph.output))
    elif kind == 1 and graph.output:
        rng.choice(graph.output).name = rng.choice(("nowhere", "", *_values(graph)))
    elif kind == 2 and len(graph.output) > 1:
        del graph.output[rng.randrange(len(graph.output))]
    elif kind == 3 and graph.output:
        dims = rng.choice(graph.output).type.tensor_type.shape.dim
        dims.add().dim_value = hostile_int(rng)
    else:
        graph.output.add(name=rng.choice(_values(graph)))
    return True


def _names(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    name = hostile_name(rng)
    kind = rng.randrange(6)
    if kind == 0:
        model.graph.name = name
    elif kind == 1:
        model.doc_string = name * 100
    elif kind == 2:
        model.metadata_props.add(key=name, value=hostile_name(rng))
    elif kind == 3:
        rng.choice(_nodes(model)).name = name
    elif kind == 4:
        rng.choice(model.graph.initializer).name = name
    else:
        old = rng.choice(_values(model.graph))
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


def _nest_in_if(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """The whole graph inside branches, one inside the other."""
    graph = model.graph
    deep = rng.choice((1, 1, 1, 2, 3, 10, 20, 30))  # protobuf itself ends at about 33
    condition = _add_constant(model, np.array(rng.random() < 0.5), rng)
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


def _nest_in_loop(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    graph = model.graph
    trips = rng.choice((0, 1, 2, 3, 5, -1, 1 << 20, 1 << 40, (1 << 63) - 1))
    count = _add_constant(model, np.array(trips, np.int64), rng)
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


def _function(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """A node becomes the call of a function; some functions call themselves or each other many times over."""
    node = rng.choice(model.graph.node)
    kind = rng.randrange(5)
    name = _fresh(model, "Function")
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


def _quantize(rng: random.Random, model: onnx.ModelProto, _: Sequence[onnx.ModelProto]) -> bool:
    """QuantizeLinear and DequantizeLinear between a value and a node that reads it."""
    node = rng.choice([n for n in model.graph.node if n.input])
    at = rng.randrange(len(node.input))
    dims = rng.choice(([], [], [1], [2], [3], [0]))
    scale = _random_array(rng, dims, TensorProto.FLOAT) if rng.random() < 0.4 else np.full(dims, 0.1, np.float32)
    zero = rng.choice((np.uint8, np.int8, np.int8, np.uint16, np.int32))
    names = [_add_constant(model, scale, rng), ""]
    names[1] = _add_constant(model, np.full(dims, 3, zero), rng)
    stem = _fresh(model, "q")
    extra = {"axis": hostile_int(rng)} if rng.random() < 0.5 else {}
    place = list(model.graph.node).index(node)
    quantize = helper.make_node("QuantizeLinear", [node.input[at], *names], [f"{stem}q"], **extra)
    dequantize = helper.make_node("DequantizeLinear", [f"{stem}q", *names], [f"{stem}d"], **extra)
    node.input[at] = f"{stem}d"
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*rest[:place], quantize, dequantize, *rest[place:]])
    return True


def _splice(rng: random.Random, model: onnx.ModelProto, others: Sequence[onnx.ModelProto]) -> bool:
    """Another model behind this one, its first input this one's last value."""
    other = onnx.ModelProto()
    other.CopyFrom(rng.choice(others))
    if other.ByteSize() > 1 << 15 or not other.graph.input:
        return False
    joined = other.graph.input[0].name
    last = rng.choice(_values(model.graph))
    prefix = _fresh(model, "s") + "_"

    def rename(name: str) -> str:
        return last if name == joined else prefix + name if name else name

    for graph in _graphs(other.graph):
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


_TABLE: list[tuple[int, str, _Damage]] = [
    (8, "input shape", _input_shape),
    (2, "input type", _input_type),
    (9, "input fixed", _fix_input),
    (10, "tensor numbers", _tensor_numbers),
    (6, "tensor dims", _tensor_dims),
    (2, "tensor data", _tensor_data),
    (1, "external data", _external),
    (2, "sparse tensor", _sparse),
    (14, "attribute value", _attribute_value),
    (4, "attribute", _attribute_shape),
    (4, "wiring", _wiring),
    (4, "operator", _operator),
    (6, "new node", _new_node),
    (2, "opset", _opset),
    (2, "output", _output),
    (2, "names", _names),
    (3, "branches", _nest_in_if),
    (2, "loop", _nest_in_loop),
    (3, "function", _function),
    (4, "quantize", _quantize),
    (6, "splice", _splice),
]
_DAMAGES = [(name, change) for _, name, change in _TABLE]
_WEIGHTS = [weight for weight, _, _ in _TABLE]
