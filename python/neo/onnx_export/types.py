"""neo's types as ONNX's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx

from neo import _native
from neo.frontend.onnx.types import element_type, type_of_text

__all__ = ["element_type", "schema_type", "type_of_text", "value_info"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def value_info(
    name: str,
    value: _native.Value,
    symbols: Mapping[str, str],
    declared: Sequence[int | str | None] | None = None,
) -> onnx.ValueInfoProto:
    """Name and type of a value; a size that is a formula is left open, or as it was declared."""
    shape = value.shape if value.kind == "tensor" else None
    if shape is None:
        dims = None if declared is None else list(declared)
    else:
        dims = []
        for i, d in enumerate(shape):
            told = declared[i] if declared is not None and len(declared) == len(shape) else None
            is_size = isinstance(d, int) or (_NAME.fullmatch(d) and d in symbols)
            dims.append(d if is_size else told)
    named = None if dims is None else [symbols.get(d, d) if isinstance(d, str) else d for d in dims]
    return onnx.ValueInfoProto(name=name, type=type_of_text(value.type, named))


def schema_type(text: str) -> str:
    """The type of neo's notation as ONNX's schemas write it: ``seq(tensor(float))``."""
    wrapper, _, rest = text.partition("(")
    if wrapper in ("seq", "optional"):
        return f"{wrapper}({schema_type(rest[:-1])})"
    if wrapper == "map":
        key, _, element = rest[:-1].partition(",")
        return f"map({_element_name(key)},{schema_type(element)})"
    return f"tensor({_element_name(text.partition('[')[0])})"


def _element_name(dtype: str) -> str:
    return str(onnx.TensorProto.DataType.Name(element_type(dtype)).lower())
