"""A model is read without the onnx package as that package reads it, or is left to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx import load
from neo.frontend.onnx.attributes import tensor_array
from neo.frontend.onnx.load import load_model
from neo.frontend.onnx.messages import Message, read_proto, to_proto, with_inputs
from neo.frontend.onnx.signature import described_opset, find_form, find_schema, form_of
from onnx import helper, numpy_helper

from tests.frontend.models import model_of, value_info

TEXT = """
<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
main (float[N, 4] x, seq(float[2]) s, bool c) => (float[N, 4] y, z, first)
<float[4] w = {1, 2, 3, 4}, int64[2] axes = {-1, 9007199254740993}> {
  first = SequenceAt (s, index)
  index = Constant <value_int: int = -3> ()
  h = own.twice <factor: float = 2.5> (x)
  y = Add (h, w)
  z = If (c) <
    then_branch = yes () => (t) { t = Clip (x, , w) },
    else_branch = no () => (e) <int32[2] inner = {5, -6}> { e = Identity (x) }
  >
}
<domain: "own", opset_import: ["" : 18]>
twice <factor> (a) => (b) { f = Constant <value_float: float = @factor> ()  b = Mul (a, f) }
"""
NUMBERS = {
    "float32": [1.5, -2.0, 3.25],
    "float64": [1.5, -2.0, 1e300],
    "float16": [1.5, -2.0, 3.25],
    "int8": [-128, 127, 0],
    "uint8": [255, 0, 1],
    "int16": [-32768, 32767, 0],
    "uint16": [65535, 0, 1],
    "int32": [-(2**31), 2**31 - 1, 0],
    "uint32": [2**32 - 1, 0, 1],
    "int64": [-(2**63), 2**63 - 1, 0],
    "uint64": [2**64 - 1, 0, 1],
    "bool": [True, False, True],
    "complex64": [1 + 2j, 3j, 0],
}


def assert_same(mine: Any, theirs: Any) -> None:
    """Every field that is read is that of the package's message, whether it is there or not."""
    if not isinstance(mine, Message):
        assert mine == theirs
        return
    names = [name for name in dir(type(mine)) if not name.startswith("_") and hasattr(type(theirs), name)]
    for name in set(names) - {"HasField", "WhichOneof"}:
        one, other = getattr(mine, name), getattr(theirs, name)
        if isinstance(one, list | tuple | np.ndarray):
            assert len(one) == len(other)
            for a, b in zip(one, other, strict=True):
                assert_same(a, b)
        else:
            assert mine.HasField(name) == theirs.HasField(name)
            if mine.HasField(name) or not isinstance(one, Message):
                assert_same(one, other)


def everything() -> onnx.ModelProto:
    """Messages of every kind that the importer reads."""
    model = onnx.parser.parse_model(TEXT)
    graph = model.graph
    for name, values in NUMBERS.items():
        array = np.array(values, name)
        graph.initializer.append(numpy_helper.from_array(array, f"raw_{name}"))
        graph.initializer.append(
            helper.make_tensor(f"typed_{name}", helper.np_dtype_to_tensor_dtype(array.dtype), [3], values)
        )
    graph.initializer.append(helper.make_tensor("text", onnx.TensorProto.STRING, [2], ["a", "ü"]))
    graph.initializer.append(helper.make_tensor("scalar", onnx.TensorProto.FLOAT, [], [7.0]))
    graph.initializer.append(helper.make_tensor("empty", onnx.TensorProto.FLOAT, [0, 3], []))
    graph.initializer.append(onnx.TensorProto(name="none", data_type=1, dims=[0, 3]))
    for dtype in (onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.INT4):
        graph.initializer.append(helper.make_tensor(f"odd_{dtype}", dtype, [4], [1, 2, 3, 4]))
    values, indices = numpy_helper.from_array(np.float32([5]), "sparse"), numpy_helper.from_array(np.int64([2]))
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    kinds = onnx.TypeProto()
    kinds.optional_type.elem_type.map_type.key_type = onnx.TensorProto.INT64
    kinds.optional_type.elem_type.map_type.value_type.tensor_type.elem_type = 1
    graph.input.append(onnx.ValueInfoProto(name="kinds", type=kinds))
    graph.node.append(
        helper.make_node("Any", ["x"], ["unread"], "named", domain="own", ints=[1, -2], floats=[0.5], strings=["s"])
    )
    graph.node[-1].attribute.append(onnx.AttributeProto(name="tp", type=onnx.AttributeProto.TYPE_PROTO, tp=kinds))
    graph.doc_string, model.producer_name = "read by nobody", "test"
    return model


def test_messages_are_those_of_the_package() -> None:
    model = everything()
    assert_same(read_proto(model.SerializeToString()), model)


def test_a_message_turns_into_the_package_s() -> None:
    model = everything()
    node = read_proto(model.SerializeToString()).graph.node[-1]
    assert to_proto(node) == model.graph.node[-1]
    assert to_proto(model.graph) is model.graph
    for one in (node, model.graph.node[-1]):
        assert list(with_inputs(one, ["", "b"]).input) == ["", "b"]
        assert list(one.input) == ["x"]


