"""Arrays of other libraries as NumPy's, without a copy: DLPack with the dtypes that NumPy itself refuses.

The structs are those of dlpack.h, version 1 (https://dmlc.github.io/dlpack).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["from_dlpack"]

_CPU_DEVICES = frozenset({1, 3})  # kDLCPU, kDLCUDAHost
# ml_dtypes' names of the dtypes that numpy.from_dlpack refuses, by (type code, bits).
_OTHERS = {
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Memory:
    """The bytes that a capsule owns. A capsule that keeps its name frees its tensor when it goes itself."""

    def __init__(self, capsule: object, address: int, size: int) -> None:
        self.capsule = capsule
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}


def from_dlpack(x: Any) -> np.ndarray[Any, Any]:
    """View what speaks DLPack as an array; bfloat16 and the floats of 8 bits have ml_dtypes' dtypes.

    Raises
    ------
    BufferError, TypeError, ValueError
        The array is on another device, or of a dtype that NumPy and ml_dtypes lack.
    """
    try:
        return np.from_dlpack(x)
    except (BufferError, TypeError, RuntimeError) as refusal:
        capsule = x.__dlpack__()
        tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
        name = _OTHERS.get((tensor.dtype.code, tensor.dtype.bits))
        if name is None or tensor.dtype.lanes != 1 or tensor.device.kind not in _CPU_DEVICES:
            raise refusal
        import ml_dtypes

        return _view(capsule, tensor, np.dtype(getattr(ml_dtypes, name)))


def _view(capsule: object, tensor: _Tensor, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    if 0 in shape:
        return np.empty(shape, dtype)
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.rank))
        if min(strides, default=0) < 0:
            msg = f"strides must be positive. Got {strides}"
            raise BufferError(msg)
    else:
        strides = tuple(dtype.itemsize * int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(tensor.rank))
    size = dtype.itemsize + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = np.asarray(_Memory(capsule, tensor.data + tensor.byte_offset, size))
    return np.ndarray(shape, dtype, buffer=memory.data, strides=strides)
