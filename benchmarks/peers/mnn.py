"""MNN, converted by its own tool; precision high, which is float32."""

from __future__ import annotations

import contextlib
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
    """Create a session for the shapes of the inputs."""
    import MNN
    import onnx

    path = converted(task, "mnn", lambda target: _convert(task, target))
    kinds = {
        "float32": MNN.Halide_Type_Float,
        "int32": MNN.Halide_Type_Int,
        "int64": MNN.Halide_Type_Int,
    }
    interpreter = MNN.Interpreter(str(path))
    session = interpreter.createSession({"backend": "CPU", "precision": "high", "numThread": task.threads})
    tensors = interpreter.getSessionInputAll(session)
    hosts = {}
    for name, value in task.inputs.items():
        if name not in tensors:
            raise NotAvailableError(f"mnnconvert renamed input {name!r} to one of {sorted(tensors)}")
        if value.dtype == np.int64:
            value = value.astype(np.int32)
        interpreter.resizeTensor(tensors[name], tuple(value.shape))
        hosts[name] = (value, kinds[value.dtype.name])
    interpreter.resizeSession(session)
    tensors = interpreter.getSessionInputAll(session)
    sources = [
        (tensors[name], MNN.Tensor(value.shape, kind, value, MNN.Tensor_DimensionType_Caffe))
        for name, (value, kind) in hosts.items()
    ]
    order = [output.name for output in onnx.load(task.path, load_external_data=False).graph.output]
    outputs = interpreter.getSessionOutputAll(session)
    with contextlib.suppress(KeyError):
        outputs = {name: outputs[name] for name in order}

    def run() -> list[np.ndarray]:
        for tensor, source in sources:
            tensor.copyFrom(source)
        interpreter.runSession(session)
        answers = []
        for tensor in outputs.values():
            shape = tensor.getShape()
            host = MNN.Tensor(shape, tensor.getDataType(), np.empty(shape, np.float32), MNN.Tensor_DimensionType_Caffe)
            tensor.copyToHostTensor(host)
            answers.append(np.array(host.getNumpyData()))
        return answers

    return run
