"""Which ONNX operators are rewritten on import, and by what.

An operator that is not here is taken over as it is: same name, inputs and attributes (those of the newest opset are neo's
own). versions.py says from which version on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neo.frontend.onnx.call import Call, Results

__all__ = ["Converter", "find_converter", "register"]

Converter = Callable[["Call"], "Results"]

_CONVERTERS: dict[tuple[str, str], list[tuple[int, int, Converter]]] = {}
_FOREVER = 1 << 30


def register(*ops: str, since: int = 1, until: int = _FOREVER, domain: str = "") -> Callable[[Converter], Converter]:
    """Declare the converter of operators for models of opset `since` up to, not including, `until`."""

    def add(converter: Converter) -> Converter:
        for op in ops:
            _CONVERTERS.setdefault((domain, op), []).append((since, until, converter))
        return converter

    return add


def find_converter(domain: str, op: str, opset: int) -> Converter | None:
    """The converter for an operator of a model, or None where it is taken over as it is."""
    for since, until, converter in _CONVERTERS.get((domain, op), ()):
        if since <= opset < until:
            return converter
    return None
