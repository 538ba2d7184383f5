"""Single operators as people ship them: each numeric operator x dtype x form, a model of one node each.

What an operator takes comes from ONNX's schemas; what its operands look like from the tables here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.models.odd_operators import odd_cases
from benchmarks.models.operator_cases import DTYPES, FLOATS, Case, Operand, dtypes_of, ints

__all__ = ["Case", "cases"]

_SMALL, _LARGE = (8, 125), (8, 64, 32, 32)

UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
]
_POSITIVE = {"Acosh": (1.0, 3.0), "Log": (0.1, 3.0), "Sqrt": (0.1, 3.0), "Atanh": (-0.9, 0.9), "Reciprocal": (0.5, 2)}
BINARY = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Xor",
]
#: Of the second operand, beside [8, 64, 32, 32].
_BROADCASTS = {"same": _LARGE, "channels": (64, 1, 1), "row": (32,), "scalar": (), "column": (8, 64, 32, 1)}


def _elementwise() -> Iterator[Case]:
    for op in UNARY:
        low, high = _POSITIVE.get(op, (-1.0, 1.0))
        for dtype in dtypes_of(op):
            for form, dims in (("small", _SMALL), ("large", _LARGE)):
                yield Case("unary", op, form, (Operand(dims, dtype, low, high),))
        if "float32" in dtypes_of(op):
            dynamic = Operand(_LARGE, "float32", low, high, symbols=("N",))
            yield Case("unary", op, "dynamic", (dynamic,))
    for op in BINARY:
        attributes = {"BitShift": {"direction": "LEFT"}, "Mod": {"fmod": 0}}.get(op, {})
        for dtype in dtypes_of(op):
            low, high = (1, 3) if op in ("BitShift", "Div", "Mod", "Pow") else (-3, 3)
            if op == "Mod" and dtype in FLOATS:
                attributes = {"fmod": 1}
            forms = _BROADCASTS if dtype in ("float32", "int64", "bool", "float16", "uint8") else {"same": _LARGE}
            for form, dims in {"small": None, **forms}.items():
                first, second = (_SMALL, _SMALL) if dims is None else (_LARGE, dims)
                if op == "PRelu" and form == "column":
                    continue
                yield Case(
                    "binary",
                    op,
                    form,
                    (Operand(first, dtype, low, high), Operand(second, dtype, low, high)),
                    attributes,
                )
    for dtype in DTYPES:
        for form, dims in {"small": None, "large": _LARGE, "scalar": ()}.items():
            first, second = (_SMALL, _SMALL) if dims is None else (_LARGE, dims)
            operands = (Operand(first, "bool"), Operand(first, dtype), Operand(second, dtype))
            yield Case("select", "Where", form, operands)
    for dtype in dtypes_of("Clip"):
        bounds = (Operand((), dtype, values=0, constant=True), Operand((), dtype, values=1, constant=True))
        yield Case("select", "Clip", "large", (Operand(_LARGE, dtype, -2, 3), *bounds))
    for source in DTYPES:
        for target, code in DTYPES.items():
            if source != target:
                yield Case("cast", "Cast", f"to {target}", (Operand(_LARGE, source, 0, 3),), {"to": code})
    for count in (3, 6):
        for op in ("Sum", "Mean", "Max"):
            yield Case("binary", op, f"of {count}", tuple(Operand(_LARGE) for _ in range(count)))
    wide = (512, 768)
    yield Case("contrib", "BiasGelu", "large", (Operand(wide), Operand((768,))), domain="com.microsoft")
    yield Case("contrib", "FastGelu", "large", (Operand(wide), Operand((768,))), domain="com.microsoft")
    yield Case("contrib", "QuickGelu", "large", (Operand(wide),), domain="com.microsoft")
    yield Case("contrib", "Gelu", "large", (Operand(wide),), domain="com.microsoft")


_REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]
_IMAGE = (4, 48, 40, 40)


def _reductions() -> Iterator[Case]:
    for op in _REDUCTIONS:
        for dtype in dtypes_of(op):
            forms = {"last": [3], "channels": [1], "pixels": [2, 3], "first": [0], "all": [0, 1, 2, 3]}
            for form, axes in forms.items():
                if dtype not in ("float32", "int64") and form not in ("last", "channels"):
                    continue
                yield Case("reduce", op, form, (Operand(_IMAGE, dtype, 0.5, 2), ints(axes)), {"keepdims": 1})
    for op in ("ArgMax", "ArgMin"):
        for dtype in dtypes_of(op, only=("float32", "float16", "int8", "uint8", "int32", "int64")):
            for axis in (0, 1, 3):
                yield Case("reduce", op, f"axis {axis}", (Operand(_IMAGE, dtype, -100, 100),), {"axis": axis})
    for dtype in dtypes_of("CumSum"):
        for axis in (0, 1, 3):
            at = Operand((), "int64", values=axis, constant=True)
            yield Case("reduce", "CumSum", f"axis {axis}", (Operand(_IMAGE, dtype, 0, 3), at))
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for dtype in dtypes_of(op):
            for axis in (1, -1):
                yield Case("normalize", op, f"axis {axis}", (Operand(_IMAGE, dtype, -3, 3),), {"axis": axis})
            yield Case("normalize", op, "one row", (Operand((1, 1000), dtype, -3, 3),), {"axis": -1})
    rows = (4, 128, 384)
    for dtype in dtypes_of("LayerNormalization"):
        weights = (Operand((384,), dtype, constant=True), Operand((384,), dtype, constant=True))
        yield Case("normalize", "LayerNormalization", "rows", (Operand(rows, dtype), *weights), {"axis": -1})
        weights = (Operand((48,), dtype, constant=True), Operand((48,), dtype, constant=True))
        if dtype in dtypes_of("InstanceNormalization"):
            yield Case("normalize", "InstanceNormalization", "image", (Operand(_IMAGE, dtype), *weights))
        groups = (Operand((8,), dtype, constant=True), Operand((8,), dtype, constant=True))
        yield Case("normalize", "GroupNormalization", "image", (Operand(_IMAGE, dtype), *groups), {"num_groups": 8})
        moments = (Operand((48,), dtype, 0.5, 2, constant=True), Operand((48,), dtype, 0.5, 2, constant=True))
        yield Case("normalize", "BatchNormalization", "image", (Operand(_IMAGE, dtype), *weights, *moments))
        for axis in (1, 3):
            yield Case("normalize", "LpNormalization", f"axis {axis}", (Operand(_IMAGE, dtype),), {"axis": axis})
        yield Case("normalize", "MeanVarianceNormalization", "image", (Operand(_IMAGE, dtype),))
        yield Case("normalize", "LRN", "image", (Operand(_IMAGE, dtype),), {"size": 5})
    skip = (Operand(rows), Operand(rows), *(Operand((384,), constant=True) for _ in range(3)))
    yield Case("contrib", "SkipLayerNormalization", "rows", skip, domain="com.microsoft")
    for dtype in dtypes_of("TopK", only=("float32", "float16", "int64", "int32", "float64")):
        for form, dims, k in (("of 1000", (64, 1000), 5), ("of 100000", (1, 100000), 100)):
            yield Case("select", "TopK", form, (Operand(dims, dtype, -1000, 1000), ints([k])), outputs=2)


def _movements() -> Iterator[Case]:
    kinds = ("float32", "float16", "uint8", "int64", "bool", "float64")
    for dtype in kinds:
        x = Operand(_IMAGE, dtype, 0, 3)
        for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0), (0, 1, 3, 2)):
            yield Case("move", "Transpose", "".join(map(str, perm)), (x,), {"perm": perm})
        for axis in (0, 1, 3):
            yield Case("move", "Concat", f"axis {axis}", (x, x), {"axis": axis})
            yield Case("move", "Split", f"axis {axis}", (x,), {"axis": axis, "num_outputs": 2}, outputs=2)
        cuts = {
            "channels": ([8], [40], [1], [1]),
            "every second": ([0, 0], [40, 40], [2, 3], [2, 2]),
            "backwards": ([-1], [-1000], [3], [-1]),
        }
        for form, cut in cuts.items():
            yield Case("move", "Slice", form, (x, *map(ints, cut)))
        for mode in ("constant", "reflect", "edge", "wrap"):
            if dtype not in dtypes_of("Pad"):
                continue
            yield Case("move", "Pad", mode, (x, ints([0, 0, 1, 2, 0, 0, 3, 4])), {"mode": mode})
        yield Case("move", "Tile", "channels", (x, ints([1, 2, 1, 1])))
        yield Case("move", "Expand", "channels", (Operand((4, 48, 1, 1), dtype, 0, 3), ints(_IMAGE)))
        for op in ("DepthToSpace", "SpaceToDepth"):
            if dtype in dtypes_of(op):
                yield Case("move", op, "2x2", (x,), {"blocksize": 2})
        yield Case("move", "Trilu", "lower", (Operand((8, 200, 200), dtype, 0, 3),), {"upper": 0})
        yield Case(
            "move", "ReverseSequence", "rows", (Operand((50, 16, 64), dtype, 0, 3), _lengths(16, 50)), {"time_axis": 0}
        )
    for dtype in kinds:
        table = Operand((5000, 128), dtype, 0, 3, constant=True)
        yield Case("index", "Gather", "rows", (table, Operand((4, 128), "int64", 0, 5000)))
        yield Case(
            "index", "Gather", "columns", (Operand(_IMAGE, dtype, 0, 3), Operand((7,), "int64", 0, 40)), {"axis": 3}
        )
        yield Case("index", "Gather", "constant", (Operand(_IMAGE, dtype, 0, 3), ints([5, 1, 40])), {"axis": 1})
        wide = Operand((64, 1000), dtype, 0, 3)
        yield Case("index", "GatherElements", "rows", (wide, Operand((64, 500), "int64", 0, 1000)), {"axis": 1})
        yield Case(
            "index", "GatherND", "pairs", (Operand((64, 100, 16), dtype, 0, 3), Operand((2000, 2), "int64", 0, 64))
        )
        places = Operand((64, 500), "int64", 0, 1000)
        yield Case("index", "ScatterElements", "rows", (wide, places, Operand((64, 500), dtype, 0, 3)), {"axis": 1})
        yield Case(
            "index", "ScatterND", "rows", (wide, Operand((30, 1), "int64", 0, 64), Operand((30, 1000), dtype, 0, 3))
        )
        yield Case("index", "Compress", "rows", (wide, Operand((64,), "bool")), {"axis": 0})
        yield Case("index", "Compress", "columns", (wide, Operand((1000,), "bool")), {"axis": 1})
        yield Case("index", "NonZero", "wide", (Operand((64, 1000), dtype, 0, 3),))
        if dtype in dtypes_of("Unique"):
            yield Case("index", "Unique", "sorted", (Operand((10000,), dtype, 0, 3),))
        if dtype in dtypes_of("EyeLike"):
            yield Case("index", "EyeLike", "square", (Operand((500, 500), dtype, 0, 3),))
    for reduction in ("add", "max"):
        wide, places = Operand((64, 1000)), Operand((64, 500), "int64", 0, 1000)
        yield Case(
            "index",
            "ScatterElements",
            reduction,
            (wide, places, Operand((64, 500))),
            {"axis": 1, "reduction": reduction},
        )
    depth = Operand((), "int64", values=100, constant=True)
    for dtype in ("float32", "int64", "bool"):
        values = Operand((2,), dtype, values=[0, 1], constant=True)
        yield Case("index", "OneHot", "last", (Operand((2000,), "int64", 0, 100), depth, values))


def _lengths(count: int, most: int) -> Operand:
    return Operand((count,), "int64", 1, most)


def _products() -> Iterator[Case]:
    shapes = {
        "1 row": ((1, 512), (512, 512)),
        "wide": ((1, 1024), (1024, 4096)),
        "rows": ((128, 384), (384, 384)),
        "square": ((256, 256), (256, 256)),
        "thin": ((1000, 64), (64, 10)),
        "column": ((300, 400), (400, 1)),
        "batch": ((8, 64, 64), (8, 64, 64)),
        "heads": ((1, 12, 128, 64), (1, 12, 64, 128)),
        "shared": ((8, 100, 96), (96, 200)),
        "primes": ((67, 131), (131, 97)),
    }
    for form, (a, b) in shapes.items():
        for dtype in dtypes_of("MatMul", only=("float32", "float16", "bfloat16", "float64", "int32")):
            for constant in (True, False):
                kind = f"{form}, {'constant' if constant else 'run-time'}"
                yield Case(
                    "product", "MatMul", kind, (Operand(a, dtype, -3, 3), Operand(b, dtype, -3, 3, constant=constant))
                )
        a8, b8 = Operand(a, "uint8", 0, 255), Operand(b, "int8", -100, 100, constant=True)
        yield Case("integer", "MatMulInteger", form, (a8, b8))
        if len(a) == 2:
            for attributes in ({"transB": 1}, {"transA": 1}):
                first = a[::-1] if "transA" in attributes else a
                second = b[::-1] if "transB" in attributes else b
                operands = (Operand(first), Operand(second, constant=True), Operand((b[1],), constant=True))
                yield Case("product", "Gemm", f"{form}, {next(iter(attributes))}", operands, attributes)
    equations = {
        "bij,bjk->bik": ((8, 64, 96), (8, 96, 64)),
        "bhid,bhjd->bhij": ((2, 8, 64, 32), (2, 8, 64, 32)),
        "ij,ij->i": ((300, 400), (300, 400)),
        "bij,kj->bik": ((8, 64, 96), (50, 96)),
        "i,j->ij": ((300,), (400,)),
    }
    for equation, dims in equations.items():
        yield Case("product", "Einsum", equation, tuple(Operand(d) for d in dims), {"equation": equation})


def _convolutions() -> Iterator[Case]:
    def conv(form: str, x: tuple[int, ...], w: tuple[int, ...], dtype: str = "float32", **attributes: Any) -> Case:
        attributes.setdefault("pads", [k // 2 for k in w[2:]] * 2)
        bias = Operand((w[0],), dtype, constant=True)
        constant = attributes.pop("constant", True)
        return Case(
            "convolution",
            "Conv",
            form,
            (Operand(x, dtype), Operand(w, dtype, -0.2, 0.2, constant=constant), bias),
            attributes,
        )

    forms: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
        "1x1": ((1, 64, 28, 28), (128, 64, 1, 1), {}),
        "3x3": ((1, 64, 28, 28), (64, 64, 3, 3), {}),
        "3x3 batch 8": ((8, 32, 14, 14), (32, 32, 3, 3), {}),
        "3x3 stride 2": ((1, 32, 56, 56), (64, 32, 3, 3), {"strides": [2, 2]}),
        "3x3 dilated": ((1, 64, 28, 28), (64, 64, 3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
        "5x5": ((1, 32, 28, 28), (32, 32, 5, 5), {}),
        "first 7x7": ((1, 3, 112, 112), (64, 3, 7, 7), {"strides": [2, 2]}),
        "patches": ((1, 3, 224, 224), (192, 3, 16, 16), {"strides": [16, 16], "pads": [0, 0, 0, 0]}),
        "depthwise": ((1, 96, 28, 28), (96, 1, 3, 3), {"group": 96}),
        "depthwise 7x7": ((1, 96, 28, 28), (96, 1, 7, 7), {"group": 96}),
        "grouped": ((1, 64, 28, 28), (64, 16, 3, 3), {"group": 4}),
        "odd channels": ((1, 17, 29, 31), (23, 17, 3, 3), {}),
        "one channel": ((1, 1, 64, 64), (1, 1, 5, 5), {}),
        "1-D": ((1, 80, 500), (128, 80, 3), {}),
        "1-D dilated": ((1, 64, 500), (64, 64, 3), {"dilations": [4], "pads": [4, 4]}),
        "1-D depthwise": ((1, 128, 400), (128, 1, 31), {"group": 128}),
        "3-D": ((1, 16, 8, 28, 28), (32, 16, 3, 3, 3), {}),
        "3-D first": ((1, 3, 8, 56, 56), (32, 3, 3, 7, 7), {"strides": [1, 2, 2]}),
    }
    for form, (x, w, attributes) in forms.items():
        for dtype in ("float32", "float16"):
            yield conv(form, x, w, dtype, **attributes)
        yield conv(f"{form}, run-time", x, w, constant=False, **attributes)
        if "group" not in attributes:
            pads = attributes.get("pads", [k // 2 for k in w[2:]] * 2)
            operands = (Operand(x, "uint8", 0, 255), Operand(w, "int8", -100, 100, constant=True))
            yield Case("integer", "ConvInteger", form, operands, {**attributes, "pads": pads})
    transposed = {
        "4x4 stride 2": ((1, 64, 14, 14), (64, 32, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        "2x2 stride 2": ((1, 64, 28, 28), (64, 32, 2, 2), {"strides": [2, 2]}),
        "3x3": ((1, 64, 28, 28), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
        "1-D 16 stride 8": ((1, 64, 100), (64, 32, 16), {"strides": [8], "pads": [4, 4]}),
        "depthwise": ((1, 32, 28, 28), (32, 1, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 32}),
        "3-D": ((1, 16, 6, 14, 14), (16, 16, 2, 2, 2), {"strides": [2, 2, 2]}),
    }
    for form, (x, w, attributes) in transposed.items():
        for dtype in ("float32", "float16"):
            yield Case(
                "convolution", "ConvTranspose", form, (Operand(x, dtype), Operand(w, dtype, constant=True)), attributes
            )
        yield Case("convolution", "ConvTranspose", f"{form}, run-time", (Operand(x), Operand(w)), attributes)


def _windows() -> Iterator[Case]:
    images = {"1-D": (2, 64, 1000), "2-D": (1, 64, 56, 56), "3-D": (1, 16, 8, 28, 28), "odd": (2, 17, 29, 31)}
    for form, dims in images.items():
        axes = len(dims) - 2
        square = {"kernel_shape": [3] * axes, "strides": [2] * axes, "pads": [1] * 2 * axes}
        for op in ("MaxPool", "AveragePool", "LpPool"):
            for dtype in dtypes_of(op, only=("float32", "float16", "uint8", "float64")):
                yield Case("pool", op, form, (Operand(dims, dtype, 0, 3),), square)
        for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
            for dtype in dtypes_of(op, only=("float32", "float16", "float64")):
                yield Case("pool", op, form, (Operand(dims, dtype),))
    for form, dims, scale in (
        ("x2", (1, 32, 28, 28), 2.0),
        ("x0.5", (1, 32, 56, 56), 0.5),
        ("one channel", (1, 1, 256, 256), 1.5),
    ):
        scales = Operand((4,), values=[1, 1, scale, scale], constant=True)
        for mode in ("nearest", "linear", "cubic"):
            for dtype in ("float32", "float16", "uint8"):
                yield Case(
                    "resize", "Resize", f"{mode} {form}", (Operand(dims, dtype, 0, 255), None, scales), {"mode": mode}
                )
        attributes = {"mode": "linear", "antialias": 1}
        yield Case("resize", "Resize", f"antialias {form}", (Operand(dims), None, scales), attributes)
    grid = Operand((1, 40, 40, 2))
    for mode in ("linear", "nearest", "cubic"):
        yield Case("resize", "GridSample", mode, (Operand((1, 32, 56, 56)), grid), {"mode": mode})
    boxes = Operand((100, 4), values=np.random.default_rng(0).uniform(0, 30, (100, 4)).cumsum(1).clip(0, 55))
    for mode in ("avg", "max"):
        operands = (Operand((1, 64, 56, 56)), boxes, Operand((100,), "int64", values=np.zeros(100)))
        yield Case("vision", "RoiAlign", mode, operands, {"mode": mode, "output_height": 7, "output_width": 7})
    corners = np.random.default_rng(1).uniform(0, 1, (1, 1000, 4)).astype(np.float32)
    scores = Operand((1, 4, 1000), low=0)
    limits = (Operand((1,), "int64", values=[100], constant=True), Operand((1,), values=[0.5], constant=True))
    operands = (Operand(corners.shape, values=np.sort(corners)), scores, *limits)
    yield Case("vision", "NonMaxSuppression", "1000 boxes", operands)
    signal = Operand((1, 16000, 1))
    step = Operand((), "int64", values=160, constant=True)
    window = Operand((400,), values=np.hanning(400), constant=True)
    yield Case("signal", "STFT", "speech", (signal, step, window), {"onesided": 1})
    yield Case("signal", "DFT", "1024", (Operand((8, 1024, 1)), None, Operand((), "int64", values=1, constant=True)))
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield Case("signal", op, "1024", (Operand((), "int64", values=1024),))


def _recurrent() -> Iterator[Case]:
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            for batch in (1, 8):
                x = Operand((40, batch, 64))
                weights = (
                    Operand((count, gates * 96, 64), low=-0.1, high=0.1, constant=True),
                    Operand((count, gates * 96, 96), low=-0.1, high=0.1, constant=True),
                    Operand((count, 2 * gates * 96), constant=True),
                )
                attributes = {"hidden_size": 96, "direction": direction}
                yield Case("recurrent", op, f"{direction} batch {batch}", (x, *weights), attributes, outputs=2)
                ragged = Operand((batch,), "int32", values=np.arange(batch) * 3 + 15)
                form = f"{direction} batch {batch} lengths"
                yield Case("recurrent", op, form, (x, *weights, ragged), attributes, outputs=2)


def _quantized() -> Iterator[Case]:
    scale = Operand((), values=0.02, constant=True)
    for code, zero in (("uint8", 128), ("int8", 0)):
        point = Operand((), code, values=zero, constant=True)
        for form, dims in (("small", _SMALL), ("large", _LARGE)):
            yield Case("integer", "QuantizeLinear", f"{form} to {code}", (Operand(dims), scale, point))
            yield Case("integer", "DequantizeLinear", form, (Operand(dims, code, 0, 100), scale, point))
        a, b = Operand((128, 384), code, 0, 100), Operand((384, 384), "int8", -100, 100, constant=True)
        zero_b = Operand((), "int8", values=0, constant=True)
        yield Case("integer", "QLinearMatMul", "rows", (a, scale, point, b, scale, zero_b, scale, point))
        for form, x, w, attributes in (
            ("3x3", (1, 64, 28, 28), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
            ("1x1", (1, 64, 28, 28), (128, 64, 1, 1), {}),
            ("depthwise", (1, 96, 28, 28), (96, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 96}),
        ):
            weight = Operand(w, "int8", -100, 100, constant=True)
            operands = (Operand(x, code, 0, 100), scale, point, weight, scale, zero_b, scale, point)
            yield Case("integer", "QLinearConv", form, operands, attributes)
    yield Case("integer", "DynamicQuantizeLinear", "large", (Operand(_LARGE),), outputs=3)


def cases() -> Iterator[Case]:
    """Yield every case, in the order of the families."""
    for family in (
        _elementwise,
        _reductions,
        _movements,
        _products,
        _convolutions,
        _windows,
        _recurrent,
        _quantized,
        odd_cases,
    ):
        yield from family()
