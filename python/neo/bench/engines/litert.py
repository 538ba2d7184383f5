"""LiteRT with XNNPACK, on models whose author published a float TFLite file beside the ONNX one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return LiteRT's version."""
    from ai_edge_litert import interpreter  # noqa: F401  (so that loading does not import it)

    return f"ai-edge-litert {importlib.metadata.version('ai-edge-litert')}, XNNPACK"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Load the TFLite file; images are fed channels last."""
    if task.tflite is None:
        raise NotImplementedError("no float TFLite file of this model")
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(task.tflite), num_threads=task.threads)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()

    def arrange(feeds: Feeds) -> list[tuple[int, Any]]:
        arranged = []
        for detail, value in zip(inputs, feeds.values(), strict=True):
            if tuple(detail["shape"]) != value.shape and value.ndim == 4:
                value = np.ascontiguousarray(value.transpose(0, 2, 3, 1))
            if tuple(detail["shape"]) != value.shape:
                raise NotImplementedError(f"the TFLite file takes {tuple(detail['shape'])}, not {value.shape}")
            arranged.append((detail["index"], value))
        return arranged

    def run(values: list[tuple[int, Any]]) -> Outputs:
        for index, value in values:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in outputs]

    return arrange, run
