"""Pads of zeros as attributes of the convolutions that read them: a Pad between two layers would run on floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["fold_pads"]

_RESTS = ("NOTSET", "VALID")


def fold_pads(graph: onnx.GraphProto) -> None:
    """Let each Conv that reads a Pad of zeros read what the Pad reads; a Pad that nobody reads any more goes."""
    constants = {t.name: t for t in graph.initializer}
    pads: dict[str, tuple[str, list[int]]] = {}
    for node in graph.node:
        sides = _zeros_around(node, constants) if node.op_type == "Pad" else None
        if sides is not None:
            pads[node.output[0]] = node.input[0], sides
    for node in graph.node:
        if node.op_type != "Conv" or node.domain or node.input[0] not in pads:
            continue
        source, sides = pads[node.input[0]]
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if given.get("auto_pad", b"NOTSET").decode() not in _RESTS:
            continue
        spatial = len(sides) - 4
        own = list(given.get("pads", [0] * spatial)) if given.get("auto_pad", b"NOTSET") == b"NOTSET" else [0] * spatial
        half = len(sides) // 2
        added = [*sides[2:half], *sides[half + 2 :]]
        kept = [a for a in node.attribute if a.name not in ("pads", "auto_pad")]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute("pads", [a + b for a, b in zip(own, added, strict=True)])])
        node.input[0] = source
    used = {name for node in graph.node for name in node.input} | {v.name for v in graph.output}
    unread = [node for node in graph.node if node.output and node.output[0] in pads and node.output[0] not in used]
    for node in unread:
        graph.node.remove(node)


def _zeros_around(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> list[int] | None:
    """The sizes that a Pad adds before and behind each axis; None where it adds no zeros, or to images or channels."""
    mode = next((a.s for a in node.attribute if a.name == "mode"), b"constant")
    if mode != b"constant" or len(node.input) > 3 or node.input[1] not in constants:
        return None
    sides: list[Any] = numpy_helper.to_array(constants[node.input[1]]).tolist()
    value = node.input[2] if len(node.input) > 2 else ""
    if value and (value not in constants or np.any(numpy_helper.to_array(constants[value]))):
        return None
    half = len(sides) // 2
    is_spatial = half > 2 and not any((*sides[:2], *sides[half : half + 2]))
    return sides if is_spatial and min(sides) >= 0 else None
