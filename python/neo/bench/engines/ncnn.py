"""ncnn, converted by pnnx; 16-bit storage and arithmetic off."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return ncnn's version."""
    import ncnn

    return f"ncnn {ncnn.__version__}, pnnx, float32"


def convert(task: Task) -> None:
    """Write the weights for ncnn, and the graph beside them."""
    task.convert("ncnn", lambda target: _convert(task, target))


def _convert(task: Task, target: Path) -> None:
    from pnnx import EXEC_PATH

    kinds = {"float32": "f32", "int32": "i32", "int64": "i64"}
    shapes = [f"[{','.join(map(str, value.shape))}]{kinds[value.dtype.name]}" for value in task.inputs.values()]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(task.path, Path(folder) / "model.onnx")
        command = [str(EXEC_PATH), "model.onnx", f"inputshape={','.join(shapes)}", "fp16=0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        weights, graph = Path(folder) / "model.ncnn.bin", Path(folder) / "model.ncnn.param"
        if done.returncode or not weights.exists():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise NotImplementedError(f"pnnx failed ({done.returncode}): {lines[-1] if lines else 'no output'}")
        shutil.move(graph, _graph_of(target))
        shutil.move(weights, target)


def _graph_of(weights: Path) -> Path:
    return weights.with_name(weights.name.replace(".partial", "") + ".param")


def _fold_batch(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array without its batch axis, which ncnn's blobs lack."""
    if array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    if array.ndim > 4:
        raise NotImplementedError(f"ncnn has no blobs of {array.ndim} axes")
    return np.ascontiguousarray(array)


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Load the converted network; its blobs are named in0, in1, ... and out0, out1, ..."""
    import ncnn

    weights = task.converted("ncnn")
    graph = _graph_of(weights)
    net = ncnn.Net()
    options = net.opt
    options.num_threads = task.threads
    options.use_vulkan_compute = False
    for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage", "use_bf16_packed"):
        if hasattr(options, name):
            setattr(options, name, False)
    if net.load_param(str(graph)) or net.load_model(str(weights)):
        raise NotImplementedError("ncnn could not load what pnnx wrote")
    blobs = set(re.findall(r"\bout\d+\b", graph.read_text()))
    count = len(blobs)
    names = list(task.inputs)

    def arrange(feeds: Feeds) -> list[tuple[str, Any]]:
        return [(f"in{index}", _fold_batch(feeds[name])) for index, name in enumerate(names)]

    def run(inputs: list[tuple[str, Any]]) -> Outputs:
        extractor = net.create_extractor()
        for name, value in inputs:
            extractor.input(name, ncnn.Mat(value))
        answers = []
        for index in range(count):
            code, blob = extractor.extract(f"out{index}")
            if code:
                raise RuntimeError(f"ncnn returned {code} for out{index}")
            answers.append(np.array(blob))
        return answers

    return arrange, run
