"""Routines of 8-bit codes against the references of the operators on codes: equal, on every tier."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from neo import _native

from tests.routines.codes import Codes, by_tier, dequantize, on_vnni, pick, weights_of
from tests.routines.pinning import compile_pinned, rejections

BLOCKED = "cpu:int8/direct_nchwc"
PLANES = "cpu:int8/direct_nchw"
DEPTHWISE = "cpu:int8/depthwise_nchwc"
GEMM = "cpu:int8/gemm"
WINOGRAD = "cpu:int8/winograd_nchwc"
FEW = "cpu:int8/few_channels_nchw"
POOL = "cpu:int8/pool_nchwc"
CASES = 30
#: Input and output channels of a group that fill no vector, and the number of groups.
GROUPS = [(4, 4, 8), (4, 4, 5), (8, 8, 4), (2, 2, 19), (2, 6, 8), (1, 3, 20), (3, 4, 5), (8, 4, 6), (4, 8, 5)]
GROUPS += [(12, 12, 4), (24, 24, 3), (16, 8, 4), (20, 20, 2)]


def conv_case(
    seed: int,
    depthwise: bool = False,
    residual: str = "",
    narrow: bool = False,
    function: str | None = None,
    square: bool = False,
    groups_of: tuple[int, int, int] | None = None,
    few: bool = False,
    wide: bool = False,
) -> Codes:
    """A convolution, `narrow`: of groups of a few channels; with a residual the sums may be rounded before it is added.

    `function`: elementwise operators behind it, none or more. `square`: 3x3 taps with a stride of 1. `groups_of`: as in
    GROUPS. `few`: to up to four channels. `wide`: of so many channels and pixels that tiles of all sizes have work.
    """
    case = Codes(seed)
    random = case.random
    rank = 2 if square else pick(random, [1, 2, 2, 2] if depthwise or groups_of or few else [1, 2, 2, 3])
    groups = 1
    out, per_group = int(random.integers(1, 40)), int(random.integers(1, 40))
    if wide:
        rank, out = 2, int(random.integers(41, 150))
    if depthwise:
        groups = out = int(random.integers(2, 40))
        per_group = 1
    if narrow:
        groups, per_group = 16 * int(random.integers(1, 3)), int(random.integers(2, 6))
        out = groups * int(random.integers(1, 6))
    if groups_of:
        per_group, out, groups = groups_of
        out *= groups
    if few:
        out = int(random.integers(1, 5))
    kernel = [int(random.integers(1, 5)) for _ in range(rank)]
    stride = [int(random.integers(1, 4)) for _ in range(rank)]
    if few:
        stride[-1] = 1
    dilation = [int(random.integers(1, 3)) for _ in range(rank)]
    if square or random.random() < 0.4:
        kernel, stride, dilation = [3 if square else 1] * rank, [1] * rank, [1] * rank
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    begin = [int(random.integers(0, e)) for e in extent]
    end = [int(random.integers(0, e)) for e in extent]
    room = 90 if few else 40 if wide else (14 if rank < 3 else 5)
    sizes = [max(e - b - a, 1) + int(random.integers(0, room)) for e, b, a in zip(extent, begin, end, strict=True)]
    attrs = {
        "kernel_shape": kernel,
        "strides": stride,
        "dilations": dilation,
        "pads": begin + end,
        "group": groups,
    }
    x_type, y_type = pick(random, ["uint8", "int8"]), pick(random, ["uint8", "int8"])
    batch = pick(random, [1, 1, 2])
    x, x_whole = case.input(x_type, [batch, groups * per_group, *sizes])
    x_grid = case.grid(x_type, 0.05)
    w, count = weights_of(case, [out, per_group, *kernel], 0)
    axis = {"axis": 0} if count > 1 else {}
    real = [
        dequantize(case, x, x_grid, "dq_x"),
        case.add(case.float, "DequantizeLinear", [k[0] for k in w], "dq_w", **axis),
    ]
    bias = None
    if random.random() < 0.7:
        codes = random.integers(-(2**16), 2**16, out).astype(np.int32)
        unit = (np.float32(0.05) * w[1][0].constant).astype(np.float32)
        bias = case.constant(codes)
        b = [bias[0], case.constant(unit)[0], case.constant(np.zeros(unit.shape, np.int32))[0]]
        real.append(case.add(case.float, "DequantizeLinear", b, "dq_b", axis=0))
    depth = per_group * int(np.prod(kernel))
    spread = float(0.05 * 150 * np.mean(w[1][0].constant) * 100 * np.sqrt(depth) / 128)
    y_grid = case.grid(y_type, spread)
    made = case.add(case.float, "Conv", real, "conv", **attrs)
    first = case.grid(y_type, spread) if residual == "rounded" else y_grid
    operands = [x_whole, *(g[1] for g in x_grid), *(k[1] for k in w), *(g[1] for g in first)]
    if bias:
        operands.append(bias[1])
    if residual != "unrounded":
        whole = case.add(case.whole, "QLinearConv", operands, "conv", **attrs)
    if not residual:
        if random.random() < 0.4:
            made = case.add(case.float, "Relu", [made], "relu")
            low = case.add(
                case.whole,
                "Relu",
                [case.add(case.whole, "DequantizeLinear", [whole, *(g[1] for g in y_grid)], "r")],
                "c",
            )
            whole = case.add(case.whole, "QuantizeLinear", [low, *(g[1] for g in y_grid)], "s")
        case.finish(case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"), whole)
        if function is not None:
            case.apply(function, y_grid)
        return case
    made = dequantize(case, case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in first)], "q1"), first, "dq1")
    back = case.add(case.whole, "DequantizeLinear", [whole, *(g[1] for g in first)], "dq1")
    r_type = pick(random, ["uint8", "int8"])
    dims = [batch, out] + [
        (s + b + e - x) // t + 1 for s, b, e, x, t in zip(sizes, begin, end, extent, stride, strict=True)
    ]
    r, r_whole = case.input(r_type, dims)
    r_grid = case.grid(r_type, spread)
    other = dequantize(case, r, r_grid, "dq_r")
    pair = [made, other] if random.random() < 0.5 else [other, made]
    made = case.add(case.float, "Add", pair, "add")
    total = case.add(
        case.whole,
        "Add",
        [back, case.add(case.whole, "DequantizeLinear", [r_whole, *(g[1] for g in r_grid)], "dq_r")],
        "add",
    )
    if random.random() < 0.5:
        made, total = case.add(case.float, "Relu", [made], "relu"), case.add(case.whole, "Relu", [total], "relu")
    case.finish(
        case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"),
        case.add(case.whole, "QuantizeLinear", [total, *(g[1] for g in y_grid)], "q"),
    )
    if function is not None:
        case.apply(function, y_grid)
    return case


@by_tier
@pytest.mark.parametrize("routine", [BLOCKED, PLANES])
@pytest.mark.parametrize("seed", range(CASES))
def test_convolution(seed: int, routine: str, tier: str) -> None:
    conv_case(seed).check(tier, {"q": routine})


@by_tier
@pytest.mark.parametrize("residual", ["", "rounded"])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_convolution_to_many_channels(seed: int, residual: str, tier: str) -> None:
    conv_case(seed, residual=residual, wide=True).check(tier, {"q": BLOCKED})


@by_tier
@pytest.mark.parametrize("function", [None, "HardSwish"], ids=["", "HardSwish"])
@pytest.mark.parametrize("residual", ["", "rounded"])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_winograd(seed: int, residual: str, function: str | None, tier: str) -> None:
    """Any padding, sizes that are no multiples of a tile's, weights with zero points."""
    case = conv_case(seed, residual=residual, function=function, square=True)
    case.check(tier, {"f" if function else "q": WINOGRAD})


