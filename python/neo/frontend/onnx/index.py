"""Indexing of older opsets."""

from __future__ import annotations

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("OneHot", since=9, until=11)
def _one_hot(call: Call) -> Results:
    """Version 9 has no negative indices: they select nothing, as an index of `depth` does now."""
    indices, depth = call.need(0), call.need(1)
    if indices.dtype.startswith("uint"):
        return call.finish("OneHot", call.inputs, call.attrs)
    beyond = call.add("CastLike", [call.add("Reshape", [depth, call.array([])]), indices])
    negative = call.add("Less", [indices, call.array(0, indices.dtype)])
    chosen = call.add("Where", [negative, beyond, indices])
    return call.finish("OneHot", [chosen, depth, call.need(2)], call.attrs)
