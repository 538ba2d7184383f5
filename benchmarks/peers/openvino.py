"""OpenVINO on the CPU, tuned for latency and forced to float32."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import Run, Task


def version() -> str:
    """Return OpenVINO's version."""
    import openvino

    return f"openvino {openvino.__version__.split('-')[0]}, latency, f32, pinned"


def load(task: Task) -> Run:
    """Compile for the shapes of the inputs."""
    import openvino

    core = openvino.Core()
    model = core.read_model(str(task.path))
    model.reshape({name: openvino.PartialShape(list(value.shape)) for name, value in task.inputs.items()})
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": task.threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": True,
    }
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    count = len(model.outputs)

    def run() -> list[np.ndarray]:
        answer = request.infer(task.inputs, share_inputs=True)
        return [answer[index] for index in range(count)]

    return run
