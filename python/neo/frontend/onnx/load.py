"""Reading a model: a path, bytes or a ModelProto."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from neo.errors import DTypeError, ModelError, ResourceError

__all__ = ["load_model"]


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
        return model, None
    folder: Path | None = None
    if isinstance(model, (bytes, bytearray, memoryview)):
        raw = bytes(model)
        place = "the bytes given"
    elif isinstance(model, (str, PathLike)):
        path = Path(fspath(model))
        place = str(path)
        if path.suffix in {".tflite", ".pb", ".pt", ".pth", ".h5", ".mlmodel"}:
            msg = f"[import] the model must be ONNX. Got {path.name}\nHint: convert it first; docs/formats.md says how."
            raise ModelError(msg)
        try:
            raw = path.read_bytes()
        except OSError as error:
            msg = f"[import] the model file must be readable. Got {path} ({error.strerror})"
            raise ResourceError(msg) from error
        folder = path.parent
    else:
        msg = f"[import] model must be a path, bytes or an onnx.ModelProto. Got {type(model).__name__}"
        raise DTypeError(msg)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except (DecodeError, RecursionError) as error:
        msg = f"[import] the model must be a whole ONNX file. Got {len(raw)} bytes that do not parse - at {place}"
        raise ModelError(msg) from error
    if not proto.HasField("graph") or (not proto.graph.node and not proto.graph.output):
        msg = f"[import] the model must hold a graph. Got none in {len(raw)} bytes - at {place}"
        raise ModelError(msg)
    return proto, folder
