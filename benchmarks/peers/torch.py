"""PyTorch, eager, on the networks that were exported from it."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import NotAvailableError, Run, Task


def version() -> str:
    """Return PyTorch's version."""
    import torch

    return f"torch {torch.__version__}, eager"


def load(task: Task) -> Run:
    """Build the network again with the weights it was exported with."""
    if task.network is None:
        raise NotAvailableError("no PyTorch source of this model")
    import torch

    from benchmarks.models import networks

    torch.set_num_threads(task.threads)
    module = networks.build(task.network)
    inputs = [torch.from_numpy(value) for value in task.inputs.values()]

    def run() -> list[np.ndarray]:
        with torch.inference_mode():
            answer = module(*inputs)
        return [item.numpy() for item in (answer if isinstance(answer, tuple) else (answer,))]

    return run
