"""ONNX models, opset 7 to the newest the installed onnx package knows."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from neo.errors import UnsupportedError
from neo.frontend.onnx import (  # noqa: F401  (each registers its converters)
    activations,
    attention,
    constants,
    elementwise,
    experimental,
    index,
    microsoft,
    microsoft_attention,
    microsoft_embedding,
    microsoft_fused,
    microsoft_group_query,
    microsoft_layout,
    microsoft_nchwc,
    microsoft_weights,
    ml,
    norm,
    recurrent,
    reduce,
    resize,
    shape,
)
from neo.frontend.onnx.importer import Importer, Refusal
from neo.frontend.onnx.load import Loaded, load_model
from neo.frontend.onnx.stale import StaleShape, stale_shapes
from neo.limits import Limits

if TYPE_CHECKING:
    import onnx

    from neo import _native

__all__ = [
    "Refusal",
    "StaleShape",
    "check_model",
    "find_stale_shapes",
    "import_model",
    "load_model",
    "read_loaded",
    "read_model",
]


def import_model(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
) -> _native.Graph:
    """Read an ONNX model into neo's graph.

    Raises
    ------
    neo.UnsupportedError
        Lists every node neo cannot run.
    neo.ModelError
        The model is malformed.
    """
    return read_model(model, shapes=shapes)[0]


def read_model(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
    limits: Limits | None = None,
) -> tuple[_native.Graph, dict[str, tuple[int | str | None, ...]]]:
    """Read an ONNX model into neo's graph, and the shapes that it declares for its outputs by name.

    A declared shape is what the model promises; neo does not rely on it. Raises what `import_model` does.
    """
    return read_loaded(load_model(model, limits=limits, for_import=True), shapes=shapes, limits=limits)


def read_loaded(
    loaded: Loaded, *, shapes: Mapping[str, int | tuple[int, int]] | None = None, limits: Limits | None = None
) -> tuple[_native.Graph, dict[str, tuple[int | str | None, ...]]]:
    """Do what `read_model` does with what `load_model` gave, which may be read again."""
    importer = Importer(loaded, {} if shapes is None else shapes, limits)
    graph = importer.run()
    if importer.refusals:
        listed = "\n".join(f"  {r}" for r in importer.refusals)
        msg = f"[import] every node must be supported. Got {len(importer.refusals)} that are not:\n{listed}"
        if any("." in r.op for r in importer.refusals):
            msg += "\nHint: neo.register_op has a function of yours compute an operator."
        raise UnsupportedError(msg)
    return graph, importer.declared_outputs()


def find_stale_shapes(model: str | PathLike[str] | bytes | onnx.ModelProto) -> list[StaleShape]:
    """Values whose declared shape cannot be: neo takes the shape that inference proves.

    Raises what `import_model` does.
    """
    loaded = load_model(model)
    importer = Importer(loaded, {})
    graph = importer.run()
    return [] if importer.refusals else stale_shapes(loaded.proto.graph, graph)


def check_model(model: str | PathLike[str] | bytes | onnx.ModelProto) -> list[Refusal]:
    """Every node neo cannot run, in the model's order; empty when it can run the model."""
    importer = Importer(load_model(model, for_import=True), {})
    importer.run()
    return importer.refusals
