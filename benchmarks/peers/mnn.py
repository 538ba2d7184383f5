"""MNN, converted by its own tool; precision high, which is float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.peers import NotAvailableError, Run, Task, converted


def version() -> str:
    """Return MNN's version."""
    import MNN

    return f"MNN {MNN.version()}, precision high"


def _convert(task: Task, target: Path) -> None:
    tool = Path(sys.executable).with_name("mnnconvert")
    command = [str(tool), "-f", "ONNX", "--modelFile", str(task.path), "--MNNModel", str(target), "--bizCode", "neo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not target.exists():
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise NotAvailableError(f"mnnconvert failed ({done.returncode}): {lines[-1] if lines else 'no output'}")


def load(task: Task) -> Run:
    """Load the converted module; it takes its shapes from the inputs of each call."""
    import onnx
    from MNN import expr, nn

    path = converted(task, "mnn", lambda target: _convert(task, target))
    outputs = [output.name for output in onnx.load(task.path, load_external_data=False).graph.output]
    settings = {"backend": "CPU", "precision": "high", "numThread": task.threads}
    runtime = nn.create_runtime_manager((settings,))
    module = nn.load_module_from_file(str(path), list(task.inputs), outputs, runtime_manager=runtime)
    kinds = {"float32": expr.float, "int32": expr.int, "int64": expr.int}
    values = [value.astype(np.int32) if value.dtype == np.int64 else value for value in task.inputs.values()]

    def run() -> list[np.ndarray]:
        feeds = []
        for value in values:
            feed = expr.placeholder(list(value.shape), expr.NCHW, kinds[value.dtype.name])
            feed.write(value)
            feeds.append(feed)
        answers = module.forward(feeds)
        whole = answers if isinstance(answers, list) else [answers]
        return [np.array(expr.convert(item, expr.NCHW).read()) for item in whole]

    return run
