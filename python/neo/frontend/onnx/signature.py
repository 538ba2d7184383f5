"""Whether a node is written as its operator's version says: inputs, outputs, attributes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neo.errors import DTypeError, ModelError
from neo.frontend.onnx.messages import AttributeType

if TYPE_CHECKING:
    import onnx

__all__ = ["Attribute", "Form", "check_signature", "described_opset", "find_form", "find_schema", "form_of"]

# Attributes that older opsets allowed and nobody ever gave a meaning to.
_WITHOUT_MEANING = frozenset({"consumed_inputs"})
# Written by python -m tools.onnx_forms: the newest opset of each domain, and each operator's versions.
_TABLE = Path(__file__).with_name("forms.json")


class Attribute(NamedTuple):
    """The type of an attribute, and whether it must be given."""

    type: int
    is_required: bool


class Form(NamedTuple):
    """How a version of an operator is written: least and most inputs and outputs, attributes by name.

    `has_function` says that ONNX defines it by other operators, for some types at least.
    """

    since: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    has_function: bool
    attributes: Mapping[str, Attribute]


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_TABLE.read_bytes())
    return found


def described_opset(domain: str) -> int:
    """The newest opset of a domain that neo describes without the onnx package; 0 where it describes none."""
    return int(_table()["opsets"].get(domain, 0))


@lru_cache(maxsize=4096)
def find_form(domain: str, op: str, opset: int) -> Form | None:
    """How an operator is written in an opset; None where the opset has no such operator."""
    newest = described_opset(domain)
    # The onnx package may be newer, and others add operators of their own to it.
    if opset > newest and (newest or "onnx" in sys.modules):
        schema = find_schema(domain, op, opset)
        return None if schema is None else form_of(schema)
    versions = [row for row in _table()["operators"].get(f"{domain}:{op}", ()) if row[0] <= opset]
    if not versions:
        return None
    since, inputs, outputs, has_function, attributes = versions[-1]
    named = {name: Attribute(int(kind), bool(required)) for name, kind, required in attributes}
    return Form(since, tuple(inputs), tuple(outputs), bool(has_function), named)


def form_of(schema: Any) -> Form:
    """The form that an onnx.defs.OpSchema describes."""
    return Form(
        schema.since_version,
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        schema.has_function or schema.has_context_dependent_function,
        {name: Attribute(a.type.value, a.required) for name, a in sorted(schema.attributes.items())},
    )


@lru_cache(maxsize=4096)
def find_schema(domain: str, op: str, opset: int) -> Any:
    """The onnx.defs.OpSchema of an operator in an opset; None where the opset has no such operator.

    Untyped, because onnx's stub of OpSchema lacks members that it has.
    """
    import onnx

    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def check_signature(
    form: Form, node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], place: str
) -> None:
    """Compare a node with its form.

    Raises
    ------
    neo.ModelError
        It has too few or too many inputs or outputs, lacks an attribute, or has one the version does not know.
    neo.DTypeError
        An attribute has another type than the version says.
    """
    op = node.op_type
    for what, names, least, most in (
        ("inputs", node.input, *form.inputs),
        ("outputs", node.output, *form.outputs),
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
        known = form.attributes.get(name)
        if known is None:
            if name in _WITHOUT_MEANING:
                continue
            expected = ", ".join(sorted(form.attributes)) or "none"
            msg = (
                f"[{op}] attributes must be those of version {form.since}. "
                f"Got {name!r}, expected {expected} - at {place}"
            )
            raise ModelError(msg)
        # A sparse tensor is read as the dense one.
        kind: int = attribute.type
        is_sparse = kind == AttributeType.SPARSE_TENSOR and known.type == AttributeType.TENSOR
        if kind != known.type and not is_sparse:
            got, expected = AttributeType(kind).name, AttributeType(known.type).name
            msg = f"[{op}] attribute {name!r} must have its type. Got {got}, expected {expected} - at {place}"
            raise DTypeError(msg)
    for name, known in form.attributes.items():
        if known.is_required and name not in attributes:
            msg = f"[{op}] attribute {name!r} is required. Got none - at {place}"
            raise ModelError(msg)
