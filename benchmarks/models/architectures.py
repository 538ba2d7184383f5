"""Families of networks whose inputs have sizes that a call tells, each at a few of them; random weights, seeded.

Decoders with growing caches and shared keys, scans over a state, relative positions, graphs with attention, tables of
embeddings, volumes, kernels as large as their image, kernels that the network makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models.builder import Builder, Shape
from benchmarks.models.small_networks import Draft, Sample

__all__ = ["ARCHITECTURES", "Sizes", "make"]

Sizes = dict[str, int]
_LAST = 2**62


class _Open(Draft):
    """A draft whose inputs may have symbols for sizes."""

    def __init__(self, seed: int, sizes: Sizes) -> None:
        super().__init__(seed)
        self.sizes = sizes
        self.shapes: dict[str, Shape] = {}

    def known(self, dims: Shape) -> list[int]:
        return [self.sizes[d] if isinstance(d, str) else d for d in dims]

    def open_input(self, *dims: int | str) -> str:
        name = self.input(*self.known(dims))
        self.shapes[name] = dims
        return name

    def open_indices(self, below: int | str, *dims: int | str) -> str:
        name = self.indices(*self.known((below, *dims)))
        self.shapes[name] = dims
        return name

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.b.add("MatMul", x, self.b.weight(rows, columns))

    def reshape(self, x: str, *dims: int) -> str:
        return self.b.add("Reshape", x, self.ints(*dims))

    def transpose(self, x: str, *order: int) -> str:
        return self.b.add("Transpose", x, perm=list(order))

    def cut(self, x: str, first: int, last: int, axis: int) -> str:
        return self.b.add("Slice", x, self.ints(first), self.ints(last), self.ints(axis))

    def scalar(self, x: str) -> str:
        """The one number of a vector."""
        return self.b.add("Squeeze", x, self.ints(0))

    def zeros(self, shape: str, number: float = 0) -> str:
        return self.b.add("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([number], np.float32)))

    def silu(self, x: str) -> str:
        return self.b.add("Mul", x, self.b.add("Sigmoid", x))

    def rms(self, x: str, width: int) -> str:
        mean = self.b.add("ReduceMean", self.b.add("Pow", x, self.b.constant(2.0)), axes=[-1])
        root = self.b.add("Sqrt", self.b.add("Add", mean, self.b.constant(1e-6)))
        return self.b.add("Mul", self.b.constant(np.ones(width)), self.b.add("Div", x, root))

    def norm(self, x: str, width: int) -> str:
        return self.b.add("LayerNormalization", x, self.b.constant(np.ones(width)), self.b.weight(width), axis=-1)

    def heads(self, x: str, width: int, count: int, order: Sequence[int] = (0, 2, 1, 3)) -> str:
        return self.transpose(self.reshape(x, 0, -1, count, width // count), *order)

    def mix(self, scores: str, values: str, width: int) -> str:
        mixed = self.b.add("MatMul", self.b.add("Softmax", scores, axis=-1), values)
        return self.linear(self.reshape(self.transpose(mixed, 0, 2, 1, 3), 0, -1, width), width, width)

    def model(self, outputs: Sequence[str]) -> Any:
        model, _ = self.finish(*outputs)
        for value in model.graph.input:
            if value.name in self.shapes:
                kind = value.type.tensor_type.elem_type
                value.CopyFrom(helper.make_tensor_value_info(value.name, kind, self.shapes[value.name]))
        return model


def _decoder(d: _Open) -> Sequence[str]:
    """Steps of a language model: groups of queries share keys, rotated by position, behind caches that grow."""
    width, shared, per_key, words = 256, 2, 4, 2000
    size = width // (shared * per_key)
    b, tokens = d.b, d.open_indices(words, "B", "T")
    caches = [[d.open_input("B", shared, "P", size) for _ in range(2)] for _ in range(2)]
    x = b.add("Gather", b.weight(words, width), tokens)
    past = b.add("Shape", caches[0][0], start=2, end=3)
    seen = b.add("Add", past, b.add("Shape", tokens, start=1))
    zero, one = b.constant(0, np.int64), b.constant(1, np.int64)
    own = b.add("Range", d.scalar(past), d.scalar(seen), one)
    every = b.add("Range", zero, d.scalar(seen), one)
    hidden = b.add("Greater", b.add("Unsqueeze", every, d.ints(0)), b.add("Unsqueeze", own, d.ints(1)))
    mask = b.add("Where", hidden, b.constant(-1e9), b.constant(0.0))
    turns = b.constant(1e4 ** (-np.arange(0, size, 2) / size)[None])
    angle = b.add("Mul", b.add("Unsqueeze", b.add("Cast", own, to=TensorProto.FLOAT), d.ints(1)), turns)
    angle = b.add("Concat", angle, angle, axis=-1)
    cosine, sine = b.add("Cos", angle), b.add("Sin", angle)
    batch = b.add("Shape", tokens, end=1)

    def rotated(x: str) -> str:
        halves = b.add("Concat", b.add("Neg", d.cut(x, size // 2, _LAST, 3)), d.cut(x, 0, size // 2, 3), axis=-1)
        return b.add("Add", b.add("Mul", x, cosine), b.add("Mul", halves, sine))

    def repeated(x: str) -> str:
        grouped = b.add("Concat", batch, d.ints(shared, per_key), seen, d.ints(size), axis=0)
        whole = b.add("Concat", batch, d.ints(shared * per_key), seen, d.ints(size), axis=0)
        return b.add("Reshape", b.add("Expand", b.add("Unsqueeze", x, d.ints(2)), grouped), whole)

    outputs = []
    for keys_before, values_before in caches:
        y = d.rms(x, width)
        queries = rotated(d.heads(d.linear(y, width, width), width, shared * per_key))
        keys = rotated(d.heads(d.linear(y, width, shared * size), shared * size, shared))
        values = d.heads(d.linear(y, width, shared * size), shared * size, shared)
        keys = b.add("Concat", keys_before, keys, axis=2)
        values = b.add("Concat", values_before, values, axis=2)
        outputs += [keys, values]
        scores = b.add("MatMul", queries, d.transpose(repeated(keys), 0, 1, 3, 2))
        scores = b.add("Add", b.add("Div", scores, b.constant(size**0.5)), mask)
        x = b.add("Add", x, d.mix(scores, repeated(values), width))
        y = d.rms(x, width)
        gated = b.add("Mul", d.silu(d.linear(y, width, 688)), d.linear(y, width, 688))
        x = b.add("Add", x, d.linear(gated, 688, width))
    return [d.linear(d.rms(x, width), width, words), *outputs]


def _state_body(name: str, width: int, states: int) -> Any:
    """A step of a selective state space: h' = a h + b, y = h' c."""
    b = Builder(0, name)
    state, decay, given, read = (f"{name}{part}" for part in ("h", "a", "b", "c"))
    after = b.add("Add", b.add("Mul", state, decay), given)
    axis = b.constant([2], np.int64)
    y = b.add("Squeeze", b.add("MatMul", after, b.add("Unsqueeze", read, axis)), axis)

    def info(value: str, shape: Shape) -> Any:
        return helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)

    wide = ["B", width, states]
    inputs = [info(state, wide), info(decay, wide), info(given, wide), info(read, ["B", states])]
    return helper.make_graph(b.nodes, name, inputs, [info(after, wide), info(y, ["B", width])], b.initializers)


def _state_space(d: _Open) -> Sequence[str]:
    """Gated state spaces whose steps depend on their inputs, as scans, behind causal depthwise convolutions (Mamba)."""
    width, inner, states = 64, 128, 16
    b, x = d.b, d.open_input("B", "T", width)
    for layer in range(2):
        mixed, gate = b.add_all("Split", [d.linear(d.rms(x, width), width, 2 * inner)], 2, axis=-1)
        operands = [d.transpose(mixed, 0, 2, 1), b.weight(inner, 1, 4), b.weight(inner)]
        mixed = d.silu(d.transpose(b.add("Conv", *operands, group=inner, pads=[3, 0]), 0, 2, 1))
        parts = [d.linear(mixed, inner, 8 + 2 * states), d.ints(8, states, states)]
        rate, write, read = b.add_all("Split", parts, 3, axis=-1)
        rate = b.add("Unsqueeze", b.add("Softplus", d.dense(rate, 8, inner)), d.ints(3))
        fade = b.constant(-np.tile(np.arange(1, states + 1) / 4, (inner, 1)))
        decay = b.add("Exp", b.add("Mul", rate, fade))
        given = b.add(
            "Mul", b.add("Mul", rate, b.add("Unsqueeze", write, d.ints(2))), b.add("Unsqueeze", mixed, d.ints(3))
        )
        start = d.zeros(b.add("Concat", b.add("Shape", x, end=1), d.ints(inner, states), axis=0))
        scanned = [start, d.transpose(decay, 1, 0, 2, 3), d.transpose(given, 1, 0, 2, 3), d.transpose(read, 1, 0, 2)]
        body = _state_body(f"state{layer}_", inner, states)
        _, steps = b.add_all("Scan", scanned, 2, body=body, num_scan_inputs=3)
        y = b.add("Add", d.transpose(steps, 1, 0, 2), b.add("Mul", mixed, b.weight(inner)))
        x = b.add("Add", x, d.linear(b.add("Mul", y, d.silu(gate)), inner, width))
    return [x]


def _relative_positions(d: _Open) -> Sequence[str]:
    """Speech encoders: attention by content and by distance, whose scores are shifted row by row (Conformer)."""
    width, heads = 96, 4
    b, x, places = d.b, d.open_input("B", "T", width), d.open_input(1, "P", width)
    for _ in range(2):
        y = d.norm(x, width)
        queries = d.reshape(d.dense(y, width, width), 0, -1, heads, width // heads)
        keys = d.heads(d.dense(y, width, width), width, heads, (0, 2, 3, 1))
        values = d.heads(d.dense(y, width, width), width, heads)
        distances = d.heads(d.linear(places, width, width), width, heads, (0, 2, 3, 1))
        by_content, by_place = (
            b.add("MatMul", d.transpose(b.add("Add", queries, b.weight(heads, width // heads)), 0, 2, 1, 3), other)
            for other in (keys, distances)
        )
        shape = b.add("Shape", by_place)
        batch, rows, columns = d.cut(shape, 0, 1, 0), d.cut(shape, 2, 3, 0), d.cut(shape, 3, 4, 0)
        padded = b.add("Pad", by_place, d.ints(0, 0, 0, 1, 0, 0, 0, 0))
        turned = b.add("Concat", batch, d.ints(heads), b.add("Add", columns, d.ints(1)), rows, axis=0)
        shifted = b.add("Reshape", d.cut(b.add("Reshape", padded, turned), 1, _LAST, 2), shape)
        shifted = b.add("Slice", shifted, d.ints(0), rows, d.ints(3))
        scores = b.add("Div", b.add("Add", by_content, shifted), b.constant((width // heads) ** 0.5))
        x = b.add("Add", x, d.mix(scores, values, width))
        operands = [d.transpose(d.norm(x, width), 0, 2, 1), b.weight(2 * width, width, 1), b.weight(2 * width)]
        linear, gate = b.add_all("Split", [b.add("Conv", *operands)], 2, axis=1)
        y = d.conv(b.add("Mul", linear, b.add("Sigmoid", gate)), width, width, 1, 15, group=width)
        operands = [d.silu(y), b.weight(width, width, 1), b.weight(width)]
        x = b.add("Add", x, d.transpose(b.add("Conv", *operands), 0, 2, 1))
        x = b.add("Add", x, d.dense(d.silu(d.dense(d.norm(x, width), width, 4 * width)), 4 * width, width))
    return [x]


def _graph_attention(d: _Open) -> Sequence[str]:
    """Messages weighted by a softmax over the edges that arrive at a node, by scatters of maxima and sums (GAT)."""
    heads, each = 4, 16
    b, x = d.b, d.open_input("V", heads * each)
    sources, targets = d.open_indices("V", "E"), d.open_indices("V", "E")
    for _ in range(2):
        z = d.reshape(d.linear(x, heads * each, heads * each), 0, heads, each)
        sent, met = (
            b.add("ReduceSum", b.add("Mul", z, b.weight(1, heads, each)), d.ints(-1), keepdims=0) for _ in range(2)
        )
        scores = b.add("Add", b.add("Gather", sent, sources), b.add("Gather", met, targets))
        scores = b.add("LeakyRelu", scores, alpha=0.2)
        shape = b.add("Shape", sent)
        to = b.add("Expand", b.add("Unsqueeze", targets, d.ints(1)), b.add("Shape", scores))
        most = b.add("ScatterElements", d.zeros(shape, -1e9), to, scores, axis=0, reduction="max")
        weights = b.add("Exp", b.add("Sub", scores, b.add("Gather", most, targets)))
        total = b.add("ScatterElements", d.zeros(shape), to, weights, axis=0, reduction="add")
        weights = b.add("Div", weights, b.add("Gather", total, targets))
        messages = b.add("Mul", b.add("Gather", z, sources), b.add("Unsqueeze", weights, d.ints(2)))
        at = b.add("Unsqueeze", targets, d.ints(1))
        x = d.reshape(b.add("ScatterND", d.zeros(b.add("Shape", z)), at, messages, reduction="add"), 0, heads * each)
        x = b.add("Elu", x)
    return [x]


def _recommender(d: _Open) -> Sequence[str]:
    """A table of embeddings for each of 26 columns, products of all pairs, and dense layers (DLRM)."""
    columns, width, rows = 26, 16, 1000
    b, x, ids = d.b, d.open_input("B", 13), d.open_indices(rows, "B", columns)
    for before, after in ((13, 64), (64, width)):
        x = b.add("Relu", d.dense(x, before, after))
    picked = [b.add("Gather", ids, b.constant(i, np.int64), axis=1) for i in range(columns)]
    features = [x, *(b.add("Gather", b.weight(rows, width), column) for column in picked)]
    stacked = b.add("Concat", *(b.add("Unsqueeze", f, d.ints(1)) for f in features), axis=1)
    pairs = b.add("MatMul", stacked, d.transpose(stacked, 0, 2, 1))
    first, second = np.tril_indices(columns + 1, -1)
    pairs = d.reshape(pairs, 0, (columns + 1) ** 2)
    pairs = b.add("Gather", pairs, d.ints(*(first * (columns + 1) + second)), axis=1)
    y = b.add("Concat", x, pairs, axis=1)
    for before, after in ((width + len(first), 128), (128, 64)):
        y = b.add("Relu", d.dense(y, before, after))
    return [b.add("Sigmoid", d.dense(y, 64, 1))]


def _texts(d: _Open) -> Sequence[str]:
    """Kernels over three to five words, as wide as the words' vectors, and the largest of each (TextCNN)."""
    b, found = d.b, []
    vectors = b.add("Unsqueeze", b.add("Gather", b.weight(2000, 64), d.open_indices(2000, "B", "T")), d.ints(1))
    for words in (3, 4, 5):
        y = b.add("Relu", b.add("Conv", vectors, b.weight(50, 1, words, 64), b.weight(50)))
        found.append(b.add("ReduceMax", b.add("Squeeze", y, d.ints(3)), axes=[2], keepdims=0))
    return [d.dense(b.add("Concat", *found, axis=1), 150, 4)]


