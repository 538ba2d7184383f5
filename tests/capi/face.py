"""neo.h by ctypes: what the tests of errors call, and what a language other than C would declare."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from tests.capi.libneo import prefix
from tests.capi.values import DTYPES

__all__ = ["Buffer", "Info", "Limits", "NeoError", "Tensor", "call", "info_of", "library", "load", "tensor"]


class Tensor(Structure):
    """neo_tensor."""


Tensor._fields_ = [
    ("kind", c_int),
    ("dtype", c_int),
    ("rank", c_int),
    ("dims", POINTER(c_int64)),
    ("strides", POINTER(c_int64)),
    ("data", c_void_p),
    ("bytes", c_size_t),
    ("items", POINTER(Tensor)),
    ("item_count", c_size_t),
]


class Buffer(Structure):
    """neo_buffer."""

    _fields_ = [("dtype", c_int), ("data", c_void_p), ("bytes", c_size_t), ("written", c_size_t)]


class Info(Structure):
    """neo_info."""

    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("dtype", c_int),
        ("rank", c_int),
        ("dims", POINTER(c_int64)),
        ("symbols", POINTER(c_char_p)),
        ("hints", POINTER(c_int64)),
        ("type", c_char_p),
        ("key", c_int),
    ]


class Limits(Structure):
    """neo_limits."""

    _fields_ = (("bytes", c_uint64), ("memory", c_uint64), ("seconds", c_double))


class NeoError(Exception):
    """What a function that returned -1 left: its line, and the number of its kind."""

    def __init__(self, text: str, kind: int) -> None:
        super().__init__(text)
        self.kind = kind


@functools.cache
def library() -> ctypes.CDLL:
    """Open the installed library."""
    lib = ctypes.CDLL(str(prefix() / "lib" / "libneo.so.0"))
    for name in ("neo_last_error", "neo_version", "neo_dtype_name"):
        getattr(lib, name).restype = c_char_p
    lib.neo_dtype_bytes.restype = c_size_t
    return lib


def call(function: str, *args: Any) -> None:
    """Call a function that returns 0 or -1."""
    lib = library()
    status = getattr(lib, function)(*args)
    if status == 0:
        return
    assert status == -1
    raise NeoError(lib.neo_last_error().decode(), lib.neo_last_error_kind())


def load(source: Path | bytes, threads: int = 1, limits: Limits | None = None) -> c_void_p:
    """Load a module."""
    module = c_void_p()
    within, given = ("", ()) if limits is None else ("_within", (byref(limits),))
    if isinstance(source, bytes):
        call(f"neo_load_bytes{within}", source, c_size_t(len(source)), threads, *given, byref(module))
    else:
        call(f"neo_load{within}", str(source).encode(), threads, *given, byref(module))
    return module


def tensor(array: np.ndarray[Any, Any], strided: bool = False) -> Tensor:
    """View an array, which must outlive the view."""
    made = Tensor(dtype=DTYPES.index(array.dtype.name), rank=array.ndim, data=array.ctypes.data)
    made.dims = (c_int64 * array.ndim)(*array.shape)
    if strided:
        made.strides = (c_int64 * array.ndim)(*array.strides)
    else:
        assert array.flags.c_contiguous
        made.bytes = array.nbytes
    return made


def run(
    module: c_void_p, inputs: Sequence[Tensor], outputs: Sequence[np.ndarray[Any, Any]], token: Any = None
) -> list[int]:
    """Run into arrays; return how many bytes each output has."""
    given = (Tensor * len(inputs))(*inputs)
    buffers = (Buffer * len(outputs))(
        *(Buffer(dtype=DTYPES.index(o.dtype.name), data=o.ctypes.data, bytes=o.nbytes) for o in outputs)
    )
    call("neo_run", module, given, c_size_t(len(inputs)), buffers, c_size_t(len(outputs)), token)
    return [buffer.written for buffer in buffers]


def info_of(module: c_void_p, side: str, index: int) -> Info:
    """Describe an input or an output."""
    info = POINTER(Info)()
    call(f"neo_{side}", module, c_size_t(index), byref(info))
    return info.contents