@by_tier
@pytest.mark.parametrize(("zero", "channels"), [(0, 115), (255, 115), (127, 229)])
@pytest.mark.parametrize("weight", [-127, 127])
def test_largest_sums_by_winograd(weight: int, zero: int, channels: int, tier: str) -> None:
    """The most channels of weights of one sign whose sums stay below 2^25; of one more they may not."""
    for count in (channels, channels + 1):
        graph = _native.Graph()
        x = graph.add_input("x", "uint8", [1, count, 6, 5])
        w = graph.add_constant("w", np.full([3, count, 3, 3], weight, np.int8))
        point = graph.add_constant("z", np.uint8(zero))
        graph.outputs = graph.add_node("ConvInteger", [x, w, point], ["y"], {"pads": [1] * 4}, "q").outputs
        graph.infer()
        if count > channels:
            assert rejections(graph, tier, "q")[WINOGRAD] == "a sum may reach 2^25"
            continue
        pinned = compile_pinned(graph, tier, {"q": WINOGRAD})
        assert pinned.routines["q"].split("{")[0] == WINOGRAD
        for code in (0, 1, 128, 254, 255):
            codes = np.full([1, count, 6, 5], code, np.uint8)
            np.testing.assert_array_equal(pinned(codes), graph.evaluate([codes])[0])


