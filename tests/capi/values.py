"""The values of calls as files that a C program reads and writes.

Every number is an int64 in the machine's order, all else is padded to multiples of 8 bytes. A file is the number of
cases; a case the number of values; a value its kind, then of a tensor dtype, rank, dims, number of elements and elements
(of a string its size and bytes), of a sequence the number of items and the items, of a map two items: its keys and its
values. Kinds and dtypes are those of neo.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "pack", "unpack"]

TENSOR, SEQUENCE, NONE, MAP = 0, 1, 3, 4
STRING = 24

# In the order of neo_dtype.
DTYPES = [
    "undefined",
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int64",
    "int32",
    "int16",
    "int8",
    "int4",
    "int2",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "uint4",
    "uint2",
    "bool",
    "string",
    "complex64",
    "complex128",
]


def pack(cases: Iterable[Sequence[Any]]) -> bytes:
    """Write cases, each a list of arrays, lists, dicts (of floats: as float32) and None."""
    packed = list(cases)
    out = [_number(len(packed))]
    for values in packed:
        out.append(_number(len(values)))
        out.extend(_pack(value) for value in values)
    return b"".join(out)


def unpack(data: bytes) -> list[list[Any]]:
    """Read cases."""
    reader = _Reader(data)
    return [[reader.value() for _ in range(reader.number())] for _ in range(reader.number())]


def _number(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _pack(value: Any) -> bytes:
    if value is None:
        return _number(NONE)
    if isinstance(value, dict):
        values = np.array(list(value.values()))
        return _number(MAP, 2) + b"".join(
            _pack(part)
            for part in (np.array(list(value)), values.astype(np.float32) if values.dtype.kind == "f" else values)
        )
    if isinstance(value, list | tuple):
        return _number(SEQUENCE, len(value)) + b"".join(_pack(item) for item in value)
    array = np.asarray(value)
    strings = array.dtype.kind in "OUS"
    dtype = STRING if strings else DTYPES.index(array.dtype.name)
    head = _number(TENSOR, dtype, array.ndim, *array.shape, array.size)
    if not strings:
        return head + _padded(array.tobytes())
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.ravel().tolist()]
    return head + b"".join(_number(len(text)) + _padded(text) for text in texts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        return int(struct.unpack("=q", self._bytes(8))[0])

    def _bytes(self, count: int) -> bytes:
        start = self._position
        self._position += count + -count % 8
        return self._data[start : start + count]

    def value(self) -> Any:
        kind = self.number()
        if kind == NONE:
            return None
        if kind == SEQUENCE:
            return [self.value() for _ in range(self.number())]
        if kind == MAP:
            keys, values = (self.value() for _ in range(self.number()))
            return dict(zip(keys.tolist(), values.tolist(), strict=True))
        name = DTYPES[self.number()]
        shape = [self.number() for _ in range(self.number())]
        count = self.number()
        if name == "string":
            array = np.empty(count, dtype=object)
            array[:] = [self._bytes(self.number()).decode(errors="replace") for _ in range(count)]
            return array.reshape(shape)
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        return np.frombuffer(self._bytes(count * dtype.itemsize), dtype).reshape(shape)
