"""ONNX's messages, read without the onnx package.

Importing that package takes longer than compiling a small model does. A file's messages are read into objects with the
members of its classes that the importer asks for, which take them for each other. What is not laid out as writers of
ONNX do it is left to the package, so that one parser judges it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from neo import _native

if TYPE_CHECKING:
    import onnx

__all__ = ["AttributeType", "DataType", "Message", "read_proto", "to_proto", "with_inputs"]


class AttributeType(IntEnum):
    """AttributeProto.AttributeType."""

    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


class DataType(IntEnum):
    """TensorProto.DataType, those of NumPy's own elements and strings."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15


# The fields of each message that the importer reads, by onnx.proto: name, number and type. "*" marks repeated ones, "[]"
# repeated numbers that are read into an array; fields behind a "|" exclude each other. Enumerations have their greatest
# number.
_FIELDS = {
    "ModelProto": "graph 7 GraphProto, opset_import 8 OperatorSetIdProto*, functions 25 FunctionProto*",
    "OperatorSetIdProto": "domain 1 string, version 2 int64",
    "FunctionProto": "name 1 string, input 4 string*, output 5 string*, attribute 6 string*, node 7 NodeProto*, "
    "opset_import 9 OperatorSetIdProto*, domain 10 string, attribute_proto 11 AttributeProto*, overload 13 string",
    "GraphProto": "node 1 NodeProto*, name 2 string, initializer 5 TensorProto*, input 11 ValueInfoProto*, "
    "output 12 ValueInfoProto*, sparse_initializer 15 SparseTensorProto*",
    "NodeProto": "input 1 string*, output 2 string*, name 3 string, op_type 4 string, attribute 5 AttributeProto*, "
    "domain 7 string, overload 8 string",
    "AttributeProto": "name 1 string, f 2 float, i 3 int64, s 4 bytes, t 5 TensorProto, g 6 GraphProto, "
    "floats 7 float*, ints 8 int64*, strings 9 bytes*, tensors 10 TensorProto*, graphs 11 GraphProto*, "
    "tp 14 TypeProto, type_protos 15 TypeProto*, type 20 enum14, ref_attr_name 21 string, "
    "sparse_tensor 22 SparseTensorProto, sparse_tensors 23 SparseTensorProto*",
    "ValueInfoProto": "name 1 string, type 2 TypeProto",
    "TensorProto": "dims 1 int64*, data_type 2 int32, segment 3 TensorProto.Segment, float_data 4 float[], "
    "int32_data 5 int32[], string_data 6 bytes*, int64_data 7 int64[], name 8 string, raw_data 9 bytes, "
    "double_data 10 double[], uint64_data 11 uint64[], external_data 13 StringStringEntryProto*, "
    "data_location 14 enum1",
    "TensorProto.Segment": "begin 1 int64, end 2 int64",
    "StringStringEntryProto": "key 1 string, value 2 string",
    "SparseTensorProto": "values 1 TensorProto, indices 2 TensorProto, dims 3 int64*",
    "TypeProto": "tensor_type 1 TypeProto.Tensor|, sequence_type 4 TypeProto.Sequence|, map_type 5 TypeProto.Map|, "
    "opaque_type 7 TypeProto.Opaque|, sparse_tensor_type 8 TypeProto.SparseTensor|, optional_type 9 TypeProto.Optional|",
    "TypeProto.Tensor": "elem_type 1 int32, shape 2 TensorShapeProto",
    "TypeProto.Sequence": "elem_type 1 TypeProto",
    "TypeProto.Map": "key_type 1 int32, value_type 2 TypeProto",
    "TypeProto.Opaque": "domain 1 string, name 2 string",
    "TypeProto.SparseTensor": "elem_type 1 int32, shape 2 TensorShapeProto",
    "TypeProto.Optional": "elem_type 1 TypeProto",
    "TensorShapeProto": "dim 1 TensorShapeProto.Dimension*",
    "TensorShapeProto.Dimension": "dim_value 1 int64|, dim_param 2 string|",
}
_MESSAGE_KIND = 8
# Numbers of kinds in csrc/bindings/messages.cpp, and what a field that is not there is.
_KINDS: dict[str, tuple[int, Any]] = {
    "int32": (0, 0),
    "int64": (1, 0),
    "uint64": (2, 0),
    "enum": (3, 0),
    "float": (4, 0.0),
    "double": (5, 0.0),
    "string": (6, ""),
    "bytes": (7, b""),
}


class Message:
    """A message: its fields are attributes, those of the instance where they are there, else those of the class."""

    message_name: ClassVar[str] = ""
    excluding: ClassVar[tuple[str, ...]] = ()

    def HasField(self, name: str) -> bool:  # noqa: N802  (protobuf's name)
        """Whether a field is there."""
        return name in self.__dict__

    def WhichOneof(self, _group: str) -> str | None:  # noqa: N802
        """The one that is there of the fields that exclude each other."""
        return next((name for name in self.excluding if name in self.__dict__), None)


@cache
def _reader() -> tuple[_native.MessageReader, int]:
    """What reads messages, and the index of the model's class."""
    names = list(_FIELDS)
    classes = {name: type(name.rpartition(".")[2], (Message,), {"message_name": name}) for name in names}
    described = []
    for name, text in _FIELDS.items():
        fields = []
        for field in text.split(", "):
            attribute, number, kind = field.split()
            stem = kind.rstrip("*|[]")
            word = stem.rstrip("0123456789") if stem.startswith("enum") else stem
            code, absent = _KINDS.get(word, (_MESSAGE_KIND, None))
            limit = int(stem[4:]) if word == "enum" else names.index(stem) if code == _MESSAGE_KIND else 0
            is_repeated, is_array = kind.endswith(("*", "[]")), kind.endswith("[]")
            fields.append((int(number), attribute, code, is_repeated, is_array, int(kind.endswith("|")), limit))
            if is_repeated:
                absent = ()
            elif code == _MESSAGE_KIND:
                absent = classes[stem]()
            setattr(classes[name], attribute, absent)
            if kind.endswith("|"):
                classes[name].excluding = (*classes[name].excluding, attribute)
        described.append((classes[name], fields))
    return _native.make_message_reader(described), names.index("ModelProto")


def read_proto(raw: bytes) -> onnx.ModelProto | None:
    """Read a model; None where the onnx package has to.

    Parameters
    ----------
    raw : bytes
        A ModelProto in protobuf's wire format.
    """
    reader, index = _reader()
    return cast("onnx.ModelProto | None", reader.read(raw, index))


def to_proto(message: Any) -> Any:
    """The message of the onnx package that says the same; one of its own is returned as it is."""
    if not isinstance(message, Message):
        return message
    import onnx

    made: Any = onnx
    for name in message.message_name.split("."):
        made = getattr(made, name)
    proto = made()
    for name, value in vars(message).items():
        if isinstance(value, Message):
            getattr(proto, name).CopyFrom(to_proto(value))
            getattr(proto, name).SetInParent()
        elif isinstance(value, list):
            getattr(proto, name).extend([to_proto(item) for item in value])
        elif hasattr(value, "tolist"):
            getattr(proto, name).extend(value.tolist())
        else:
            setattr(proto, name, value)
    return proto


def with_inputs(node: onnx.NodeProto, inputs: Sequence[str]) -> onnx.NodeProto:
    """The same node with other inputs."""
    made = copy.copy(node)
    if isinstance(made, Message):
        made.input = list(inputs)
    else:
        del made.input[:]
        made.input.extend(inputs)
    return made
