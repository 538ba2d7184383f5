"""PyTorch, eager, on the networks that were exported from it."""

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

    return f"torch {torch.__version__}, eager"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Build the network again with the weights it was exported with."""
    if task.network is None:
        raise NotImplementedError("no PyTorch source of this model")
    import torch

    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from benchmarks.models import networks

    torch.set_num_threads(task.threads)
    module = networks.build(task.network)

    def run(inputs: list[Any]) -> Outputs:
        with torch.inference_mode():
            answer = module(*inputs)
        return [item.numpy() for item in (answer if isinstance(answer, tuple) else (answer,))]

    return lambda feeds: [torch.from_numpy(value) for value in feeds.values()], run