def test_says_why_winograd_does_not_take_a_convolution() -> None:
    for dims, attrs, reason in [
        ([8, 4, 3, 3], {"strides": [2, 1]}, "the kernel is not 3x3 with a stride of 1"),
        ([8, 4, 3, 5], {}, "the kernel is not 3x3 with a stride of 1"),
        ([8, 2, 3, 3], {"group": 2}, "the convolution has groups"),
        ([8, 4, 3], {}, "not a convolution of two axes"),
    ]:
        graph = _native.Graph()
        x = graph.add_input("x", "uint8", [1, 4, *[9] * (len(dims) - 2)])
        w = graph.add_constant("w", np.ones(dims, np.int8))
        graph.outputs = graph.add_node("ConvInteger", [x, w], ["y"], attrs, "q").outputs
        graph.infer()
        assert rejections(graph, "scalar", "q")[WINOGRAD] == reason


@by_tier
@pytest.mark.parametrize("routine", [BLOCKED, PLANES])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_groups_of_few_channels(seed: int, routine: str, tier: str) -> None:
    conv_case(seed, narrow=True).check(tier, {"q": routine})


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_convolution_to_a_few_channels(seed: int, tier: str) -> None:
    conv_case(seed, few=True).check(tier, {"q": FEW})


@by_tier
@pytest.mark.parametrize("kind", ["sums", "numbers"])
@pytest.mark.parametrize(("channels", "width"), [(1, 1), (2, 64), (3, 65), (4, 150)])
def test_sums_and_numbers_of_a_few_channels(channels: int, width: int, kind: str, tier: str) -> None:
    """Results that are no codes, of images whose width is known to the call alone."""
    case = Codes(width)
    graph = case.float
    x, codes = graph.add_input("x", "uint8", [2, 21, 5, "W"]), case.codes("int8", [channels, 21, 3, 5])
    attrs = {"pads": [1, 4, 0, 2], "strides": [2, 1]}
    zero, w = graph.add_constant("z", np.uint8(77)), graph.add_constant("w", codes)
    if kind == "sums":
        y = graph.add_node("ConvInteger", [x, w, zero], ["y"], attrs, "q")
    else:
        steps = [graph.add_constant("s", np.float32(s)) for s in (0.25, 0.125)]
        number = graph.add_node("DequantizeLinear", [x, steps[0], zero], ["dx"], {}, "dx").outputs[0]
        weight = graph.add_node("DequantizeLinear", [w, steps[1]], ["dw"], {}, "dw").outputs[0]
        y = graph.add_node("Conv", [number, weight], ["y"], attrs, "q")
    graph.outputs = y.outputs
    graph.infer()
    pinned = compile_pinned(_native.run_passes(graph, ["fold_constants"]), tier, {"q": FEW})
    assert pinned.routines["q"].split("{")[0] == FEW
    feed = case.codes("uint8", [2, 21, 5, width])
    for threads in (1, 3):
        np.testing.assert_array_equal(pinned(feed, threads=threads), graph.evaluate([feed])[0])


