"""neo compiles a trained neural network for the machine in front of it.

>>> import neo
>>> module = neo.compile("model.onnx")  # doctest: +SKIP
>>> y = module(x)  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import neo.tune  # noqa: F401  (its name is taken back below)
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
    TimeLimitError,
    UnsupportedError,
)
from neo.quantize import quantize
from neo.version import __version__

if TYPE_CHECKING:
    from neo import testing
    from neo.accuracy import check_accuracy
    from neo.devices import load_devices
    from neo.limits import Limits
    from neo.module import Module, Tensor
    from neo.onnx_export import optimize
    from neo.operators import register_op
    from neo.saved import load
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

# Imported when they are first used: each name's module, or the module itself.
_LATER = {
    "Limits": "neo.limits",
    "Module": "neo.module",
    "Tensor": "neo.module",
    "accuracy": "",
    "check_accuracy": "neo.accuracy",
    "load": "neo.saved",
    "load_devices": "neo.devices",
    "optimize": "neo.onnx_export",
    "pareto": "neo.tradeoffs",
    "register_op": "neo.operators",
    "testing": "",
    "tune": "neo.tune.sweep",
}
# The import of `neo.tune` above has set the package as the attribute `tune`; without it __getattr__ gives the function.
globals().pop("tune", None)


def __dir__() -> list[str]:
    """What there is, imported by now or not."""
    return sorted({*globals(), *__all__, *_LATER})


def __getattr__(name: str) -> Any:
    """Import what not everyone needs when it is first used."""
    where = _LATER.get(name)
    if where is None:
        msg = f"module 'neo' has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(import_module(where), name) if where else import_module(f"neo.{name}")
    globals()[name] = found
    return found
