"""The training iterations of Graphi's Table 1 (section 7.1): weights in, loss and gradients out, as plain ONNX.

Random weights and inputs, seeded; a linear layer and a softmax cross entropy over the classes end each network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from benchmarks.models.branches import googlenet, lstm_stack, pathnet, split_steps
from benchmarks.models.gradients import Iteration

__all__ = ["TRAINING", "Training", "make_googlenet", "make_lstm", "make_pathnet", "make_phased_lstm"]

#: A model and what it is fed.
Made = tuple[onnx.ModelProto, dict[str, np.ndarray]]

_LAYERS = 4  # of the recurrent networks


@dataclass(frozen=True)
class Training:
    """A training iteration of the table."""

    name: str
    make: Callable[[], Made]


def _classified(b: Iteration, x: str, features: int, classes: int, batch: int) -> Made:
    scores = b.add("Gemm", x, b.weight(features, classes), b.weight(classes))
    loss = b.add("SoftmaxCrossEntropyLoss", scores, b.labels("labels", batch, classes))
    return b.iteration(loss), b.feeds


def make_lstm(steps: int, width: int, batch: int, layers: int = _LAYERS, dtype: type = np.float32) -> Made:
    """Return an iteration of unrolled LSTM layers of ``width`` units."""
    b = Iteration(11, dtype)
    last = lstm_stack(b, b.normal("x", steps, batch, width), layers, steps, width)
    return _classified(b, last, width, 10, batch)


def make_phased_lstm(steps: int, width: int, batch: int, layers: int = _LAYERS, dtype: type = np.float32) -> Made:
    """Return an iteration of phased LSTM layers (Neil et al., 2016), whose periods and shifts are trained too."""
    open_share, leak = 0.05, 1e-3
    b = Iteration(12, dtype)
    x = b.normal("x", steps, batch, width)
    rng = np.random.default_rng(13)
    times = split_steps(b, b.input("times", np.cumsum(rng.uniform(0.5, 1.5, (steps, batch, 1)), axis=0)), steps)
    periods = [b.trained(np.exp(rng.uniform(0, 3, width))) for _ in range(layers)]
    shifts = [b.trained(rng.uniform(0, 10, width)) for _ in range(layers)]
    gates: dict[tuple[int, int], tuple[str, str]] = {}

    def opening(layer: int, t: int) -> tuple[str, str]:
        """The time gate k (batch, width), and 1 - k: it opens and closes in a share of each period, and leaks else."""
        if (layer, t) not in gates:
            turns = b.add("Div", b.add("Sub", times[t], shifts[layer]), periods[layer])
            phase = b.add("Sub", turns, b.add("Floor", turns))
            rising = b.add("Mul", phase, b.constant(2 / open_share))
            falling = b.add("Sub", b.constant(2), rising)
            closed = b.add("Mul", phase, b.constant(leak))
            opened = b.add("Where", b.add("Less", phase, b.constant(open_share)), falling, closed)
            k = b.add("Where", b.add("Less", phase, b.constant(open_share / 2)), rising, opened)
            gates[layer, t] = k, b.add("Sub", b.constant(1), k)
        return gates[layer, t]

    def gate(layer: int, t: int, new: str, old: str | None) -> str:
        k, rest = opening(layer, t)
        passed = b.add("Mul", k, new)
        return passed if old is None else b.add("Add", passed, b.add("Mul", rest, old))

    return _classified(b, lstm_stack(b, x, layers, steps, width, gate), width, 10, batch)


def make_pathnet(size: int, width: int, batch: int, dtype: type = np.float32) -> Made:
    """Return an iteration of PathNet's three layers of six active modules over images of ``size`` pixels a side."""
    b = Iteration(14, dtype)
    x = pathnet(b, b.normal("x", batch, 3, size, size), width)
    features = width * (size // 8) ** 2
    return _classified(b, b.add("Flatten", x), features, 10, batch)


def make_googlenet(size: int, width: int, batch: int, dtype: type = np.float32) -> Made:
    """Return an iteration of GoogLeNet with ``width`` times its channels."""
    b = Iteration(15, dtype)
    x = googlenet(b, b.normal("x", batch, 3, size, size), width, normalizes=True)
    return _classified(b, b.add("Flatten", x), 1024 * width, 1000, batch)


def _entries(
    kind: str, make: Callable[[int, int, int], Made], batch: int, sizes: tuple[tuple[int, int], ...]
) -> list[Training]:
    return [Training(f"{kind}-{size}-{width}-train", partial(make, size, width, batch)) for size, width in sizes]


TRAINING = [
    *_entries("lstm", make_lstm, 64, ((20, 128), (30, 512), (40, 1024))),
    *_entries("phasedlstm", make_phased_lstm, 64, ((20, 128), (30, 512), (40, 1024))),
    *_entries("pathnet", make_pathnet, 64, ((32, 16), (48, 32), (64, 48))),
    *_entries("googlenet", make_googlenet, 32, ((128, 1), (192, 2), (256, 4))),
]
