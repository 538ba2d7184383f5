"""MNN, converted by its own tool; precision high, which is float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return MNN's version."""
    import MNN
    from MNN import expr, nn  # noqa: F401  (so that loading does not import them)

    return f"MNN {MNN.version()}, precision high"


def convert(task: Task) -> None:
    """Write the model for MNN."""
    task.convert("mnn", lambda target: _convert(task, target))


def _convert(task: Task, target: Path) -> None:
    # The command `mnnconvert` installs packages into the environment and reports to a server; what it calls does not.
    call = "import sys, _tools; _tools.mnnconvert(sys.argv)"
    files = ["--modelFile", str(task.path), "--MNNModel", str(target)]
    command = [sys.executable, "-c", call, "-f", "ONNX", *files, "--bizCode", "neo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not target.exists():
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise NotImplementedError(f"MNN's converter failed ({done.returncode}): {lines[-1] if lines else 'no output'}")


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Load the converted module; it takes its shapes from the inputs of each call."""
    from MNN import expr, nn

    settings = {"backend": "CPU", "precision": "high", "numThread": task.threads}
    runtime = nn.create_runtime_manager((settings,))
    names, path = list(task.inputs), str(task.converted("mnn"))
    module = nn.load_module_from_file(path, names, task.outputs, runtime_manager=runtime)
    kinds = {"float32": expr.float, "int32": expr.int}

    def arrange(feeds: Feeds) -> list[Any]:
        return [feeds[name].astype(np.int32) if feeds[name].dtype == np.int64 else feeds[name] for name in names]

    def run(values: list[Any]) -> Outputs:
        placed = []
        for value in values:
            place = expr.placeholder(list(value.shape), expr.NCHW, kinds[value.dtype.name])
            place.write(value)
            placed.append(place)
        answers = module.forward(placed)
        whole = answers if isinstance(answers, list) else [answers]
        return [np.array(expr.convert(item, expr.NCHW).read()) for item in whole]

    return arrange, run
