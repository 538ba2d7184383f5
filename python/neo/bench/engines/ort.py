"""ONNX Runtime with its defaults: all graph optimisations, the CPU provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return onnxruntime's version."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}, defaults"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Create a session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = task.threads
    session = onnxruntime.InferenceSession(str(task.path), options, providers=["CPUExecutionProvider"])
    return lambda feeds: feeds, lambda feeds: list(session.run(None, feeds))
