"""LiteRT with XNNPACK, on models whose author published a float TFLite file beside the ONNX one."""

from __future__ import annotations

import importlib.metadata

import numpy as np

from benchmarks.peers import NotAvailableError, Run, Task


def version() -> str:
    """Return LiteRT's version."""
    return f"ai-edge-litert {importlib.metadata.version('ai-edge-litert')}, XNNPACK"


def load(task: Task) -> Run:
    """Load the TFLite file; images are fed channels last."""
    if task.tflite is None:
        raise NotAvailableError("no float TFLite file of this model")
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(task.tflite), num_threads=task.threads)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    feeds = []
    for detail, value in zip(inputs, task.inputs.values(), strict=True):
        if tuple(detail["shape"]) != value.shape and value.ndim == 4:
            value = np.ascontiguousarray(value.transpose(0, 2, 3, 1))
        if tuple(detail["shape"]) != value.shape:
            raise NotAvailableError(f"the TFLite file takes {tuple(detail['shape'])}, not {value.shape}")
        feeds.append((detail["index"], value))

    def run() -> list[np.ndarray]:
        for index, value in feeds:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in outputs]

    return run
