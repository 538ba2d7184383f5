"""Graphs whose steps may run beside each other: the forward halves of Graphi's (section 7.1), and detectors' pyramids.

Recurrent layers are unrolled, as a training graph holds them; random weights, seeded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.models.builder import Builder, Shape

__all__ = ["BRANCHES", "Branches", "Gate", "googlenet", "lstm_stack", "pathnet", "split_steps"]


#: Adds what lies between a step's new state and the old one: of layer, step, new state and old one or None.
Gate = Callable[[int, int, str, str | None], str]


@dataclass(frozen=True)
class Branches:
    """A graph and the shape of its one input, ``x``."""

    name: str
    shape: tuple[int, ...]
    model: Callable[[], onnx.ModelProto]


def split_steps(b: Builder, x: str, steps: int) -> list[str]:
    """Add the parts of ``x`` along its first axis, without that axis."""
    sizes = b.constant([1] * steps, np.int64)
    return [b.add("Squeeze", row, b.constant([0], np.int64)) for row in b.add_all("Split", [x, sizes], steps, axis=0)]


def lstm_stack(b: Builder, x: str, layers: int, steps: int, width: int, gate: Gate | None = None) -> str:
    """Add unrolled layers over ``x`` (steps, batch, width), and return the last step's (batch, width).

    Each step waits for the step before it and for the layer below. ``gate(layer, t, new, old)`` adds what lies between a
    step's new state and the old one, which is None at the first step.
    """
    rows = split_steps(b, x, steps)
    for layer in range(layers):
        weight, recurrent, bias = b.weight(width, 4 * width), b.weight(width, 4 * width), b.weight(4 * width)
        hidden = cell = None
        for t in range(steps):
            gates = b.add("Add", b.add("MatMul", rows[t], weight), bias)
            if hidden is not None:
                gates = b.add("Add", gates, b.add("MatMul", hidden, recurrent))
            parts = b.add_all("Split", [gates, b.constant([width] * 4, np.int64)], 4, axis=1)
            into, forget, out = (b.add("Sigmoid", part) for part in parts[:3])
            fresh = b.add("Mul", into, b.add("Tanh", parts[3]))
            new_cell = fresh if cell is None else b.add("Add", fresh, b.add("Mul", forget, cell))
            new_hidden = b.add("Mul", out, b.add("Tanh", new_cell))
            cell = gate(layer, t, new_cell, cell) if gate else new_cell
            hidden = gate(layer, t, new_hidden, hidden) if gate else new_hidden
            rows[t] = hidden
    return rows[-1]


def _lstm_stack(layers: int, steps: int, width: int, batch: int) -> onnx.ModelProto:
    b = Builder(1)
    return b.model({"x": (steps, batch, width)}, [lstm_stack(b, "x", layers, steps, width)])


def _conv(b: Builder, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> str:
    pads = [kernel // 2] * 4
    return b.add("Relu", b.add("Conv", x, b.weight(outputs, inputs, kernel, kernel), pads=pads, strides=[stride] * 2))


def pathnet(b: Builder, x: str, width: int) -> str:
    """Add three layers of six modules, whose results are summed, over images of three channels."""
    channels = 3
    for _ in range(3):
        modules = [
            b.add("MaxPool", _conv(b, x, channels, width, 3), kernel_shape=[2, 2], strides=[2, 2]) for _ in range(6)
        ]
        x, channels = b.add("Sum", *modules), width
    return x


def _pathnet(size: int, width: int, batch: int) -> onnx.ModelProto:
    b = Builder(2)
    return b.model({"x": (batch, 3, size, size)}, [pathnet(b, "x", width)])


# Of each block of GoogLeNet: 1x1; 3x3 after 1x1; 5x5 after 1x1; 1x1 after a pool. Szegedy et al. (2014), table 1.
_INCEPTION = [
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
]


def googlenet(b: Builder, x: str, width: int, normalizes: bool = False) -> str:
    """Add GoogLeNet with ``width`` times its channels up to the average over space; its LRN only on request."""

    def pool(x: str, stride: int) -> str:
        return b.add("MaxPool", x, kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4)

    def norm(x: str) -> str:
        return b.add("LRN", x, size=5) if normalizes else x

    x = norm(pool(_conv(b, x, 3, 64 * width, 7, 2), 2))
    x = pool(norm(_conv(b, _conv(b, x, 64 * width, 64 * width, 1), 64 * width, 192 * width, 3)), 2)
    channels = 192 * width
    for number, block in enumerate(_INCEPTION):
        if number in (2, 7):
            x = pool(x, 2)
        one, before_three, three, before_five, five, pooled = (width * n for n in block)
        x = b.add(
            "Concat",
            _conv(b, x, channels, one, 1),
            _conv(b, _conv(b, x, channels, before_three, 1), before_three, three, 3),
            _conv(b, _conv(b, x, channels, before_five, 1), before_five, five, 5),
            _conv(b, pool(x, 1), channels, pooled, 1),
            axis=1,
        )
        channels = one + three + five + pooled
    return b.add("GlobalAveragePool", x)


def _googlenet(size: int, width: int, batch: int) -> onnx.ModelProto:
    b = Builder(3)
    return b.model({"x": (batch, 3, size, size)}, [googlenet(b, "x", width)])


def _pyramid(size: int, width: int, batch: int) -> onnx.ModelProto:
    """A detector's: a trunk, and at three scales two heads of convolutions that share nothing."""
    b = Builder(4)
    x, channels, ends = "x", 3, []
    for stage in range(4):
        x, channels = _conv(b, x, channels, width << min(stage, 2), 3, 2), width << min(stage, 2)
        if stage == 0:
            continue
        for outputs in (4, 20):
            head = _conv(b, _conv(b, x, channels, width, 3), width, width, 3)
            ends.append(b.add("Conv", head, b.weight(outputs, width, 1, 1)))
    return b.model({"x": (batch, 3, size, size)}, ends)


def _entry(kind: str, build: Callable[..., onnx.ModelProto], shape: Shape, *arguments: int) -> Branches:
    return Branches(f"{kind}-{'-'.join(map(str, arguments))}", tuple(int(n) for n in shape), lambda: build(*arguments))


BRANCHES = [
    *(_entry("lstm", _lstm_stack, (t, n, w), 4, t, w, n) for t, w, n in ((20, 128, 64), (20, 128, 1), (30, 512, 64))),
    *(_entry("pathnet", _pathnet, (n, 3, s, s), s, w, n) for s, w, n in ((32, 16, 64), (48, 32, 64), (32, 16, 1))),
    *(_entry("googlenet", _googlenet, (n, 3, s, s), s, w, n) for s, w, n in ((128, 1, 1), (224, 1, 1), (128, 1, 32))),
    *(_entry("pyramid", _pyramid, (n, 3, s, s), s, w, n) for s, w, n in ((96, 16, 1), (320, 16, 1))),
]