def test_tensors_are_those_of_the_package() -> None:
    model = everything()
    read = read_proto(model.SerializeToString())
    for mine, theirs in zip(read.graph.initializer, model.graph.initializer, strict=True):
        expected = numpy_helper.to_array(theirs)
        for tensor in (mine, theirs):
            found = tensor_array(tensor, (), "here")
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes() or found.dtype == object
            np.testing.assert_array_equal(found.astype(object), expected.astype(object))


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("dims", [(0,), (1,), (3, 5), (16, 16)])
def test_codes_of_four_bits_are_those_of_the_package(kind: str, dims: tuple[int, ...], tmp_path: Path) -> None:
    count = int(np.prod(dims))
    raw = np.random.default_rng(2).integers(0, 256, -(-count // 2), dtype=np.uint8).tobytes()
    tensor = onnx.TensorProto(name="codes", data_type=onnx.TensorProto.DataType.Value(kind), dims=dims, raw_data=raw)
    expected = numpy_helper.to_array(tensor)
    (tmp_path / "codes.bin").write_bytes(b"before" + raw)
    outside = onnx.TensorProto(data_type=tensor.data_type, dims=dims, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "codes.bin"), ("offset", "6"), ("length", str(len(raw)))):
        outside.external_data.add(key=key, value=value)
    for found in (tensor_array(tensor, (), "here"), tensor_array(outside, (tmp_path,), "here")):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    if not raw:
        return
    tensor.raw_data = raw[:-1]
    with pytest.raises(neo.ModelError, match="data must match"):
        tensor_array(tensor, (), "here")


def field(number: int, kind: int, body: bytes) -> bytes:
    """A field of a number below 16; bytes with their length."""
    length = bytearray()
    size = len(body)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | kind]) + (bytes([*length, size]) if kind == 2 else b"") + body


@pytest.mark.parametrize(
    "raw",
    [
        field(7, 2, b"") * 2,  # two graphs are merged
        field(7, 0, b"\1"),  # a graph that is a number
        field(7, 2, field(2, 2, b"\xff")),  # a name that is not UTF-8
        field(7, 2, field(1, 2, field(5, 2, b"\xa0\1\x1f"))),  # an attribute of a type that is none
        field(7, 2, b"")[:-1] + b"\5",  # beyond the end
        field(7, 3, b""),  # a group
        b"\xff" * 11,  # a number without an end
        b"\0\0",  # field 0
        b"\x80",
    ],
)
def test_what_is_odd_is_left_to_the_package(raw: bytes) -> None:
    assert read_proto(raw) is None


def test_every_damaged_file_is_read_alike(tmp_path: Path) -> None:
    raw = bytearray(everything().SerializeToString())
    random = np.random.default_rng(7)
    read = 0
    for _ in range(3000):
        damaged = bytearray(raw[: random.integers(1, len(raw))] if random.random() < 0.1 else raw)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(len(damaged))] = random.integers(256)
        mine = read_proto(bytes(damaged))
        if mine is None:
            continue
        theirs = onnx.ModelProto()
        theirs.ParseFromString(bytes(damaged))  # whatever is read here is a message there
        assert_same(mine, theirs)
        read += 1
    assert read > 100


def test_numbers_that_lie_one_by_one_are_read() -> None:
    unpacked = field(1, 0, b"\2") + field(1, 0, b"\3") + field(7, 0, b"\4") + field(7, 0, b"\5")
    tensor = read_proto(field(7, 2, field(5, 2, unpacked))).graph.initializer[0]
    assert list(tensor.dims) == [2, 3]
    assert list(tensor.int64_data) == [4, 5]


def nested(graphs: int) -> bytes:
    """A model whose graph holds another one in a node's attribute, and so on; three messages for each."""
    raw = b""
    for _ in range(graphs):
        for number in (6, 5, 1):
            raw = field(number, 2, raw)
    return field(7, 2, raw)


def test_depth_has_an_end() -> None:
    assert read_proto(nested(30)) is not None
    for graphs in (40, 10000):
        assert read_proto(nested(graphs)) is None


COMPILE = """
import sys, neo
module = neo.compile({path!r})
print([name for name in ("onnx", "google.protobuf", "ml_dtypes", "neo.requirements", "neo.tune.database", "sqlite3")
       if name in sys.modules])
"""


def test_a_file_is_compiled_without_the_package(tmp_path: Path) -> None:
    x = np.zeros((1, 3, 8, 8), np.float32)
    w = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["h"], ["y"])]
    model = model_of(nodes, [value_info("x", x)], ["y"], initializers=[numpy_helper.from_array(w, "w")])
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE.format(path=str(path))], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    np.testing.assert_array_equal(neo.compile(path)(x), neo.compile(model)(x))


def test_a_search_is_read_by_the_package(tmp_path: Path) -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (y) { y = Relu (x) }')
    raw = model.SerializeToString()
    assert isinstance(load_model(raw, for_import=True).proto, Message)
    assert isinstance(load_model(raw).proto, onnx.ModelProto)
    model.graph.node[0].op_type = sorted(load.GENERATION)[0]
    assert isinstance(load_model(model.SerializeToString(), for_import=True).proto, onnx.ModelProto)


def test_forms_are_those_of_the_package() -> None:
    newest = {"": onnx.defs.onnx_opset_version()}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain:
            newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    for domain, own in newest.items():
        assert described_opset(domain) > 0
        names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain}
        for name in names:
            for opset in range(1, min(own, described_opset(domain)) + 1):
                schema = find_schema(domain, name, opset)
                assert find_form(domain, name, opset) == (None if schema is None else form_of(schema)), (name, opset)


def test_an_operator_that_others_describe_has_a_form() -> None:
    assert find_form("", "Nothing", 18) is None
    assert find_form("nobody", "Relu", 1) is None
    schema = find_schema("", "Relu", described_opset(""))
    assert find_form("", "Relu", described_opset("") + 1) == form_of(schema)
