"""The opset that can say a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from neo.errors import UnsupportedError
from neo.frontend.onnx.signature import find_schema
from neo.frontend.onnx.versions import KNOWN_DOMAINS, find_version, newest_opset

__all__ = ["Use", "choose_opsets", "newest_schema"]

# The oldest opset that is written, by domain.
_OLDEST = {"": 18, "ai.onnx.ml": 3}


@dataclass(frozen=True)
class Use:
    """How one node uses its operator: attributes, and types of inputs and outputs (None: left out or not known)."""

    domain: str
    op: str
    attributes: frozenset[str]
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]


def newest_schema(domain: str, op: str) -> Any:
    """The newest schema of an operator; None where ONNX does not describe it."""
    newest = newest_opset(domain)
    return None if newest is None else find_schema(domain, op, newest)


def choose_opsets(uses: Sequence[Use], source: int) -> list[onnx.OperatorSetIdProto]:
    """The oldest opset of each domain in which every use means what neo's operator means; not below the model's own.

    Raises
    ------
    neo.UnsupportedError
        There is none; names a node for which the last has no form.
    """
    distinct = list(dict.fromkeys(uses))
    chosen = {}
    for domain in dict.fromkeys(("", *(u.domain for u in distinct))):
        if domain not in KNOWN_DOMAINS:
            chosen[domain] = 1
            continue
        own = [u for u in distinct if u.domain == domain]
        newest = newest_opset(domain) or 1
        oldest = max(_OLDEST[domain], source if domain == "" else 0)
        for opset in range(min(oldest, newest), newest + 1):
            missing = next((u for u in own if not _says(u, opset)), None)
            if missing is None:
                chosen[domain] = opset
                break
        else:
            msg = (
                f"[optimize] an opset must have all that the graph needs. Got {missing.op if missing else ''} "
                f"with {sorted(missing.attributes) if missing else ''}, which opset {newest} has not"
            )
            raise UnsupportedError(msg)
    return [onnx.helper.make_operatorsetid(domain, version) for domain, version in chosen.items()]


def _says(use: Use, opset: int) -> bool:
    schema = find_schema(use.domain, use.op, opset)
    if schema is None or schema.deprecated:
        return False
    version = find_version(use.domain, use.op)
    if use.op == "Constant":  # not an operator of neo's
        return True
    if version is not None and not version.since <= schema.since_version <= version.newest:
        return False
    if not use.attributes <= set(schema.attributes):
        return False
    return _take(schema.inputs, schema.max_input, use.inputs) and _take(schema.outputs, schema.max_output, use.outputs)


def _take(formals: Sequence[Any], most: int, types: Sequence[str | None]) -> bool:
    return len(types) <= most and all(
        text is None or text in formals[min(i, len(formals) - 1)].types for i, text in enumerate(types)
    )
