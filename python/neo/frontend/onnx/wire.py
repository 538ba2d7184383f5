"""The large tensors of an ONNX file, read straight into arrays.

Parsing a file with the onnx package copies every weight three times: into the file's bytes, the message and the
array. Here the file is walked in protobuf's wire format (protobuf.dev, "Encoding") first: initializers of the main
graph that are large and plain are read from the file into arrays of their own, and what remains, a small message,
goes to the onnx package. Whatever is not understood is left in that message, so that one parser judges it.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

__all__ = ["Split", "split_file"]

#: Tensors of fewer bytes stay in the message.
LARGE = 1 << 16
_WINDOW = 1 << 14
_MOST_FIELDS = 1 << 20  # of one message
_MOST_VARINT = 10  # bytes

# Field numbers of onnx.proto.
_GRAPH = 7  # of ModelProto
_INITIALIZER = 5  # of GraphProto
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA = 1, 2, 8, 9  # of TensorProto
_VARINT, _BYTES = 0, 2  # wire types
_WIDTHS = {1: 8, 5: 4}  # of the wire types of one width

# TensorProto.DataType of which raw data is the array's memory.
_DTYPES = {1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 10: "<f2", 11: "<f8"}


class Split(NamedTuple):
    """A file without its large tensors, and these by their place among the main graph's initializers."""

    message: bytes
    tensors: dict[int, np.ndarray[Any, Any]]


class _OddError(Exception):
    """The file is not laid out as writers of ONNX do it, or not at all."""


class _Field(NamedTuple):
    number: int
    kind: int
    start: int  # of the tag
    body: int  # of the value, after the length of a field of bytes
    end: int


class _Reader:
    """Parts of a file, through a window that moves on."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self._start = 0
        self._window = b""

    def bytes(self, start: int, end: int) -> bytes:
        if end - start > _WINDOW:
            self._file.seek(start)
            part = self._file.read(end - start)
            if len(part) < end - start:
                raise _OddError
            return part
        if not (self._start <= start and end <= self._start + len(self._window)):
            self._file.seek(start)
            self._start = start
            self._window = self._file.read(_WINDOW)
            if len(self._window) < end - start:
                raise _OddError
        return self._window[start - self._start : end - self._start]

    def varint(self, start: int, end: int) -> tuple[int, int]:
        """A number and where it ends."""
        stop = min(start + _MOST_VARINT, end)
        if not (self._start <= start and stop <= self._start + len(self._window)):
            self.bytes(start, stop)
        window, offset = self._window, self._start
        value = shift = 0
        for at in range(start - offset, stop - offset):
            byte = window[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at + offset + 1
            shift += 7
        raise _OddError

    def fields(self, start: int, end: int) -> Iterator[_Field]:
        varint = self.varint
        for _ in range(_MOST_FIELDS):
            if start == end:
                return
            tag, body = varint(start, end)
            kind = tag & 7
            if kind == _BYTES:
                length, body = varint(body, end)
                stop = body + length
            elif kind == _VARINT:
                _, stop = varint(body, end)
            else:
                stop = body + _WIDTHS.get(kind, end)
            if stop > end:
                raise _OddError
            yield _Field(tag >> 3, kind, start, body, stop)
            start = stop
        raise _OddError

    def array(self, start: int, dtype: str, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
        array = np.empty(dims, dtype)
        self._file.seek(start)
        if self._file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:
            raise _OddError
        return array


def split_file(file: BinaryIO) -> Split | None:
    """Separate a model's large tensors from the rest; None where none is plain or the file is laid out otherwise.

    Parameters
    ----------
    file : binary file
        A buffered or raw file on disk, at any position.
    """
    reader = _Reader(file)
    if reader.size <= LARGE:
        return None
    try:
        top = list(reader.fields(0, reader.size))
        graphs = [i for i, field in enumerate(top) if field.number == _GRAPH and field.kind == _BYTES]
        if sys.byteorder != "little" or len(graphs) != 1:
            return None
        at = graphs[0]
        graph, tensors = _split_graph(reader, top[at])
        if not tensors:
            return None
        before, after = ([reader.bytes(f.start, f.end) for f in fields] for fields in (top[:at], top[at + 1 :]))
    except _OddError:
        return None
    # The rest may be large, too: it is put together once.
    return Split(b"".join([*before, _header(_GRAPH, sum(map(len, graph))), *graph, *after]), tensors)


def _split_graph(reader: _Reader, graph: _Field) -> tuple[list[bytes], dict[int, np.ndarray[Any, Any]]]:
    """What remains of the graph, in parts, and its large tensors."""
    parts = []
    tensors = {}
    count = 0
    rest = graph.body  # where what is in no part yet begins
    for number, kind, start, body, end in reader.fields(graph.body, graph.end):
        if number == _INITIALIZER and kind == _BYTES:
            split = _split_tensor(reader, body, end) if end - body > LARGE else None
            if split is not None:
                small, tensors[count] = split
                parts += [reader.bytes(rest, start), _header(_INITIALIZER, len(small)), small]
                rest = end
            count += 1
    if tensors:
        parts.append(reader.bytes(rest, graph.end))
    return parts, tensors


def _split_tensor(reader: _Reader, start: int, end: int) -> tuple[bytes, np.ndarray[Any, Any]] | None:
    """The message without its data, and the data; None for a tensor that is not plain."""
    dims: list[int] = []
    dtype = raw = None
    parts = []
    for field in reader.fields(start, end):
        if field.number == _RAW_DATA and field.kind == _BYTES and raw is None:
            raw = field
            continue
        if field.number == _DIMS and field.kind == _VARINT:
            dims.append(reader.varint(field.body, field.end)[0])
        elif field.number == _DIMS and field.kind == _BYTES:
            at = field.body
            while at < field.end:
                size, at = reader.varint(at, field.end)
                dims.append(size)
        elif field.number == _DATA_TYPE and field.kind == _VARINT:
            dtype = _DTYPES.get(reader.varint(field.body, field.end)[0])
        elif field.number != _NAME:
            return None
        parts.append(reader.bytes(field.start, field.end))
    if raw is None or dtype is None or math.prod(dims) * np.dtype(dtype).itemsize != raw.end - raw.body:
        return None
    return b"".join(parts), reader.array(raw.body, dtype, tuple(dims))


def _header(number: int, length: int) -> bytes:
    """What stands before the bytes of a field."""
    header = bytearray([number << 3 | _BYTES])
    while length >= 0x80:
        header.append(length & 0x7F | 0x80)
        length >>= 7
    header.append(length)
    return bytes(header)
