"""Groups of operators of networks for images: heads of detectors, norms, windows, what enlarges and what joins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.models.random_group import Group

__all__ = ["VISION"]


def _turned_product(g: Group) -> list[str]:
    """Pixels become rows of a product, and an image again."""
    batch, channels, rows, columns = g.number(1, 4), g.number(3, 96), g.number(3, 40), g.number(3, 40)
    x = g.input(batch, channels, rows, columns)
    flat = g.add("Transpose", g.add("Reshape", x, g.ints(0, channels, -1)), perm=[0, 2, 1])
    outputs = g.number(3, 128)
    y = g.add("MatMul", flat, g.weight(channels, outputs))
    if g.flag():
        y = g.add("Add", y, g.weight(outputs))
    turned = g.add("Transpose", y, perm=[0, 2, 1])
    return [g.add("Reshape", turned, g.ints(0, outputs, rows, columns))]


def _padded_convolution(g: Group) -> list[str]:
    """A Pad that no attribute of the convolution stands for, or stands for it."""
    batch, channels, rows, columns = g.number(1, 2), g.number(1, 48), g.number(8, 64), g.number(8, 64)
    kernel, stride = g.one((2, 3, 3, 5, 7)), g.one((1, 1, 2))
    mode = g.one(("constant", "reflect", "edge"))
    x = g.input(batch, channels, rows, columns)
    before, behind = kernel // 2, (kernel - 1) // 2 if g.flag() else kernel // 2
    padded = g.add("Pad", x, g.ints(0, 0, before, before, 0, 0, behind, behind), mode=mode)
    group = channels if g.flag(0.3) else 1
    outputs = channels if group > 1 else g.number(1, 64)
    y = g.add(
        "Conv",
        padded,
        g.weight(outputs, channels // group, kernel, kernel),
        g.weight(outputs),
        group=group,
        strides=[stride] * 2,
    )
    return [g.silu(y) if g.flag() else g.add("LeakyRelu", y, alpha=0.2)]


def _group_norm(g: Group) -> list[str]:
    """A norm of groups as exporters spell it: by InstanceNormalization or by means."""
    groups = g.one((1, 2, 4, 8, 32))
    channels = groups * g.number(1, 8)
    rows, columns = g.number(2, 48), g.number(2, 48)
    x = g.input(g.number(1, 4), channels, rows, columns)
    flat = g.add("Reshape", x, g.ints(0, groups, -1))
    if g.flag():
        y = g.add(
            "InstanceNormalization", flat, g.constant(np.ones(groups)), g.constant(np.zeros(groups)), epsilon=1e-3
        )
    else:
        centred = g.add("Sub", flat, g.mean(flat, 2))
        root = g.add("Sqrt", g.add("Add", g.mean(g.add("Mul", centred, centred), 2), g.constant(1e-3)))
        y = g.add("Div", centred, root)
    back = g.add("Reshape", y, g.add("Shape", x) if g.flag() else g.ints(0, channels, rows, columns))
    y = g.add("Add", g.add("Mul", back, g.weight(channels, 1, 1)), g.weight(channels, 1, 1))
    return [g.silu(y) if g.flag() else y]


def _boxes(g: Group) -> list[str]:
    """The tail of a detector: boxes by NonMaxSuppression, gathered."""
    count, classes = g.number(20, 2000), g.number(1, 20)
    corners = g.random.uniform(0, 100, (1, count, 2))
    boxes = g.input(
        values=np.concatenate([corners, corners + g.random.uniform(5, 50, (1, count, 2))], axis=2), dtype="float32"
    )
    scores = g.input(1, count, classes, dtype="float32", low=0)
    turned = g.add("Transpose", scores, perm=[0, 2, 1])
    limits = g.index(g.number(5, 100)), g.constant(0.5, "float32"), g.constant(g.one((0.3, 0.7)), "float32")
    chosen = g.add("NonMaxSuppression", boxes, turned, *limits)
    place = g.add("Squeeze", g.part(chosen, 1, 2, 3), g.ints(1))
    found = g.add("Gather", g.add("Squeeze", boxes, g.ints(0)), place, axis=0)
    return [found, g.add("GatherND", turned, chosen)]


def _best_boxes(g: Group) -> list[str]:
    """The tail of a detector: the best by TopK, gathered by their positions."""
    batch, count, classes = g.number(1, 4), g.number(50, 3000), g.number(2, 80)
    logits, boxes = g.input(batch, count, classes), g.input(batch, count, 4)
    best = g.add("ReduceMax", g.add("Sigmoid", logits), g.ints(-1), keepdims=0)
    k = g.number(1, min(count, 300))
    values, places = g.add_all("TopK", 2, best, g.ints(k), axis=1)
    repeated = g.add("Expand", g.add("Unsqueeze", places, g.ints(-1)), g.ints(1, 1, 4))
    labels = g.add("ArgMax", logits, axis=-1, keepdims=0)
    return [values, g.add("GatherElements", boxes, repeated, axis=1), g.add("GatherElements", labels, places, axis=1)]


def _distances(g: Group) -> list[str]:
    """Expected distances of a box's sides from bins of probabilities, and the box itself."""
    batch, bins, count = g.number(1, 3), g.one((8, 16, 17)), g.number(20, 2100)
    x = g.input(batch, 4 * bins, count)
    split = g.add("Transpose", g.add("Reshape", x, g.ints(0, 4, bins, count)), perm=[0, 2, 1, 3])
    weights = g.constant(np.arange(bins).reshape(1, bins, 1, 1))
    sides = g.add("Reshape", g.add("Conv", g.add("Softmax", split, axis=1), weights), g.ints(0, 4, count))
    near, far = g.add_all("Split", 2, sides, axis=1, num_outputs=2)
    anchors = g.weight(1, 2, count)
    first, last = g.add("Sub", anchors, near), g.add("Add", anchors, far)
    middle = g.add("Div", g.add("Add", first, last), g.constant(2))
    return [g.add("Mul", g.add("Concat", middle, g.add("Sub", last, first), axis=1), g.constant(8))]


