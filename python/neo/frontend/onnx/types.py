"""ONNX types as neo writes them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import onnx

from neo.errors import ModelError
from neo.frontend.onnx.attributes import dtype_name

if TYPE_CHECKING:
    from neo import _native

__all__ = ["add_input", "type_proto"]


def add_input(
    graph: _native.Graph,
    name: str,
    proto: onnx.TypeProto,
    sizes: Mapping[str, int | tuple[int, int]],
) -> _native.Value:
    """Add an input of a model; `sizes` fixes symbols or gives their range."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        dims = _dims(proto.tensor_type, name)
        if dims is not None:
            dims = [_sized(d, sizes) for d in dims]
        return graph.add_input(name, dtype_name(proto.tensor_type.elem_type), dims)
    return graph.add_input(name, _text(proto, name))


def _sized(dim: int | str | None, sizes: Mapping[str, int | tuple[int, int]]) -> int | str | None:
    if isinstance(dim, str) and dim in sizes:
        size = sizes[dim]
        return size if isinstance(size, int) else f"{dim} in [{size[0]},{size[1]}]"
    return dim


def _dims(tensor: onnx.TypeProto.Tensor, name: str) -> list[int | str | None] | None:
    if not tensor.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for d in tensor.shape.dim:
        if d.HasField("dim_value"):
            if not 0 <= d.dim_value < 1 << 46:
                msg = f"[import] sizes must be between 0 and 2^46. Got {d.dim_value} - at {name!r}"
                raise ModelError(msg)
            dims.append(d.dim_value)
        else:
            dims.append(d.dim_param if d.HasField("dim_param") and d.dim_param else None)
    return dims


def _text(proto: onnx.TypeProto, name: str) -> str:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        dims = _dims(proto.tensor_type, name)
        known = dims is not None and all(isinstance(d, int) for d in dims)
        shape = ",".join(str(d) for d in dims or []) if known else "*"
        return f"{dtype_name(proto.tensor_type.elem_type)}[{shape}]"
    if kind == "sequence_type":
        return f"seq({_text(proto.sequence_type.elem_type, name)})"
    if kind == "optional_type":
        return f"optional({_text(proto.optional_type.elem_type, name)})"
    msg = f"[import] a value must be a tensor, a sequence or an optional. Got {kind or 'no type'} - at {name!r}"
    raise ModelError(msg)


def type_proto(value: _native.Value) -> onnx.TypeProto:
    """The ONNX type of a tensor value, for functions that depend on the types they are called with."""
    if value.kind != "tensor":
        return onnx.TypeProto()
    elem = (
        onnx.TensorProto.STRING
        if value.dtype == "string"
        else onnx.helper.np_dtype_to_tensor_dtype(_numpy_dtype(value.dtype))
    )
    return onnx.helper.make_tensor_type_proto(elem, None if value.shape is None else list(value.shape))


def _numpy_dtype(name: str):  # type: ignore[no-untyped-def]
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)
