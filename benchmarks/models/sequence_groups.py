"""Groups of operators of networks for words, sounds, graphs and tables: attention, norms, places, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import numpy_helper

from benchmarks.models.random_group import Group

__all__ = ["SEQUENCE"]


def _heads(g: Group) -> list[str]:
    """Queries, keys and values of an attention layer, cut from one product."""
    heads, size = g.one((1, 2, 4, 6, 12)), g.one((8, 16, 20, 32, 64))
    batch, length = g.number(1, 4), g.number(4, 200)
    width = heads * size
    x = g.input(batch, length, width)
    products = g.add("Add", g.add("MatMul", x, g.weight(width, 3 * width)), g.weight(3 * width))
    sizes = g.joined(g.size(x, 0), g.size(x, 1), 3, heads, size) if g.flag() else g.ints(0, 0, 3, heads, size)
    split = g.add("Transpose", g.add("Reshape", products, sizes), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.add("Gather", split, g.index(i), axis=0) for i in range(3))
    scores = g.add("MatMul", g.add("Mul", q, g.constant(size**-0.5)), g.add("Transpose", k, perm=[0, 1, 3, 2]))
    mixed = g.add("MatMul", g.add("Softmax", scores, axis=-1), v)
    back = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), g.ints(0, 0, width))
    return [g.add("MatMul", back, g.weight(width, width))]


def _sliced_sum(g: Group) -> list[str]:
    """Parts of an axis change places, and are added to what was there: rotations, shifts of channels."""
    dims = [g.number(1, 4), g.number(2, 24), g.number(2, 100), 2 * g.number(2, 48)]
    x = g.input(*dims)
    half = dims[3] // 2
    turned = g.add("Concat", g.add("Neg", g.part(x, 3, half, 1 << 40)), g.part(x, 3, 0, half), axis=-1)
    cosine, sine = (g.weight(dims[2], dims[3]) for _ in range(2))
    return [g.add("Add", g.add("Mul", x, cosine), g.add("Mul", turned, sine))]


def _interleaved_rotation(g: Group) -> list[str]:
    """Neighbouring elements are turned as pairs."""
    dims = [g.number(1, 4), g.number(2, 100), g.number(1, 12), 2 * g.number(2, 32)]
    x = g.input(*dims)
    even, odd = g.part(x, 3, 0, 1 << 40, 2), g.part(x, 3, 1, 1 << 40, 2)
    cosine, sine = (g.weight(dims[1], 1, dims[3] // 2) for _ in range(2))
    first = g.add("Sub", g.add("Mul", even, cosine), g.add("Mul", odd, sine))
    second = g.add("Add", g.add("Mul", even, sine), g.add("Mul", odd, cosine))
    pairs = g.add("Concat", *(g.add("Unsqueeze", v, g.ints(-1)) for v in (first, second)), axis=-1)
    return [g.add("Reshape", pairs, g.ints(0, 0, 0, dims[3]))]


def _causal_convolution(g: Group) -> list[str]:
    """Rows of a signal, padded on the left, with dilated kernels and a gate: WaveNet, TCN."""
    channels, length = g.number(4, 96), g.number(16, 2000)
    kernel, dilation = g.one((2, 3, 5)), g.one((1, 2, 4, 8, 16))
    x = g.input(1, channels, length)
    padded = g.add("Pad", x, g.ints(0, 0, (kernel - 1) * dilation, 0, 0, 0))
    y = g.add("Conv", padded, g.weight(2 * channels, channels, kernel), g.weight(2 * channels), dilations=[dilation])
    left, right = g.add_all("Split", 2, y, axis=1, num_outputs=2)
    gated = g.add("Mul", g.add("Tanh", left), g.add("Sigmoid", right))
    return [g.add("Add", x, g.add("Conv", gated, g.weight(channels, channels, 1)))]


def _gated(g: Group) -> list[str]:
    """One half of a product is the gate of the other."""
    rows, width, inner = g.number(1, 300), g.number(8, 256), g.number(8, 512)
    x = g.input(rows, width)
    y = (
        g.add("Gemm", x, g.weight(2 * inner, width), g.weight(2 * inner), transB=1)
        if g.flag()
        else g.add("MatMul", x, g.weight(width, 2 * inner))
    )
    left, right = g.add_all("Split", 2, y, axis=-1, num_outputs=2)
    function = g.one(("Sigmoid", "Gelu", "SiLU", "Tanh"))
    gate = g.silu(right) if function == "SiLU" else g.add(function, right)
    return [g.add("Mul", left, gate)]


def _embedding(g: Group) -> list[str]:
    """Sums of rows of tables, normalized, as nodes of their own."""
    batch, length, width = g.number(1, 8), g.number(1, 200), g.number(8, 512)
    tokens = g.input(batch, length, dtype="int64", low=0, high=500)
    kinds = g.input(batch, length, dtype="int64", low=0, high=2)
    words = g.add("Gather", g.weight(500, width), tokens, axis=0)
    places = (
        g.add("Range", g.index(0), g.size(tokens, 1), g.index(1))
        if g.flag()
        else g.constant(np.arange(length), "int64")
    )
    x = g.add(
        "Add",
        g.add("Add", words, g.add("Gather", g.weight(2, width), kinds)),
        g.add("Gather", g.weight(256, width), places),
    )
    return [_spelled_norm(g, x, width)]


def _spelled_norm(g: Group, x: str, width: int) -> str:
    centred = g.add("Sub", x, g.mean(x, -1))
    square = g.add("Pow", centred, g.constant(2)) if g.flag() else g.add("Mul", centred, centred)
    root = g.add("Sqrt", g.add("Add", g.mean(square, -1), g.constant(1e-3)))
    return g.add("Add", g.add("Mul", g.add("Div", centred, root), g.weight(width)), g.weight(width))


def _layer_norm(g: Group) -> list[str]:
    """A residual sum and its norm over channels, of rows or of images with channels first."""
    if g.flag():
        width = g.number(8, 512)
        x, y = (g.input(g.one((2,)), 64, width) for _ in range(2))
        return [_spelled_norm(g, g.add("Add", x, y), width)]
    channels = g.number(3, 96)
    x = g.input(g.number(1, 3), channels, g.number(3, 40), g.number(3, 40))
    centred = g.add("Sub", x, g.mean(x, 1))
    root = g.add("Sqrt", g.add("Add", g.mean(g.add("Mul", centred, centred), 1), g.constant(1e-3)))
    return [g.add("Add", g.add("Mul", g.add("Div", centred, root), g.weight(channels, 1, 1)), g.weight(channels, 1, 1))]


def _root_mean_square(g: Group) -> list[str]:
    """A norm without a mean, and a product."""
    rows, width = g.number(1, 300), g.number(8, 512)
    x = g.input(rows, width)
    wide = g.cast(x, "float32") if g.dtype == "float16" else x
    if g.dtype == "float16":
        root = g.add("Sqrt", g.add("Add", g.mean(g.add("Mul", wide, wide), -1), g.constant(1e-3, "float32")))
        y = g.cast(g.add("Div", wide, root))
    else:
        root = g.add("Sqrt", g.add("Add", g.mean(g.add("Mul", wide, wide), -1), g.constant(1e-3)))
        y = g.add("Mul", wide, g.add("Reciprocal", root))
    return [g.add("MatMul", g.add("Mul", y, g.weight(width)), g.weight(width, g.number(8, 256)))]


def _scattered(g: Group) -> list[str]:
    """Rows of messages are added to the places that they go to: a graph network's step."""
    nodes, edges, width = g.number(10, 2000), g.number(10, 6000), g.number(1, 96)
    x = g.input(nodes, width)
    ends = g.input(2, edges, dtype="int64", values=g.random.integers(0, nodes, (2, edges)))
    sources, targets = (g.add("Squeeze", g.part(ends, 0, i, i + 1), g.ints(0)) for i in range(2))
    messages = g.add("Relu", g.add("Gather", x, sources, axis=0))
    zeros = g.add("ConstantOfShape", g.add("Shape", x), value=numpy_helper.from_array(np.zeros(1, g.dtype)))
    if g.flag():
        return [g.add("ScatterND", zeros, g.add("Unsqueeze", targets, g.ints(1)), messages, reduction="add")]
    at = g.add("Expand", g.add("Unsqueeze", targets, g.ints(1)), g.add("Shape", messages))
    return [g.add("ScatterElements", zeros, at, messages, axis=0, reduction="add")]


