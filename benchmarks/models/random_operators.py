"""Operators and small graphs that nobody has seen: one for each seed, with random dtypes, ranks, axes and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.models.operator_cases import DTYPES, FLOATS, Case, Operand, dtypes_of, ints
from benchmarks.models.operators import BINARY, UNARY
from benchmarks.models.random_draw import LARGEST, Draw, RandomCase
from benchmarks.models.random_graphs import chain
from benchmarks.models.random_rare import RARE

__all__ = ["random_case"]


def _listed(draw: Draw, values: Sequence[int]) -> Operand:
    """Integers as a constant, or as an input now and then."""
    if draw.flag(0.85):
        return ints(values)
    return Operand((len(values),), "int64", values=np.asarray(values, np.int64))


_UNARY = [op for op in UNARY if op != "Identity"]
_RANGES = {"Acosh": (1.0, 3.0), "Log": (0.1, 3.0), "Sqrt": (0.1, 3.0), "Reciprocal": (0.5, 2.0)}
_RANGES |= dict.fromkeys(("Acos", "Asin", "Atanh"), (-0.9, 0.9))


def _unary(draw: Draw) -> Case:
    op = draw.one(_UNARY)
    dtype = draw.one(dtypes_of(op))
    low, high = _RANGES.get(op, (-3, 3))
    return Case("unary", op, "", (draw.tensor(draw.dims(), dtype, low, high),))


def _binary(draw: Draw) -> Case:
    op = draw.one(BINARY)
    dtype = draw.one(dtypes_of(op))
    low, high = (1, 3) if op in ("BitShift", "Div", "Mod", "Pow") else (-3, 3)
    attributes: dict[str, Any] = {"BitShift": {"direction": draw.one(("LEFT", "RIGHT"))}}.get(op, {})
    if op == "Mod":
        attributes = {"fmod": int(dtype in FLOATS)}
    dims = draw.dims()
    second = Operand(draw.broadcast(dims), dtype, low, high, constant=draw.flag(0.3))
    first = draw.tensor(dims, dtype, low, high) if op == "PRelu" or draw.flag(0.7) else None
    first = first or Operand(draw.broadcast(dims), dtype, low, high)
    operands = (first, second) if op == "PRelu" or draw.flag(0.8) else (second, first)
    return Case("binary", op, "", operands, attributes)


def _select(draw: Draw) -> Case:
    dims, dtype = draw.dims(), draw.one(list(DTYPES))
    op = draw.one(("Where", "Cast", "Clip"))
    if op == "Cast":
        target = draw.one([d for d in DTYPES if d != dtype])
        return Case("cast", "Cast", f"to {target}", (draw.tensor(dims, dtype, 0, 3),), {"to": DTYPES[target]})
    if op == "Clip":
        dtype = draw.one(dtypes_of("Clip"))
        bounds = [Operand((), dtype, values=v, constant=draw.flag(0.7)) for v in (0, 2)]
        return Case("select", "Clip", "", (draw.tensor(dims, dtype), *(b if draw.flag(0.8) else None for b in bounds)))
    parts = [draw.broadcast(dims), draw.broadcast(dims)]
    return Case("select", "Where", "", (draw.tensor(dims, "bool"), Operand(parts[0], dtype), Operand(parts[1], dtype)))


_REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


def _reduce(draw: Draw) -> Case:
    op = "Reduce" + draw.one(_REDUCTIONS)
    dtype = draw.one(("float32", *dtypes_of(op)))
    dims = draw.dims()
    low = 0.1 if op == "ReduceLogSum" else -3
    attributes = {"keepdims": int(draw.flag())}
    axes = _listed(draw, draw.axes(len(dims))) if draw.flag(0.9) else None
    if axes and not axes.constant:
        attributes["keepdims"] = 1
    return Case("reduce", op, "", (draw.tensor(dims, dtype, low, 3), axes), attributes)


def _scan(draw: Draw) -> Case:
    dims = draw.dims()
    axis = draw.axis(len(dims))
    op = draw.one(("ArgMax", "ArgMin", "CumSum", "TopK", "TopK", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization"))
    dtype = draw.one(("float32", *dtypes_of(op)))
    x = draw.tensor(dims, dtype, -100, 100)
    if op == "CumSum":
        at = Operand((), "int64", values=axis, constant=draw.flag(0.7))
        return Case("reduce", op, "", (x, at), {"exclusive": int(draw.flag(0.2)), "reverse": int(draw.flag(0.2))})
    if op == "TopK":
        k = draw.number(1, min(dims[axis], draw.one((1, 5, 10, 100, 1000))))
        attributes = {"axis": axis, "largest": int(draw.flag(0.8))}
        return Case("index", op, "", (x, _listed(draw, [k])), attributes, outputs=2)
    attributes = {"axis": axis}
    if op.startswith("Arg"):
        attributes |= {"keepdims": int(draw.flag()), "select_last_index": int(draw.flag(0.2))}
    if op == "LpNormalization":
        attributes["p"] = draw.number(1, 2)
    return Case("reduce", op, "", (x,), attributes)


def _normalize(draw: Draw) -> Case:
    op = draw.one(("LayerNormalization", "InstanceNormalization", "BatchNormalization", "LRN", "GroupNormalization"))
    dtype = draw.one(("float32", "float32", "float16", "float64"))
    dims = draw.dims(3, 5)
    if op == "LRN":
        return Case("normalize", op, "", (draw.tensor(dims, "float32"),), {"size": draw.one((3, 5, 7))})
    if op == "LayerNormalization":
        axis = draw.number(1, len(dims) - 1)
        parts = [Operand(tuple(dims[axis:]), dtype, constant=draw.flag()) for _ in range(2)]
        return Case("normalize", op, "", (draw.tensor(dims, dtype), *parts), {"axis": axis})
    if op == "GroupNormalization":
        groups = draw.number(1, 6)
        dims[1] = groups * draw.number(1, 9)
        parts = [Operand((dims[1],), dtype, constant=draw.flag()) for _ in range(2)]
        return Case("normalize", op, "", (draw.tensor(dims, dtype), *parts), {"num_groups": groups}, opset=21)
    count = 4 if op == "BatchNormalization" else 2
    parts = [Operand((dims[1],), dtype, 0.2, 1, constant=True) for _ in range(count)]
    return Case("normalize", op, "", (draw.tensor(dims, dtype), *parts))


def _move(draw: Draw) -> Case:
    op = draw.one(
        ("Transpose", "Slice", "Pad", "Tile", "Expand", "Concat", "Split", "DepthToSpace", "Trilu", "Identity")
    )
    dims, dtype = draw.dims(), draw.one(list(DTYPES))
    rank = len(dims)
    x = draw.tensor(dims, dtype)
    if op == "Transpose":
        return Case("move", op, "", (x,), {"perm": [int(a) for a in draw.random.permutation(rank)]})
    if op == "Slice":
        axes = sorted(a % rank for a in draw.axes(rank))
        steps = [draw.one((1, 1, 1, 2, 3, -1, -2)) for _ in axes]
        begins = [draw.number(0, dims[a] // 2) if s > 0 else -1 for a, s in zip(axes, steps, strict=True)]
        ends = [dims[a] + 5 if s > 0 else -1000000 for a, s in zip(axes, steps, strict=True)]
        return Case("move", op, "", (x, *(_listed(draw, v) for v in (begins, ends, axes, steps))))
    if op == "Pad":
        mode = draw.one(("constant", "constant", "reflect", "edge", "wrap"))
        pads = [draw.number(0, min(3, (dims * 2)[i] - 1)) if draw.flag() else 0 for i in range(2 * rank)]
        return Case("move", op, mode, (x, _listed(draw, pads)), {"mode": mode})
    if op == "Tile":
        dims = draw.dims(largest=1 << 14)
        repeats = [draw.number(1, 4) for _ in dims]
        return Case("move", op, "", (draw.tensor(dims, dtype), _listed(draw, repeats)))
    if op == "Expand":
        return Case("move", op, "", (Operand(draw.broadcast(dims), dtype), _listed(draw, dims)))
    if op == "Concat":
        axis = draw.number(0, rank - 1)
        parts = []
        for _ in range(draw.number(2, 5)):
            part = list(dims)
            part[axis] = draw.number(1, max(1, dims[axis]))
            parts.append(Operand(tuple(part), dtype))
        return Case("move", op, "", tuple(parts), {"axis": axis})
    if op == "Split":
        axis = draw.number(0, rank - 1)
        dims[axis] = max(dims[axis], 3)
        cut = draw.number(1, dims[axis] - 1)
        sizes = ints([cut, dims[axis] - cut])
        return Case("move", op, "", (draw.tensor(dims, dtype), sizes), {"axis": axis}, outputs=2)
    if op == "DepthToSpace":
        block, channels = draw.number(2, 4), draw.number(1, 9)
        size = (draw.number(1, 3), channels * block * block, draw.number(3, 60), draw.number(3, 60))
        attributes = {"blocksize": block, "mode": draw.one(("DCR", "CRD"))}
        if draw.flag():
            return Case("move", op, "", (draw.tensor(size, dtype),), attributes)
        size = (size[0], channels, size[2] * block, size[3] * block)
        return Case("move", "SpaceToDepth", "", (draw.tensor(size, dtype),), {"blocksize": block})
    if op == "Trilu":
        dims = draw.dims(2, 4)
        return Case("move", op, "", (draw.tensor(dims, dtype),), {"upper": int(draw.flag())})
    return Case("move", op, "", (x,))


def _index(draw: Draw) -> Case:
    op = draw.one(
        (
            "Gather",
            "GatherND",
            "GatherElements",
            "ScatterElements",
            "ScatterND",
            "OneHot",
            "Compress",
            "NonZero",
            "Unique",
        )
    )
    dims, dtype = draw.dims(1, 5), draw.one(list(DTYPES))
    rank = len(dims)
    axis = draw.number(0, rank - 1)
    x = draw.tensor(dims, dtype)
    if op == "Gather":
        indices = Operand(tuple(draw.dims(1, 2, 300)), "int64", 0, dims[axis], constant=draw.flag(0.3))
        return Case("index", op, "", (x, indices), {"axis": axis})
    if op in ("GatherND", "ScatterND"):
        depth = draw.number(1, rank)
        rows = draw.number(1, 500)
        indices = np.stack([draw.random.integers(0, d, rows) for d in dims[:depth]], axis=1)
        at = Operand(indices.shape, "int64", values=indices)
        if op == "GatherND":
            return Case("index", op, "", (x, at))
        updates = Operand((rows, *dims[depth:]), dtype)
        reduction = draw.one(("none", "add", "max")) if dtype in ("float32", "int64", "float64") else "none"
        return Case("index", op, reduction, (x, at, updates), {"reduction": reduction} if reduction != "none" else {})
    if op in ("GatherElements", "ScatterElements"):
        size = tuple(draw.number(max(1, d // 2), d) for d in dims)
        at = Operand(size, "int64", 0, dims[axis])
        if op == "GatherElements":
            return Case("index", op, "", (x, at), {"axis": axis})
        reduction = draw.one(("add", "mul", "max", "min")) if dtype in ("float32", "int64") else "none"
        if reduction == "none":
            at = Operand(size, "int64", values=np.argsort(draw.random.random(size), axis=axis))
        return Case("index", op, reduction, (x, at, Operand(size, dtype)), {"axis": axis, "reduction": reduction})
    if op == "OneHot":
        depth = draw.number(2, 100)
        indices = Operand(tuple(draw.dims(1, 3, 5000)), "int64", 0, depth)
        values = Operand((2,), draw.one(("float32", "int64", "bool")), values=[0, 1], constant=True)
        depths = Operand((), "int64", values=depth, constant=True)
        return Case("index", op, "", (indices, depths, values), {"axis": draw.one((-1, 0))})
    if op == "Compress":
        return Case("index", op, "", (x, Operand((dims[axis],), "bool")), {"axis": axis})
    if op == "NonZero":
        return Case("index", op, "", (x,))
    dtype = draw.one(("float32", "int64", "int8", "float64"))
    return Case("index", op, "", (Operand((draw.number(10, 20000),), dtype, -100, 100),), {"sorted": 1}, outputs=4)


def _product(draw: Draw) -> Case:
    dtype = draw.one(("float32",) * 5 + ("float16", "float64", "int32"))
    m, k, n = (draw.one((1, 1, 2, 3, 5, 8, 17, 33, 64, 100, 197, 384)) for _ in range(3))
    batch = draw.dims(0, 3, 30) if draw.flag(0.5) else []
    while np.prod(batch, dtype=float) * m * k * n > 3e8 or np.prod(batch, dtype=float) * max(m * k, k * n) > 1e6:
        batch = batch[1:] if batch else batch
        m, k, n = ((m + 1) // 2, (k + 1) // 2, (n + 1) // 2)
    if draw.flag(0.35):
        dtype = "float32" if dtype == "int32" else dtype
        flags = {"transA": int(draw.flag(0.4)), "transB": int(draw.flag(0.5))}
        a = (k, m) if flags["transA"] else (m, k)
        b = (n, k) if flags["transB"] else (k, n)
        c = [Operand(draw.one(((n,), (m, n), (m, 1), ())), dtype, constant=draw.flag())] if draw.flag(0.6) else []
        second = Operand(b, dtype, constant=draw.flag(0.4))
        return Case("product", "Gemm", f"{m} {k} {n} {flags}", (draw.tensor(a, dtype), second, *c), flags)
    second_batch = [] if draw.flag(0.4) else list(draw.broadcast(batch))
    second = Operand((*second_batch, k, n), dtype, constant=draw.flag(0.3))
    return Case("product", "MatMul", "", (draw.tensor((*batch, m, k), dtype), second))


def _window(draw: Draw, kernels: Sequence[int]) -> tuple[int, list[int], dict[str, Any]]:
    """Spatial axes, their sizes, and the attributes of a window."""
    axes = draw.one((1, 2, 2, 2, 3))
    largest = {1: 600, 2: 64, 3: 20}[axes]
    kernel = [draw.one(kernels) for _ in range(axes)]
    if draw.flag(0.7):
        kernel = [kernel[0]] * axes
    strides = [draw.one((1, 1, 2, 3))] * axes
    dilations = [draw.one((1, 1, 1, 1, 2))] * axes
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [draw.number(r, max(r + 1, largest)) for r in reach]
    pads = [draw.number(0, k // 2) if draw.flag() else 0 for k in kernel * 2]
    return axes, sizes, {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}


def _convolution(draw: Draw) -> Case:
    axes, sizes, attributes = _window(draw, (1, 2, 3, 3, 4, 5, 7))
    if draw.flag(0.35):
        attributes["strides"] = [draw.one((1, 2, 2, 3, 4, 5))] * axes
        attributes["dilations"] = [1] * axes
        op = "ConvTranspose"
        sizes = [max(1, s // 3) for s in sizes]
    else:
        op = "Conv"
    groups = draw.one((1, 1, 1, 2, 4))
    inputs, outputs = (groups * draw.one((1, 3, 4, 8, 13, 16, 32)) for _ in range(2))
    if draw.flag(0.15):
        groups = outputs = inputs
    dtype = draw.one(("float32",) * 5 + ("float16",))
    images = draw.one((1, 1, 1, 2, 8))
    while images * np.prod(sizes) * inputs * outputs / groups * np.prod(attributes["kernel_shape"]) > 3e8:
        sizes = [max(s // 2, k * 2) for s, k in zip(sizes, attributes["kernel_shape"], strict=True)]
        images = 1
        if all(s == k * 2 for s, k in zip(sizes, attributes["kernel_shape"], strict=True)):
            break
    kernel = attributes["kernel_shape"]
    dims = (inputs, outputs // groups, *kernel) if op == "ConvTranspose" else (outputs, inputs // groups, *kernel)
    weights = Operand(dims, dtype, constant=draw.flag(0.85))
    bias = (Operand((outputs,), dtype, constant=True),) if draw.flag() else ()
    attributes["group"] = groups
    form = f"{attributes['strides']} {attributes['dilations']} {attributes['pads']} group {groups}"
    x = Operand((images, inputs, *sizes), dtype, symbols=("N",) if draw.flag(0.2) else ())
    return Case("convolution", op, form, (x, weights, *bias), attributes)


def _pool(draw: Draw) -> Case:
    op = draw.one(("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"))
    _, sizes, attributes = _window(draw, (2, 2, 3, 3, 4, 5, 7, 9))
    dims = (draw.number(1, 4), draw.number(1, 64), *sizes)
    while np.prod(dims) > LARGEST:
        dims = (1, max(1, dims[1] // 2), *sizes)
    dtype = draw.one(("float32", "float32", *dtypes_of(op)))
    x = draw.tensor(dims, dtype)
    if op.startswith("Global"):
        return Case("pool", op, "", (x,), {"p": draw.one((1, 2, 3))} if op == "GlobalLpPool" else {}, opset=22)
    attributes["ceil_mode"] = int(draw.flag(0.2))
    if op == "LpPool":
        attributes["p"] = draw.one((1, 2, 2, 3))
    if op == "AveragePool":
        attributes["count_include_pad"] = int(draw.flag())
    form = f"{attributes['kernel_shape']} {attributes['strides']} {attributes['dilations']} {attributes['pads']}"
    outputs = 2 if op == "MaxPool" and draw.flag(0.2) else 1
    return Case("pool", op, form, (x,), attributes, outputs=outputs, opset=22)


def _resize(draw: Draw) -> Case:
    axes = draw.one((1, 2, 2, 2, 3))
    mode = draw.one(("nearest", "linear", "cubic")) if axes == 2 else draw.one(("nearest", "linear"))
    dims = (draw.number(1, 3), draw.number(1, 32), *(draw.number(4, {1: 500, 2: 50, 3: 14}[axes]) for _ in range(axes)))
    scales = [draw.one((0.5, 0.7, 1.0, 1.5, 2.0, 3.0)) for _ in range(axes)]
    if draw.flag(0.7):
        scales = [scales[0]] * axes
    how = draw.one(("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"))
    operand = Operand((len(dims),), values=[1, 1, *scales], constant=draw.flag(0.85))
    dtype = draw.one(("float32", "float32", "float16", "uint8", "int32"))
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": how}
    if mode == "nearest":
        attributes["nearest_mode"] = draw.one(("floor", "round_prefer_floor"))
    elif draw.flag(0.15):
        attributes["antialias"] = 1
    return Case(
        "resize", "Resize", f"{scales} {attributes}", (draw.tensor(dims, dtype, 0, 100), None, operand), attributes
    )


def _quantized(draw: Draw) -> Case:
    op = draw.one(("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"))
    code = draw.one(("int8", "uint8"))
    if op == "DynamicQuantizeLinear":
        return Case("integer", op, "", (draw.tensor(draw.dims()),), outputs=3)
    if op == "MatMulInteger":
        m, k, n = (draw.one((1, 3, 16, 33, 64, 197)) for _ in range(3))
        second = Operand((k, n), "int8", -100, 100, constant=draw.flag(0.7))
        zeros = (Operand((), "uint8", values=3, constant=True),) if draw.flag() else ()
        return Case("integer", op, "", (Operand((draw.number(1, 3), m, k), "uint8", 0, 200), second, *zeros))
    if op == "ConvInteger":
        x = Operand((1, draw.one((3, 8, 16)), draw.number(8, 40), draw.number(8, 40)), "uint8", 0, 200)
        w = Operand((draw.one((4, 16, 31)), x.dims[1], 3, 3), draw.one(("int8", "uint8")), 0, 100, constant=True)
        return Case("integer", op, "", (x, w), {"strides": [draw.number(1, 2)] * 2})
    dims = draw.dims(2, 5)
    axis = draw.number(0, len(dims) - 1)
    size: tuple[int, ...] = (dims[axis],) if draw.flag() else ()
    scale = Operand(size, low=0.01, high=0.1, constant=draw.flag(0.8))
    zero = Operand(size, code, 0, 3, constant=draw.flag(0.8))
    x = draw.tensor(dims, "float32" if op == "QuantizeLinear" else code, -100, 100)
    return Case("integer", op, f"axis {axis}", (x, scale, zero), {"axis": axis})


_FAMILIES: dict[Callable[[Draw], Case], int] = {
    _unary: 2,
    _binary: 4,
    _select: 2,
    _reduce: 4,
    _scan: 4,
    _normalize: 2,
    _move: 4,
    _index: 3,
    _product: 5,
    _convolution: 6,
    _pool: 4,
    _resize: 2,
    _quantized: 2,
    **RARE,
}


def _described(case: Case) -> str:
    def dims(o: Operand) -> str:
        return ("c" if o.constant else "s" if o.symbols else "") + str(list(o.dims)).replace(" ", "")

    parts = [case.name.strip(), *(dims(o) for o in case.operands if o)]
    if case.family in ("reduce", "index", "move", "normalize"):
        lists = [
            o.values.tolist() for o in case.operands if o and isinstance(o.values, np.ndarray) and o.values.size < 9
        ]
        parts += [str(dict(case.attributes)), *map(str, lists)]
    return " ".join(parts)


def random_case(seed: int) -> RandomCase:
    """Return the case of a seed: one operator, or a chain of some.

    Parameters
    ----------
    seed : int
        Any number; equal ones give equal cases.
    """
    draw = Draw(seed)
    if draw.flag(0.2):
        model, feeds, what = chain(draw.random)
        dtype = next((k for k, v in DTYPES.items() if v == model.graph.input[0].type.tensor_type.elem_type), "float32")
        return RandomCase(f"#{seed} chain {what}", "chain", dtype, lambda: (model, feeds))
    weights = np.asarray(list(_FAMILIES.values()), float)
    family = list(_FAMILIES)[int(draw.random.choice(len(weights), p=weights / weights.sum()))]
    case = family(draw)
    return RandomCase(f"#{seed} {_described(case)}", case.family, case.dtype, case.build)
