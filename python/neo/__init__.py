"""neo compiles a trained neural network for the machine in front of it.

>>> import neo
>>> module = neo.compile("model.onnx")  # doctest: +SKIP
>>> y = module(x)  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neo.compile import compile  # noqa: A004  (the name users expect)
from neo.errors import (
    CancelledError,
    DTypeError,
    Error,
    InternalError,
    ModelError,
    OutOfMemoryError,
    ResourceError,
    ShapeError,
    UnsupportedError,
)
from neo.module import Module, Tensor
from neo.saved import load
from neo.version import __version__

if TYPE_CHECKING:
    from neo import testing

__all__ = [
    "CancelledError",
    "DTypeError",
    "Error",
    "InternalError",
    "ModelError",
    "Module",
    "OutOfMemoryError",
    "ResourceError",
    "ShapeError",
    "Tensor",
    "UnsupportedError",
    "__version__",
    "compile",
    "load",
    "testing",
]


def __getattr__(name: str) -> Any:
    """Import ``neo.testing`` when it is first used."""
    if name == "testing":
        return import_module("neo.testing")
    msg = f"module 'neo' has no attribute {name!r}"
    raise AttributeError(msg)
