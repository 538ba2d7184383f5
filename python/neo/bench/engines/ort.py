"""ONNX Runtime with its defaults: all graph optimisations, the CPU provider.

Its option ``providers`` lists others, each a name or a name and its options; the first one must be there.
"""

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
    providers = [
        p if isinstance(p, str) else (p[0], p[1]) for p in task.options.get("providers", ["CPUExecutionProvider"])
    ]
    session = onnxruntime.InferenceSession(str(task.path), options, providers=providers)
    first = providers[0] if isinstance(providers[0], str) else providers[0][0]
    if first not in session.get_providers():
        raise NotImplementedError(f"this ONNX Runtime has no {first}")
    return lambda feeds: feeds, lambda feeds: list(session.run(None, feeds))
