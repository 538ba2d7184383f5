"""Reading a model: a path, bytes or a ModelProto."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeGuard

import numpy as np

from neo.errors import DTypeError, Error, ModelError, ResourceError
from neo.frontend.onnx.messages import read_proto
from neo.frontend.onnx.wire import split_file
from neo.limits import Limits

if TYPE_CHECKING:
    import onnx

__all__ = ["GENERATION", "Loaded", "load_model"]

# Operators of com.microsoft that are written out with nodes of the onnx package, around graphs that hold a whole decoder.
GENERATION = frozenset({"GreedySearch", "Sampling", "BeamSearch"})

# Files of other frameworks; docs/formats.md says how to convert each.
_OTHER_FORMATS = frozenset(
    {".caffemodel", ".ckpt", ".engine", ".gguf", ".h5", ".joblib", ".json", ".keras", ".mlmodel", ".mlpackage", ".mnn"}
    | {".ort", ".param", ".pdmodel", ".pkl", ".pt", ".pt2", ".pth", ".safetensors", ".tflite", ".ubj", ".xml"}
)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class Loaded(NamedTuple):
    """A model, the folders its external data may lie in (none when it is not a file), and large tensors.

    `proto` is the onnx package's, or what `read_proto` makes. The first folder is that of the model's path. Large tensors stand for the data of the main graph's initializers, by
    their place among them.
    """

    proto: onnx.ModelProto
    folders: tuple[Path, ...]
    tensors: Mapping[int, np.ndarray[Any, Any]]


def load_model(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    whole: bool = False,
    limits: Limits | None = None,
    for_import: bool = False,
) -> Loaded:
    """Read a model, without running or checking its nodes; a whole one keeps large tensors in the message.

    For the importer it is read without the onnx package where that can be, and has only what the importer asks for. Without limits a path that is a link may have its external data beside the file that it leads to.

    Raises
    ------
    neo.ResourceError
        The file cannot be read.
    neo.ModelError
        It is not an ONNX model, a truncated one, or a larger one than the limits allow.
    """
    most = (limits or Limits()).bytes
    if _is_proto(model):
        return Loaded(_checked(model, "the model given"), (), {})
    if isinstance(model, (bytes, bytearray, memoryview)):
        _check_size(memoryview(model).nbytes, most, "the bytes given")
        return Loaded(_parse(bytes(model), "the bytes given", for_import), (), {})
    if isinstance(model, (str, PathLike)):
        path = Path(fspath(model))
        if path.suffix.lower() == ".neo":
            msg = f"[import] the model must be ONNX. Got {path.name}, a compiled module\nHint: neo.load({str(path)!r})"
            raise ModelError(msg)
        if path.suffix.lower() in _OTHER_FORMATS:
            msg = f"[import] the model must be ONNX. Got {path.name}\nHint: convert it first; docs/formats.md says how."
            raise ModelError(msg)
        try:
            if stat.S_ISFIFO(mode := path.stat().st_mode) or stat.S_ISCHR(mode):  # may never end
                msg = f"[import] the model file must be a plain file. Got {path}"
                raise ResourceError(msg)
            with path.open("rb") as file:
                _check_size(os.fstat(file.fileno()).st_size, most, str(path))
                split = None if whole else split_file(file)
                raw = split.message if split else _read(file)
        except Error:
            raise
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            msg = f"[import] the model file must be readable. Got {path} ({reason})"
            raise ResourceError(msg) from error
        return Loaded(
            _parse(raw, str(path), for_import),
            _data_folders(path, follow=limits is None),
            split.tensors if split else {},
        )
    msg = f"[import] model must be a path, bytes or an onnx.ModelProto. Got {type(model).__name__}"
    raise DTypeError(msg)


def _is_proto(model: object) -> TypeGuard[onnx.ModelProto]:
    """Whether it is the onnx package's, which is imported by then."""
    package = sys.modules.get("onnx")
    return package is not None and isinstance(model, package.ModelProto)


def _data_folders(path: Path, *, follow: bool) -> tuple[Path, ...]:
    real = path.resolve().parent if follow else path.parent
    return (path.parent,) if real == path.parent.resolve() else (path.parent, real)


def _check_size(size: int, most: int, place: str) -> None:
    if size > most:
        msg = (
            f"[import] a model must have at most {most} bytes. Got {size} - at {place}"
            "\nHint: neo.Limits(bytes=...) sets the limit."
        )
        raise ModelError(msg)


def _read(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _parse(raw: bytes, place: str, for_import: bool) -> onnx.ModelProto:
    read = read_proto(raw) if for_import else None
    if read is not None and not any(node.op_type in GENERATION for node in read.graph.node):
        return _checked(read, place)
    del read
    import onnx
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    if raw.startswith(_LFS_POINTER):
        msg = f"[import] the model must be a whole ONNX file. Got a pointer of Git LFS - at {place}\nHint: git lfs pull"
        raise ModelError(msg)
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
