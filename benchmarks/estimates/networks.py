"""Networks that nobody tuned for: each is drawn from a seed, of the kinds that models are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from benchmarks.estimates.draw import Draw

__all__ = ["KINDS", "draw"]

#: A decoder narrows values that have more elements.
_MOST = 3_000_000


def _squeezed(d: Draw, x: str, c: int) -> str:
    """An excitation of channels by their means."""
    inner = max(4, c // d.pick(4, 8, 16))
    means = d.add("GlobalAveragePool", x) if d.pick(0, 1) else d.add("ReduceMean", x, axes=[2, 3], keepdims=1)
    gate = d.conv(d.add("Relu", d.conv(means, c, inner, 1)), inner, c, 1)
    return d.add("Mul", x, d.add(d.pick("Sigmoid", "HardSigmoid"), gate))


def _shuffled(d: Draw, x: str, c: int, h: int, w: int, groups: int) -> str:
    parts = d.add("Reshape", x, d.ints(1, groups, c // groups, h, w))
    return d.add("Reshape", d.add("Transpose", parts, perm=[0, 2, 1, 3, 4]), d.ints(1, c, h, w))


def _block(d: Draw, x: str, c: int, h: int, w: int) -> tuple[str, int]:
    """A block that keeps the image's size; the value and its channels."""
    kind = d.pick("plain", "residual", "bottleneck", "inverted", "squeeze", "shuffle", "branches", "dense", "dilated")
    if kind == "plain":
        oc = d.width(c, 2 * c)
        return d.activation(d.conv(x, c, oc, d.pick(1, 3, 3, 5))), oc
    if kind == "residual":
        y = d.conv(d.activation(d.conv(x, c, c, 3)), c, c, 3)
        return d.activation(d.add("Add", x, y)), c
    if kind == "bottleneck":
        inner = max(4, c // 4)
        y = d.activation(d.conv(d.activation(d.conv(x, c, inner, 1)), inner, inner, 3))
        return d.activation(d.add("Add", d.conv(y, inner, c, 1), x)), c
    if kind in ("inverted", "squeeze"):
        inner = c * d.pick(1, 2, 4, 6)
        y = d.activation(d.conv(x, c, inner, 1))
        y = d.activation(d.conv(y, inner, inner, d.pick(3, 5, 7), group=inner))
        y = _squeezed(d, y, inner) if kind == "squeeze" else y
        return d.add("Add", x, d.conv(y, inner, c, 1)), c
    if kind == "shuffle" and c % 2 == 0:
        half = c // 2
        if d.pick(0, 1):
            left, right = d.b.add_all("Split", [x], 2, axis=1)
        else:
            left, right = (d.add("Gather", x, d.ints(*range(i, c, 2)), axis=1) for i in (0, 1))
        right = d.activation(d.conv(right, half, half, 1))
        right = d.conv(d.conv(right, half, half, 3, group=half), half, half, 1)
        return _shuffled(d, d.add("Concat", left, d.activation(right), axis=1), c, h, w, 2), c
    if kind == "branches":
        widths = [d.width(8, max(9, c)) for _ in range(d.pick(2, 3, 4))]
        ends = [d.activation(d.conv(x, c, n, d.pick(1, 3, 5))) for n in widths[:-1]]
        k = d.pick(3, 3, 5, 9)
        pool = d.add(d.pick("MaxPool", "AveragePool"), x, kernel_shape=[k] * 2, strides=[1] * 2, pads=[k // 2] * 4)
        ends.append(d.conv(pool, c, widths[-1], 1))
        return d.add("Concat", *ends, axis=1), sum(widths)
    if kind == "dense":
        grown = d.width(8, 48)
        y = d.conv(d.activation(d.conv(x, c, 2 * grown, 1)), 2 * grown, grown, 3)
        return d.add("Concat", x, y, axis=1), c + grown
    return d.activation(d.conv(x, c, c, 3, dilation=2)), c


def _shrunk(d: Draw, x: str, c: int, h: int, w: int) -> tuple[str, int, int, int]:
    kind = d.pick("conv", "max", "average", "odd")
    if kind == "conv" or min(h, w) < 6:
        oc = d.width(c, min(2 * c + 8, 768))
        return d.activation(d.conv(x, c, oc, 3, 2)), oc, -(-h // 2), -(-w // 2)
    if kind == "odd":
        return d.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2]), c, (h - 3) // 2 + 1, (w - 3) // 2 + 1
    op = "MaxPool" if kind == "max" else "AveragePool"
    return d.add(op, x, kernel_shape=[2, 2], strides=[2, 2]), c, h // 2, w // 2


def _stem(d: Draw, most: int = 320) -> tuple[str, int, int, int]:
    c = d.pick(1, 3, 3, 3, 4)
    h, w = (d.integer(24, most) for _ in range(2))
    x = d.input("x", [1, c, h, w])
    if d.pick(0, 0, 0, 1):
        x = d.add("Div", d.add("Sub", x, d.weight(1, c, 1, 1)), d.scalar(0.2))
    oc = d.width(8, 48)
    stride = 2 if h * w > 160 * 160 else d.pick(1, 2)
    return d.activation(d.conv(x, c, oc, d.pick(3, 3, 5, 7), stride)), oc, -(-h // stride), -(-w // stride)


def _trunk(d: Draw, stages: int, most: int = 320) -> list[tuple[str, int, int, int]]:
    """The ends of stages, each half as large as the one before."""
    x, c, h, w = _stem(d, most)
    ends = [(x, c, h, w)]
    for _ in range(stages):
        if min(h, w) < 4:
            break
        x, c, h, w = _shrunk(d, x, c, h, w)
        for _ in range(d.pick(1, 2, 3)):
            x, c = _block(d, x, c, h, w)
        ends.append((x, c, h, w))
    return ends


def _classifier(d: Draw) -> None:
    x, c, *_ = _trunk(d, d.pick(2, 3, 4))[-1]
    kind = d.pick("average", "max", "mean")
    if kind == "mean":
        x = d.add("ReduceMean", x, axes=[2, 3], keepdims=0)
    else:
        x = d.add("Flatten", d.add("GlobalAveragePool" if kind == "average" else "GlobalMaxPool", x))
    classes = d.pick(2, 10, 100, 1000)
    x = d.add("Gemm", x, d.weight(classes, c), d.weight(classes), transB=1)
    d.outputs = [d.add("Softmax", x, axis=-1) if d.pick(0, 1) else x]


def _enlarged(d: Draw, x: str, c: int, h: int, w: int, scale: int = 2) -> tuple[str, int]:
    kind = d.pick("nearest", "linear", "corners", "cubic", "transposed", "shuffle")
    if kind == "transposed":
        oc = d.width(4, c)
        kernel = d.pick(scale, 2 * scale)
        pads = [(kernel - scale) // 2] * 4
        window = {"strides": [scale] * 2, "pads": pads, "kernel_shape": [kernel] * 2}
        return d.add("ConvTranspose", x, d.weight(c, oc, kernel, kernel), d.weight(oc), **window), oc
    if kind == "shuffle":
        oc = max(1, c // 4)
        return d.add(
            "DepthToSpace", d.conv(x, c, oc * scale * scale, 1), blocksize=scale, mode=d.pick("DCR", "CRD")
        ), oc
    sizes = d.ints(1, c, h * scale, w * scale)
    modes = {
        "nearest": {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        "linear": {"mode": "linear", "coordinate_transformation_mode": d.pick("half_pixel", "pytorch_half_pixel")},
        "corners": {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        "cubic": {"mode": "cubic", "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75},
    }
    return d.add("Resize", x, "", "", sizes, **modes[kind]), c


def _segmenter(d: Draw) -> None:
    ends = _trunk(d, d.pick(1, 2, 3), 256)
    x, c, h, w = ends[-1]
    for skip, skipped, height, width in reversed(ends[:-1]):
        if c * height * width > _MOST:
            x, c = d.conv(x, c, max(4, c // 4), 1), max(4, c // 4)
        x, c = _enlarged(d, x, c, h, w)
        if (height, width) != (2 * h, 2 * w):
            x = d.add("Resize", x, "", "", d.ints(1, c, height, width), mode="nearest")
        h, w = height, width
        if d.pick(0, 1):
            x, c = d.add("Concat", x, skip, axis=1), c + skipped
        else:
            x, c = d.add("Add", d.conv(x, c, skipped, 1), skip), skipped
        oc = d.width(8, 64)
        x, c = d.activation(d.conv(x, c, oc, 3)), oc
    classes = d.pick(1, 2, 19, 21)
    x = d.conv(x, c, classes, 1)
    if d.pick(0, 1):
        x = d.add("Resize", x, "", "", d.ints(1, classes, 2 * h, 2 * w), mode="linear")
    end = d.pick("softmax", "argmax", "sigmoid", "none")
    if end == "softmax":
        x = d.add("Softmax", x, axis=1)
    elif end == "argmax":
        x = d.add("ArgMax", x, axis=1, keepdims=0)
    d.outputs = [d.add("Sigmoid", x) if end == "sigmoid" else x]


def _detector(d: Draw) -> None:
    ends = _trunk(d, d.pick(3, 4), 416)[-3:]
    anchors, classes = d.pick(1, 2, 3), d.pick(1, 20, 80)
    fields = 5 + classes
    found = []
    for x, c, h, w in ends:
        y = d.conv(d.activation(d.conv(x, c, c, 3)), c, anchors * fields, 1)
        if d.pick(0, 1):
            y = d.add("Reshape", y, d.ints(1, anchors, fields, h * w))
            y = d.add("Transpose", y, perm=[0, 1, 3, 2])
        else:
            y = d.add("Transpose", y, perm=[0, 2, 3, 1])
        found.append(d.add("Reshape", y, d.ints(1, anchors * h * w, fields)))
    rows = sum(anchors * h * w for _, _, h, w in ends)
    y = d.add("Concat", *found, axis=1)
    lengths = d.ints(2, 2, 1, classes)
    centres, sizes, objects, scores = d.b.add_all("Split", [y, lengths], 4, axis=2)
    centres = d.add("Mul", d.add("Add", d.add("Sigmoid", centres), d.weight(1, rows, 2)), d.scalar(8))
    sizes = d.add("Mul", d.add("Exp", d.add("Clip", sizes, "", d.scalar(4))), d.weight(1, rows, 2))
    scores = d.add("Mul", d.add("Sigmoid", objects), d.add("Sigmoid", scores))
    if d.pick(0, 1):
        half = d.add("Mul", sizes, d.scalar(0.5))
        low, high = d.add("Sub", centres, half), d.add("Add", centres, half)
        boxes = d.add("Concat", low, high, axis=2)
    else:
        boxes = d.add("Concat", centres, sizes, axis=2)
    kind = d.pick("raw", "top", "classes")
    if kind == "raw":
        d.outputs = [d.add("Concat", boxes, scores, axis=2)]
        return
    best = d.add("ReduceMax", scores, axes=[2], keepdims=0)
    if kind == "classes":
        d.outputs = [boxes, best, d.add("ArgMax", scores, axis=2, keepdims=0)]
        return
    top, where = d.b.add_all("TopK", [best, d.ints(min(100, rows))], 2, axis=1)
    d.outputs = [top, d.add("Gather", boxes, d.add("Squeeze", where, d.ints(0)), axis=1)]


def _heads(d: Draw, x: str, heads: int, width: int, perm: Sequence[int]) -> str:
    return d.add("Transpose", d.add("Reshape", x, d.ints(0, 0, heads, width // heads)), perm=list(perm))


def _encoder(d: Draw) -> None:
    heads = d.pick(2, 3, 4, 8)
    width, length, batch = heads * d.pick(16, 32, 48, 64), d.integer(8, 300), d.pick(1, 1, 1, 4)
    if d.pick(0, 1):
        ids = d.input("ids", [batch, length], TensorProto.INT64)
        words = d.add("Gather", d.weight(d.integer(200, 5000), width), d.add("Mod", ids, d.ints(100)))
        x = d.layer_norm(d.add("Add", words, d.weight(1, length, width)), width)
    else:
        x = d.dense(
            d.input("x", [batch, length, d.integer(8, 256)]),
            int(d.inputs[0].type.tensor_type.shape.dim[2].dim_value),
            width,
        )
    masked = d.pick(0, 1)
    mask = (
        d.add("Cast", d.input("mask", [batch, 1, 1, length], TensorProto.BOOL), to=TensorProto.FLOAT) if masked else ""
    )
    if masked:
        mask = d.add("Mul", d.add("Sub", d.scalar(1), mask), d.scalar(-1e4))
    for _ in range(d.pick(1, 2)):
        y = d.layer_norm(x, width)
        if d.pick(0, 1):
            fused = d.dense(y, width, 3 * width)
            q, k, v = d.b.add_all("Split", [fused], 3, axis=2)
        else:
            q, k, v = (d.dense(y, width, width) for _ in range(3))
        q, k, v = (
            _heads(d, q, heads, width, (0, 2, 1, 3)),
            _heads(d, k, heads, width, (0, 2, 3, 1)),
            _heads(d, v, heads, width, (0, 2, 1, 3)),
        )
        scores = d.add("Mul", d.add("MatMul", q, k), d.scalar((width // heads) ** -0.5))
        scores = d.add("Add", scores, mask) if masked else scores
        y = d.add("Transpose", d.add("MatMul", d.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = d.add("Add", x, d.dense(d.add("Reshape", y, d.ints(0, 0, width)), width, width))
        inner = width * d.pick(1, 2, 4)
        x = d.add("Add", x, d.dense(d.activation(d.dense(d.layer_norm(x, width), width, inner)), inner, width))
    end = d.pick("tokens", "mean", "first")
    if end == "mean":
        x = d.add("ReduceMean", x, axes=[1], keepdims=0)
    elif end == "first":
        x = d.add("Gather", x, d.b.constant(0, np.int64), axis=1)
    d.outputs = [x]


def _mlp(d: Draw) -> None:
    rows, width = d.pick(1, 1, 7, 64, 512), d.integer(8, 1024)
    x = d.input("x", [rows, width])
    if d.pick(0, 1):
        mean = d.add("ReduceMean", x, axes=[1], keepdims=1)
        x = d.add("Sub", x, mean)
        x = d.add(
            "Div",
            x,
            d.add("Sqrt", d.add("Add", d.add("ReduceMean", d.add("Mul", x, x), axes=[1], keepdims=1), d.scalar(1e-5))),
        )
    for _ in range(d.pick(2, 3, 5)):
        wide = d.integer(8, 1024)
        x, width = d.activation(d.add("Gemm", x, d.weight(wide, width), d.weight(wide), transB=1)), wide
    d.outputs = [d.add(d.pick("Softmax", "LogSoftmax"), x, axis=-1) if d.pick(0, 1) else x]


def _signal(d: Draw) -> None:
    """Convolutions of one axis, then a recurrent layer or a pool."""
    c, length = d.pick(1, 2, 13, 40, 80), d.integer(50, 8000)
    x = d.input("x", [1, c, length])
    for _ in range(d.pick(1, 2, 3)):
        oc, stride, kernel = d.width(8, 128), d.pick(1, 2, 4), d.pick(3, 5, 9)
        x = d.activation(d.conv(x, c, oc, kernel, stride, rank=1))
        length, c = (length + 2 * ((kernel - 1) // 2) - kernel) // stride + 1, oc
        if d.pick(0, 1) and length > 8:
            x, length = d.add("MaxPool", x, kernel_shape=[2], strides=[2]), length // 2
    if d.pick(0, 1):
        hidden, cell, length = d.integer(8, 192), d.pick("LSTM", "GRU"), min(length, 100)
        x = d.add("Slice", x, d.ints(0), d.ints(length), d.ints(2))
        x = d.add("Transpose", x, perm=[2, 0, 1])
        gates = 4 if cell == "LSTM" else 3
        weights = d.weight(1, gates * hidden, c), d.weight(1, gates * hidden, hidden), d.weight(1, 2 * gates * hidden)
        y = d.b.add_all(cell, [x, *weights], 1, hidden_size=hidden)[0]
        x, c = d.add("Transpose", d.add("Squeeze", y, d.ints(1)), perm=[1, 2, 0]), hidden
    classes = d.integer(2, 40)
    d.outputs = [
        d.add(
            "Add",
            d.add("MatMul", d.add("ReduceMean", x, axes=[2], keepdims=0), d.weight(c, classes)),
            d.weight(classes),
        )
    ]


def _image(d: Draw) -> None:
    """What is done to an image before and after a network, with as many pixels as cameras have."""
    h, w = d.integer(64, 1024), d.integer(64, 1024)
    c = d.pick(1, 3, 3)
    x = d.input("image", [1, h, w, c], TensorProto.UINT8)
    if d.pick(0, 1):
        x = d.add("Slice", x, d.ints(0, 0), d.ints(h - h // 8, w - w // 8), d.ints(1, 2))
        h, w = h - h // 8, w - w // 8
    x = d.add("Transpose", d.add("Cast", x, to=TensorProto.FLOAT), perm=[0, 3, 1, 2])
    x = d.add("Div", d.add("Sub", d.add("Div", x, d.scalar(255)), d.weight(1, c, 1, 1)), d.weight(1, c, 1, 1))
    for _ in range(d.pick(2, 3, 4)):
        kind = d.pick("pad", "resize", "blur", "mean", "grey", "mirror", "gamma", "pool")
        if kind == "pad":
            mode = d.pick("constant", "reflect", "edge")
            n = d.integer(1, 30)
            x, h, w = d.add("Pad", x, d.ints(0, 0, n, n, 0, 0, n, n), mode=mode), h + 2 * n, w + 2 * n
        elif kind == "resize":
            h, w = (max(8, round(s * float(d.random.uniform(0.4, 1.5)))) for s in (h, w))
            mode = d.pick("nearest", "linear", "linear", "cubic")
            x = d.add("Resize", x, "", "", d.ints(1, c, h, w), mode=mode)
        elif kind == "blur":
            x = d.conv(x, c, c, d.pick(3, 5), group=c)
        elif kind == "mean":
            x = d.add("Sub", x, d.add("ReduceMean", x, axes=d.pick([1], [2, 3], [3]), keepdims=1))
        elif kind == "grey" and c == 3:
            x, c = d.add("ReduceSum", d.add("Mul", x, d.weight(1, 3, 1, 1)), d.ints(1), keepdims=1), 1
        elif kind == "mirror":
            x = d.add("Slice", x, d.ints(w - 1), d.ints(-w - 1), d.ints(3), d.ints(-1))
        elif kind == "gamma":
            x = d.add("Pow", d.add("Clip", x, d.scalar(0), d.scalar(1)), d.scalar(0.45))
        elif h > 4 and w > 4:
            x = d.add(d.pick("MaxPool", "AveragePool"), x, kernel_shape=[3, 3], strides=[2, 2])
            h, w = (h - 3) // 2 + 1, (w - 3) // 2 + 1
    if d.pick(0, 1):
        x = d.add("Clip", d.add("Mul", x, d.scalar(255)), d.scalar(0), d.scalar(255))
        x = d.add("Cast", d.add("Round", x), to=TensorProto.UINT8)
    if d.pick(0, 1):
        x = d.add("Transpose", x, perm=[0, 2, 3, 1])
    d.outputs = [x]


def _masks(d: Draw) -> None:
    """Positions, masks and look-ups of integers and truth values around a table of weights."""
    batch, length, width = d.pick(1, 2, 8), d.integer(16, 2000), d.integer(4, 256)
    ids = d.input("ids", [batch, length], TensorProto.INT64)
    x = d.add("Gather", d.weight(1000, width), d.add("Mod", ids, d.ints(1000)))
    valid = d.add("Not", d.add("Equal", ids, d.ints(0)))
    weight = d.add("Unsqueeze", d.add("Cast", valid, to=TensorProto.FLOAT), d.ints(2))
    x = d.add("Mul", x, weight)
    count = d.add("ReduceSum", d.add("Cast", valid, to=TensorProto.INT32), d.ints(1), keepdims=1)
    total = d.add("Div", d.add("ReduceSum", x, d.ints(1), keepdims=0), d.add("Cast", count, to=TensorProto.FLOAT))
    order = d.add("CumSum", d.add("Cast", valid, to=TensorProto.INT32), d.ints(1))
    x = d.add(
        "Where",
        d.add("Unsqueeze", d.add("Less", order, d.b.constant(length // 2, np.int32)), d.ints(2)),
        x,
        d.scalar(0),
    )
    picked = d.add(
        "GatherElements",
        x,
        d.add(
            "Expand",
            d.add("Unsqueeze", d.add("Mod", d.add("Abs", ids), d.ints(length)), d.ints(2)),
            d.ints(batch, length, min(width, 8)),
        ),
        axis=1,
    )
    top, where = d.b.add_all("TopK", [d.add("ReduceMax", x, axes=[2], keepdims=0), d.ints(min(10, length))], 2, axis=1)
    best = d.add("ArgMax", x, axis=d.pick(1, 2), keepdims=0)
    d.outputs = [total, d.add("Tile", picked, d.ints(1, 1, 2)), top, where, best]


class _Codes:
    """The parts of a network of 8-bit numbers, between QuantizeLinear and DequantizeLinear."""

    def __init__(self, d: Draw) -> None:
        self.d = d
        self.signed = bool(d.pick(0, 1))
        self.kind = np.int8 if self.signed else np.uint8
        self.scale = d.scalar(0.05)
        self.zero = d.b.constant(0 if self.signed else 128, self.kind)

    def rounded(self, x: str) -> str:
        codes = self.d.add("QuantizeLinear", x, self.scale, self.zero)
        return self.d.add("DequantizeLinear", codes, self.scale, self.zero)

    def weight(self, *shape: int) -> str:
        values = self.d.random.integers(-127, 128, shape)
        scales = self.d.b.constant(np.full(shape[0], 1e-3))
        zeros = self.d.b.constant(np.zeros(shape[0]), np.int8)
        return self.d.add("DequantizeLinear", self.d.b.constant(values, np.int8), scales, zeros, axis=0)

    def conv(self, x: str, ic: int, oc: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        pads = [(kernel - 1) // 2] * 4
        weight, bias = self.weight(oc, ic // group, kernel, kernel), self.d.weight(oc)
        y = self.d.add("Conv", x, weight, bias, strides=[stride] * 2, pads=pads, group=group)
        return self.rounded(self.d.add("Relu", y) if self.d.pick(0, 1) else y)


def _quantized(d: Draw) -> None:
    q = _Codes(d)
    c, h, w = 3, d.integer(32, 224), d.integer(32, 224)
    x = q.rounded(d.input("x", [1, c, h, w]))
    oc = d.width(8, 48)
    x, c, h, w = q.conv(x, c, oc, 3, 2), oc, -(-h // 2), -(-w // 2)
    for _ in range(d.pick(2, 3, 4, 5)):
        kind = d.pick("separable", "residual", "pool", "branches", "wide")
        if kind == "separable":
            stride = d.pick(1, 2) if min(h, w) > 4 else 1
            x = q.conv(x, c, c, 3, stride, group=c)
            h, w = -(-h // stride), -(-w // stride)
            oc = d.width(c, 2 * c)
            x, c = q.conv(x, c, oc, 1), oc
        elif kind == "residual":
            x = q.rounded(d.add("Add", x, q.conv(q.conv(x, c, c, 3), c, c, 3)))
        elif kind == "pool" and min(h, w) > 4:
            x = q.rounded(d.add(d.pick("MaxPool", "AveragePool"), x, kernel_shape=[2, 2], strides=[2, 2]))
            h, w = h // 2, w // 2
        elif kind == "branches":
            oc = d.width(8, c + 1)
            x, c = q.rounded(d.add("Concat", x, q.conv(x, c, oc, 3), axis=1)), c + oc
        else:
            oc = d.width(c, 2 * c)
            x, c = q.conv(x, c, oc, d.pick(1, 3)), oc
    x = d.add("Flatten", q.rounded(d.add("GlobalAveragePool", x)))
    classes = d.pick(2, 10, 1000)
    weight = d.add("Transpose", q.weight(classes, c), perm=[1, 0])
    d.outputs = [q.rounded(d.add("Add", d.add("MatMul", x, weight), d.weight(classes)))]


def _warped(d: Draw) -> None:
    """What few networks have: images sampled along a grid, responses and instances normalized, parts scattered."""
    c, h, w = d.width(3, 64), d.integer(8, 160), d.integer(8, 160)
    x = d.input("x", [1, c, h, w])
    for _ in range(d.pick(2, 3, 4)):
        kind = d.pick("sample", "responses", "instances", "groups", "scatter", "mixed")
        if kind == "sample":
            h, w = d.integer(8, 160), d.integer(8, 160)
            x = d.add("GridSample", x, d.add("Tanh", d.weight(1, h, w, 2)), mode="bilinear", padding_mode="border")
        elif kind == "responses":
            x = d.add("LRN", x, size=d.pick(3, 5), alpha=1e-4, beta=0.75)
        elif kind == "instances":
            x = d.add("InstanceNormalization", x, d.weight(c), d.weight(c))
        elif kind == "groups" and c % 4 == 0:
            parts = d.add("Reshape", x, d.ints(1, 4, -1))
            parts = d.add("InstanceNormalization", parts, d.weight(4), d.weight(4))
            x = d.add("Mul", d.add("Reshape", parts, d.ints(1, c, h, w)), d.weight(1, c, 1, 1))
        elif kind == "scatter":
            rows = d.integer(1, 64)
            where = d.b.constant(d.random.integers(0, h, (rows, 1)), np.int64)
            moved = d.add("ScatterND", d.add("Transpose", x, perm=[2, 0, 1, 3]), where, d.weight(rows, 1, c, w))
            x = d.add("Transpose", moved, perm=[1, 2, 0, 3])
        else:
            x = d.activation(d.conv(x, c, c, 3))
    d.outputs = [x]


def _table(d: Draw) -> None:
    """Rows of numbers, as pipelines of other libraries treat them."""
    rows, features = d.pick(1, 10, 100, 1000), d.integer(4, 100)
    x = d.input("x", [rows, features])
    x = d.ml("Scaler", x, offset=d.numbers(features), scale=d.numbers(features))
    kind = d.pick("linear", "support", "normal", "imputed")
    if kind == "linear":
        targets = d.integer(1, 20)
        x = d.ml(
            "LinearRegressor",
            x,
            coefficients=d.numbers(targets * features),
            intercepts=d.numbers(targets),
            targets=targets,
        )
    elif kind == "support":
        supports = d.integer(5, 500)
        x = d.ml(
            "SVMRegressor",
            x,
            kernel_type=d.pick("RBF", "LINEAR", "POLY"),
            kernel_params=[0.5 / features, 0.3, 3.0],
            coefficients=d.numbers(supports),
            support_vectors=d.numbers(supports * features),
            n_supports=supports,
            rho=[0.25],
        )
    elif kind == "normal":
        x = d.ml("Normalizer", x, norm=d.pick("MAX", "L1", "L2"))
    else:
        x = d.ml("Imputer", x, imputed_value_floats=d.numbers(features), replaced_value_float=float("nan"))
    d.outputs = [x]


#: What a network of a kind is made by.
KINDS: dict[str, Callable[[Draw], None]] = {
    "classifier": _classifier,
    "segmenter": _segmenter,
    "detector": _detector,
    "encoder": _encoder,
    "mlp": _mlp,
    "signal": _signal,
    "image": _image,
    "masks": _masks,
    "quantized": _quantized,
    "warped": _warped,
    "table": _table,
}


def draw(kind: str, seed: int) -> bytes:
    """A model of a kind: the same one for the same seed.

    Parameters
    ----------
    kind : str
        A key of ``KINDS``.
    seed : int
        At least 0.
    """
    network = Draw(seed)
    KINDS[kind](network)
    return network.model()
