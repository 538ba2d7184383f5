"""ONNX types as neo writes them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from neo.errors import ModelError
from neo.frontend.onnx.messages import DataType

if TYPE_CHECKING:
    import onnx

    from neo import _native

__all__ = [
    "check_names",
    "dims_of",
    "dtype_name",
    "element_number",
    "element_type",
    "numpy_dtype",
    "type_of_text",
    "type_proto",
    "type_text",
]

MAX_SIZE = 1 << 46
_MAX_NESTING = 8
# Names of NumPy's by element type; ml_dtypes has the others.
_NUMPY_NAMES: dict[int, str] = {
    number: {"FLOAT": "float32", "DOUBLE": "float64"}.get(number.name, number.name.lower()) for number in DataType
}
# Those of ml_dtypes that weights have: the onnx package takes longer to import than a small model to compile.
_OTHER_NAMES = {16: "bfloat16", 21: "uint4", 22: "int4"}
_NUMBERS = {name: int(number) for number, name in _NUMPY_NAMES.items()}
# Names that exporters write for a size that they do not know.
_NAMELESS = frozenset({"", "?", "*", "-1", "none", "null", "nan", "unk", "unknown", "any", "undefined"})


def check_names(*names: object) -> None:
    """Refuse names that are not UTF-8, which protobuf hands out as bytes.

    Raises
    ------
    neo.ModelError
        One of them is not text.
    """
    try:
        "".join(names)  # type: ignore[arg-type]
    except TypeError:
        pass
    else:
        return
    for name in names:
        if not isinstance(name, str):
            msg = f"[import] names must be UTF-8. Got {name!r}"
            raise ModelError(msg)


def dtype_name(elem_type: int, place: str) -> str:
    """NumPy's name of an ONNX element type.

    Raises
    ------
    neo.ModelError
        The number stands for no element type.
    """
    name = _dtype_name(elem_type)
    if name is None:
        msg = f"[import] the element type must be known. Got {elem_type} - at {place}"
        raise ModelError(msg)
    return name


@lru_cache(maxsize=256)
def _dtype_name(elem_type: int) -> str | None:
    name = _NUMPY_NAMES.get(elem_type, _OTHER_NAMES.get(elem_type))
    if name is not None:
        return name
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)
    except KeyError:
        return None


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name, those NumPy itself does not have included."""
    if name in _NUMBERS:
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def dims_of(tensor: onnx.TypeProto.Tensor, place: str) -> list[int | str | None] | None:
    """Sizes, names of symbols, None for a size nobody named; None altogether where the rank is open.

    A negative size and a name that says "unknown" are a size nobody named: they need not agree with others.
    """
    if not tensor.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for d in tensor.shape.dim:
        if d.HasField("dim_value"):
            if d.dim_value >= MAX_SIZE:
                msg = f"[import] sizes must be between 0 and 2^46. Got {d.dim_value} - at {place}"
                raise ModelError(msg)
            dims.append(d.dim_value if d.dim_value >= 0 else None)
        else:
            check_names(d.dim_param)
            dims.append(None if d.dim_param.strip().lower() in _NAMELESS else d.dim_param)
    return dims


def type_text(proto: onnx.TypeProto, place: str, depth: int = 0) -> str:
    """A type in neo's notation: ``float32[2,3]``, ``seq(float32[*])``, ``map(string,float32[])``."""
    kind = proto.WhichOneof("value")
    if depth > _MAX_NESTING:
        msg = f"[import] types may nest {_MAX_NESTING} deep. Got more - at {place}"
        raise ModelError(msg)
    if kind == "tensor_type":
        dims = dims_of(proto.tensor_type, place)
        known = dims is not None and all(isinstance(d, int) for d in dims)
        shape = ",".join(str(d) for d in dims or []) if known else "*"
        return f"{dtype_name(proto.tensor_type.elem_type, place)}[{shape}]"
    if kind == "sequence_type":
        return f"seq({type_text(proto.sequence_type.elem_type, place, depth + 1)})"
    if kind == "optional_type":
        return f"optional({type_text(proto.optional_type.elem_type, place, depth + 1)})"
    if kind == "map_type":
        return _map_text(proto.map_type, place)
    msg = f"[import] a value must be a tensor, a sequence, an optional or a map. Got {kind or 'no type'} - at {place}"
    raise ModelError(msg)


def _map_text(proto: onnx.TypeProto.Map, place: str) -> str:
    """A map in neo's notation; whatever shape is declared for its values, each is one scalar."""
    kind = proto.value_type.WhichOneof("value")
    if kind != "tensor_type":
        msg = f"[import] the values of a map must be numbers or strings. Got {kind or 'no type'} - at {place}"
        raise ModelError(msg)
    key = dtype_name(proto.key_type, place)
    return f"map({key},{dtype_name(proto.value_type.tensor_type.elem_type, place)}[])"


def type_proto(value: _native.Value) -> onnx.TypeProto:
    """The ONNX type of a value, for functions that depend on the types they are called with."""
    shape = value.shape
    return type_of_text(value.type, None if shape is None else list(shape))


def type_of_text(text: str, dims: Sequence[int | str | None] | None = None) -> onnx.TypeProto:
    """The ONNX type of neo's notation; `dims` are a tensor's sizes."""
    import onnx

    wrapper, _, rest = text.partition("(")
    proto = onnx.TypeProto()
    if wrapper in ("seq", "optional"):
        inner = proto.sequence_type.elem_type if wrapper == "seq" else proto.optional_type.elem_type
        inner.CopyFrom(type_of_text(rest[:-1]))
        return proto
    if wrapper == "map":
        key, _, element = rest[:-1].partition(",")
        proto.map_type.key_type = element_type(key)
        proto.map_type.value_type.CopyFrom(type_of_text(element, ()))
        return proto
    return onnx.helper.make_tensor_type_proto(element_type(text.partition("[")[0]), dims)


def element_type(name: str) -> int:
    """The ONNX element type of a dtype's name."""
    if name in _NUMBERS:
        return _NUMBERS[name]
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(name)))


def element_number(name: str) -> int | None:
    """The ONNX element type that ONNX calls so; None where there is none."""
    if name in DataType.__members__:
        return int(DataType[name])
    import onnx

    return dict(onnx.TensorProto.DataType.items()).get(name)
