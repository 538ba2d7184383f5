"""PyTorch on the networks that were exported from it.

Its options: ``device`` (cpu) and ``form``: "eager", "graph" (the calls of an eager run, captured once in a CUDA graph) or
"compiled" (torch.compile, with CUDA graphs where there are any). Products are in float32, without TF32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return PyTorch's version."""
    import torch

    return f"torch {torch.__version__}"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Build the network again with the weights it was exported with."""
    if task.network is None:
        raise NotImplementedError("no PyTorch source of this model")
    import torch

    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from benchmarks.models import networks

    torch.set_num_threads(task.threads)
    device, form = task.options.get("device", "cpu"), task.options.get("form", "eager")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    module = networks.build(task.network).to(device)
    if form == "compiled":
        module = torch.compile(module, mode="reduce-overhead")
    elif form == "graph":
        module = capture(module, [torch.from_numpy(value).to(device) for value in task.inputs.values()])

    def run(inputs: list[Any]) -> Outputs:
        with torch.inference_mode():
            answer = module(*(item.to(device) for item in inputs))
            return [item.cpu().numpy() for item in (answer if isinstance(answer, tuple) else (answer,))]

    return lambda feeds: [torch.from_numpy(value) for value in feeds.values()], run


def capture(module: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Return the module as the replay of one CUDA graph over inputs of its own."""
    import torch

    with torch.inference_mode():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):  # cuDNN chooses its algorithms before the capture
                module(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = module(*inputs)

    def replay(*arguments: Any) -> Any:
        for own, given in zip(inputs, arguments, strict=True):
            own.copy_(given)
        graph.replay()
        return answer

    return replay
