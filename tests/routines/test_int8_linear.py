"""Conversions between numbers and codes, and functions of codes, against the references of the operators: equal, on every tier."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from neo import _native

from tests.routines.codes import Codes, by_tier, dequantize, pick
from tests.routines.pinning import candidates, compile_pinned, rejections

ELTWISE = "cpu:int8/eltwise"
LINEAR = "cpu:int8/linear"
POOL = "cpu:int8/pool_nchwc"


FORMS = ["Add", "Mul", "Sub", "Add Relu", "HardSwish", "Sigmoid", "Tanh Relu", "requantize"]


def elementwise_case(form: str, dims: list[int]) -> Codes:
    case = Codes(len(form) + len(dims))
    types = [pick(case.random, ["uint8", "int8"]) for _ in range(3)]
    x = case.input(types[0], dims)
    x_grid, y_grid = case.grid(types[0], 0.043), case.grid(types[1], 0.031)
    values = [
        case.add(g, "DequantizeLinear", [x[i], *(k[i] for k in x_grid)], "dq")
        for i, g in enumerate((case.float, case.whole))
    ]
    first, *rest = form.split()
    if first in ("Add", "Mul", "Sub"):
        z, z_grid = case.input(types[2], dims), case.grid(types[2], 0.027)
        for i, g in enumerate((case.float, case.whole)):
            other = case.add(g, "DequantizeLinear", [z[i], *(k[i] for k in z_grid)], "dq2")
            values[i] = case.add(g, first, [values[i], other], "op")
    else:
        rest = [] if first == "requantize" else [first, *rest]
    for j, op in enumerate(rest):
        values = [case.add(g, op, [v], f"f{j}") for g, v in zip((case.float, case.whole), values, strict=True)]
    ends = [
        case.add(g, "QuantizeLinear", [v, *(k[i] for k in y_grid)], "q")
        for i, (g, v) in enumerate(zip((case.float, case.whole), values, strict=True))
    ]
    case.finish(*ends)
    return case


@by_tier
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dims", [[2, 5, 3], [1, 32, 4, 4], [7], []], ids=str)
def test_elementwise(form: str, dims: list[int], tier: str) -> None:
    elementwise_case(form, dims).check(tier, {"q": ELTWISE})


GATES = ["Mul", "Mul first", "Add", "Sub", "Mul Relu"]


def gate_case(form: str, dims: list[int]) -> Codes:
    """One code for each channel of an image, combined with all codes of its channel."""
    case = Codes(len(form) + len(dims))
    op, *rest = form.split()
    types = [pick(case.random, ["uint8", "int8"]) for _ in range(3)]
    sizes = [dims, [*dims[:2], *[1] * (len(dims) - 2)]]
    grids = [case.grid(dtype, scale) for dtype, scale in zip(types, (0.043, 0.027, 0.08), strict=True)]
    inputs = [case.input(dtype, size) for dtype, size in zip(types, sizes, strict=False)]
    ends = []
    for i, g in enumerate((case.float, case.whole)):
        pair = [
            case.add(g, "DequantizeLinear", [x[i], *(k[i] for k in grid)], f"dq{j}")
            for j, (x, grid) in enumerate(zip(inputs, grids, strict=False))
        ]
        y = case.add(g, op, pair[::-1] if "first" in rest else pair, "op")
        if "Relu" in rest:
            y = case.add(g, "Relu", [y], "relu")
        ends.append(case.add(g, "QuantizeLinear", [y, *(k[i] for k in grids[2])], "q"))
    case.finish(*ends)
    return case


@by_tier
@pytest.mark.parametrize("form", GATES)
@pytest.mark.parametrize("dims", [[2, 5, 3, 7], [1, 32, 9], [2, 40, 4, 3, 2], [1, 16, 70, 70], [2, 0, 3]], ids=str)
def test_one_code_for_each_channel_of_an_image(form: str, dims: list[int], tier: str) -> None:
    """As gates are, in both layouts."""
    case = gate_case(form, dims)
    case.check(tier, {"q": ELTWISE})
    layouts = {str(c["outputs"]) for c in candidates(case.float, tier, "q") if c["routine"] == ELTWISE}
    assert len(layouts) == (1 if dims[1] < 2 else 2)


@by_tier
@pytest.mark.parametrize("form", ["silu", "gelu", "twice"])
def test_function_that_rounds_on_the_way(form: str, tier: str) -> None:
    """Codes between the parts of a function of one value: one table, unless somebody else reads them."""
    for shared in (False, True):
        case = Codes(len(form))
        graph = case.float
        dims, dtype = [2, 20, 5], "uint8"
        x = case.input(dtype, dims)[0]
        grids = [case.grid(dtype, s)[0:2] for s in (0.05, 0.004, 0.03, 0.02)]

        def rounded(value: Any, i: int, graph: Any = graph, case: Codes = case, grids: Any = grids) -> tuple[Any, Any]:
            codes = case.add(graph, "QuantizeLinear", [value, *(g[0] for g in grids[i])], f"q{i}")
            return codes, dequantize(case, codes, grids[i], f"d{i}")

        number = dequantize(case, x, grids[0], "d")
        if form == "silu":
            middle, inner = rounded(case.add(graph, "Sigmoid", [number], "f"), 1)
            last = case.add(graph, "Mul", [number, inner], "m")
        elif form == "gelu":
            middle, inner = rounded(case.add(graph, "Erf", [number], "f"), 1)
            inner = rounded(case.add(graph, "Add", [inner, case.constant(np.float32(1))[0]], "a"), 2)[1]
            last = case.add(graph, "Mul", [number, inner], "m")
        else:
            middle, inner = rounded(case.add(graph, "Tanh", [number], "f"), 1)
            last = case.add(graph, "HardSwish", [inner], "m")
        y = case.add(graph, "QuantizeLinear", [last, *(g[0] for g in grids[3])], "q")
        graph.outputs = [y, middle] if shared else [y]
        graph.infer()
        pinned = compile_pinned(graph, tier, {"q": ELTWISE})
        assert pinned.routines["q"].split("{")[0] == ELTWISE
        assert shared or list(pinned.routines) == ["q"]
        feed = case.codes(dtype, dims)
        for threads in (1, 3):
            results = pinned.module.with_threads(threads).call([feed])
            for result, expected in zip(results, graph.evaluate([feed]), strict=True):
                np.testing.assert_array_equal(result, expected)


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("dims", [[1, 19, 3, 5], [2, 16, 300], [7], [70000]], ids=str)
def test_linear(dims: list[int], dtype: str, tier: str) -> None:
    case = Codes(len(dims))
    grid = case.grid(dtype, 0.037)
    graph = case.float
    x = graph.add_input("f", "float32", dims)
    codes = case.add(graph, "QuantizeLinear", [x, *(g[0] for g in grid)], "q")
    graph.outputs = [codes, case.add(graph, "DequantizeLinear", [codes, *(g[0] for g in grid)], "dq")]
    graph.infer()
    feed = (case.random.standard_normal(dims) * 4).astype(np.float32)
    feed.ravel()[:6] = [0.037 * 2.5, -0.037 * 0.5, 1e30, -np.inf, np.inf, 0]
    pinned = compile_pinned(graph, tier, {"q": LINEAR, "dq": LINEAR})
    assert {r.split("{")[0] for r in pinned.routines.values()} == {LINEAR}
    for result, expected in zip(pinned.module.call([feed]), graph.evaluate([feed]), strict=True):
        np.testing.assert_array_equal(result, expected)


@by_tier
@pytest.mark.parametrize("dims", [[7], [3, 40, 17], [70001], [0, 4]], ids=str)
def test_dynamic_linear(dims: list[int], tier: str) -> None:
    case = Codes(len(dims))
    graph = case.float
    x = graph.add_input("f", "float32", dims)
    graph.outputs = graph.add_node("DynamicQuantizeLinear", [x], ["y", "s", "z"], {}, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": LINEAR})
    for shift in (0, 5, -3):
        feed = (case.random.standard_normal(dims) + shift).astype(np.float32)
        for threads in (1, 3):
            module = pinned.module.with_threads(threads)
            for result, expected in zip(module.call([feed]), graph.evaluate([feed]), strict=True):
                np.testing.assert_array_equal(result, expected)


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_linear_by_a_scale_that_running_tells(dtype: str, tier: str) -> None:
    case = Codes(3)
    graph = case.float
    x, s, z = (
        graph.add_input(n, t, d) for n, t, d in (("f", "float32", [3, 35]), ("s", "float32", []), ("z", dtype, []))
    )
    codes = case.add(graph, "QuantizeLinear", [x, s, z], "q")
    graph.outputs = [codes, case.add(graph, "DequantizeLinear", [codes, s, z], "dq")]
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": LINEAR, "dq": LINEAR})
    assert {r.split("{")[0] for r in pinned.routines.values()} == {LINEAR}
    feeds = [(case.random.standard_normal([3, 35]) * 4).astype(np.float32), np.float32(0.043), np.array(11, dtype)]
    for result, expected in zip(pinned.module.call(feeds), graph.evaluate(feeds), strict=True):
        np.testing.assert_array_equal(result, expected)


#: Dims, the axis of the scales, the size of blocks (0: none).
SCALES = {
    "one": ([3, 35], 0, None),
    "last": ([5, 37], 1, 0),
    "last-long": ([700, 130], -1, 0),
    "middle": ([2, 19, 3, 5], 1, 0),
    "middle-long": ([3, 7, 9000], 1, 0),
    "first": ([33, 4], 0, 0),
    "blocks-last": ([4, 70], 1, 32),
    "blocks-first": ([70, 21], 0, 16),
    "blocks-middle": ([2, 33, 11], 1, 8),
    "blocks-long": ([40, 4097], 1, 64),
}


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2"])
@pytest.mark.parametrize("form", SCALES)
def test_linear_by_several_scales(form: str, dtype: str, tier: str) -> None:
    dims, axis, block = SCALES[form]
    random = np.random.default_rng(len(dims))
    bits = int(dtype.strip("uint"))
    lo, hi = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    shape = [] if block is None else [dims[axis]]
    if block:
        shape = list(dims)
        shape[axis] = -(-shape[axis] // block)
    attrs: dict[str, Any] = {"axis": axis} | ({"block_size": block} if block else {})
    kind = getattr(ml_dtypes, dtype) if bits < 8 else dtype
    scales = (random.uniform(0.5, 2, shape) * 8 / 2**bits).astype(np.float32)
    zeros = random.integers(lo, hi, shape).astype(kind)
    feed = (random.standard_normal(dims) * 4).astype(np.float32)
    feed.ravel()[:5] = [1e30, -np.inf, np.inf, 0, np.nan]
    for known in (False, True):
        graph = _native.Graph()
        feeds: list[np.ndarray] = [feed]
        x = graph.add_input("x", "float32", dims)
        grid = [graph.add_constant("k", k) for k in (scales, zeros)] if known else []
        if not known:
            grid = [graph.add_input("s", "float32", shape), graph.add_input("z", dtype, shape)]
            feeds += [scales, zeros]
        codes = graph.add_node("QuantizeLinear", [x, *grid], ["c"], attrs, "q").outputs[0]
        graph.outputs = [codes, graph.add_node("DequantizeLinear", [codes, *grid], ["n"], attrs, "dq").outputs[0]]
        graph.infer()
        pinned = compile_pinned(graph, tier, {"q": LINEAR, "dq": LINEAR})
        assert {r.split("{")[0] for r in pinned.routines.values()} == {LINEAR}
        for threads in (1, 3):
            results = pinned.module.with_threads(threads).call(feeds)
            for result, expected in zip(results, graph.evaluate(feeds), strict=True):
                np.testing.assert_array_equal(result, expected)


@by_tier
def test_numbers_of_int32(tier: str) -> None:
    graph = _native.Graph()
    x, s = graph.add_input("x", "int32", [3, 35]), graph.add_input("s", "float32", [35])
    graph.outputs = graph.add_node("DequantizeLinear", [x, s], ["y"], {"axis": 1}, "dq").outputs
    graph.infer()
    random = np.random.default_rng(0)
    feeds = [random.integers(-(2**31), 2**31, [3, 35]).astype(np.int32), random.uniform(0, 1, 35).astype(np.float32)]
    pinned = compile_pinned(graph, tier, {"dq": LINEAR})
    np.testing.assert_array_equal(pinned(*feeds), graph.evaluate(feeds)[0])


def test_says_why_codes_have_no_numbers() -> None:
    graph = _native.Graph()
    x, s, z = (graph.add_input(n, t, []) for n, t in (("x", "int32"), ("s", "float32"), ("z", "int32")))
    numbers = graph.add_node("DequantizeLinear", [x, s, z], ["y"], {}, "dq").outputs[0]
    graph.outputs = [graph.add_node("QuantizeLinear", [numbers, s, z], ["c"], {}, "q").outputs[0]]
    graph.infer()
    assert rejections(graph, "scalar", "dq")[LINEAR] == "int32 codes have zero points"
    assert rejections(graph, "scalar", "q")[LINEAR] == "the result is int32"


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("scale", [2e-30, 0.0371, 1 / 3, 0.999999, 2.0, 7e29], ids=str)
def test_numbers_next_to_the_middle_of_two_codes(scale: float, dtype: str, tier: str) -> None:
    case = Codes(5)
    grid = case.grid(dtype, scale)
    step = np.float32(scale)
    with np.errstate(over="ignore"):
        middle = ((np.arange(-300, 300) + 0.5) * np.float64(step)).astype(np.float32)
    near = [middle]
    for direction in (-np.inf, np.inf):
        for _ in range(3):
            near.append(np.nextafter(near[-1], np.float32(direction)))
        near.append(middle)
    feed = np.concatenate([*near, np.array([0, np.nan, np.inf, -np.inf] * 8, np.float32)])
    graph = case.float
    x = graph.add_input("f", "float32", [feed.size])
    graph.outputs = [case.add(graph, "QuantizeLinear", [x, *(g[0] for g in grid)], "q")]
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": LINEAR})
    np.testing.assert_array_equal(pinned.module.call([feed])[0], graph.evaluate([feed])[0])


@by_tier
@pytest.mark.parametrize("channels", [5, 32])
def test_codes_that_others_read_stay_codes(channels: int, tier: str) -> None:
    case = Codes(channels)
    graph = case.float
    x = graph.add_input("x", "uint8", [2, channels, 5, 7])
    gate = graph.add_input("gate", "float32", [2, channels, 1, 1])
    x_grid, y_grid = case.grid("uint8", 0.125), case.grid("uint8", 0.0625)
    number = dequantize(case, x, x_grid, "dq")
    pooled = case.add(graph, "GlobalAveragePool", [number], "pool")
    ends = [case.add(graph, "QuantizeLinear", [pooled, *(g[0] for g in y_grid)], "pooled")]
    gated = case.add(graph, "Mul", [number, gate], "mul")
    graph.outputs = [*ends, case.add(graph, "QuantizeLinear", [gated, *(g[0] for g in y_grid)], "q")]
    graph.infer()
    for node, group in (("pooled", ["dq", "pool", "pooled"]), ("q", ["dq", "mul", "q"])):
        assert group in [choice["nodes"] for choice in candidates(graph, tier, node)]
    pinned = compile_pinned(graph, tier, {"pooled": POOL, "q": "cpu:float32/eltwise"})
    feeds = [case.codes("uint8", [2, channels, 5, 7]), np.exp2(case.random.integers(-3, 3, [2, channels, 1, 1]))]
    feeds[1] = feeds[1].astype(np.float32)
    for result, expected in zip(pinned.module.call(feeds), graph.evaluate(feeds), strict=True):
        np.testing.assert_array_equal(result, expected)
