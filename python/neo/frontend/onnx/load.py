"""Reading a model: a path, bytes or a ModelProto."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from neo.errors import DTypeError, ModelError, ResourceError

__all__ = ["load_model"]

# What other frameworks save; docs/formats.md says how to convert each.
_OTHER_FORMATS = frozenset(
    {".ckpt", ".h5", ".joblib", ".json", ".keras", ".mlmodel", ".mlpackage", ".ort", ".pdmodel", ".pkl"}
    | {".pt", ".pt2", ".pth", ".safetensors", ".tflite", ".ubj"}
)


def load_model(model: str | PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, Path | None]:
    """The model and the folder its external data lies in (None when it is not a file).

    Raises
    ------
    neo.ResourceError
        The file cannot be read.
    neo.ModelError
        It is not an ONNX model, or a truncated one.
    """
    if isinstance(model, onnx.ModelProto):
        return _checked(model, "the model given"), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parse(bytes(model), "the bytes given"), None
    if isinstance(model, (str, PathLike)):
        path = Path(fspath(model))
        if path.suffix.lower() in _OTHER_FORMATS:
            msg = f"[import] the model must be ONNX. Got {path.name}\nHint: convert it first; docs/formats.md says how."
            raise ModelError(msg)
        try:
            raw = path.read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            msg = f"[import] the model file must be readable. Got {path} ({reason})"
            raise ResourceError(msg) from error
        return _parse(raw, str(path)), path.parent
    msg = f"[import] model must be a path, bytes or an onnx.ModelProto. Got {type(model).__name__}"
    raise DTypeError(msg)


def _parse(raw: bytes, place: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except (DecodeError, RecursionError) as error:
        msg = f"[import] the model must be a whole ONNX file. Got {len(raw)} bytes that do not parse - at {place}"
        raise ModelError(msg) from error
    return _checked(proto, place)


def _checked(proto: onnx.ModelProto, place: str) -> onnx.ModelProto:
    if not proto.HasField("graph") or (not proto.graph.node and not proto.graph.output):
        msg = f"[import] the model must hold a graph. Got none - at {place}"
        raise ModelError(msg)
    if not proto.graph.output:
        msg = f"[import] the graph must have an output. Got {len(proto.graph.node)} nodes and none - at {place}"
        raise ModelError(msg)
    return proto
