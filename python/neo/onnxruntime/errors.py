"""The errors that programs for ONNX Runtime catch, made of neo's.

Each class is also a :class:`neo.Error`; the messages are neo's (docs/errors.md), the names ONNX Runtime's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from neo.errors import (
    CancelledError,
    DTypeError,
    Error,
    ModelError,
    ResourceError,
    ShapeError,
    UnsupportedError,
)

__all__ = [
    "EPFail",
    "EngineError",
    "ExecutionError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoaded",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
    "of_load",
    "of_run",
]


class Fail(Error):  # noqa: N818
    """Anything that has no class of its own; also a run that was terminated."""


class InvalidArgument(Error):  # noqa: N818
    """An input or an output of a run is not what the model declares."""


class NoSuchFile(Error):  # noqa: N818
    """The model's file does not exist."""


class NoModel(Error):  # noqa: N818
    """No model was loaded; neo's sessions always have one."""


class EngineError(Error):
    """An engine failed; neo does not raise it."""


class RuntimeException(Error):  # noqa: N818
    """A run failed inside of neo, or for want of memory."""


class InvalidProtobuf(Error):  # noqa: N818
    """The bytes are no ONNX model."""


class ModelLoaded(Error):  # noqa: N818
    """A model was loaded twice; neo does not raise it."""


class NotImplemented(Error):  # noqa: A001, N818
    """The model is valid, but neo does not run all of it."""


class InvalidGraph(Error):  # noqa: N818
    """The model's graph is malformed, or has an operator that nobody defines."""


class EPFail(Error):  # noqa: N818
    """An execution provider failed; neo does not raise it."""


class ExecutionError(Error, RuntimeError):
    """What is a plain RuntimeError in ONNX Runtime: bindings, options and values that cannot be made."""


@contextlib.contextmanager
def of_load() -> Iterator[None]:
    """A context in which neo's errors of compiling become those of creating a session."""
    try:
        yield
    except UnsupportedError as error:
        # An operator that no opset has is the model's fault; of others neo has no implementation.
        raise (InvalidGraph if "no such operator" in str(error) else NotImplemented)(str(error)) from error
    except (DTypeError, ShapeError) as error:
        raise Fail(str(error)) from error
    except ModelError as error:
        is_message = isinstance(error.__cause__, DecodeError | RecursionError)
        raise (InvalidProtobuf if is_message else InvalidGraph)(str(error)) from error
    except ResourceError as error:
        kinds: dict[type, type[Error]] = {FileNotFoundError: NoSuchFile, IsADirectoryError: InvalidProtobuf}
        raise kinds.get(type(error.__cause__), Fail)(str(error)) from error
    except _OWN:
        raise
    except Error as error:
        raise RuntimeException(str(error)) from error


@contextlib.contextmanager
def of_run() -> Iterator[None]:
    """A context in which neo's errors of a call become those of a run."""
    try:
        yield
    except CancelledError as error:
        raise Fail(str(error)) from error
    except UnsupportedError as error:
        raise NotImplemented(str(error)) from error  # noqa: F901 - the class above
    except ModelError as error:
        raise InvalidArgument(str(error)) from error
    except _OWN:
        raise
    except Error as error:
        raise RuntimeException(str(error)) from error


_OWN = (
    Fail,
    InvalidArgument,
    NoSuchFile,
    InvalidProtobuf,
    InvalidGraph,
    NotImplemented,
    RuntimeException,
    ExecutionError,
)