def _anchors(g: Group) -> list[str]:
    """Boxes of a grid with anchors, five numbers and classes for each."""
    batch, rows, columns, classes = g.number(1, 2), g.number(4, 40), g.number(4, 40), g.number(1, 40)
    x = g.input(batch, 3 * (5 + classes), rows, columns)
    split = g.add("Reshape", x, g.ints(0, 3, 5 + classes, rows, columns))
    y = g.add("Sigmoid", g.add("Transpose", split, perm=[0, 1, 3, 4, 2]))
    xy = g.add(
        "Mul",
        g.add("Add", g.add("Mul", g.part(y, 4, 0, 2), g.constant(2)), g.weight(1, 1, rows, columns, 2)),
        g.constant(16),
    )
    wh = g.add(
        "Mul", g.add("Pow", g.add("Mul", g.part(y, 4, 2, 4), g.constant(2)), g.constant(2)), g.weight(1, 3, 1, 1, 2)
    )
    joined = g.add("Concat", xy, wh, g.part(y, 4, 4, 1 << 40), axis=4)
    return [g.add("Reshape", joined, g.ints(0, -1, 5 + classes))]


def _one_hot(g: Group) -> list[str]:
    """The largest class, as a mask of zeros and ones."""
    axis = g.one((1, -1))
    x = (
        g.input(g.number(1, 4), g.number(2, 40), g.number(2, 100), g.number(2, 40))
        if g.flag()
        else g.input(g.number(1, 500), g.number(2, 300))
    )
    rank = len(g.feeds["x0"].shape)
    depth = g.feeds["x0"].shape[axis]
    best = g.add("ArgMax", x, axis=axis, keepdims=0)
    values = g.constant([0, 1])
    one = g.add("OneHot", best, g.index(depth), values, axis=axis if axis < 0 or rank == 2 else 1)
    return [g.add("Mul", one, x)]


def _pixel_shuffle(g: Group) -> list[str]:
    """Channels become pixels or pixels channels, by Reshape and Transpose."""
    block, channels, rows, columns = g.one((2, 3, 4)), g.number(1, 24), g.number(4, 64), g.number(4, 64)
    batch = g.number(1, 2)
    if g.flag():
        x = g.input(batch, channels * block * block, rows, columns)
        split = g.add("Reshape", x, g.ints(0, channels, block, block, rows, columns))
        turned = g.add("Transpose", split, perm=[0, 1, 4, 2, 5, 3])
        return [g.add("Relu", g.add("Reshape", turned, g.ints(0, channels, rows * block, columns * block)))]
    x = g.input(batch, channels, rows * block, columns * block)
    split = g.add("Reshape", x, g.ints(0, channels, rows, block, columns, block))
    turned = g.add("Transpose", split, perm=[0, 3, 5, 1, 2, 4])
    return [g.add("Reshape", turned, g.ints(0, channels * block * block, rows, columns))]


def _focus(g: Group) -> list[str]:
    """Every other pixel of rows and columns, joined as channels, and a convolution."""
    channels, rows, columns = g.number(1, 12), 2 * g.number(4, 64), 2 * g.number(4, 64)
    x = g.input(1, channels, rows, columns)
    parts = [g.part(g.part(x, 2, i, 1 << 40, 2), 3, j, 1 << 40, 2) for j in (0, 1) for i in (0, 1)]
    joined = g.add("Concat", *parts, axis=1)
    outputs = g.number(4, 48)
    return [g.silu(g.add("Conv", joined, g.weight(outputs, 4 * channels, 3, 3), pads=[1] * 4))]


