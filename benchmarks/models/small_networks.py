"""Small networks of ten kinds that image zoos lack, ten members of each; sizes, often primes, and weights by a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.models.builder import Builder

__all__ = ["KINDS", "MEMBERS", "Draft", "Sample", "make"]

#: Networks of a kind, of the seeds 0 to MEMBERS - 1.
MEMBERS = 10
_CHANNELS = (8, 13, 16, 24, 31, 48)
_FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "Elu", "HardSwish", "LeakyRelu", "Softplus")

Feeds = dict[str, np.ndarray]


@dataclass
class Sample:
    """A network and what it is called with."""

    name: str
    model: onnx.ModelProto
    feeds: Feeds


class Draft:
    """A network in the making: its seed's choices, parts that several kinds have, and its inputs."""

    def __init__(self, seed: int) -> None:
        self.b = Builder(seed)
        self.random = np.random.default_rng(seed)
        self.feeds: Feeds = {}

    def pick(self, *choices: int) -> int:
        return int(self.random.choice(choices))

    def function(self, x: str) -> str:
        return self.b.add(str(self.random.choice(_FUNCTIONS)), x)

    def input(self, *dims: int) -> str:
        return self.feed(self.random.standard_normal(dims).astype(np.float32))

    def indices(self, below: int, *dims: int) -> str:
        return self.feed(self.random.integers(0, below, dims))

    def feed(self, value: np.ndarray) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = value
        return name

    def ints(self, *values: int) -> str:
        return self.b.constant(values, np.int64)

    def conv(self, x: str, ic: int, oc: int, axes: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        b, pad = self.b, kernel // 2
        operands = [x, b.weight(oc, ic // group, *[kernel] * axes), b.weight(oc)]
        return b.add("Conv", *operands, strides=[stride] * axes, pads=[pad] * 2 * axes, group=group)

    def dense(self, x: str, rows: int, columns: int) -> str:
        return self.b.add("Add", self.b.add("MatMul", x, self.b.weight(rows, columns)), self.b.weight(columns))

    def finish(self, *outputs: str) -> tuple[onnx.ModelProto, Feeds]:
        model = self.b.model({name: value.shape for name, value in self.feeds.items()}, outputs)
        for value in model.graph.input:
            if self.feeds[value.name].dtype == np.int64:
                value.type.tensor_type.elem_type = TensorProto.INT64
        return model, self.feeds


def _signal(d: Draft) -> Sequence[str]:
    """Convolutions of one axis with pools between them, residual or gated."""
    channels = d.pick(1, 2, 12)
    x, length = d.input(d.pick(1, 2, 5), channels, d.pick(128, 251, 500)), d.pick(3, 5, 9)
    for _ in range(d.pick(2, 3, 4)):
        wide = d.pick(*_CHANNELS)
        x = d.function(d.conv(x, channels, wide, 1, length))
        same = d.conv(x, wide, wide, 1, 3, group=d.pick(1, wide))
        x = d.b.add("Add", x, d.b.add("Mul", d.b.add("Sigmoid", same), same))
        x = d.b.add("MaxPool" if d.pick(0, 1) else "AveragePool", x, kernel_shape=[2], strides=[2])
        channels = wide
    pooled = d.b.add("ReduceMean", x, axes=[2], keepdims=0)
    return [d.dense(pooled, channels, 7), d.b.add("GlobalMaxPool", x)]


def _volume(d: Draft) -> Sequence[str]:
    """Convolutions and pools of three axes, normalised."""
    channels = d.pick(1, 3)
    x = d.input(d.pick(1, 2), channels, d.pick(5, 8), d.pick(16, 23), d.pick(16, 19))
    for stride in (1, 2):
        wide = d.pick(8, 13, 16)
        x = d.conv(x, channels, wide, 3, 3, stride)
        if d.pick(0, 1):
            x = d.b.add("InstanceNormalization", x, d.b.weight(wide), d.b.weight(wide))
        x, channels = d.function(x), wide
    x = d.b.add("MaxPool", x, kernel_shape=[2, 2, 2], strides=[1, 2, 2])
    return [d.dense(d.b.add("ReduceMean", x, axes=[2, 3, 4], keepdims=0), channels, 5)]


def _channels_last(d: Draft) -> Sequence[str]:
    """Images with their channels last, brought to the front and back around each convolution."""
    channels = d.pick(3, 8)
    x = d.input(d.pick(1, 4), d.pick(17, 32), d.pick(19, 32), channels)
    for _ in range(d.pick(2, 3)):
        wide = d.pick(*_CHANNELS)
        y = d.conv(d.b.add("Transpose", x, perm=[0, 3, 1, 2]), channels, wide, 2, d.pick(1, 3))
        y = d.b.add("Mul", d.b.add("Transpose", y, perm=[0, 2, 3, 1]), d.b.weight(wide))
        x, channels = d.function(d.b.add("Add", y, d.b.weight(wide))), wide
    return [d.b.add("ReduceMax", x, axes=[1, 2], keepdims=0), d.b.add("Softmax", x, axis=-1)]


def _batches(d: Draft) -> Sequence[str]:
    """Image classifiers of batches of two to sixteen."""
    channels, size = 3, d.pick(24, 31)
    x = d.input(d.pick(2, 3, 8, 16), channels, size, size)
    for stride in (2, 1, 2):
        wide = d.pick(*_CHANNELS)
        x = d.function(d.conv(x, channels, wide, 2, 3, stride))
        x, channels = d.b.add("Add", x, d.conv(x, wide, wide, 2, 3, group=d.pick(1, wide))), wide
    return [d.b.add("Softmax", d.dense(d.b.add("Flatten", d.b.add("GlobalAveragePool", x)), channels, 11), axis=-1)]


def _graph(d: Draft) -> Sequence[str]:
    """Messages along the edges of a graph: rows gathered, mixed and summed where they arrive."""
    nodes, edges, width = d.pick(50, 211), d.pick(300, 997), d.pick(16, 31)
    x, sources, targets = d.input(nodes, width), d.indices(nodes, edges), d.indices(nodes, edges)
    for _ in range(d.pick(2, 3)):
        sent = d.function(d.dense(d.b.add("Gather", x, sources), width, width))
        heads = d.b.add("Sigmoid", d.dense(d.b.add("Gather", x, targets), width, 1))
        sent = d.b.add("Mul", sent, heads)
        zeros = d.b.constant(np.zeros((nodes, width)))
        to = d.b.add("Expand", d.b.add("Unsqueeze", targets, d.ints(1)), d.ints(edges, width))
        summed = d.b.add("ScatterElements", zeros, to, sent, axis=0, reduction="add")
        if d.pick(0, 1):
            at = d.b.add("Unsqueeze", targets, d.ints(1))
            summed = d.b.add("ScatterND", zeros, at, sent, reduction="add")
        x = d.function(d.b.add("Add", d.dense(x, width, width), summed))
    return [d.b.add("ReduceMean", x, axes=[0], keepdims=0), x]


def _points(d: Draft) -> Sequence[str]:
    """Point clouds: distances of all pairs, the nearest neighbours, their features, and the largest of them."""
    points, near, width = d.pick(64, 127, 200), d.pick(4, 7), d.pick(16, 24)
    x = d.input(points, 3)
    for columns in (3, width):
        square = d.b.add("ReduceSumSquare", x, axes=[1], keepdims=1)
        product = d.b.add("MatMul", x, d.b.add("Transpose", x, perm=[1, 0]))
        distance = d.b.add(
            "Sub",
            d.b.add("Add", square, d.b.add("Transpose", square, perm=[1, 0])),
            d.b.add("Mul", product, d.b.constant(2.0)),
        )
        _, nearest = d.b.add_all("TopK", [distance, d.ints(near)], 2, largest=0)
        others = d.b.add("Gather", x, nearest)
        edge = d.b.add("Sub", others, d.b.add("Unsqueeze", x, d.ints(1)))
        x = d.b.add("ReduceMax", d.function(d.dense(edge, columns, width)), axes=[1], keepdims=0)
    return [d.dense(d.b.add("ReduceMax", x, axes=[0], keepdims=1), width, 10)]


def _state_space(d: Draft) -> Sequence[str]:
    """Linear recurrences as cumulative sums of decayed inputs, gated."""
    length, width = d.pick(64, 101, 256), d.pick(16, 31)
    x = d.input(d.pick(1, 3), length, width)
    for _ in range(2):
        decay = d.b.add("Neg", d.b.add("Softplus", d.dense(x, width, width)))
        total = d.b.add("CumSum", d.b.add("Mul", decay, d.b.constant(0.01)), d.b.constant(1, np.int64))
        grown = d.b.add("Mul", d.dense(x, width, width), d.b.add("Exp", d.b.add("Neg", total)))
        state = d.b.add("Mul", d.b.add("CumSum", grown, d.b.constant(1, np.int64)), d.b.add("Exp", total))
        gated = d.b.add("Mul", state, d.b.add("Sigmoid", d.dense(x, width, width)))
        x = d.b.add("LayerNormalization", d.b.add("Add", x, gated), d.b.weight(width), d.b.weight(width), axis=-1)
    return [x]


def _spectrogram(d: Draft) -> Sequence[str]:
    """Transforms of frames, their power in bands, and convolutions over them."""
    length, bands = d.pick(128, 200, 256), d.pick(23, 40)
    x = d.input(d.pick(1, 2), d.pick(4000, 8009))
    window = d.b.constant(np.hanning(length))
    frames = d.b.add("STFT", d.b.add("Unsqueeze", x, d.ints(2)), d.b.constant(length // 2, np.int64), window)
    power = d.b.add("ReduceSumSquare", frames, axes=[3], keepdims=0)
    bins = length // 2 + 1
    mel = d.b.add("MatMul", power, d.b.constant(np.abs(d.random.standard_normal((bins, bands))) / bins))
    loud = d.b.add("Log", d.b.add("Add", mel, d.b.constant(1e-3)))
    y = d.function(d.conv(d.b.add("Unsqueeze", loud, d.ints(1)), 1, 8, 2, 3, 2))
    return [d.dense(d.b.add("ReduceMean", d.conv(y, 8, 16, 2, 3), axes=[2, 3], keepdims=0), 16, 5)]


def _mixer(d: Draft) -> Sequence[str]:
    """Products along tokens and along channels in turns, after an embedding of patches."""
    patch, side, width = d.pick(4, 7), d.pick(4, 7), d.pick(31, 64)
    x = d.input(d.pick(1, 4), 3, patch * side, patch * side)
    x = d.b.add("Conv", x, d.b.weight(width, 3, patch, patch), d.b.weight(width), strides=[patch, patch])
    tokens = side * side
    x = d.b.add("Transpose", d.b.add("Reshape", x, d.ints(0, width, tokens)), perm=[0, 2, 1])
    for _ in range(d.pick(2, 3)):
        y = d.b.add("LayerNormalization", x, d.b.weight(width), d.b.weight(width), axis=-1)
        y = d.dense(
            d.function(d.dense(d.b.add("Transpose", y, perm=[0, 2, 1]), tokens, 2 * tokens)), 2 * tokens, tokens
        )
        x = d.b.add("Add", x, d.b.add("Transpose", y, perm=[0, 2, 1]))
        y = d.b.add("LayerNormalization", x, d.b.weight(width), d.b.weight(width), axis=-1)
        x = d.b.add("Add", x, d.dense(d.function(d.dense(y, width, 2 * width)), 2 * width, width))
    return [d.dense(d.b.add("ReduceMean", x, axes=[1], keepdims=0), width, 10)]


def _digits(d: Draft) -> Sequence[str]:
    """Classifiers of small grey images, as first lessons have them."""
    x, channels, size = d.input(d.pick(1, 1, 7), 1, 28, 28), 1, 28
    for _ in range(d.pick(1, 2)):
        wide = d.pick(6, 16, 32)
        x = d.function(d.conv(x, channels, wide, 2, d.pick(3, 5)))
        x = d.b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        channels, size = wide, size // 2
    hidden = d.pick(32, 84)
    x = d.dense(d.b.add("Flatten", x), channels * size * size, hidden)
    return [d.b.add("LogSoftmax", d.dense(d.function(x), hidden, 10), axis=-1)]


KINDS: dict[str, Callable[[Draft], Sequence[str]]] = {
    "signal": _signal,
    "volume": _volume,
    "channels-last": _channels_last,
    "batches": _batches,
    "graph": _graph,
    "points": _points,
    "state-space": _state_space,
    "spectrogram": _spectrogram,
    "mixer": _mixer,
    "digits": _digits,
}


def make(kind: str, seed: int) -> Sample:
    """Return one network.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    seed : int
        Of its sizes, weights and inputs; any, ``MEMBERS`` of which are measured.
    """
    draft = Draft(sum(map(ord, kind)) * 1000 + seed)
    model, feeds = draft.finish(*KINDS[kind](draft))
    return Sample(f"{kind} {seed}", model, feeds)