def _cache(g: Group) -> list[str]:
    """New rows take their places in a cache, or go behind it."""
    heads, past, size = g.number(1, 12), g.number(4, 300), g.one((16, 32, 64))
    cache, new = g.input(1, heads, past, size), g.input(1, heads, 1, size)
    query = g.input(1, heads, 1, size)
    if g.flag():
        keys = g.add("Concat", cache, new, axis=2)
    else:
        at = g.input(1, dtype="int64", low=0, high=past)
        turned = g.add("Transpose", cache, perm=[2, 0, 1, 3])
        row = g.add("Transpose", new, perm=[2, 0, 1, 3])
        keys = g.add("Transpose", g.add("ScatterND", turned, g.add("Unsqueeze", at, g.ints(1)), row), perm=[1, 2, 0, 3])
    scores = g.add("MatMul", query, g.add("Transpose", keys, perm=[0, 1, 3, 2]))
    return [g.add("MatMul", g.add("Softmax", scores, axis=-1), keys), keys]


def _masked_softmax(g: Group) -> list[str]:
    """Probabilities of scores with a mask: added, by Where, of lengths, of a triangle, of windows."""
    batch, heads, rows, columns = g.number(1, 4), g.number(1, 12), g.number(1, 128), g.number(2, 256)
    x = g.input(batch, heads, rows, columns)
    kind = g.one(("added", "where", "lengths", "triangle", "not"))
    low = g.constant(-1e4)
    if kind == "added":
        mask = g.input(batch, 1, 1, columns, dtype="int64", low=0, high=2)
        x = g.add("Add", x, g.add("Mul", g.add("Sub", g.constant(1), g.cast(mask)), low))
    elif kind == "where":
        x = g.add("Where", g.input(batch, 1, rows, columns, dtype="bool"), x, low)
    elif kind == "lengths":
        lengths = g.input(batch, dtype="int64", low=1, high=columns + 1)
        places = g.add("Range", g.index(0), g.size(x, 3), g.index(1))
        mask = g.add("Less", places, g.add("Unsqueeze", lengths, g.ints(1)))
        x = g.add("Where", g.add("Unsqueeze", mask, g.ints(1, 2)), x, low)
    elif kind == "triangle":
        first = g.add("Unsqueeze", g.add("Range", g.index(0), g.size(x, 2), g.index(1)), g.ints(1))
        second = g.add("Unsqueeze", g.add("Range", g.index(0), g.size(x, 3), g.index(1)), g.ints(0))
        x = g.add("Where", g.add("LessOrEqual", second, first), x, low)
    else:
        mask = g.add("Equal", g.input(batch, 1, 1, columns, dtype="int32", low=0, high=2), g.constant(0, "int32"))
        x = g.add("Where", g.add("Not", mask), x, low)
    y = g.add("Softmax", x, axis=-1)
    return [g.add("Where", g.add("IsNaN", y), g.constant(0), y) if g.flag(0.3) else y]


