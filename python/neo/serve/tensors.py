"""Tensors of the Open Inference Protocol, in JSON and as bytes, to arrays and back.

https://github.com/kserve/open-inference-protocol, and its extension for binary tensor data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from neo.errors import ModelError
from neo.signature import Tensor

__all__ = ["Binary", "datatype_of", "described", "read_request", "write_response"]

_DATATYPES = {
    "bool": "BOOL",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
    "string": "BYTES",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_NAMES = {datatype: name for name, datatype in _DATATYPES.items()}

Binary = tuple[bytes, int | None]


def datatype_of(spec: Tensor) -> str:
    """The protocol's name of a dtype.

    Raises
    ------
    neo.ModelError
        It has none: sequences, maps, and numbers of less than 8 bits.
    """
    if spec.dtype not in _DATATYPES:
        msg = f"[serve] a value must be a tensor of a dtype that the protocol has. Got {spec}"
        raise ModelError(msg)
    return _DATATYPES[spec.dtype]


def described(spec: Tensor) -> dict[str, Any]:
    """Name, datatype and shape of an input or output; -1 stands for a size that is open."""
    shape = [-1] if spec.shape is None else [d if isinstance(d, int) else -1 for d in spec.shape]
    return {"name": spec.name, "datatype": datatype_of(spec), "shape": shape}


def read_request(body: bytes, header_bytes: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a request for inference.

    Parameters
    ----------
    body : bytes
    header_bytes : int or None
        How many of them are JSON; the tensors' bytes follow. None: all.

    Returns
    -------
    dict, dict
        The JSON object, and the arrays by name.

    Raises
    ------
    neo.ModelError
        The body is not such a request.
    """
    if header_bytes is not None and not 0 <= header_bytes <= len(body):
        msg = (
            f"[serve] the length of the JSON must be within the body. Got {header_bytes}, expected at most {len(body)}"
        )
        raise ModelError(msg)
    try:
        request = json.loads(body if header_bytes is None else body[:header_bytes])
    except (ValueError, RecursionError) as error:
        msg = f"[serve] the request must be JSON. Got {error}"
        raise ModelError(msg) from error
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
        msg = "[serve] the request must be an object with a list of inputs. Got another"
        raise ModelError(msg)
    rest = memoryview(body)[len(body) if header_bytes is None else header_bytes :]
    arrays = {}
    for entry in request["inputs"]:
        name, shape, dtype = _checked(entry)
        size = _parameters(entry).get("binary_data_size")
        if size is None:
            arrays[name] = _from_json(name, entry.get("data"), shape, dtype)
            continue
        if not isinstance(size, int) or not 0 <= size <= len(rest):
            msg = f"[serve] binary_data_size must be within the body. Got {size!r} of {len(rest)} bytes - at input {name!r}"
            raise ModelError(msg)
        arrays[name] = _from_bytes(name, bytes(rest[:size]), shape, dtype)
        rest = rest[size:]
    return request, arrays


def _parameters(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found = entry.get("parameters")
    return found if isinstance(found, dict) else {}


def _checked(entry: Any) -> tuple[str, tuple[int, ...], str]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        msg = "[serve] an input must be an object with a name. Got another"
        raise ModelError(msg)
    name, shape, datatype = entry["name"], entry.get("shape"), entry.get("datatype")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        msg = f"[serve] a shape must be a list of sizes. Got {shape!r} - at input {name!r}"
        raise ModelError(msg)
    if datatype not in _NAMES:
        msg = f"[serve] a datatype must be known. Got {datatype!r}, expected one of {', '.join(_NAMES)} - at input {name!r}"
        raise ModelError(msg)
    return name, tuple(shape), _NAMES[datatype]


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        own: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return own
    dtype: np.dtype[Any] = np.dtype(object if name == "string" else name)
    return dtype


def _shaped(name: str, array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if array.size != math.prod(shape):
        msg = f"[serve] data must have the shape's size. Got {array.size} elements, expected {list(shape)} - at input {name!r}"
        raise ModelError(msg)
    return array.reshape(shape)


def _from_json(name: str, data: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    try:
        array = np.array(data, object if dtype == "string" else None)
        if dtype == "string":
            return _shaped(name, array, shape)
        if array.size == 0:
            return _shaped(name, np.empty(0, _dtype(dtype)), shape)
        if array.dtype.kind not in "biuf":
            msg = f"elements of {array.dtype}"
            raise ValueError(msg)
        converted = array.astype(_dtype(dtype))
        if np.dtype(_dtype(dtype)).kind in "iu" and not np.array_equal(converted, array):
            msg = f"numbers that are not {dtype}"
            raise ValueError(msg)
    except (ValueError, TypeError, OverflowError) as error:
        msg = f"[serve] data must be a list of numbers or texts. Got {error} - at input {name!r}"
        raise ModelError(msg) from error
    return _shaped(name, converted, shape)


def _from_bytes(name: str, data: bytes, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "string":
        return _shaped(name, np.array(_texts(name, data), object), shape)
    made = _dtype(dtype)
    if len(data) != math.prod(shape) * made.itemsize:
        expected = math.prod(shape) * made.itemsize
        msg = f"[serve] bytes must be those of the shape. Got {len(data)}, expected {expected} - at input {name!r}"
        raise ModelError(msg)
    return np.frombuffer(data, made.newbyteorder("<")).reshape(shape)


def _texts(name: str, data: bytes) -> list[bytes]:
    """Texts, each behind its length in 4 bytes."""
    texts, place = [], 0
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "little")
        place += 4 + size
        if place > len(data):
            msg = f"[serve] a text must end within its bytes. Got {size} bytes - at input {name!r}"
            raise ModelError(msg)
        texts.append(data[place - size : place])
    return texts


def write_response(
    fields: Mapping[str, Any],
    outputs: Mapping[str, np.ndarray[Any, Any]],
    specs: Mapping[str, Tensor],
    binary: set[str],
) -> Binary:
    """Write a response.

    Returns
    -------
    bytes, int or None
        The body, and how many bytes of it are JSON; None: all.
    """
    entries, blobs = [], []
    for name, array in outputs.items():
        entry: dict[str, Any] = {"name": name, "datatype": datatype_of(specs[name]), "shape": list(array.shape)}
        if name in binary:
            blob = _to_bytes(array)
            entry["parameters"] = {"binary_data_size": len(blob)}
            blobs.append(blob)
        else:
            plain = array if array.dtype.kind in "biufO" else array.astype(np.float32)
            entry["data"] = plain.ravel().tolist()
        entries.append(entry)
    text = json.dumps({**fields, "outputs": entries}).encode()
    return (text + b"".join(blobs), len(text)) if blobs else (text, None)


def _to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.kind != "O":
        return np.ascontiguousarray(array).tobytes()
    texts = [str(text).encode() for text in array.ravel()]
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
