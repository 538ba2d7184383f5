"""Constants as tensors of an ONNX file, and the file itself."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
import onnx
from onnx import numpy_helper

from neo.onnx_export.types import element_type

__all__ = ["TensorStore"]

_ALIGNMENT = 4096
# Below this a tensor is better read with the graph.
_MIN_EXTERNAL_BYTES = 1024


class TensorStore:
    """Writes a model beside its path and renames it when it is whole; large weights go into a file of their own.

    Tensors are held until `most_inline` bytes of them are there. From then on all go into the other file.
    """

    def __init__(self, path: Path, most_inline: int) -> None:
        self._path = path
        self._data_path = path.with_name(path.name + ".data")
        self._part = path.with_name(f"{path.name}.{os.getpid()}.part")
        self._data_part = path.with_name(f"{path.name}.data.{os.getpid()}.part")
        self._most_inline = most_inline
        self._inline: list[onnx.TensorProto] = []
        self._inline_bytes = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> TensorStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        for part in (self._part, self._data_part):
            with suppress(OSError):
                part.unlink()

    def fill(
        self, tensor: onnx.TensorProto, name: str, dtype: str, array: np.ndarray[Any, Any], *, is_movable: bool = True
    ) -> None:
        """Write a constant into a tensor of the model; one that is movable belongs to its graph already."""
        if dtype == "string":
            tensor.name, tensor.data_type = name, onnx.TensorProto.STRING
            tensor.dims.extend(array.shape)
            tensor.string_data.extend(s if isinstance(s, bytes) else str(s).encode() for s in array.ravel())
            return
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        tensor.data_type = element_type(dtype)
        if not is_movable or len(tensor.raw_data) < _MIN_EXTERNAL_BYTES:
            return
        if self._file is not None:
            self._move_out(tensor)
            return
        self._inline.append(tensor)
        self._inline_bytes += len(tensor.raw_data)
        if self._inline_bytes > self._most_inline:
            self._file = self._data_part.open("wb")
            for held in self._inline:
                self._move_out(held)
            self._inline.clear()

    def _move_out(self, tensor: onnx.TensorProto) -> None:
        assert self._file is not None
        self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT))
        offset, length = self._file.tell(), len(tensor.raw_data)
        self._file.write(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self._data_path.name), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))

    def finish(self, proto: onnx.ModelProto) -> int:
        """Write the model; how many bytes it takes."""
        raw = proto.SerializeToString()
        size = len(raw)
        with self._part.open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            size += self._file.tell()
            self._file.close()
            self._data_part.replace(self._data_path)
        self._part.replace(self._path)
        return size
