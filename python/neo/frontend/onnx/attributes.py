"""ONNX attributes and tensors as Python values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neo.errors import ModelError
from neo.frontend.onnx.messages import AttributeType, to_proto
from neo.frontend.onnx.types import check_names, dtype_name, numpy_dtype, type_text

if TYPE_CHECKING:
    import onnx

__all__ = ["MAX_ELEMENTS", "attribute_value", "dense_array", "tensor_array"]

MAX_ELEMENTS = 1 << 46

_EXTERNAL = 1  # TensorProto.EXTERNAL
# How many elements of a dtype share a byte.
_PACKED = {"int4": 2, "uint4": 2, "float4_e2m1fn": 2, "int2": 4, "uint2": 4}
# The field of a TensorProto that has elements which are not raw bytes, by dtype; other dtypes are left to the onnx package.
_STORED_IN = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    **dict.fromkeys(("uint32", "uint64"), "uint64_data"),
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "int32", "float16"), "int32_data"),
}

_NIBBLES = ("int4", "uint4")
_STORED_AS = {"float_data": "f4", "double_data": "f8", "int32_data": "i4", "int64_data": "i8", "uint64_data": "u8"}


def tensor_array(tensor: onnx.TensorProto, folders: Sequence[Path], place: str) -> np.ndarray[Any, Any]:
    """A tensor's elements; external data is read from beside the model and nowhere else.

    Raises
    ------
    neo.ModelError
        Sizes and data disagree, or external data lies outside the model's folder or is missing.
    """
    count = _element_count(tensor.dims, place)
    dtype = dtype_name(tensor.data_type, place)
    if tensor.HasField("segment"):
        msg = f"[import] a tensor must be whole. Got a segment - at {place}"
        raise ModelError(msg)
    if tensor.data_location == _EXTERNAL:
        return _external_array(tensor, dtype, count, folders, place)
    plain = _plain_array(tensor, dtype, count)
    if plain is not None:
        return plain
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(to_proto(tensor))
    except Exception as error:
        msg = (
            "[import] a tensor's data must match its type and sizes. "
            f"Got sizes {list(tensor.dims)}: {error} - at {place}"
        )
        raise ModelError(msg) from error


def _plain_array(tensor: onnx.TensorProto, name: str, count: int) -> np.ndarray[Any, Any] | None:
    """The elements where they are plain numbers and as many as the sizes say; None where the onnx package has to look."""
    if name in _NIBBLES and tensor.HasField("raw_data"):
        return _nibbles(tensor.raw_data, name, count, tensor.dims)
    field = _STORED_IN.get(name)
    if field is None or sys.byteorder != "little":
        return None
    dtype = np.dtype(name)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        return np.frombuffer(raw, dtype).reshape(tensor.dims) if len(raw) == count * dtype.itemsize else None
    stored = np.asarray(getattr(tensor, field), _STORED_AS[field])
    if len(stored) != count or (name == "bool" and not np.isin(stored, (0, 1)).all()):
        return None
    elements = stored.astype(np.uint16).view(dtype) if name == "float16" else stored.astype(dtype, copy=False)
    return elements.reshape(tensor.dims)


def _nibbles(raw: bytes, name: str, count: int, dims: Sequence[int]) -> np.ndarray[Any, Any] | None:
    """Codes of 4 bits, two of which share a byte, the first in its low half; None where they are not as many."""
    if len(raw) != -(-count // 2):
        return None
    packed = np.frombuffer(raw, np.uint8)
    codes = np.empty((len(raw), 2), np.uint8)
    np.bitwise_and(packed, 15, out=codes[:, 0])
    np.right_shift(packed, 4, out=codes[:, 1])
    return codes.reshape(-1)[:count].view(numpy_dtype(name)).reshape(tuple(dims))


def _element_count(dims: Any, place: str) -> int:
    count = 1
    for d in dims:
        if d < 0:
            msg = f"[import] sizes must not be negative. Got {list(dims)} - at {place}"
            raise ModelError(msg)
        count *= max(d, 1)  # also where another size is 0: strides are products of the others
    if count >= MAX_ELEMENTS:
        msg = f"[import] a tensor must have fewer than 2^46 elements. Got sizes {list(dims)} - at {place}"
        raise ModelError(msg)
    return 0 if 0 in dims else count


def _external_array(
    tensor: onnx.TensorProto, name: str, count: int, folders: Sequence[Path], place: str
) -> np.ndarray[Any, Any]:
    for entry in tensor.external_data:
        check_names(entry.key, entry.value)
    facts = {entry.key: entry.value for entry in tensor.external_data}
    location = facts.get("location", "")
    if not folders:
        msg = (
            f"[import] a model with external data must be a file. Got {location!r} - at {place}\n"
            "Hint: pass the model's path."
        )
        raise ModelError(msg)
    if name == "string":
        msg = f"[import] strings must be in the model itself. Got external data - at {place}"
        raise ModelError(msg)
    try:
        path = _find_data(location, folders) if location and not Path(location).is_absolute() else None
        exists = path is not None and path.is_file()
    except (OSError, ValueError):  # names no file system has
        path, exists = None, False
    if path is None:
        msg = f"[import] external data must lie in the model's folder. Got {location!r} - at {place}"
        raise ModelError(msg)
    if not exists:
        msg = f"[import] external data must exist. Got no file {location!r} - at {place}"
        raise ModelError(msg)
    dtype = numpy_dtype(name)
    packed = _PACKED.get(name, 1)
    wanted = -(-count // packed) * dtype.itemsize
    try:
        offset = int(facts.get("offset", 0) or 0)
        length = int(facts.get("length", wanted) or wanted)
    except ValueError:
        msg = f"[import] offset and length of external data must be integers. Got {facts} - at {place}"
        raise ModelError(msg) from None
    size = path.stat().st_size
    if offset < 0 or length != wanted or offset + length > size:
        msg = (
            f"[import] external data must lie inside its file. Got offset {offset}, length {length} of {size} bytes, "
            f"expected {wanted} bytes - at {place}"
        )
        raise ModelError(msg)
    if count == 0:
        return np.empty(tuple(tensor.dims), dtype)
    if packed == 1:
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=tuple(tensor.dims))
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(length)
    unpacked = _nibbles(raw, name, count, tensor.dims) if name in _NIBBLES else None
    if unpacked is not None:
        return unpacked
    import onnx

    inline = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    return onnx.numpy_helper.to_array(inline)


def _find_data(location: str, folders: Sequence[Path]) -> Path | None:
    """The real file of a location, which must lie in one of the folders; None where it does not."""
    found = [(folder / location).resolve() for folder in folders]
    real = [folder.resolve() for folder in folders]
    # A name beside the model's path is looked up first; where there is none, beside the model's real file.
    path = next((p for p in found if p.exists()), found[0])
    return path if any(path.is_relative_to(folder) for folder in real) else None


def dense_array(sparse: onnx.SparseTensorProto, folders: Sequence[Path], place: str) -> np.ndarray[Any, Any]:
    """A sparse tensor's elements, the zeros included.

    Raises
    ------
    neo.ModelError
        Indices lie outside the tensor or do not fit its values.
    """
    values = tensor_array(sparse.values, folders, place)
    indices = tensor_array(sparse.indices, folders, place)
    count = _element_count(sparse.dims, place)
    if count > 1 << 32:
        msg = f"[import] a sparse tensor must have at most 2^32 elements. Got sizes {list(sparse.dims)} - at {place}"
        raise ModelError(msg)
    dims = tuple(sparse.dims)
    fits = values.ndim == 1 and indices.dtype.kind == "i"
    indices = indices.astype(np.int64) if fits else indices
    if fits and indices.ndim == 2 and indices.shape == (values.size, len(dims)):
        fits = bool(((indices >= 0) & (indices < np.asarray(dims, np.int64))).all())
        flat = np.ravel_multi_index(tuple(indices.T), dims) if fits and values.size else np.zeros(0, np.int64)
    else:
        fits = fits and indices.shape == values.shape and bool(((indices >= 0) & (indices < count)).all())
        flat = indices
    if not fits:
        msg = f"[import] indices must lie inside the tensor. Got sizes {list(dims)} - at {place}"
        raise ModelError(msg)
    dense = np.zeros(count, values.dtype)
    dense[flat] = values
    return dense.reshape(dims)


def attribute_value(attribute: onnx.AttributeProto, folders: Sequence[Path], place: str) -> Any:
    """The value of an attribute that is not a graph."""
    kind: int = attribute.type
    where = f"attribute {attribute.name!r} of {place}"
    if kind == AttributeType.TENSOR:
        return tensor_array(attribute.t, folders, where)
    if kind == AttributeType.SPARSE_TENSOR:
        return dense_array(attribute.sparse_tensor, folders, where)
    if kind == AttributeType.STRING:
        return _text(attribute.s)
    if kind == AttributeType.STRINGS:
        return [_text(s) for s in attribute.strings]
    if kind == AttributeType.FLOATS:
        return [float(x) for x in attribute.floats]
    if kind == AttributeType.INTS:
        return [int(x) for x in attribute.ints]
    if kind == AttributeType.FLOAT:
        return float(attribute.f)
    if kind == AttributeType.INT:
        return int(attribute.i)
    if kind == AttributeType.TYPE_PROTO:
        return type_text(attribute.tp, where)
    msg = (
        "[import] an attribute must be a number, a string, a tensor, a type or a graph. "
        f"Got {attribute.name!r} - at {place}"
    )
    raise ModelError(msg)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
