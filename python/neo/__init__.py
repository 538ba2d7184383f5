"""neo compiles a trained neural network for the machine in front of it.

>>> import neo
>>> module = neo.compile("model.onnx")  # doctest: +SKIP
>>> y = module(x)  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neo.compile import compile  # noqa: A004  (the name users expect)
from neo.devices import load_devices
from neo.errors import (
    CancelledError,
    DTypeError,
    Error,
    InternalError,
    ModelError,
    OutOfMemoryError,
    ResourceError,
    ShapeError,
    TimeLimitError,
    UnsupportedError,
)
from neo.limits import Limits
from neo.module import Module, Tensor
from neo.operators import register_op
from neo.quantize import quantize
from neo.saved import load
from neo.version import __version__

if TYPE_CHECKING:
    from neo import testing
    from neo.accuracy import check_accuracy
    from neo.onnx_export import optimize
    from neo.tradeoffs import pareto
    from neo.tune.sweep import tune

__all__ = [
    "CancelledError",
    "DTypeError",
    "Error",
    "InternalError",
    "Limits",
    "ModelError",
    "Module",
    "OutOfMemoryError",
    "ResourceError",
    "ShapeError",
    "Tensor",
    "TimeLimitError",
    "UnsupportedError",
    "__version__",
    "check_accuracy",
    "compile",
    "load",
    "load_devices",
    "optimize",
    "pareto",
    "quantize",
    "register_op",
    "testing",
    "tune",
]


# Not the package of that name, which is imported by now and so takes the name no more.
globals().pop("tune", None)


def __dir__() -> list[str]:
    """What there is, imported by now or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import what not everyone needs when it is first used."""
    if name in ("testing", "accuracy"):
        return import_module(f"neo.{name}")
    if name == "check_accuracy":
        return import_module("neo.accuracy").check_accuracy
    if name == "tune":
        return import_module("neo.tune.sweep").tune
    if name == "pareto":
        return import_module("neo.tradeoffs").pareto
    if name == "optimize":
        return import_module("neo.onnx_export").optimize
    msg = f"module 'neo' has no attribute {name!r}"
    raise AttributeError(msg)