def _electrodes(d: _Open) -> Sequence[str]:
    """Kernels along time, then across all electrodes at once, and one over all that is left (EEG)."""
    b, x = d.b, d.open_input("B", 1, 22, 256)
    y = b.add("Conv", x, b.weight(8, 1, 1, 32), b.weight(8), pads=[0, 16, 0, 15])
    y = b.add("Elu", b.add("Conv", y, b.weight(24, 8, 22, 1), b.weight(24)))
    y = b.add("AveragePool", y, kernel_shape=[1, 8], strides=[1, 8])
    y = b.add("Conv", y, b.weight(4, 24, 1, 32), b.weight(4))
    return [b.add("Softmax", b.add("Flatten", y), axis=-1)]


def _volumes(d: _Open) -> Sequence[str]:
    """A U-Net of volumes with instance norms (nnU-Net)."""
    b, skips, channels = d.b, [], 1

    def block(x: str, before: int, after: int, stride: int = 1) -> str:
        y = d.conv(x, before, after, 3, 3, stride)
        y = b.add("InstanceNormalization", y, b.constant(np.ones(after)), b.constant(np.zeros(after)))
        return b.add("LeakyRelu", y, alpha=0.01)

    y = d.open_input("B", 1, 24, 24, 24)
    for level, wide in enumerate((8, 16, 32)):
        y = block(block(y, channels, wide, 1 + (level > 0)), wide, wide)
        skips.append(y)
        channels = wide
    for wide, skip in ((16, skips[1]), (8, skips[0])):
        y = b.add("ConvTranspose", y, b.weight(channels, wide, 2, 2, 2), strides=[2, 2, 2])
        y = block(b.add("Concat", y, skip, axis=1), 2 * wide, wide)
        channels = wide
    return [b.add("Softmax", b.add("Conv", y, b.weight(3, 8, 1, 1, 1), b.weight(3)), axis=1)]


