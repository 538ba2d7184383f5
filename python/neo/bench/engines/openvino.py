"""OpenVINO on the CPU, tuned for latency and forced to float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return OpenVINO's version."""
    import openvino

    return f"openvino {openvino.__version__.split('-')[0]}, latency, f32, pinned"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
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

    def run(feeds: Any) -> Outputs:
        answer = request.infer(feeds, share_inputs=True)
        return [answer[index] for index in range(count)]

    return lambda feeds: feeds, run
