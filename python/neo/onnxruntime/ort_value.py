"""Values that a program holds: OrtValue and the devices that it may name."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from neo.dlpack import from_dlpack
from neo.onnxruntime.errors import ExecutionError

__all__ = ["OrtDevice", "OrtValue", "array_at", "check_device", "dtype_of", "tensor_type"]

Array = np.ndarray[Any, Any]

# The names of element types that differ from NumPy's.
_NAMES = {
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
    "float4_e2m1fn": "float4e2m1",
}


def tensor_type(dtype: str) -> str:
    """ONNX Runtime's name of a tensor's type by NumPy's name of its elements: ``tensor(float)``."""
    return f"tensor({_NAMES.get(dtype, dtype)})"


def check_device(kind: str) -> None:
    """Refuse memory that is not the host's.

    Raises
    ------
    RuntimeError
        `kind` is not ``"cpu"``.
    """
    if kind.lower() != "cpu":
        msg = f"[onnxruntime] values must be in the host's memory. Got device {kind!r}, expected 'cpu'"
        raise ExecutionError(msg)


def dtype_of(element_type: Any) -> np.dtype[Any]:
    """The dtype of NumPy's type or of a number of onnx.TensorProto."""
    if isinstance(element_type, int):
        element_type = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    dtype: np.dtype[Any] = np.dtype(element_type)
    return dtype


def array_at(address: int, shape: Sequence[int], element_type: Any) -> Array:
    """View memory of the caller's."""
    dtype = dtype_of(element_type)
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(tuple(shape), dtype)
    memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, count).reshape(tuple(shape))


class OrtDevice:
    """A device by name; neo's values are on the host."""

    def __init__(self, kind: str, index: int) -> None:
        self._kind, self._index = kind, index

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Name a device."""
        del vendor_id
        check_device(ort_device_name)
        return OrtDevice(ort_device_name.lower(), device_id)

    def device_type(self) -> int:
        """The number of the kind: 0, the CPU."""
        return 0

    def device_id(self) -> int:
        """The number of the device."""
        return self._index


class OrtValue:
    """A tensor on the host, or what a model gives beside tensors: a list, a dict or None.

    Made by the class methods; those of arrays hold the array itself, and no copy of it.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Hold a NumPy array of numbers."""
        del device_id, vendor_id
        check_device(device_type)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUS":
            kind = getattr(numpy_obj, "dtype", type(numpy_obj).__name__)
            msg = f"[onnxruntime] an OrtValue must be made of a NumPy array of numbers. Got {kind}"
            raise ExecutionError(msg)
        return cls(np.ascontiguousarray(numpy_obj) if numpy_obj.ndim else numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        """Hold an array whose bytes are elements of an ONNX type of the same size."""
        dtype = dtype_of(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            msg = (
                "[onnxruntime] elements must have the size of the ONNX type. "
                f"Got {data.dtype.itemsize} bytes, expected {dtype.itemsize} for {dtype}"
            )
            raise ExecutionError(msg)
        return cls(np.ascontiguousarray(data).view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Hold a new array, whose elements are undefined."""
        del device_id, vendor_id
        check_device(device_type)
        if any(size < 0 for size in shape):
            msg = f"[onnxruntime] sizes must not be negative. Got {list(shape)}"
            raise ExecutionError(msg)
        return cls(np.empty(tuple(shape), dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Hold what speaks DLPack, without a copy where it is dense."""
        return cls(np.ascontiguousarray(from_dlpack(data)))

    def _array(self) -> Array:
        if not isinstance(self._value, np.ndarray):
            msg = f"[onnxruntime] the value must be a tensor. Got {self.data_type()}"
            raise ExecutionError(msg)
        return self._value

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array().ctypes.data)

    def device_name(self) -> str:
        """Where the elements are: ``cpu``."""
        return "cpu"

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._array().shape)

    def data_type(self) -> str:
        """The type as text, ``tensor(float)``."""
        return _type_of(self._value)

    def element_type(self) -> int:
        """The number of the element type in onnx.TensorProto."""
        dtype = self._array().dtype
        return int(onnx.TensorProto.STRING if dtype.kind in "OUS" else onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def tensor_size_in_bytes(self) -> int:
        """Bytes of all elements."""
        return int(self._array().nbytes)

    def has_value(self) -> bool:
        """Whether it is anything but an optional that is empty."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it holds a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether it holds a sparse tensor; never in neo."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it holds a sequence of tensors."""
        return isinstance(self._value, list)

    def numpy(self) -> Array:
        """The array itself."""
        return self._array()

    def value(self) -> Any:
        """The array, list, dict or None that is held."""
        return self._value

    def update_inplace(self, np_arr: Array) -> None:
        """Copy the bytes of an array of the same size into the value."""
        mine = self._array()
        if np_arr.size != mine.size:
            msg = f"[onnxruntime] an array must have the value's size. Got {np_arr.shape}, expected {mine.shape}"
            raise ExecutionError(msg)
        mine[...] = np_arr.reshape(mine.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Give the array to NumPy."""
        array = self._array()
        if copy is None:
            return array if dtype is None else np.asarray(array, dtype=dtype)
        return np.array(array, dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        """Give the array to what takes DLPack."""
        del stream, options
        return self._array().__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host."""
        return 1, 0


def _type_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return tensor_type("string" if value.dtype.kind in "OUS" else value.dtype.name)
    if isinstance(value, list):
        return f"seq({_type_of(value[0])})" if value else "seq(tensor(float))"
    if isinstance(value, dict):
        key = next(iter(value), "")
        return f"map({'string' if isinstance(key, str) else 'int64'},tensor(float))"
    return "optional"
