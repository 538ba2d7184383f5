"""Arrays on their way into a call and out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from neo.dlpack import from_dlpack
from neo.errors import DTypeError, ModelError, ShapeError
from neo.signature import Tensor

__all__ = ["Array", "Input", "Value", "check_tensor", "numpy_dtype", "output_memory", "zeros_of"]

Array: TypeAlias = "np.ndarray[Any, Any]"


@runtime_checkable
class SupportsDLPack(Protocol):
    """What speaks DLPack, as tensors of PyTorch, JAX and CuPy do."""

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule of the array."""
        ...


# The input of a call: something that gives an array; a list for a sequence, a dict for a map, None for an empty optional.
Input: TypeAlias = "npt.ArrayLike | SupportsDLPack | Mapping[Any, Any] | Sequence[Any] | None"
# The result of a call: an array, a list for a sequence, a dict for a map, None for an empty optional.
Value: TypeAlias = Any

_NUMPY = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)))
    for bits in sizes
) | {"bool", "complex64", "complex128"}


def numpy_dtype(spec: Tensor) -> np.dtype[Any] | None:
    """NumPy's own dtype of an input; None for strings and for the dtypes of ml_dtypes."""
    return np.dtype(spec.dtype) if spec.dtype in _NUMPY else None


def zeros_of(spec: Tensor) -> Value:
    """An array of zeros, or of empty strings, of the sizes that selection assumes.

    Raises
    ------
    neo.ModelError
        The input is no tensor, or its rank is open.
    """
    if spec.shape is None or spec.hints is None:
        msg = f"[module] an input of open rank or of another kind must be given. Got none for {spec.name!r}"
        raise ModelError(msg)
    if spec.dtype == "string":
        return np.full(spec.hints, "", object)
    dtype = numpy_dtype(spec)
    if dtype is None:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, spec.dtype))
    return np.zeros(spec.hints, dtype)


def check_tensor(x: Any, spec: Tensor, expected: np.dtype[Any] | None) -> Array:
    """Make an array of the input's dtype and shape, without a copy where `x` holds one.

    Raises
    ------
    neo.DTypeError, neo.ShapeError
        It is none, or of another dtype or shape.
    """
    array = x if isinstance(x, np.ndarray) else _as_array(x, spec)
    if expected is None:
        is_text = array.dtype.kind in "OUS"
        if is_text != (spec.dtype == "string") or (not is_text and array.dtype.name != spec.dtype):
            raise _dtype_error(x, array, spec)
    elif array.dtype != expected and array.dtype.newbyteorder("=") != expected:
        if hasattr(x, "dtype") or hasattr(x, "__dlpack__"):
            raise _dtype_error(x, array, spec)
        array = _number_array(array, expected, spec)
    shape = spec.shape
    if shape is not None and not _fits(array.shape, shape):
        dims = ",".join(str(d) for d in shape)
        got = ",".join(str(d) for d in array.shape)
        msg = f"[run] shape must be the input's. Got [{got}], expected [{dims}] - at input {spec.name!r}"
        raise ShapeError(msg + (_shape_hint(x.shape, spec) if isinstance(x, np.ndarray) else ""))
    return array


def _fits(got: Sequence[int], shape: Sequence[int | str]) -> bool:
    return len(shape) == len(got) and all(not isinstance(d, int) or d == n for d, n in zip(shape, got, strict=True))


def _shape_hint(got: Sequence[int], spec: Tensor) -> str:
    """The words that help where one item is no batch, or channels stand last where they belong first, or the reverse."""
    shape, name = spec.shape or (), spec.name if spec.name.isidentifier() else "x"
    if _fits((1, *got), shape):
        return f"\nHint: {name}[None] is a batch of one"
    for axes in ((0, 3, 1, 2), (0, 2, 3, 1)):
        if len(got) == len(axes) and _fits([got[a] for a in axes], shape):
            return f"\nHint: {name}.transpose{axes}"
    return ""


def _as_array(x: Any, spec: Tensor) -> Array:
    """What gives an array: a list, a number, ``__array__``, the buffer protocol or DLPack."""
    try:
        if getattr(x, "requires_grad", False) and hasattr(x, "detach"):
            x = x.detach()
        if hasattr(x, "__dlpack__") and (
            not hasattr(x, "__array__") or str(getattr(x, "dtype", "")).startswith("torch.")
        ):
            return from_dlpack(x)
        return np.asarray(x)
    except Exception as error:
        kind = type(x).__name__
        reason = str(error).partition("\n")[0]
        msg = f"[run] an input must give an array. Got {kind} ({reason}), expected {spec} - at input {spec.name!r}"
        raise DTypeError(msg) from error


