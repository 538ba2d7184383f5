"""neo behind the Python interface of ONNX Runtime: change one import and run.

>>> import neo.onnxruntime as ort
>>> session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])  # doctest: +SKIP
>>> (y,) = session.run(None, {session.get_inputs()[0].name: x})  # doctest: +SKIP

docs/from_onnxruntime.md says what is honoured, what is taken without effect, and what is absent.
"""

from typing import NoReturn

from neo.onnxruntime import capi
from neo.onnxruntime.binding import IOBinding
from neo.onnxruntime.environment import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from neo.onnxruntime.node_arg import ModelMetadata, NodeArg
from neo.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from neo.onnxruntime.ort_value import OrtDevice, OrtValue
from neo.onnxruntime.session import InferenceSession
from neo.version import __version__

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "capi",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def __getattr__(name: str) -> NoReturn:
    msg = f"[onnxruntime] a name must be one that neo has. Got {name!r}, which docs/from_onnxruntime.md may name as absent"
    raise AttributeError(msg, name=name)
