"""ONNX attributes and tensors as Python values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from neo.errors import ModelError

__all__ = ["attribute_value", "dtype_name", "tensor_array"]


def dtype_name(elem_type: int) -> str:
    """NumPy's name of an ONNX element type.

    Raises
    ------
    neo.ModelError
        The number stands for no element type.
    """
    if elem_type == onnx.TensorProto.STRING:
        return "string"
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)
    except KeyError:
        msg = f"[import] element type must be known. Got {elem_type}"
        raise ModelError(msg) from None


def tensor_array(tensor: onnx.TensorProto, folder: Path | None, place: str) -> np.ndarray[Any, Any]:
    """A tensor's elements; external data is read from beside the model and nowhere else.

    Raises
    ------
    neo.ModelError
        Sizes and data disagree, or external data lies outside the model's folder or is missing.
    """
    if any(d < 0 for d in tensor.dims):
        msg = f"[import] sizes must not be negative. Got {list(tensor.dims)} - at {place}"
        raise ModelError(msg)
    count = 1
    for d in tensor.dims:
        count *= d
    if count >= 1 << 46:
        msg = f"[import] a tensor must fit in memory. Got {list(tensor.dims)} - at {place}"
        raise ModelError(msg)
    dtype_name(tensor.data_type)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external_array(tensor, count, folder, place)
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:
        msg = f"[import] a tensor's data must match its type and sizes. Got {list(tensor.dims)} ({error}) - at {place}"
        raise ModelError(msg) from error
    return array


def _external_array(tensor: onnx.TensorProto, count: int, folder: Path | None, place: str) -> np.ndarray[Any, Any]:
    facts = {entry.key: entry.value for entry in tensor.external_data}
    location = facts.get("location", "")
    if folder is None:
        msg = f"[import] external data needs a model that is a file. Got {location!r} - at {place}\nHint: pass the model's path."
        raise ModelError(msg)
    path = (folder / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(folder.resolve()):
        msg = f"[import] external data must lie in the model's folder. Got {location!r} - at {place}"
        raise ModelError(msg)
    if not path.is_file():
        msg = f"[import] external data must exist. Got no file {location!r} - at {place}"
        raise ModelError(msg)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    packed = {onnx.TensorProto.INT4: 2, onnx.TensorProto.UINT4: 2, onnx.TensorProto.FLOAT4E2M1: 2}.get(tensor.data_type, 1)
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
    if packed == 1:
        if count == 0:
            return np.empty(tuple(tensor.dims), dtype)
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=tuple(tensor.dims))
    with path.open("rb") as file:
        file.seek(offset)
        inline = onnx.TensorProto()
        inline.data_type = tensor.data_type
        inline.dims.extend(tensor.dims)
        inline.raw_data = file.read(length)
    return numpy_helper.to_array(inline)


def attribute_value(attribute: onnx.AttributeProto, folder: Path | None, place: str) -> Any:
    """The value of an attribute that is not a graph."""
    kind = attribute.type
    if kind == onnx.AttributeProto.TENSOR:
        return tensor_array(attribute.t, folder, f"attribute {attribute.name!r} of {place}")
    if kind == onnx.AttributeProto.STRING:
        return _text(attribute.s)
    if kind == onnx.AttributeProto.STRINGS:
        return [_text(s) for s in attribute.strings]
    if kind == onnx.AttributeProto.FLOATS:
        return [float(x) for x in attribute.floats]
    if kind == onnx.AttributeProto.INTS:
        return [int(x) for x in attribute.ints]
    if kind == onnx.AttributeProto.FLOAT:
        return float(attribute.f)
    if kind == onnx.AttributeProto.INT:
        return int(attribute.i)
    if kind == onnx.AttributeProto.TENSORS:
        return [tensor_array(t, folder, place) for t in attribute.tensors]
    msg = f"[import] attribute must be a number, a string, a tensor or a graph. Got {attribute.name!r} - at {place}"
    raise ModelError(msg)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