def _windows(g: Group) -> list[str]:
    """An image with channels last is rolled and cut into windows, and put together again."""
    window, across, down, width = g.one((4, 7, 8)), g.number(1, 6), g.number(1, 6), g.number(8, 96)
    rows, columns, shift = down * window, across * window, window // 2
    x = g.input(1, rows, columns, width)
    rolled = g.add("Concat", g.part(x, 1, shift, 1 << 40), g.part(x, 1, 0, shift), axis=1)
    rolled = g.add("Concat", g.part(rolled, 2, shift, 1 << 40), g.part(rolled, 2, 0, shift), axis=2)
    split = g.add("Reshape", rolled, g.ints(1, down, window, across, window, width))
    cut = g.add("Reshape", g.add("Transpose", split, perm=[0, 1, 3, 2, 4, 5]), g.ints(-1, window * window, width))
    y = g.add("Add", g.add("MatMul", cut, g.weight(width, width)), g.weight(width))
    joined = g.add(
        "Transpose", g.add("Reshape", y, g.ints(1, down, across, window, window, width)), perm=[0, 1, 3, 2, 4, 5]
    )
    return [g.add("Add", x, g.add("Reshape", joined, g.ints(1, rows, columns, width)))]


def _channel_shuffle(g: Group) -> list[str]:
    """Half of the channels go through a depthwise convolution, then all are shuffled."""
    half, rows, columns = g.number(4, 64), g.number(4, 48), g.number(4, 48)
    x = g.input(g.number(1, 2), 2 * half, rows, columns)
    left, right = g.add_all("Split", 2, x, axis=1, num_outputs=2)
    y = g.add("Relu", g.add("Conv", right, g.weight(half, 1, 3, 3), pads=[1] * 4, group=half))
    joined = g.add("Concat", left, g.add("Conv", y, g.weight(half, half, 1, 1)), axis=1)
    split = g.add("Transpose", g.add("Reshape", joined, g.ints(0, 2, half, rows, columns)), perm=[0, 2, 1, 3, 4])
    return [g.add("Reshape", split, g.ints(0, 2 * half, rows, columns))]


