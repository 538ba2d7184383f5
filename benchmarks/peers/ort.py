"""ONNX Runtime with its defaults: all graph optimisations, the CPU provider."""

from __future__ import annotations

from benchmarks.peers import Run, Task


def version() -> str:
    """Return onnxruntime's version."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}, defaults"


def load(task: Task) -> Run:
    """Create a session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = task.threads
    session = onnxruntime.InferenceSession(str(task.path), options, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, task.inputs))
