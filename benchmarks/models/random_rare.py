"""Random cases of operators that few models have: vision, signals, sequences, letters, losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.operator_cases import Case, Operand, ints
from benchmarks.models.random_draw import Draw

__all__ = ["RARE"]


def _scalar(value: int, *, constant: bool = True) -> Operand:
    return Operand((), "int64", values=value, constant=constant)


def _image(draw: Draw, channels: int = 48, size: int = 48) -> list[int]:
    return [draw.number(1, 2), draw.number(1, channels), draw.number(4, size), draw.number(4, size)]


def _sampling(draw: Draw) -> Case:
    """GridSample, RoiAlign, MaxRoiPool and AffineGrid."""
    op = draw.one(("GridSample", "GridSample", "RoiAlign", "RoiAlign", "MaxRoiPool", "AffineGrid"))
    dims = _image(draw)
    x = draw.tensor(dims)
    if op == "AffineGrid":
        sizes = Operand((4,), "int64", values=dims, constant=draw.flag(0.6))
        return Case("vision", op, "", (Operand((dims[0], 2, 3)), sizes), {"align_corners": int(draw.flag())})
    if op == "GridSample":
        grid = Operand((dims[0], draw.number(2, 48), draw.number(2, 48), 2), low=-1.2, high=1.2)
        attributes: dict[str, Any] = {
            "mode": draw.one(("linear", "linear", "nearest", "cubic")),
            "padding_mode": draw.one(("zeros", "border", "reflection")),
            "align_corners": int(draw.flag()),
        }
        return Case("vision", op, f"{attributes}", (Operand(tuple(dims)), grid), attributes)
    count = draw.number(1, 100)
    corners = draw.random.uniform(0, min(dims[2:]) / 2, (count, 2))
    boxes = np.concatenate([corners, corners + draw.random.uniform(1, min(dims[2:]) / 2, (count, 2))], axis=1)
    if op == "MaxRoiPool":
        rois = Operand((count, 5), values=np.concatenate([np.zeros((count, 1)), boxes], axis=1))
        return Case("vision", op, "", (x, rois), {"pooled_shape": [draw.number(1, 7), draw.number(1, 7)]})
    attributes = {
        "mode": draw.one(("avg", "avg", "max")),
        "output_height": draw.number(1, 14),
        "output_width": draw.number(1, 14),
        "sampling_ratio": draw.one((0, 1, 2, 2)),
        "spatial_scale": draw.one((1.0, 0.5)),
    }
    batch = Operand((count,), "int64", 0, dims[0])
    return Case("vision", op, f"{attributes}", (x, Operand((count, 4), values=boxes), batch), attributes)


def _columns(draw: Draw) -> Case:
    """DeformConv, Col2Im and MaxUnpool: windows that no pool or convolution has."""
    op = draw.one(("DeformConv", "Col2Im", "Col2Im", "MaxUnpool"))
    kernel, stride, pad = draw.one((1, 2, 3, 3, 5)), draw.number(1, 3), draw.number(0, 1)
    _, channels, rows, columns = _image(draw, 40, 36)
    if op == "DeformConv":
        rows, columns, filters = max(rows, kernel), max(columns, kernel), draw.number(1, 40)
        out = [(size + 2 * pad - kernel) // stride + 1 for size in (rows, columns)]
        weights = Operand((filters, channels, kernel, kernel), constant=True)
        offsets = Operand((1, 2 * kernel * kernel, *out), low=-2, high=2)
        bias = Operand((filters,), constant=True)
        mask = (Operand((1, kernel * kernel, *out), low=0),) if draw.flag() else ()
        operands = (Operand((1, channels, rows, columns)), weights, offsets, bias, *mask)
        return Case(
            "vision", op, f"{kernel} {stride} {pad}", operands, {"strides": [stride] * 2, "pads": [pad] * 4}, opset=22
        )
    if op == "Col2Im":
        rows, columns = max(rows, kernel), max(columns, kernel)
        places = int(np.prod([(size + 2 * pad - kernel) // stride + 1 for size in (rows, columns)]))
        x = Operand((1, channels * kernel * kernel, places))
        operands = (x, ints([rows, columns]), ints([kernel, kernel]))
        return Case("vision", op, f"{kernel} {stride} {pad}", operands, {"strides": [stride] * 2, "pads": [pad] * 4})
    at = draw.random.integers(0, 4 * channels * rows * columns, (1, channels, rows, columns))
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return Case("vision", op, "", (Operand(at.shape), Operand(at.shape, "int64", values=at)), attributes)


def _signal(draw: Draw) -> Case:
    """Fourier transforms of any length."""
    length = draw.one((16, 60, 64, 97, 128, 200, 256, 400, 512, 1000, 1024))
    if draw.flag():
        parts = draw.one((1, 1, 2))
        attributes = {"onesided": int(parts == 1 and draw.flag()), "inverse": 0}
        x = Operand((draw.number(1, 64), length, parts), draw.one(("float32", "float32", "float64")))
        return Case("signal", "DFT", f"{attributes}", (x, None, _scalar(1)), attributes)
    step = draw.number(max(1, length // 4), length)
    signal = Operand((draw.number(1, 3), length * draw.number(2, 30), 1))
    window = Operand((length,), low=0.1, constant=True)
    return Case(
        "signal", "STFT", f"{length} {step}", (signal, _scalar(step), window), {"onesided": int(draw.flag(0.8))}
    )


def _places(draw: Draw) -> Case:
    """ReverseSequence, CenterCropPad, EyeLike, Range and Det."""
    op = draw.one(("ReverseSequence", "CenterCropPad", "EyeLike", "Range", "Det"))
    dtype = draw.one(("float32", "float32", "int64", "float64"))
    if op == "ReverseSequence":
        time, batch = draw.number(2, 200), draw.number(1, 32)
        lengths = Operand((batch,), "int64", 1, time + 1)
        return Case(
            "move",
            op,
            "",
            (Operand((time, batch, *draw.dims(0, 2, 200)), dtype), lengths),
            {"time_axis": 0, "batch_axis": 1},
        )
    if op == "CenterCropPad":
        dims = _image(draw)
        sizes = [draw.number(1, 60), draw.number(1, 60)]
        return Case("move", op, f"{sizes}", (draw.tensor(dims, dtype), ints(sizes)), {"axes": [2, 3]})
    if op == "EyeLike":
        return Case(
            "index", op, "", (Operand((draw.number(1, 600), draw.number(1, 600)), dtype),), {"k": draw.number(-3, 3)}
        )
    if op == "Range":
        return Case("index", op, "", tuple(Operand((), dtype, values=v) for v in (0, draw.number(10, 100000), 1)))
    size = draw.number(1, 12)
    return Case("product", op, "", (Operand((draw.number(1, 500), size, size), draw.one(("float32", "float64"))),))


def _letters(draw: Draw) -> Case:
    """Einsum of two operands, whose letters are drawn."""
    sizes = {letter: draw.one((1, 2, 3, 5, 8, 17, 32, 60)) for letter in "abcdef"}
    batch, left, right, summed = "ab"[: draw.number(0, 2)], "c", "d", "ef"[: draw.number(0, 2)]
    while np.prod([sizes[x] for x in batch + left + right + summed], dtype=float) > 2e7:
        sizes = {letter: max(1, size // 2) for letter, size in sizes.items()}
    orders = [
        "".join(draw.random.permutation(list(letters)))
        for letters in (batch + left + summed, batch + right + summed, batch + left + right)
    ]
    equation = f"{orders[0]},{orders[1]}->{orders[2]}"
    dtype = draw.one(("float32", "float32", "float32", "float64"))
    operands = tuple(Operand(tuple(sizes[x] for x in order), dtype) for order in orders[:2])
    return Case("product", "Einsum", equation, operands, {"equation": equation})


def _attention(draw: Draw) -> Case:
    """Attention as ONNX has it since opset 23."""
    batch, heads, size = draw.number(1, 3), draw.one((1, 2, 3, 8, 12)), draw.one((8, 16, 24, 32, 64))
    queries, keys = draw.number(1, 150), draw.number(1, 150)
    attributes: dict[str, Any] = {"is_causal": 1} if draw.flag(0.3) else {}
    operands = [Operand((batch, heads, n, size)) for n in (queries, keys, keys)]
    if draw.flag(0.4) and not attributes:
        shape = draw.one(((queries, keys), (batch, 1, queries, keys), (batch, heads, queries, keys)))
        operands.append(Operand(shape, draw.one(("float32", "bool")), -1, 1))
    return Case("attention", "Attention", f"{attributes}", tuple(operands), attributes, opset=23)


def _loss(draw: Draw) -> Case:
    """Losses of classes, and other forms of a softmax."""
    rows, classes = draw.number(1, 300), draw.number(2, 400)
    op = draw.one(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"))
    attributes = {"reduction": draw.one(("none", "mean", "sum"))}
    return Case(
        "reduce", op, f"{attributes}", (Operand((rows, classes)), Operand((rows,), "int64", 0, classes)), attributes
    )


#: How often each family is drawn.
RARE: dict[Callable[[Draw], Case], int] = {
    _sampling: 3,
    _columns: 3,
    _signal: 2,
    _places: 2,
    _letters: 3,
    _attention: 3,
    _loss: 1,
}