@on_vnni
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("residual", ["", "rounded"])
@pytest.mark.parametrize("seed", range(3))
def test_words_of_a_groups_channels(seed: int, residual: str, groups: tuple[int, int, int]) -> None:
    seed += 3 * GROUPS.index(groups)
    function = "HardSwish" if residual == "rounded" and seed % 2 else None
    case = conv_case(seed, residual=residual, function=function, groups_of=groups)
    case.check("avx512_vnni", {"f" if function else "q": DEPTHWISE})


@on_vnni
@pytest.mark.parametrize(("size", "channels"), [(0, 16), (1, 16), (200, 16), (200, 48)])
@pytest.mark.parametrize("stride", [1, 2])
def test_groups_in_images_of_many_widths(stride: int, channels: int, size: int) -> None:
    """No pixel, one, and rows longer than the buffer has room for; the width is known to the call alone."""
    case = Codes(size)
    graph = case.float
    x = graph.add_input("x", "uint8", [1, channels, 5, "W"])
    w = [graph.add_constant("w", case.codes("int8", [channels, channels // 4, 3, 3]))]
    attrs = {"pads": [1] * 4, "strides": [1, stride], "group": 4}
    graph.outputs = graph.add_node("ConvInteger", [x, *w], ["y"], attrs, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, "avx512_vnni", {"q": DEPTHWISE})
    assert pinned.routines["q"].split("{")[0] == DEPTHWISE
    codes = case.codes("uint8", [1, channels, 5, size])
    for threads in (1, 3):
        np.testing.assert_array_equal(pinned(codes, threads=threads), graph.evaluate([codes])[0])


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_depthwise(seed: int, tier: str) -> None:
    conv_case(seed, depthwise=True).check(tier, {"q": DEPTHWISE})


@by_tier
@pytest.mark.parametrize("routine", [BLOCKED, PLANES, DEPTHWISE])
@pytest.mark.parametrize("function", ["HardSwish", "Sigmoid Tanh", ""], ids=["HardSwish", "Sigmoid Tanh", "requantize"])
@pytest.mark.parametrize("seed", range(CASES // 5))
def test_function_behind_a_convolution(seed: int, function: str, routine: str, tier: str) -> None:
    """One step: the codes of the sums go through a table."""
    residual = "rounded" if seed % 3 == 0 and routine != PLANES else ""
    case = conv_case(seed, routine == DEPTHWISE, residual, function=function)
    case.check(tier, {"f": routine})


@by_tier
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"), [(5, 1, 1), (5, 2, 1), (7, 3, 1), (9, 4, 1), (3, 1, 4), (1, 1, 1)]
)
@pytest.mark.parametrize("zero", [0, 37], ids=["centred", "shifted"])
def test_depthwise_of_wide_images(zero: int, kernel: int, stride: int, dilation: int, tier: str) -> None:
    """Rows longer than the buffer of a window's rows has room for, and windows beyond the image on all sides."""
    case = Codes(kernel)
    channels, width, pad = 19, 200 * stride, kernel * dilation // 2 + 1
    x, x_whole = case.input("int8" if kernel == 7 else "uint8", [1, channels, 3 * stride, width])
    x_grid, y_grid = case.grid("int8" if kernel == 7 else "uint8", 0.05), case.grid("uint8", 4.0)
    w = [
        case.constant(case.codes("int8", [channels, 1, kernel, kernel])),
        case.constant(np.float32(0.01)),
        case.constant(np.int8(zero)),
    ]
    attrs = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2, "group": channels}
    attrs["kernel_shape"] = [kernel] * 2
    real = case.add(case.float, "DequantizeLinear", [k[0] for k in w], "dq_w")
    made = case.add(case.float, "Conv", [dequantize(case, x, x_grid, "dq_x"), real], "conv", **attrs)
    operands = [x_whole, *(g[1] for g in x_grid), *(k[1] for k in w), *(g[1] for g in y_grid)]
    whole = case.add(case.whole, "QLinearConv", operands, "conv", **attrs)
    case.finish(case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"), whole)
    case.check(tier, {"q": DEPTHWISE})


@by_tier
@pytest.mark.parametrize("depthwise", [False, True], ids=["dense", "depthwise"])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_residual(seed: int, depthwise: bool, tier: str) -> None:
    conv_case(seed, depthwise, residual="rounded").check(tier, {"q": DEPTHWISE if depthwise else BLOCKED})


def product_case(seed: int) -> Codes:
    """A product of matrices, every third one with a function behind it."""
    case = Codes(seed)
    random = case.random
    depth, columns = int(random.integers(1, 70)), int(random.integers(1, 70))
    rows = pick(random, [[1], [3], [2, 5], [17]])
    x_type, y_type = pick(random, ["uint8", "int8"]), pick(random, ["uint8", "int8"])
    x, x_whole = case.input(x_type, [*rows, depth])
    x_grid = case.grid(x_type, 0.05)
    w, count = weights_of(case, [depth, columns], 1)
    axis = {"axis": 1} if count > 1 else {}
    spread = float(0.05 * 150 * np.mean(w[1][0].constant) * 100 * np.sqrt(depth) / 128)
    y_grid = case.grid(y_type, spread)
    real = case.add(case.float, "DequantizeLinear", [k[0] for k in w], "dq_w", **axis)
    made = case.add(case.float, "MatMul", [dequantize(case, x, x_grid, "dq_x"), real], "product")
    operands = [x_whole, *(g[1] for g in x_grid), *(k[1] for k in w), *(g[1] for g in y_grid)]
    whole = case.add(case.whole, "QLinearMatMul", operands, "product")
    case.finish(case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"), whole)
    if seed % 3 == 0:
        case.apply("Erf", y_grid)
    return case


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_product(seed: int, tier: str) -> None:
    product_case(seed).check(tier, {"f" if seed % 3 == 0 else "q": GEMM})


def addend_case(seed: int, convolves: bool) -> Codes:
    """A product whose rounded sums a constant is added to."""
    case = Codes(seed)
    random = case.random
    depth, columns = int(random.integers(1, 70)), int(random.integers(1, 70))
    x_type, y_type = pick(random, ["uint8", "int8"]), pick(random, ["uint8", "int8"])
    x, x_whole = case.input(x_type, [1, depth, 5, 3] if convolves else [2, 5, depth])
    x_grid = case.grid(x_type, 0.05)
    w, count = weights_of(case, [columns, depth, 1, 1] if convolves else [depth, columns], 0 if convolves else 1)
    axis = {"axis": 0 if convolves else 1} if count > 1 else {}
    real = case.add(case.float, "DequantizeLinear", [k[0] for k in w], "dq_w", **axis)
    op, whole_op = ("Conv", "QLinearConv") if convolves else ("MatMul", "QLinearMatMul")
    made = case.add(case.float, op, [dequantize(case, x, x_grid, "dq_x"), real], "product")
    spread = float(0.05 * 150 * np.mean(w[1][0].constant) * 100 * np.sqrt(depth) / 128)
    first, last = case.grid(y_type, spread), case.grid(y_type, 1.5 * spread)
    operands = [x_whole, *(g[1] for g in x_grid), *(k[1] for k in w), *(g[1] for g in first)]
    whole = case.add(case.whole, whole_op, operands, "product")
    made = dequantize(case, case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in first)], "q1"), first, "dq1")
    whole = case.add(case.whole, "DequantizeLinear", [whole, *(g[1] for g in first)], "dq1")
    addend = (random.standard_normal([columns, 1, 1] if convolves else [columns]) * 40 * spread).astype(np.float32)
    ends = [made, whole]
    for i, (graph, k) in enumerate(zip((case.float, case.whole), case.constant(addend), strict=True)):
        ends[i] = case.add(graph, "Add", [ends[i], k] if seed % 2 else [k, ends[i]], "add")
        if seed % 3 == 0:
            ends[i] = case.add(graph, "Relu", [ends[i]], "relu")
        ends[i] = case.add(graph, "QuantizeLinear", [ends[i], *(g[i] for g in last)], "q")
    case.finish(*ends)
    return case


@by_tier
@pytest.mark.parametrize("convolves", [False, True], ids=["product", "convolution"])
@pytest.mark.parametrize("seed", range(CASES // 3))
def test_constant_added_to_rounded_sums(seed: int, convolves: bool, tier: str) -> None:
    addend_case(seed, convolves).check(tier, {"q": BLOCKED if convolves else GEMM})


@by_tier
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("convolves", [False, True], ids=["product", "convolution"])
def test_weights_of_four_bits(convolves: bool, dtype: str, tier: str) -> None:
    case = Codes(convolves)
    random = case.random
    shape, axis = ([19, 20, 3, 3], 0) if convolves else ([37, 21], 1)
    low, wide = (-8, "int8") if dtype == "int4" else (0, "uint8")
    codes, zeros = (random.integers(low, low + 16, dims).astype(wide) for dims in (shape, [shape[axis]]))
    scales = case.constant(random.uniform(0.01, 0.02, shape[axis]).astype(np.float32))
    x, x_whole = case.input("uint8", [2, 20, 7, 5] if convolves else [2, 5, 37])
    x_grid, y_grid = case.grid("uint8", 0.05), case.grid("uint8", 0.5)
    narrow = [case.float.add_constant("k", k.astype(getattr(ml_dtypes, dtype))) for k in (codes, zeros)]
    real = case.add(case.float, "DequantizeLinear", [narrow[0], scales[0], narrow[1]], "dq_w", axis=axis)
    op, whole_op = ("Conv", "QLinearConv") if convolves else ("MatMul", "QLinearMatMul")
    made = case.add(case.float, op, [dequantize(case, x, x_grid, "dq_x"), real], "product")
    w = [case.whole.add_constant("k", codes), scales[1], case.whole.add_constant("k", zeros)]
    whole = case.add(case.whole, whole_op, [x_whole, *(g[1] for g in x_grid), *w, *(g[1] for g in y_grid)], "product")
    case.finish(case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"), whole)
    case.check(tier, {"q": BLOCKED if convolves else GEMM})


def pool_case(seed: int, op: str, keeps_scale: bool = False) -> Codes:
    """A pool, `keeps_scale`: to the scale that it reads, of long rows."""
    case = Codes(seed)
    random = case.random
    rank = pick(random, [1, 2, 2, 3])
    kernel = [int(random.integers(1, 5)) for _ in range(rank)]
    pads = [int(random.integers(0, k)) for k in kernel + kernel]
    attrs = {"kernel_shape": kernel, "strides": [int(random.integers(1, 4)) for _ in kernel], "pads": pads}
    attrs["ceil_mode"] = int(random.integers(2))
    if op == "AveragePool":
        attrs["count_include_pad"] = int(random.integers(2))
    sizes = [int(random.integers(k + 4, 20)) for k in kernel]
    if keeps_scale:
        sizes[-1] += int(random.integers(0, 280))
    dtype = pick(random, ["uint8", "int8"])
    x, x_whole = case.input(dtype, [pick(random, [1, 2]), int(random.integers(1, 40)), *sizes])
    # Powers of two: a mean of codes of other scales may lie halfway, where two ways to compute it round differently.
    x_grid = case.grid(dtype, 0.125)
    y_grid = x_grid if op == "MaxPool" or keeps_scale else case.grid(dtype, 0.0625)
    attrs = {} if op == "GlobalAveragePool" else attrs
    made = case.add(case.float, op, [dequantize(case, x, x_grid, "dq")], "pool", **attrs)
    number = case.add(case.whole, "DequantizeLinear", [x_whole, *(g[1] for g in x_grid)], "dq")
    whole = case.add(case.whole, op, [number], "pool", **attrs)
    case.finish(
        case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"),
        case.add(case.whole, "QuantizeLinear", [whole, *(g[1] for g in y_grid)], "q"),
    )
    return case


@by_tier
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "GlobalAveragePool"])
@pytest.mark.parametrize("seed", range(8))
def test_pool(seed: int, op: str, tier: str) -> None:
    pool_case(seed, op).check(tier, {"q": POOL})


@by_tier
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("seed", range(16))
def test_pool_of_long_rows(seed: int, op: str, tier: str) -> None:
    """Means of an even number of codes often lie halfway between two."""
    pool_case(seed, op, keeps_scale=True).check(tier, {"q": POOL})


def test_says_why_not() -> None:
    case = conv_case(0)
    graph = _native.run_passes(case.float, ["fold_constants"])
    reasons = rejections(graph, "scalar", "q")
    assert reasons[DEPTHWISE] == "not one input channel per group"
    assert reasons[FEW] == "not a convolution to at most four channels without groups"


@pytest.mark.parametrize(
    ("weights", "attrs", "reason"),
    [
        ([3, 8, 3, 3], {"strides": [1, 2]}, "pixels of a row are left out"),
        ([3, 200, 3, 3], {}, "the window has too many words"),
    ],
)
def test_says_why_a_few_channels_are_not_taken(weights: list[int], attrs: dict[str, list[int]], reason: str) -> None:
    case = Codes(0)
    x = case.float.add_input("x", "uint8", [1, weights[1], 9, 9])
    w = case.float.add_constant("w", case.codes("int8", weights))
    case.float.outputs = case.float.add_node("ConvInteger", [x, w], ["y"], attrs, "q").outputs
    case.float.infer()
    assert rejections(case.float, "scalar", "q")[FEW] == reason


@pytest.mark.parametrize(
    ("groups", "tier", "reason"),
    [
        ((4, 4, 8), "scalar", "not one input channel per group, and no sums of four products"),
        pytest.param((16, 32, 3), "avx512_vnni", "the groups fill vectors", marks=on_vnni),
        pytest.param((80, 8, 2), "avx512_vnni", "a group has too many input channels", marks=on_vnni),
        pytest.param((3, 2, 8), "avx512_vnni", "four output channels read several blocks at once", marks=on_vnni),
    ],
)
def test_says_why_groups_are_not_taken(groups: tuple[int, int, int], tier: str, reason: str) -> None:
    graph = _native.run_passes(conv_case(1, groups_of=groups).float, ["fold_constants"])
    assert rejections(graph, tier, "q")[DEPTHWISE] == reason


@by_tier
@pytest.mark.parametrize("zero", ["none", "constant", "dynamic"])
@pytest.mark.parametrize("seed", range(10))
def test_whole_product(seed: int, zero: str, tier: str) -> None:
    case = Codes(seed)
    random, graph = case.random, case.float
    dtype = pick(random, ["uint8", "int8"])
    is_conv = seed % 2 == 0
    if is_conv:
        shape, weights = [1, int(random.integers(1, 40)), 7, 9], [int(random.integers(1, 40)), 0, 3, 2]
        weights[1] = shape[1]
    else:
        shape = [3, 5, int(random.integers(1, 70))]
        weights = [shape[2], int(random.integers(1, 70))]
    operands = [graph.add_input("x", dtype, shape), graph.add_constant("w", case.codes("int8", weights))]
    feeds = [case.codes(dtype, shape)]
    if zero == "constant":
        operands.append(graph.add_constant("z", case.codes(dtype, [1]).reshape(())))
    elif zero == "dynamic":
        operands.append(graph.add_input("z", dtype, []))
        feeds.append(case.codes(dtype, [1]).reshape(()))
    if zero != "none" and random.random() < 0.5:
        operands.append(graph.add_constant("wz", case.codes("int8", [weights[0 if is_conv else 1]])))
    attrs = {"pads": [1, 0, 2, 1]} if is_conv else {}
    graph.outputs = graph.add_node("ConvInteger" if is_conv else "MatMulInteger", operands, ["y"], attrs, "q").outputs
    graph.infer()
    for routine in [BLOCKED, PLANES] if is_conv else [GEMM]:
        pinned = compile_pinned(graph, tier, {"q": routine})
        assert pinned.routines["q"].split("{")[0] == routine
        for threads in (1, 3):
            np.testing.assert_array_equal(pinned(*feeds, threads=threads), graph.evaluate(feeds)[0])


@by_tier
@pytest.mark.parametrize("routine", [GEMM, BLOCKED, PLANES, DEPTHWISE, WINOGRAD])
@pytest.mark.parametrize("seed", range(8))
def test_scale_that_running_tells(seed: int, routine: str, tier: str) -> None:
    """Numbers as DynamicQuantizeLinear and the product of scales make them."""
    case = Codes(seed)
    random, graph = case.random, case.float
    channels, columns = int(random.integers(2, 70)), int(random.integers(1, 70))
    group = 1
    if routine == GEMM:
        shape, weights, axis = [3, 5, channels], [channels, columns], 1
    elif routine == DEPTHWISE:
        shape, weights, axis, group = [2, channels, 7, 9], [channels, 1, 3, 3], 0, channels
    else:
        shape, weights, axis = [2, channels, 7, 9], [columns, channels, 3, 3], 0
    count = weights[axis]
    dtype = pick(random, ["int8", "uint8"])
    codes = case.codes(dtype, weights)
    scale = random.uniform(0.001, 0.02, count).astype(np.float32)
    point = case.codes(dtype, [count])
    operands = [graph.add_constant("w", codes), graph.add_constant("ws", scale), graph.add_constant("wz", point)]
    inputs = [
        graph.add_input("x", "uint8", shape),
        graph.add_input("s", "float32", []),
        graph.add_input("z", "uint8", []),
    ]
    numbers = [
        case.add(graph, "DequantizeLinear", inputs, "dx"),
        case.add(graph, "DequantizeLinear", operands, "dw", axis=axis),
    ]
    bias = random.standard_normal(count).astype(np.float32)
    numbers.append(graph.add_constant("b", bias))
    if routine == GEMM:
        y = case.add(graph, "MatMul", numbers, "p")
    else:
        y = case.add(graph, "Conv", numbers, "p", pads=[1, 1, 1, 1], group=group)
    graph.outputs = [y]
    graph.infer()
    pinned = compile_pinned(_native.run_passes(graph, ["fold_constants"]), tier, {"p": routine})
    assert pinned.routines["p"].split("{")[0] == routine
    whole = codes.astype(np.int64) - point.astype(np.int64).reshape(
        [-1 if i == axis else 1 for i in range(len(weights))]
    )
    for zero, step in ((0, 0.1), (255, 0.003), (77, 2.5)):
        x = case.codes("uint8", shape)
        sums = integer_product(x.astype(np.int64) - zero, whole, group)
        columns_of = [1, -1, 1, 1] if routine != GEMM else [-1]
        factor = (np.float32(step) * scale).reshape(columns_of)
        expected = sums.astype(np.float32) * factor + bias.reshape(columns_of)
        for threads in (1, 3):
            result = pinned(x, np.float32(step), np.uint8(zero), threads=threads)
            np.testing.assert_array_equal(result, expected)


def integer_product(x: np.ndarray, w: np.ndarray, group: int) -> np.ndarray:
    """A matrix product, or a 3x3 convolution with padding of one, in int64."""
    if w.ndim == 2:
        return x @ w
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    if group > 1:
        return np.einsum("nchwij,cij->nchw", windows, w[:, 0])
    return np.einsum("nchwij,ocij->nohw", windows, w)


@by_tier
@pytest.mark.parametrize("weight", [-128, 127, 255], ids=str)
def test_extremes_of_codes(weight: int, tier: str) -> None:
    """Sums of the largest products, of either sign, and a zero point of the weights far from the middle of its range."""
    depth, columns = 4096, 19
    dtype = "uint8" if weight > 127 else "int8"
    graph = _native.Graph()
    x = graph.add_input("x", "uint8", [5, depth])
    w = graph.add_constant("w", np.full([depth, columns], weight, dtype))
    point = 0 if dtype == "uint8" else -100
    zeros = [graph.add_constant("z", np.uint8(255)), graph.add_constant("wz", np.array(point, dtype))]
    graph.outputs = graph.add_node("MatMulInteger", [x, w, *zeros], ["y"], {}, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": GEMM})
    for code in (0, 1, 254, 255):
        result = pinned(np.full([5, depth], code, np.uint8))
        np.testing.assert_array_equal(result, np.full([5, columns], depth * (code - 255) * (weight - point)))
