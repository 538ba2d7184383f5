"""Shapes that a file declares for its values against those that inference proves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from neo.frontend.onnx.types import dims_of

if TYPE_CHECKING:
    import onnx

    from neo import _native

__all__ = ["StaleShape", "stale_shapes"]


class StaleShape(NamedTuple):
    """A value whose declared shape cannot be: its name, the shape that the file declares, and the proven one."""

    value: str
    declared: tuple[int | str | None, ...]
    proven: tuple[int | str, ...]

    def __str__(self) -> str:
        declared, proven = ("[" + ",".join("?" if d is None else str(d) for d in s) + "]" for s in self[1:])
        return f"{self.value!r} is declared as {declared} and has the shape {proven}"


def stale_shapes(proto: onnx.GraphProto, graph: _native.Graph) -> list[StaleShape]:
    """Outputs and intermediate values of the main graph whose declared rank or sizes differ from the proven ones."""
    proven = {v.name: v.shape for node in graph.nodes for v in node.outputs if v is not None and v.kind == "tensor"}
    inputs = {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)} if graph.inputs else set()
    found = []
    for value in (*proto.value_info, *proto.output):
        shape = proven.get(value.name)
        if shape is None or value.type.WhichOneof("value") != "tensor_type":
            continue
        declared = dims_of(value.type.tensor_type, f"value {value.name!r}")
        if declared is not None and not _agrees(declared, shape, inputs):
            found.append(StaleShape(value.name, tuple(declared), tuple(shape)))
    return found


def _agrees(declared: list[int | str | None], shape: tuple[int | str, ...], inputs: set[str]) -> bool:
    if len(declared) != len(shape):
        return False
    # A number for the very size of an input is a number for one call.
    return all(
        not isinstance(d, int) or (d == s if isinstance(s, int) else s not in inputs)
        for d, s in zip(declared, shape, strict=True)
    )
