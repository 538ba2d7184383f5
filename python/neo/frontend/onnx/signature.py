"""Whether a node is written as its operator's version says: inputs, outputs, attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import onnx

from neo.errors import DTypeError, ModelError

__all__ = ["check_signature", "find_schema"]

# Attributes that older opsets allowed and nobody ever gave a meaning to.
_WITHOUT_MEANING = frozenset({"consumed_inputs"})


@lru_cache(maxsize=4096)
def find_schema(domain: str, op: str, opset: int) -> Any:
    """The onnx.defs.OpSchema of an operator in an opset; None where the opset has no such operator.

    Untyped, because onnx's stub of OpSchema lacks members that it has.
    """
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def check_signature(
    schema: Any, node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], place: str
) -> None:
    """Compare a node with its schema.

    Raises
    ------
    neo.ModelError
        It has too few or too many inputs or outputs, lacks an attribute, or has one the version does not know.
    neo.DTypeError
        An attribute has another type than the version says.
    """
    op = node.op_type
    for what, names, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        count = len(names)
        while count > most and not names[count - 1]:
            count -= 1
        if not least <= len(names) or count > most:
            expected = least if least == most else f"at least {least}" if most > 1 << 30 else f"{least} to {most}"
            msg = (
                f"[{op}] the number of {what} must be the operator's. "
                f"Got {len(names)}, expected {expected} - at {place}"
            )
            raise ModelError(msg)
    for name, attribute in attributes.items():
        known = schema.attributes.get(name)
        if known is None:
            if name in _WITHOUT_MEANING:
                continue
            expected = ", ".join(sorted(schema.attributes)) or "none"
            msg = (
                f"[{op}] attributes must be those of version {schema.since_version}. "
                f"Got {name!r}, expected {expected} - at {place}"
            )
            raise ModelError(msg)
        # A sparse tensor is read as the dense one.
        is_sparse = attribute.type == onnx.AttributeProto.SPARSE_TENSOR and known.type == known.type.TENSOR
        if attribute.type != known.type.value and not is_sparse:
            got = onnx.AttributeProto.AttributeType.Name(attribute.type)
            msg = f"[{op}] attribute {name!r} must have its type. Got {got}, expected {known.type.name} - at {place}"
            raise DTypeError(msg)
    for name, known in schema.attributes.items():
        if known.required and name not in attributes:
            msg = f"[{op}] attribute {name!r} is required. Got none - at {place}"
            raise ModelError(msg)