def _conditional(d: _Open) -> Sequence[str]:
    """Kernels that are a mixture of four, by what the image is, and kernels scaled by a style."""
    b, x, style = d.b, d.input(1, 32, 28, 28), d.input(1, 64)
    for _ in range(2):
        pooled = b.add("Flatten", b.add("GlobalAveragePool", x))
        shares = b.add("Sigmoid", d.dense(pooled, 32, 4))
        kernel = d.reshape(b.add("MatMul", shares, b.weight(4, 32 * 32 * 9)), 32, 32, 3, 3)
        x = b.add("Relu", b.add("Conv", x, kernel, pads=[1] * 4))
        scale = d.reshape(b.add("Add", d.dense(style, 64, 32), b.constant(1.0)), 1, 32, 1, 1)
        kernel = b.add("Mul", b.weight(32, 32, 3, 3), scale)
        power = b.add("ReduceSum", b.add("Mul", kernel, kernel), d.ints(1, 2, 3))
        kernel = b.add("Div", kernel, b.add("Sqrt", b.add("Add", power, b.constant(1e-6))))
        x = b.add("LeakyRelu", b.add("Conv", x, kernel, pads=[1] * 4), alpha=0.2)
    return [x]


#: Each family's maker, and the sizes that it is called with.
ARCHITECTURES: dict[str, tuple[Callable[[_Open], Sequence[str]], list[Sizes]]] = {
    "decoder": (
        _decoder,
        [{"B": 1, "T": 1, "P": 0}, {"B": 1, "T": 1, "P": 200}, {"B": 4, "T": 1, "P": 50}, {"B": 1, "T": 33, "P": 0}],
    ),
    "state-space-scan": (_state_space, [{"B": 1, "T": 1}, {"B": 1, "T": 100}, {"B": 4, "T": 17}]),
    "relative-positions": (
        _relative_positions,
        [{"B": 1, "T": 1, "P": 1}, {"B": 1, "T": 17, "P": 33}, {"B": 4, "T": 100, "P": 199}],
    ),
    "graph-attention": (_graph_attention, [{"V": 50, "E": 300}, {"V": 500, "E": 4000}]),
    "recommender": (_recommender, [{"B": 1}, {"B": 128}]),
    "texts": (_texts, [{"B": 1, "T": 40}, {"B": 8, "T": 40}, {"B": 1, "T": 200}]),
    "electrodes": (_electrodes, [{"B": 1}, {"B": 16}]),
    "volumes": (_volumes, [{"B": 1}, {"B": 2}]),
    "conditional": (_conditional, [{}]),
}


def make(kind: str, sizes: Sizes) -> Sample:
    """Return a network of a family, the same for all sizes, and inputs of some.

    Parameters
    ----------
    kind : str
        A key of ``ARCHITECTURES``.
    sizes : dict of str to int
        Of the symbols in the inputs' shapes.
    """
    draft = _Open(sum(map(ord, kind)), sizes)
    model = draft.model(ARCHITECTURES[kind][0](draft))
    name = "-".join([kind, *(f"{symbol}{size}" for symbol, size in sizes.items())])
    return Sample(name, model, draft.feeds)