def _number_array(array: Array, expected: np.dtype[Any], spec: Tensor) -> Array:
    """Plain Python numbers take the input's dtype where it holds their values; floats are rounded."""
    if array.dtype.kind not in "biufc" or (expected.kind == "b" and array.size):
        raise _dtype_error(None, array, spec)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(expected)
    if expected.kind in "iu" and not np.array_equal(converted, array):
        msg = f"[run] values must fit the dtype. Got {array.dtype}, expected {spec.dtype} - at input {spec.name!r}"
        raise DTypeError(msg)
    if array.dtype.kind == "c" and expected.kind != "c":
        raise _dtype_error(None, array, spec)
    return converted


def _dtype_error(x: Any, array: Array, spec: Tensor) -> DTypeError:
    """The error, and the word that helps where numbers may be converted."""
    msg = f"[run] dtype must be the input's. Got {array.dtype}, expected {spec.dtype} - at input {spec.name!r}"
    is_number = array.dtype.kind in "biufV" and spec.dtype != "string" and not spec.dtype.startswith("complex")
    if isinstance(x, np.ndarray) and is_number and array.dtype.names is None:
        dtype = f'"{spec.dtype}"' if spec.dtype in _NUMPY else f"ml_dtypes.{spec.dtype}"
        msg += f"\nHint: {spec.name if spec.name.isidentifier() else 'x'}.astype({dtype})"
    elif str(getattr(x, "dtype", "")).startswith("torch.") and spec.dtype in _NUMPY:
        msg += f"\nHint: {spec.name if spec.name.isidentifier() else 'x'}.to(torch.{spec.dtype})"
    return DTypeError(msg)


class OutputMemory:
    """The caller's arrays for outputs; one that is not dense is filled when the call is done."""

    def __init__(self, arrays: list[Array | None], given: list[Any], outputs: Sequence[Tensor]) -> None:
        self._arrays = arrays
        self._given = given
        self._outputs = outputs
        self.direct = [None if x is None or not _is_dense(x) else x for x in arrays]

    def finish(self, results: list[Any]) -> list[Any]:
        """Fill what is not dense, and put what the caller gave in the place of the results."""
        for i, (to, direct) in enumerate(zip(self._arrays, self.direct, strict=True)):
            if to is None:
                continue
            if direct is None:
                _fill(to, results[i], self._outputs[i])
            results[i] = self._given[i]
        return results


def output_memory(out: Mapping[str, Any], outputs: Sequence[Tensor]) -> OutputMemory:
    """Look at the caller's memory for outputs by name.

    Raises
    ------
    neo.ModelError
        A name is no output's, or an array cannot be written to.
    neo.DTypeError, neo.ShapeError
        It is no array, or of another dtype or shape than the output has.
    """
    if not isinstance(out, Mapping):
        msg = f"[run] out must be a mapping of names to arrays. Got {type(out).__name__}, expected a dict"
        raise DTypeError(msg)
    names = [spec.name for spec in outputs]
    for name in out:
        if name not in names:
            msg = f"[run] names of out must be outputs. Got {name!r}, expected {', '.join(map(repr, names))}"
            raise ModelError(msg)
    arrays = [_writable(out[spec.name], spec) if spec.name in out else None for spec in outputs]
    return OutputMemory(arrays, [out.get(name) for name in names], outputs)


def _writable(x: Any, spec: Tensor) -> Array:
    place = f"at output {spec.name!r}"
    if isinstance(x, np.ndarray):
        array = x
    elif hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__") or isinstance(x, bytearray | memoryview):
        # An array of NumPy's own that shares the memory; torch's tensors let it be written to in this way only.
        has_view = hasattr(x, "__dlpack__") and not hasattr(x, "__array__")
        try:
            array = from_dlpack(x) if has_view else np.asarray(x)
        except (TypeError, BufferError, RuntimeError, ValueError):
            array = from_dlpack(x)
    else:
        msg = f"[run] memory for an output must be an array. Got {type(x).__name__}, expected {spec} - {place}"
        raise DTypeError(msg)
    if not array.flags.writeable:
        msg = f"[run] memory for an output must be writable. Got a read-only array - {place}"
        raise ModelError(msg)
    if array.dtype.name != spec.dtype:
        msg = f"[run] memory for an output must have its dtype. Got {array.dtype}, expected {spec.dtype} - {place}"
        raise DTypeError(msg)
    return array


def _is_dense(array: Array) -> bool:
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def _fill(to: Array, result: Any, spec: Tensor) -> None:
    if to.shape != result.shape:
        msg = (
            f"[run] memory for an output must have its shape. Got {list(to.shape)}, expected {list(result.shape)} "
            f"- at output {spec.name!r}"
        )
        raise ShapeError(msg)
    to[...] = result
