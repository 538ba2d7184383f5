"""A model, through the passes, to an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from neo import _native
from neo.errors import DTypeError, ResourceError, UnsupportedError
from neo.frontend.onnx.importer import Importer
from neo.frontend.onnx.load import load_model
from neo.onnx_export.graph import ModelWriter
from neo.onnx_export.sizes import UnknownSizeError
from neo.onnx_export.tensors import TensorStore
from neo.version import __version__

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Written", "optimize"]

# ONNX cannot say what these passes make, or says it in more nodes: clamps inside products, sums in steps, attention and normalizations in parts,
# operators on codes as operators on floats between conversions. A Pad that one of its two readers takes over is left to
# the other, and ONNX Runtime 1.31 folds a Pad of zeros into a MaxPool as if they were minus infinity.
_LEFT_OUT = frozenset(
    {
        "widen_halves",
        "check_sequence_lengths",
        "fold_clamps",
        "split_reductions",
        "binarize_sum",
        "expand_attention",
        "expand_deform_conv",
        "merge_covered_axes",
        "thin_single_taps",
        "split_volumes",
        "expand_double_convs",
        "expand_einsum",
        "expand_losses",
        "expand_normalizations",
        "normalize_quantization",
        "fold_pads",
    }
)

# Bytes of a message of protobuf, less those that the graph itself may take.
_MAX_INLINE_BYTES = (1 << 31) - (1 << 26)


@dataclass(frozen=True)
class Written:
    """What was written: nodes of the model and of the file, those of bodies included, opsets by domain, bytes."""

    nodes_before: int
    nodes: int
    opsets: Mapping[str, int]
    size: int


def optimize(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    path: str | PathLike[str],
    *,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
) -> Written:
    """Write a model as neo's passes leave it, for ONNX Runtime or anything else that reads ONNX.

    The file has the model's inputs and outputs and gives the same answers, up to the rounding that a folded batch norm
    changes. Its operators are ONNX's own, and those of com.microsoft that the model has.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    path : path
        Where to write. Weights of more than 2 GB go into a file of the same name with ``.data`` beside it.
    shapes : mapping of str to int or (int, int), optional
        Symbols of the model to a size that is written in their place, or to a range.

    Returns
    -------
    Written

    Raises
    ------
    neo.UnsupportedError
        The model has nodes neo cannot run, all of which are listed; or no opset has all that the graph needs.
    neo.ModelError
        The model is malformed.
    neo.ResourceError
        The file cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        msg = f"[optimize] path must be a path. Got {type(path).__name__}, expected a str or a PathLike"
        raise DTypeError(msg)
    target = Path(os.fspath(path))
    if target.exists() and not target.is_file():
        msg = f"[optimize] path must be a regular file or a new one. Got another kind - at {str(target)!r}"
        raise ResourceError(msg)
    loaded = load_model(model)
    importer = Importer(loaded, {} if shapes is None else shapes)
    graph = importer.run()
    if importer.refusals:
        listed = "\n".join(f"  {r}" for r in importer.refusals)
        msg = f"[optimize] every node must be supported. Got {len(importer.refusals)} that are not:\n{listed}"
        raise UnsupportedError(msg)
    opset = max((o.version for o in loaded.proto.opset_import if o.domain in ("", "ai.onnx")), default=1)
    symbols, declared = importer.symbol_names(), importer.declared_outputs()

    def write(left_out: frozenset[str]) -> tuple[onnx.ModelProto, int]:
        passes = [p for p in _native.pass_names() if p not in left_out]
        optimized = _native.run_passes(graph, passes, keep_codes=True)
        with TensorStore(target, _MAX_INLINE_BYTES) as tensors:
            proto = ModelWriter(optimized, tensors, symbols, declared, opset).write()
            proto.producer_name, proto.producer_version = "neo", __version__
            proto.model_version, proto.doc_string = loaded.proto.model_version, loaded.proto.doc_string
            proto.metadata_props.extend(loaded.proto.metadata_props)
            return proto, tensors.finish(proto)

    try:
        try:
            proto, size = write(_LEFT_OUT)
        except UnknownSizeError:
            proto, size = write(_LEFT_OUT | {"fold_shapes"})
    except OSError as error:
        msg = f"[optimize] the file must be written. Got {error.strerror or error} - at {str(target)!r}"
        raise ResourceError(msg) from error
    opsets = {o.domain or "ai.onnx": o.version for o in proto.opset_import}
    return Written(_count(loaded.proto.graph), _count(proto.graph), opsets, size)


def _count(graph: onnx.GraphProto) -> int:
    """Nodes that compute: a Constant is none, in whichever way a model holds its constants."""
    bodies = [a.g for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    return len(nodes) + sum(map(_count, bodies))
