"""neo compiles a trained neural network for the machine in front of it.

>>> import neo
>>> module = neo.compile("model.onnx")  # doctest: +SKIP
>>> y = module(x)  # doctest: +SKIP
"""

from neo import testing
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

__version__ = "0.1.0"

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
    "testing",
]
