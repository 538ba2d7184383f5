"""Forms of operators that are less usual: broadcasts along several axes, five axes, steps backwards, lists of axes,
sizes that only a call tells, newer opsets, reductions that scatter, windows with dilations, and what decoders ask.

Each is a case of the atlas (``operators.py``), in the families that it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.models.operator_cases import Case, Operand, ints

__all__ = ["odd_cases"]

_VIDEO = (2, 24, 6, 20, 20)


def _broadcasts() -> Iterator[Case]:
    pairs = {
        "row by column": ((8, 64, 1), (8, 1, 256)),
        "[N,1,H,1] x [1,C,1,W]": ((8, 1, 32, 1), (1, 64, 1, 32)),
        "first axis": ((8, 1, 1, 1), (8, 64, 32, 32)),
        "middle axis": ((1, 1, 32, 1), (8, 64, 32, 32)),
        "outer rank": ((32, 32), (8, 64, 32, 32)),
        "video channels": (_VIDEO, (24, 1, 1, 1)),
        "video frames": (_VIDEO, (6, 1, 1)),
        "odd row": ((500, 37), (37,)),
        "odd column": ((500, 37), (500, 1)),
        "dynamic": ((64, 500), (64, 1)),
    }
    for form, (a, b) in pairs.items():
        symbols = ("N",) if form == "dynamic" else ()
        for op in ("Add", "Mul", "Sub", "Greater", "Max"):
            for dtype in ("float32", "float16", "int64"):
                operands = (Operand(a, dtype, -3, 3, symbols=symbols), Operand(b, dtype, -3, 3, symbols=symbols))
                yield Case("binary", op, form, operands)
    mask, scalar = Operand((8, 1, 128, 128), "bool"), Operand((), values=-1e4, constant=True)
    yield Case("select", "Where", "mask of heads", (mask, Operand((8, 4, 128, 128)), scalar))
    yield Case("select", "Where", "both scalars", (Operand((8, 4, 128, 128), "bool"), Operand(()), Operand(())))
    yield Case("select", "Where", "channels", (Operand((1, 64, 1, 1), "bool"), Operand((8, 64, 32, 32)), scalar))
    for op in ("Erf", "Relu", "Sigmoid"):
        yield Case("unary", op, "tiny", (Operand((3,)),))
        yield Case("unary", op, "video", (Operand(_VIDEO),))


def _reductions() -> Iterator[Case]:
    images, rows = (4, 48, 40, 40), (64, 128, 96)
    forms: dict[str, tuple[tuple[int, ...], list[int]]] = {
        "channels and last": (images, [1, 3]),
        "first and pixels": (images, [0, 2, 3]),
        "first and last": (images, [0, 3]),
        "middle": (rows, [1]),
        "video space": (_VIDEO, [3, 4]),
        "video time": (_VIDEO, [2]),
        "rows of 3": ((20000, 3), [1]),
        "rows of 7": ((5000, 7), [1]),
        "rows of 40": ((4000, 40), [1]),
        "rows of 1000": ((200, 1000), [1]),
        "one long row": ((1, 300000), [1]),
        "columns of 3": ((20000, 3), [0]),
    }
    for form, (dims, axes) in forms.items():
        for op in ("ReduceMax", "ReduceMean", "ReduceSum", "ReduceL2"):
            for dtype in ("float32", "float16", "int32"):
                yield Case("reduce", op, form, (Operand(dims, dtype, 0, 3), ints(axes)), {"keepdims": 0})
        if len(axes) == 1:
            for dtype in ("float32", "int64"):
                operand = Operand(dims, dtype, -100, 100)
                yield Case("reduce", "ArgMax", form, (operand,), {"axis": axes[0], "keepdims": 0})
            at = Operand((), "int64", values=axes[0], constant=True)
            yield Case("reduce", "CumSum", form, (Operand(dims), at))
            yield Case("normalize", "Softmax", form, (Operand(dims),), {"axis": axes[0]})
    for form, dims, axis in (
        ("rows of 5", (20000, 5), 1),
        ("rows of 1", (30000, 1), 1),
        ("small planes", (800, 30, 7), 1),
    ):
        for dtype in ("float32", "float64"):
            yield Case("reduce", "ReduceLogSumExp", form, (Operand(dims, dtype), ints([axis])))
            yield Case("normalize", "Softmax", form, (Operand(dims, dtype),), {"axis": axis})
            yield Case("reduce", "ArgMin", form, (Operand(dims, dtype),), {"axis": axis})
    for axes in ([2], [1, 2], [0]):
        run_time = Operand((len(axes),), "int64", values=axes)
        for op, dtype in (("ReduceSum", "float32"), ("ReduceMax", "float16"), ("ReduceMean", "int64")):
            yield Case("reduce", op, f"run-time axes {axes}", (Operand(rows, dtype, 0, 3), run_time))
        at = Operand((), "int64", values=axes[0])
        yield Case("reduce", "CumSum", f"run-time axis {axes[0]}", (Operand(rows), at))
    at = Operand((), "int64", values=1, constant=True)
    yield Case("reduce", "CumSum", "backwards", (Operand((64, 1000)), at), {"reverse": 1})
    yield Case("reduce", "CumSum", "exclusive", (Operand((64, 1000)), at), {"exclusive": 1})
    for dims in ((64, 128, 96), (7, 33, 1000)):
        yield Case("normalize", "Softmax", f"{dims} dynamic", (Operand(dims, symbols=("N", "T")),), {"axis": -1})
    for size in (37, 96, 768):
        weights = (Operand((size,), constant=True), Operand((size,), constant=True))
        rows = (200, size)
        yield Case("normalize", "LayerNormalization", f"rows of {size}", (Operand(rows), *weights), {"axis": -1})
        yield Case("normalize", "LayerNormalization", f"rows of {size}, no bias", (Operand(rows), weights[0]))
        yield Case("normalize", "RMSNormalization", f"rows of {size}", (Operand(rows), weights[0]), opset=23)
        domain = "com.microsoft"
        yield Case(
            "contrib", "SimplifiedLayerNormalization", f"rows of {size}", (Operand(rows), weights[0]), {"axis": -1}
        )
        skip = (Operand((2, *rows)), Operand((2, *rows)), weights[0])
        yield Case("contrib", "SkipSimplifiedLayerNormalization", f"rows of {size}", skip, domain=domain)
    for axes in ([0, 2, 3], [2, 3], [1]):
        yield Case("normalize", "MeanVarianceNormalization", f"{axes}", (Operand(images),), {"axes": axes})
    for form, dims in {"1-D": (4, 64, 500), "3-D": _VIDEO}.items():
        weights = (Operand((dims[1],), constant=True), Operand((dims[1],), constant=True))
        yield Case("normalize", "InstanceNormalization", form, (Operand(dims), *weights))
        moments = (Operand((dims[1],), low=0.5, high=2, constant=True),) * 2
        yield Case("normalize", "BatchNormalization", form, (Operand(dims), *weights, *moments))


def _selections() -> Iterator[Case]:
    sorts: dict[str, tuple[tuple[int, ...], int, dict[str, Any]]] = {
        "1 of 1000": ((64, 1000), 1, {}),
        "all of 1000": ((64, 1000), 1000, {}),
        "50 of 50257": ((1, 50257), 50, {}),
        "of classes 5": ((1, 1000), 5, {}),
        "smallest": ((64, 1000), 10, {"largest": 0}),
        "not sorted": ((64, 1000), 10, {"sorted": 0}),
        "along channels": ((4, 64, 20, 20), 4, {"axis": 1}),
        "8400 boxes": ((1, 8400), 300, {}),
        "best channel": ((2, 21, 64, 64), 1, {"axis": 1}),
        "10 of 1000 in the middle": ((8, 1000, 50), 10, {"axis": 1}),
        "100 of 300 in the middle": ((16, 300, 7), 100, {"axis": 1}),
    }
    for form, (dims, k, attributes) in sorts.items():
        for dtype in ("float32", "int64", "float16"):
            operands = (Operand(dims, dtype, -1e6, 1e6), ints([k]))
            if dtype == "float16" and form != "50 of 50257":
                continue
            yield Case("select", "TopK", form, operands, attributes, outputs=2)
    for dtype in ("int8", "uint8", "int16"):
        yield Case("select", "TopK", "of codes", (Operand((64, 1000), dtype, -100, 100), ints([5])), outputs=2)
    for form, values in {"few": 50, "many": 100000}.items():
        for dtype in ("int64", "float32"):
            data = Operand((20000,), dtype, values=np.random.default_rng(2).integers(0, values, 20000))
            yield Case("index", "Unique", form, (data,), outputs=4)
    yield Case("index", "Unique", "unsorted", (Operand((10000,), "int64", 0, 300),), {"sorted": 0}, outputs=4)
    yield Case("index", "Unique", "rows", (Operand((2000, 4), "int64", 0, 4),), {"axis": 0}, outputs=4)
    for dtype in ("float32", "float16", "int64"):
        table = Operand((50257, 64), dtype, 0, 3, constant=True)
        yield Case("index", "Gather", "vocabulary, 1 token", (table, Operand((1, 1), "int64", 0, 50257)))
        yield Case("index", "Gather", "vocabulary, 256 tokens", (table, Operand((2, 128), "int64", 0, 50257)))
        yield Case("index", "Gather", "last of a sequence", (Operand((8, 128, 256), dtype), ints([-1])), {"axis": 1})
        yield Case("index", "Gather", "int32 places", (table, Operand((128,), "int32", -500, 500)))
    yield Case("index", "Gather", "elements of one axis", (Operand((10000,)), Operand((20000,), "int64", 0, 10000)))
    for reduction in ("add", "mul", "max", "min"):
        for dtype in ("float32", "int64"):
            rows = (Operand((1000, 64), dtype, 0, 3), Operand((3000, 1), "int64", 0, 1000))
            yield Case(
                "index",
                "ScatterND",
                f"rows, {reduction}",
                (*rows, Operand((3000, 64), dtype)),
                {"reduction": reduction},
            )
            points = (Operand((100, 100), dtype, 0, 3), Operand((5000, 2), "int64", 0, 100))
            yield Case(
                "index",
                "ScatterND",
                f"points, {reduction}",
                (*points, Operand((5000,), dtype)),
                {"reduction": reduction},
            )
    nodes = (Operand((1000, 64)), Operand((4000, 64), "int64", 0, 1000), Operand((4000, 64)))
    for reduction in ("none", "add", "max"):
        attributes = {"axis": 0, "reduction": reduction}
        yield Case("index", "ScatterElements", f"first axis, {reduction}", nodes, attributes)
    yield Case("index", "GatherElements", "first axis", (Operand((500, 64)), Operand((500, 64), "int64", 0, 500)))
    batches = (Operand((8, 100, 64)), Operand((8, 20, 1), "int64", 0, 100))
    yield Case("index", "GatherND", "batches", batches, {"batch_dims": 1})
    for dtype in ("int64", "float32", "int32"):
        bounds = (Operand((), dtype, values=value) for value in (0, 5000, 1))
        yield Case("index", "Range", "5000", tuple(bounds))
    shape = Operand((3,), "int64", values=[8, 100, 64])
    yield Case("index", "ConstantOfShape", "run-time", (shape,))
    depth = Operand((), "int64", values=50, constant=True)
    values = Operand((2,), values=[0, 1], constant=True)
    yield Case("index", "OneHot", "axis 1", (Operand((8, 256), "int64", 0, 50), depth, values), {"axis": 1})
    yield Case("index", "NonZero", "sparse", (Operand((1000, 100), "bool", values=np.eye(1000, 100)),))


def _movements() -> Iterator[Case]:
    heads = (4, 128, 8, 48)
    perms: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "heads out": (heads, (0, 2, 1, 3)),
        "heads out, keys": (heads, (0, 2, 3, 1)),
        "frames first": (_VIDEO, (0, 2, 1, 3, 4)),
        "video to last": (_VIDEO, (0, 2, 3, 4, 1)),
        "odd": ((37, 41, 43), (2, 1, 0)),
        "rows": ((1000, 3), (1, 0)),
        "windows": ((2, 4, 7, 4, 7, 32), (0, 1, 3, 2, 4, 5)),
        "shuffle": ((2, 4, 12, 28, 28), (0, 2, 1, 3, 4)),
    }
    for form, (dims, perm) in perms.items():
        for dtype in ("float32", "float16", "uint8", "int64"):
            yield Case("move", "Transpose", form, (Operand(dims, dtype, 0, 3),), {"perm": perm})
    image = (4, 48, 40, 40)
    for dtype in ("float32", "float16", "uint8", "int64"):
        x = Operand(image, dtype, 0, 3)
        cuts = {
            "channels backwards": ([-1], [-1000], [1], [-1]),
            "negative bounds": ([-30, -20], [-1, -2], [-2, -1], [1, 1]),
            "one row": ([5], [6], [2], [1]),
            "third of rows": ([0], [40], [2], [3]),
            "all axes": ([1, 2, 3, 4], [3, 40, 37, 39], [0, 1, 2, 3], [1, 1, 1, 1]),
        }
        for form, cut in cuts.items():
            yield Case("move", "Slice", form, (x, *map(ints, cut)))
        yield Case("move", "Pad", "all axes", (x, ints([0, 1, 2, 3, 1, 0, 3, 2])))
        yield Case("move", "Pad", "cropped", (x, ints([0, 0, -2, -1, 0, 0, -3, -2])))
        yield Case("move", "Pad", "list of axes", (x, ints([1, 2]), None, ints([-1])))
        yield Case("move", "Tile", "all axes", (Operand((8, 1, 16), dtype, 0, 3), ints([2, 16, 3])))
        yield Case("move", "Expand", "rows", (Operand((8, 1, 64), dtype, 0, 3), ints([8, 100, 64])))
        yield Case("move", "Expand", "column", (Operand((800, 1), dtype, 0, 3), ints([800, 100])))
        parts = tuple(Operand((8, n, 50), dtype, 0, 3) for n in (1, 7, 24, 3))
        yield Case("move", "Concat", "of four", parts, {"axis": 1})
        cache = (Operand((1, 8, 255, 64), dtype, 0, 3), Operand((1, 8, 1, 64), dtype, 0, 3))
        yield Case("move", "Concat", "cache", cache, {"axis": 2})
        yield Case(
            "move", "Split", "uneven", (Operand((8, 128, 96), dtype), ints([32, 16, 48])), {"axis": 2}, outputs=3
        )
        yield Case("move", "Split", "heads", (Operand((2, 128, 768), dtype),), {"axis": 2, "num_outputs": 3}, outputs=3)
        yield Case("move", "DepthToSpace", "CRD", (x,), {"blocksize": 4, "mode": "CRD"})
        yield Case("move", "CenterCropPad", "crop", (x, ints([33, 35])), {"axes": [2, 3]})
        run_time = tuple(Operand((len(c),), "int64", values=c) for c in ([1, 2], [30, 37], [2, 3], [1, 1]))
        yield Case("move", "Slice", "run-time", (x, *run_time))
        yield Case("move", "Pad", "run-time", (x, Operand((8,), "int64", values=[0, 0, 1, 2, 0, 0, 3, 4])))
    for op, dims, sizes in (("Expand", (8, 1, 64), [8, 100, 64]), ("Tile", (8, 20, 30), [2, 3, 4])):
        yield Case("move", op, "run-time", (Operand(dims), Operand((3,), "int64", values=sizes)))
    yield Case("move", "Tile", "six axes", (Operand((1, 6, 6, 2, 3, 6)), ints([3, 4, 3, 1, 3, 2])))
    yield Case("move", "Expand", "of one element", (Operand((1,)), ints([50000])))
    yield Case("move", "Reshape", "run-time", (Operand(image), Operand((2,), "int64", values=[4, -1])))
    yield Case("move", "Shape", "dynamic", (Operand(image, symbols=("N", "C")),))
    columns = (Operand((1, 16 * 9, 30 * 30)), ints([32, 32]), ints([3, 3]))
    yield Case("move", "Col2Im", "3x3", columns)
    yield Case("move", "CastLike", "float16", (Operand(image), Operand((1,), "float16")))


def _products() -> Iterator[Case]:
    equations = {
        "bhqd,bhkd->bhqk": ((2, 8, 100, 64), (2, 8, 100, 64)),
        "bqhd,bkhd->bhqk": ((2, 100, 8, 64), (2, 100, 8, 64)),
        "bhqk,bkhd->bqhd": ((2, 8, 100, 100), (2, 100, 8, 64)),
        "btd,dhk->bthk": ((2, 100, 256), (256, 8, 32)),
        "bthk,hkd->btd": ((2, 100, 8, 32), (8, 32, 256)),
        "nctv,vw->nctw": ((2, 32, 50, 25), (25, 25)),
        "bchw,bc->bhw": ((2, 64, 28, 28), (2, 64)),
        "ijk,ijk->": ((20, 30, 40), (20, 30, 40)),
        "...ij,...jk->...ik": ((8, 50, 60), (8, 60, 70)),
        "ij->ji": ((300, 400),),
        "bii->bi": ((8, 100, 100),),
        "bnd,md,bm->bnm": ((2, 50, 32), (40, 32), (2, 40)),
    }
    for equation, dims in equations.items():
        yield Case("product", "Einsum", equation, tuple(Operand(d) for d in dims), {"equation": equation})
    shapes = {
        "1 row, 768": ((1, 768), (768, 768)),
        "1 row of heads": ((1, 12, 1, 64), (1, 12, 64, 300)),
        "1 row of values": ((1, 12, 1, 300), (1, 12, 300, 64)),
        "4 rows": ((4, 256), (256, 512)),
        "dot": ((1, 4096), (4096, 1)),
        "outer": ((500, 1), (1, 500)),
        "vector": ((512,), (512, 256)),
        "broadcast heads": ((4, 8, 50, 32), (1, 1, 32, 50)),
        "tall": ((5000, 16), (16, 16)),
        "deep": ((16, 5000), (5000, 16)),
    }
    for form, (a, b) in shapes.items():
        for dtype in ("float32", "float16", "float64"):
            yield Case("product", "MatMul", f"{form}, run-time", (Operand(a, dtype), Operand(b, dtype)))
    for rows in (1, 2, 4, 8):
        factors = (Operand((rows, 512)), Operand((512, 512)))
        yield Case("product", "Gemm", f"{rows} rows, transposed, run-time", factors, {"transB": 1})
    addend = Operand((100, 1), constant=True)
    yield Case("product", "Gemm", "addend of rows", (Operand((100, 8)), Operand((8, 384)), addend))
    x, w = Operand((64, 128), symbols=("N",)), Operand((128, 256), constant=True)
    yield Case("product", "MatMul", "rows, dynamic", (x, w))
    yield Case(
        "product",
        "Gemm",
        "run-time, scaled",
        (Operand((64, 128)), Operand((128, 256)), Operand((256,))),
        {"alpha": 0.5, "beta": 2.0},
    )
    yield Case("product", "Gemm", "float64", (Operand((64, 128), "float64"), Operand((128, 256), "float64")))
    factors = (Operand((2, 8, 100, 64)), Operand((2, 8, 100, 64)))
    yield Case("contrib", "FusedMatMul", "transB", factors, {"transB": 1, "alpha": 0.125}, domain="com.microsoft")
    yield Case("product", "Det", "4x4", (Operand((500, 4, 4)),))


def _attention() -> Iterator[Case]:
    for form, (batch, heads, kv_heads, rows, columns, size) in {
        "encoder": (1, 12, 12, 128, 128, 64),
        "step": (1, 12, 12, 1, 256, 64),
        "grouped step": (1, 32, 8, 1, 256, 64),
        "cross": (2, 8, 8, 20, 300, 32),
    }.items():
        operands = tuple(
            Operand((batch, h, n, size)) for h, n in ((heads, rows), (kv_heads, columns), (kv_heads, columns))
        )
        yield Case("attention", "Attention", form, operands, opset=23)
        if rows == columns:
            yield Case("attention", "Attention", f"{form}, causal", operands, {"is_causal": 1}, opset=23)
    x = Operand((1, 12, 128, 64))
    angles = (Operand((128, 32)), Operand((128, 32)), Operand((1, 128), "int64", values=np.arange(128)[None]))
    yield Case("attention", "RotaryEmbedding", "heads", (x, *angles), opset=23)
    for dtype in ("float32", "float16"):
        yield Case("unary", "Swish", "large", (Operand((8, 64, 32, 32), dtype),), opset=24)
    cache = (Operand((2, 8, 256, 64)), Operand((2, 8, 1, 64)), Operand((2,), "int64", values=[100, 50]))
    yield Case("attention", "TensorScatter", "one token", cache, opset=24)


def _convolutions() -> Iterator[Case]:
    forms: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
        "3x1": ((1, 64, 56, 56), (64, 64, 3, 1), {"pads": [1, 0, 1, 0]}),
        "1x7": ((1, 64, 17, 17), (64, 64, 1, 7), {"pads": [0, 3, 0, 3]}),
        "stride 3": ((1, 32, 60, 60), (48, 32, 5, 5), {"strides": [3, 3]}),
        "one-sided pads": ((1, 32, 40, 40), (32, 32, 3, 3), {"pads": [0, 0, 2, 2]}),
        "depthwise dilated": ((1, 96, 28, 28), (96, 1, 3, 3), {"group": 96, "dilations": [2, 2], "pads": [2, 2, 2, 2]}),
        "depthwise multiplier": ((1, 32, 28, 28), (64, 1, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}),
        "groups of 3": ((1, 48, 28, 28), (48, 3, 3, 3), {"group": 16, "pads": [1, 1, 1, 1]}),
        "1-D stride 4": ((1, 1, 16000), (64, 1, 16), {"strides": [4]}),
        "1-D grouped": ((1, 64, 400), (64, 8, 5), {"group": 8, "pads": [2, 2]}),
        "causal 1-D": ((1, 64, 400), (64, 64, 3), {"pads": [2, 0]}),
        "3-D depthwise": ((1, 32, 8, 28, 28), (32, 1, 3, 3, 3), {"group": 32, "pads": [1] * 6}),
        "3-D 1x1": ((1, 64, 8, 14, 14), (64, 64, 1, 1, 1), {}),
        "3-D strided": ((1, 16, 8, 28, 28), (32, 16, 3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6}),
        "3-D of few pixels": ((1, 16, 14, 14, 14), (32, 16, 5, 5, 5), {"strides": [3, 3, 3]}),
        "rows of 7": ((1, 13, 40, 7), (11, 13, 3, 3), {"pads": [1, 1, 1, 1], "strides": [1, 3]}),
        "1x1 of one pixel": ((1, 512, 1, 1), (128, 512, 1, 1), {}),
        "64 images": ((64, 3, 32, 32), (16, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    }
    for form, (x, w, attributes) in forms.items():
        operands = (Operand(x), Operand(w, low=-0.2, high=0.2, constant=True), Operand((w[0],), constant=True))
        yield Case("convolution", "Conv", form, operands, attributes)
    transposed: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
        "1-D stride 2": ((1, 64, 200), (64, 32, 4), {"strides": [2], "pads": [1, 1]}),
        "1-D dilated": ((1, 32, 200), (32, 32, 3), {"dilations": [2]}),
        "dilated": ((1, 32, 28, 28), (32, 32, 3, 3), {"dilations": [2, 2]}),
        "3x3 stride 2, output padding": (
            (1, 64, 14, 14),
            (64, 32, 3, 3),
            {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        ),
        "grouped": ((1, 64, 14, 14), (64, 16, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}),
        "3-D stride 2": ((1, 16, 6, 14, 14), (16, 16, 4, 4, 4), {"strides": [2, 2, 2], "pads": [1] * 6}),
        "latent": ((1, 100, 1, 1), (100, 128, 4, 4), {}),
        "stride 3 of 3x3": ((1, 64, 14, 14), (64, 32, 3, 3), {"strides": [3, 3]}),
        "stride 5 of 5x5": ((1, 16, 20, 21), (16, 16, 5, 5), {"strides": [5, 5]}),
        "image 4": ((1, 64, 32, 32), (64, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    }
    for form, (x, w, attributes) in transposed.items():
        yield Case("convolution", "ConvTranspose", form, (Operand(x), Operand(w, constant=True)), attributes)
    offsets = (Operand((1, 16, 28, 28)), Operand((32, 16, 3, 3), constant=True), Operand((1, 18, 28, 28)))
    yield Case("convolution", "DeformConv", "3x3", offsets, {"pads": [1, 1, 1, 1]})


def _windows() -> Iterator[Case]:
    pools: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
        "2x2": ((1, 64, 56, 56), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        "ceil": ((1, 32, 55, 55), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        "dilated": ((1, 32, 40, 40), {"kernel_shape": [3, 3], "dilations": [2, 2]}),
        "5x5 stride 1": ((1, 64, 20, 20), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
        "13x13 stride 1": ((1, 64, 20, 20), {"kernel_shape": [13, 13], "pads": [6, 6, 6, 6]}),
        "7x7 all": ((8, 64, 7, 7), {"kernel_shape": [7, 7]}),
        "1-D dilated": ((4, 32, 500), {"kernel_shape": [3], "dilations": [3]}),
        "1x3": ((1, 32, 40, 41), {"kernel_shape": [1, 3], "strides": [1, 2]}),
    }
    for form, (dims, attributes) in pools.items():
        for op in ("MaxPool", "AveragePool"):
            for dtype in ("float32", "float16"):
                yield Case("pool", op, form, (Operand(dims, dtype),), attributes, opset=22)
    for power in (1, 2, 3):
        window = {"kernel_shape": [3, 3], "strides": [2, 2], "p": power}
        yield Case("pool", "LpPool", f"power {power}", (Operand((1, 64, 56, 56)),), window, opset=22)
    places = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield Case("pool", "MaxPool", "with places", (Operand((1, 64, 56, 56)),), places, outputs=2)
    at = np.arange(64 * 28 * 28).reshape(1, 64, 28, 28) * 4
    yield Case("pool", "MaxUnpool", "2x2", (Operand((1, 64, 28, 28)), Operand(at.shape, "int64", values=at)), places)
    for mode in ("linear", "nearest", "cubic"):
        for form, dims, scales in (
            ("x2 1-D", (4, 32, 200), (2.0,)),
            ("x1.5 odd", (1, 17, 29, 31), (1.5, 1.5)),
            ("x0.3", (1, 32, 64, 64), (0.3, 0.3)),
            ("rows only", (1, 32, 40, 40), (2.0, 1.0)),
            ("x2 3-D", (1, 8, 6, 14, 14), (2.0, 2.0, 2.0)),
        ):
            if mode == "cubic" and len(dims) != 4:
                continue
            operand = Operand((len(dims),), values=[1, 1, *scales], constant=True)
            for how in ("half_pixel", "align_corners", "asymmetric"):
                attributes = {"mode": mode, "coordinate_transformation_mode": how}
                yield Case("resize", "Resize", f"{mode} {form} {how}", (Operand(dims), None, operand), attributes)
        sizes = Operand((4,), "int64", values=[1, 32, 56, 56])
        yield Case(
            "resize", "Resize", f"{mode} run-time", (Operand((1, 32, 28, 28)), None, None, sizes), {"mode": mode}
        )
    for mode in ("linear", "nearest"):
        for padding in ("border", "reflection"):
            attributes = {"mode": mode, "padding_mode": padding, "align_corners": 1}
            operands = (Operand((2, 16, 40, 40)), Operand((2, 30, 31, 2), low=-1.2, high=1.2))
            yield Case("resize", "GridSample", f"{mode} {padding}", operands, attributes)
        volume = (Operand((1, 8, 8, 28, 28)), Operand((1, 8, 28, 28, 3)))
        yield Case("resize", "GridSample", f"{mode} 3-D", volume, {"mode": mode})
    yield Case("resize", "AffineGrid", "2-D", (Operand((2, 2, 3)), ints([2, 3, 64, 64])))


def _signals() -> Iterator[Case]:
    for form, length, frame, hop in (("400 of 160", 16000, 400, 160), ("512 of 128", 22050, 512, 128)):
        operands = (Operand((2, length, 1)), Operand((), "int64", values=hop, constant=True))
        window = Operand((frame,), values=np.hanning(frame), constant=True)
        yield Case("signal", "STFT", f"{form}, two signals", (*operands, window), {"onesided": 1})
    at = Operand((), "int64", values=1, constant=True)
    for size in (512, 400, 127):
        yield Case("signal", "DFT", f"{size} complex", (Operand((16, size, 2)), None, at))
        yield Case("signal", "DFT", f"{size} onesided", (Operand((16, size, 1)), None, at), {"onesided": 1})
    mel = [Operand((), "int64", values=v) for v in (80, 400, 16000)]
    bounds = [Operand((), values=v) for v in (0, 8000)]
    yield Case("signal", "MelWeightMatrix", "80 of 400", (*mel, *bounds))


def _contrib() -> Iterator[Case]:
    domain = "com.microsoft"
    for op, attributes in (("MatMulIntegerToFloat", {}), ("DynamicQuantizeMatMul", {})):
        code = op == "MatMulIntegerToFloat"
        scale, point = Operand((), values=0.02, constant=True), Operand((), "int8", values=0, constant=True)
        weights = Operand((256, 256), "int8", -100, 100, constant=True)
        if code:
            first = Operand((64, 256), "uint8", 0, 255)
            zero = Operand((), "uint8", values=128, constant=True)
            yield Case("integer", op, "rows", (first, weights, scale, scale, zero, point), attributes, domain=domain)
        else:
            yield Case("integer", op, "rows", (Operand((64, 256)), weights, scale, point), attributes, domain=domain)
    scale, zero = Operand((), values=0.02, constant=True), Operand((), "uint8", values=128, constant=True)
    code_image = Operand((1, 64, 28, 28), "uint8", 0, 255)
    image = (code_image, scale, zero)
    yield Case("integer", "QLinearAdd", "image", (*image, *image, scale, zero), domain=domain)
    yield Case("integer", "QLinearMul", "image", (*image, *image, scale, zero), domain=domain)
    yield Case("integer", "QLinearSigmoid", "image", (*image, scale, zero), domain=domain)
    yield Case("integer", "QLinearLeakyRelu", "image", (*image, scale, zero), {"alpha": 0.1}, domain=domain)
    yield Case("integer", "QLinearGlobalAveragePool", "image", (*image, scale, zero), domain=domain)
    for axis, size in ((0, 64), (1, 256)):
        scales = Operand((size,), low=0.01, high=0.1, constant=True)
        zeros = Operand((size,), "int8", values=np.zeros(size), constant=True)
        yield Case(
            "integer",
            "DequantizeLinear",
            f"axis {axis}",
            (Operand((64, 256), "int8", -100, 100), scales, zeros),
            {"axis": axis},
        )
        yield Case("integer", "QuantizeLinear", f"axis {axis}", (Operand((64, 256)), scales, zeros), {"axis": axis})
    yield Case("contrib", "Inverse", "8 of 16x16", (Operand((8, 16, 16)),), domain=domain)


def odd_cases() -> Iterator[Case]:
    """Yield every case of this file."""
    for family in (
        _broadcasts,
        _reductions,
        _selections,
        _movements,
        _products,
        _attention,
        _convolutions,
        _windows,
        _signals,
        _contrib,
    ):
        yield from family()