def _spectrogram(g: Group) -> list[str]:
    """Frames of a signal by a strided convolution, powers, bands and logarithms."""
    frame, hop, length, bands = g.one((64, 128, 256)), g.one((32, 64)), g.number(1000, 16000), g.one((20, 40))
    x = g.input(1, length)
    signal = g.add("Unsqueeze", x, g.ints(1))
    padded = g.add("Pad", signal, g.ints(0, 0, frame // 2, 0, 0, frame // 2), mode="reflect")
    bins = frame // 2 + 1
    parts = g.add("Conv", padded, g.weight(2 * bins, 1, frame), strides=[hop])
    real, other = g.part(parts, 1, 0, bins), g.part(parts, 1, bins, 2 * bins)
    power = g.add("Add", g.add("Pow", real, g.constant(2)), g.add("Pow", other, g.constant(2)))
    mel = g.add("MatMul", g.constant(g.random.uniform(0, 1, (bands, bins))), power)
    logs = g.add("Log", g.add("Clip", mel, g.constant(1e-3)))
    return [g.add("Sub", logs, g.mean(logs, -1))]


def _open_sizes(g: Group) -> list[str]:
    """Arithmetic on sizes decides a Reshape, an Expand, a Slice and a Pad."""
    batch, length, width = g.number(1, 6), 2 * g.number(2, 100), 2 * g.number(4, 96)
    x = g.input(batch, length, width)
    rows = g.add("Mul", g.size(x, 0), g.size(x, 1))
    flat = g.add("Reshape", x, g.joined(rows, width))
    y = g.add("MatMul", flat, g.weight(width, width))
    half = g.add("Div", g.size(x, 1), g.index(2))
    back = g.add("Reshape", y, g.joined(g.size(x, 0), g.size(x, 1), 2, width // 2))
    part = g.add("Slice", back, g.ints(0), g.add("Unsqueeze", half, g.ints(0)), g.ints(1))
    zeros = g.add("Expand", g.constant(np.zeros((1, 1, 1, 1))), g.joined(g.size(x, 0), half, 2, width // 2))
    return [g.add("Concat", part, zeros, axis=1)]


def _places(g: Group) -> list[str]:
    """Sines and cosines of places, joined; places count what a mask lets through."""
    batch, length, half = g.number(1, 8), g.number(2, 300), g.number(4, 128)
    mask = g.input(batch, length, dtype="int64", low=0, high=2)
    places = g.add("Mul", g.add("CumSum", mask, g.index(1)), mask)
    if g.flag():
        return [g.add("Gather", g.weight(length + 2, 2 * half), g.add("Add", places, g.index(1)), axis=0)]
    angles = g.add(
        "Mul", g.add("Unsqueeze", g.cast(places), g.ints(-1)), g.constant(1 / 100 ** np.linspace(0, 1, half))
    )
    return [g.add("Concat", g.add("Sin", angles), g.add("Cos", angles), axis=-1)]


def _buckets(g: Group) -> list[str]:
    """A bias of attention by buckets of distances: integer arithmetic, logarithms and a gather."""
    rows, heads = g.number(4, 256), g.number(1, 12)
    x = g.input(heads, rows, rows)
    places = g.add("Range", g.index(0), g.size(x, 1), g.index(1))
    apart = g.add("Sub", g.add("Unsqueeze", places, g.ints(0)), g.add("Unsqueeze", places, g.ints(1)))
    far = g.add("Mul", g.cast(g.add("Greater", apart, g.index(0)), "int64"), g.index(16))
    distance = g.add("Abs", apart)
    logs = g.add("Log", g.add("Div", g.cast(g.add("Max", distance, g.index(1)), "float32"), g.constant(8.0, "float32")))
    large = g.add(
        "Min", g.add("Add", g.cast(g.add("Mul", logs, g.constant(2.9, "float32")), "int64"), g.index(8)), g.index(15)
    )
    bucket = g.add("Add", far, g.add("Where", g.add("Less", distance, g.index(8)), distance, large))
    bias = g.add("Transpose", g.add("Gather", g.weight(32, heads), bucket, axis=0), perm=[2, 0, 1])
    return [g.add("Softmax", g.add("Add", x, bias), axis=-1)]


def _sentence(g: Group) -> list[str]:
    """The mean of the rows that a mask lets through, of length one."""
    batch, length, width = g.number(1, 16), g.number(2, 200), g.number(8, 400)
    x, mask = g.input(batch, length, width), g.input(batch, length, dtype="int64", low=0, high=2)
    wide = g.cast(g.add("Expand", g.add("Unsqueeze", mask, g.ints(-1)), g.add("Shape", x)))
    total = g.add("ReduceSum", g.add("Mul", x, wide), g.ints(1), keepdims=0)
    count = g.add("Clip", g.add("ReduceSum", wide, g.ints(1), keepdims=0), g.constant(1e-3))
    mean = g.add("Div", total, count)
    length_of = g.add("Clip", g.add("ReduceL2", mean, g.ints(1), keepdims=1), g.constant(1e-3))
    return [g.add("Div", mean, g.add("Expand", length_of, g.add("Shape", mean)))]


def _similarity(g: Group) -> list[str]:
    """Distances of all rows to some centres, and the nearest."""
    rows, centres, width = g.number(2, 400), g.number(2, 300), g.number(2, 128)
    x, y = g.input(rows, width), g.weight(centres, width)
    squares = g.add("ReduceSum", g.add("Mul", x, x), g.ints(1), keepdims=1)
    others = g.add("ReduceSum", g.add("Mul", y, y), g.ints(1), keepdims=0)
    products = g.add("MatMul", x, g.add("Transpose", y, perm=[1, 0]))
    apart = g.add("Add", g.add("Sub", squares, g.add("Mul", g.constant(2), products)), others)
    nearest = g.add("ArgMin", apart, axis=1, keepdims=0)
    return [g.add("Gather", y, nearest, axis=0), g.add("ReduceMin", apart, g.ints(1), keepdims=0)]


def _neighbours(g: Group) -> list[str]:
    """The nearest points of a cloud, gathered, and the largest of their features."""
    points, width, k = g.number(16, 400), g.number(3, 48), g.number(2, 16)
    x = g.input(1, points, width)
    products = g.add("MatMul", x, g.add("Transpose", x, perm=[0, 2, 1]))
    squares = g.add("ReduceSum", g.add("Mul", x, x), g.ints(2), keepdims=1)
    apart = g.add(
        "Sub", g.add("Sub", g.add("Mul", products, g.constant(2)), squares), g.add("Transpose", squares, perm=[0, 2, 1])
    )
    _, places = g.add_all("TopK", 2, apart, g.ints(k), axis=-1)
    rows = g.add("Gather", g.add("Squeeze", x, g.ints(0)), g.add("Squeeze", places, g.ints(0)), axis=0)
    edges = g.add("Sub", rows, g.add("Unsqueeze", g.add("Squeeze", x, g.ints(0)), g.ints(1)))
    outputs = g.number(4, 64)
    return [g.add("ReduceMax", g.add("MatMul", edges, g.weight(width, outputs)), g.ints(1), keepdims=0)]


def _einsum(g: Group) -> list[str]:
    """Products by letters."""
    b, i, j, d, h = g.number(1, 4), g.number(2, 80), g.number(2, 80), g.number(2, 64), g.number(1, 8)
    form, left, right = g.one(
        (
            ("bid,bjd->bij", (b, i, d), (b, j, d)),
            ("bihd,bjhd->bhij", (b, i, h, d), (b, j, h, d)),
            ("bhij,bjhd->bihd", (b, h, i, j), (b, j, h, d)),
            ("bid,hdj->bhij", (b, i, d), (h, d, j)),
            ("bnc,bcm->bnm", (b, i, d), (b, d, j)),
            ("ij,ij->i", (i, d), (i, d)),
            ("bchw,hkc->bkhw", (b, d, h, j), (h, i, d)),
        )
    )
    y = g.add("Einsum", g.input(*left), g.input(*right), equation=form)
    return [g.add("Mul", y, g.constant(0.125))]


def _state_space(g: Group) -> list[str]:
    """A scan of decays by cumulative sums, as chunked state spaces are written."""
    batch, length, width = g.number(1, 4), g.number(4, 128), g.number(2, 64)
    x, decay = g.input(batch, length, width), g.input(batch, length, width, low=-1, high=0)
    total = g.add("CumSum", decay, g.index(1))
    grown = g.add(
        "CumSum", g.add("Mul", x, g.add("Exp", g.add("Neg", g.add("Mul", total, g.constant(0.05))))), g.index(1)
    )
    return [g.add("Mul", grown, g.add("Exp", g.add("Mul", total, g.constant(0.05))))]


def _tokens(g: Group) -> list[str]:
    """The end of a decoder: the last row's logits, a temperature, the best few and their probabilities."""
    batch, length, words = g.number(1, 4), g.number(1, 64), g.number(100, 8000)
    x = g.input(batch, length, 64)
    last = (
        g.add("Squeeze", g.part(x, 1, -1, 1 << 40), g.ints(1)) if g.flag() else g.add("Gather", x, g.index(-1), axis=1)
    )
    logits = g.add("Div", g.add("MatMul", last, g.weight(64, words)), g.constant(0.7))
    best, places = g.add_all("TopK", 2, logits, g.ints(g.number(1, 50)), axis=-1)
    return [g.add("Softmax", best, axis=-1), places]


def _integers(g: Group) -> list[str]:
    """Conditions and counts of integers: which tokens, how many, where the last is."""
    batch, length = g.number(1, 64), g.number(2, 512)
    dtype = g.one(("int64", "int32"))
    x = g.input(batch, length, dtype=dtype, low=0, high=50)
    ends = g.cast(g.add("Equal", x, g.constant(7, dtype)), dtype)
    count = g.add("ReduceSum", ends, g.ints(1), keepdims=1)
    last = g.add("ArgMax", g.cast(ends, "int32"), axis=1, keepdims=0)
    other = g.add("Where", g.add("Greater", x, count), g.add("Mod", x, g.constant(5, dtype)), g.add("Sub", x, count))
    return [g.add("Max", other, g.constant(0, dtype)), last]


def _moments(g: Group) -> list[str]:
    """Mean and deviation over time, joined: the pooling of speaker networks."""
    channels, length = g.number(4, 256), g.number(4, 300)
    x = g.input(g.number(1, 4), channels, length)
    mean = g.add("ReduceMean", x, g.ints(2), keepdims=0)
    centred = g.add("Sub", x, g.add("Unsqueeze", mean, g.ints(2)))
    variance = g.add("ReduceMean", g.add("Mul", centred, centred), g.ints(2), keepdims=0)
    both = g.add("Concat", mean, g.add("Sqrt", g.add("Clip", variance, g.constant(1e-3))), axis=1)
    return [g.add("Gemm", both, g.weight(64, 2 * channels), g.weight(64), transB=1)]


SEQUENCE: tuple[Callable[[Group], list[str]], ...] = (
    _buckets,
    _cache,
    _causal_convolution,
    _einsum,
    _embedding,
    _gated,
    _heads,
    _integers,
    _interleaved_rotation,
    _layer_norm,
    _masked_softmax,
    _moments,
    _neighbours,
    _open_sizes,
    _places,
    _root_mean_square,
    _scattered,
    _sentence,
    _similarity,
    _sliced_sum,
    _spectrogram,
    _state_space,
    _tokens,
)