def _excitation(g: Group) -> list[str]:
    """Channels are weighed by two small products of their means."""
    channels, rows, columns = g.number(4, 192), g.number(3, 48), g.number(3, 48)
    x = g.input(g.number(1, 4), channels, rows, columns)
    inner = max(1, channels // 4)
    means = g.add("GlobalAveragePool", x) if g.flag() else g.mean(x, 2, 3)
    y = g.add("Relu", g.add("Conv", means, g.weight(inner, channels, 1, 1), g.weight(inner)))
    y = g.add("Conv", y, g.weight(channels, inner, 1, 1), g.weight(channels))
    return [g.add("Mul", x, g.add(g.one(("Sigmoid", "HardSigmoid")), y))]


def _pyramid(g: Group) -> list[str]:
    """Max pools one behind the other, joined; or a map twice as large beside a skip."""
    channels, rows, columns = g.number(2, 64), g.number(4, 40), g.number(4, 40)
    x = g.input(g.number(1, 2), channels, rows, columns)
    if g.flag():
        pools = [x]
        for _ in range(3):
            pools.append(g.add("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
        return [g.add("Conv", g.add("Concat", *pools, axis=1), g.weight(channels, 4 * channels, 1, 1))]
    skip = g.input(g.feeds["x0"].shape[0], channels, 2 * rows, 2 * columns)
    mode = g.one(("nearest", "linear"))
    large = {"mode": mode, "coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel"}
    if mode == "nearest":
        large["nearest_mode"] = "floor"
    if g.flag():
        sizes = g.add(
            "Concat",
            g.add("Slice", g.add("Shape", x), g.ints(0), g.ints(2)),
            g.add("Slice", g.add("Shape", skip), g.ints(2), g.ints(4)),
            axis=0,
        )
        y = g.add("Resize", x, "", "", sizes, **large)
    else:
        y = g.add("Resize", x, "", g.constant([1, 1, 2, 2], "float32"), **large)
    joined = g.add("Concat", y, skip, axis=1)
    return [g.add("Relu", g.add("Conv", joined, g.weight(channels, 2 * channels, 3, 3), pads=[1] * 4))]


def _enlarged(g: Group) -> list[str]:
    """A transposed convolution of few or many channels, its bias, an activation and a crop."""
    axes = g.one((1, 2, 2))
    stride = g.one((2, 2, 3, 4, 8)) if axes == 1 else g.one((2, 2, 3, 4))
    kernel = stride * g.one((1, 2)) if g.flag(0.7) else g.number(1, 6)
    inputs, outputs = g.number(1, 96), g.number(1, 64)
    sizes = [g.number(8, 400)] if axes == 1 else [g.number(2, 32), g.number(2, 32)]
    x = g.input(g.number(1, 2), inputs, *sizes)
    y = g.add("LeakyRelu", x, alpha=0.1) if g.flag() else x
    y = g.add(
        "ConvTranspose", y, g.weight(inputs, outputs, *[kernel] * axes), g.weight(outputs), strides=[stride] * axes
    )
    y = g.add(g.one(("Tanh", "Relu", "Sigmoid")), y)
    return [g.part(y, 2, 1, -1) if g.flag(0.4) and sizes[0] > 3 else y]


def _sampled(g: Group) -> list[str]:
    """A flow moves an image: a grid of places, scaled to [-1, 1]."""
    channels, rows, columns = g.number(1, 32), g.number(8, 48), g.number(8, 48)
    x, flow = (
        g.input(1, channels, rows, columns, dtype="float32"),
        g.input(1, 2, rows, columns, dtype="float32", low=-3, high=3),
    )
    base = g.constant(np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), 0)[None], "float32")
    moved = g.add("Transpose", g.add("Add", flow, base), perm=[0, 2, 3, 1])
    scale = g.constant([2 / (columns - 1), 2 / (rows - 1)], "float32")
    grid = g.add("Sub", g.add("Mul", moved, scale), g.constant(1, "float32"))
    return [g.add("GridSample", x, grid, align_corners=1, padding_mode=g.one(("zeros", "border")))]


def _label_map(g: Group) -> list[str]:
    """A map of classes: enlarged scores, the best one, as integers."""
    classes, rows, columns = g.number(2, 32), g.number(4, 32), g.number(4, 32)
    x = g.input(1, classes, rows, columns)
    factor = g.one((2, 4, 8))
    y = g.add(
        "Resize",
        x,
        "",
        g.constant([1, 1, factor, factor], "float32"),
        mode="linear",
        coordinate_transformation_mode=g.one(("half_pixel", "align_corners")),
    )
    best = g.add("ArgMax", y, axis=1, keepdims=g.one((0, 1)))
    return [g.cast(best, g.one(("int32", "uint8", "int64")))]


def _image(g: Group) -> list[str]:
    """An image of bytes is turned, scaled, cut and normalized."""
    rows, columns = g.number(32, 240), g.number(32, 240)
    x = g.input(1, rows, columns, 3, dtype="uint8", low=0, high=255)
    y = g.cast(g.add("Transpose", x, perm=[0, 3, 1, 2]), "float32")
    size = g.one((32, 56, 112))
    y = g.add("Resize", y, "", "", g.ints(1, 3, size, size), mode="linear")
    centred = g.add(
        "Sub", g.add("Div", y, g.constant(255, "float32")), g.constant(g.random.uniform(0, 1, (1, 3, 1, 1)), "float32")
    )
    y = g.add("Div", centred, g.constant(g.random.uniform(0.2, 1, (1, 3, 1, 1)), "float32"))
    return [g.cast(y) if g.dtype == "float16" else y]


def _patches(g: Group) -> list[str]:
    """Patches of an image become rows, a token goes before them and places are added."""
    patch, across, width, channels = g.one((4, 8, 14, 16)), g.number(2, 12), g.number(16, 192), g.one((1, 3))
    x = g.input(g.one((1, 2)), channels, patch * across, patch * across)
    y = g.add("Conv", x, g.weight(width, channels, patch, patch), g.weight(width), strides=[patch] * 2)
    rows = g.add("Transpose", g.add("Reshape", y, g.ints(0, width, -1)), perm=[0, 2, 1])
    token = g.add("Expand", g.weight(1, 1, width), g.joined(g.size(x, 0), 1, width))
    return [g.add("Add", g.add("Concat", token, rows, axis=1), g.weight(1, across * across + 1, width))]


VISION: tuple[Callable[[Group], list[str]], ...] = (
    _anchors,
    _best_boxes,
    _boxes,
    _channel_shuffle,
    _distances,
    _enlarged,
    _excitation,
    _focus,
    _group_norm,
    _image,
    _label_map,
    _one_hot,
    _padded_convolution,
    _patches,
    _pixel_shuffle,
    _pyramid,
    _sampled,
    _turned_product,
    _windows,
)
