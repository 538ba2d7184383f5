"""Reductions, softmax and normalisations of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native
from neo.errors import Error

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, pick, rejections

REDUCE = "cpu:float32/reduce"
TYPED = "cpu/reduce"
SOFTMAX = "cpu:float32/softmax"
NORM = "cpu:float32/norm"
SUMS = [
    "ReduceSum",
    "ReduceMean",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceProd",
    "ReduceLogSumExp",
]
PICKS = ["ReduceMax", "ReduceMin"]
WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
CASES = 12
SIZES = [1, 2, 3, 7, 8, 16, 17, 31, 65, 67]

by_tier = pytest.mark.parametrize("tier", TIERS)


def build(op, x, operands=(), attrs=None, symbols=False):
    graph = _native.Graph()
    dims = [f"d{i}" for i in range(x.ndim)] if symbols else list(x.shape)
    values = [graph.add_input("x", x.dtype.name, dims)]
    values += [graph.add_constant(f"k{i}", o) for i, o in enumerate(operands)]
    graph.outputs = graph.add_node(op, values, ["y"], attrs or {}, "node").outputs
    return graph


def check(graph, tier, routine, x, depth, exact=False):
    pinned = compile_pinned(graph, tier, {"node": routine})
    assert pinned.routines["node"] == routine
    expected = graph.evaluate([x])[0]
    actual = pinned(x)
    if exact:
        np.testing.assert_array_equal(actual, expected)
    else:
        assert_close(actual, expected, depth, str(graph))
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), actual)


def check_bits(graph, tier, x):
    pinned = compile_pinned(graph, tier, {"node": TYPED})
    assert pinned.routines["node"] == TYPED
    found, expected = pinned(x), graph.evaluate([x])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def run_of_axes(random, rank):
    first = int(random.integers(rank))
    return list(range(first, int(random.integers(first, rank)) + 1))


@by_tier
@pytest.mark.parametrize("op", SUMS + PICKS)
def test_reductions(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        dims = [pick(random, SIZES[: 10 if rank < 3 else 6]) for _ in range(rank)]
        axes = run_of_axes(random, rank)
        x = floats(random, dims)
        if op == "ReduceLogSum":
            x = np.abs(x) + np.float32(0.5)
        if op == "ReduceProd":
            x = np.exp2(x / 16).astype(np.float32)
        keep = int(random.integers(2))
        operands = [] if len(axes) == rank and seed % 2 else [np.array(axes, np.int64) - rank * (seed % 2)]
        depth = int(np.prod([dims[a] for a in axes]))
        symbols = bool(random.integers(2))
        check(build(op, x, operands, {"keepdims": keep}, symbols), tier, REDUCE, x, depth, op in PICKS)


@by_tier
@pytest.mark.parametrize("op", SUMS + PICKS)
def test_rows_shorter_than_vectors(op, tier):
    """Side by side, where what is not a number stays in its row."""
    for length in range(1, 21):
        random = np.random.default_rng(length)
        x = np.exp2(floats(random, [37, length]) / 16).astype(np.float32)
        graph = build(op, x, [np.array([1], np.int64)], {"keepdims": 0}, True)
        check(graph, tier, REDUCE, x, length, op in PICKS)
        x[3, -1] = x[20, length // 2] = np.nan
        [found] = compile_pinned(graph, tier, {"node": REDUCE}).module.call([x])
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), [3, 20])


@by_tier
@pytest.mark.parametrize("op", SUMS + PICKS)
def test_reductions_of_nothing(op, tier):
    x = np.zeros((3, 0, 5), np.float32)
    for axes in ([1], [1, 2], [2]):
        check(build(op, x, [np.array(axes, np.int64)], symbols=True), tier, REDUCE, x, 1, True)


@by_tier
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (op, dtype)
        for op in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare", "ReduceProd", *PICKS)
        for dtype in WHOLE
        if (op, dtype) != ("ReduceMean", "uint64")
    ],
)
def test_reductions_of_integers(op, dtype, tier):
    bounds = np.iinfo(dtype)
    for seed in range(6):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        dims = [pick(random, [*SIZES[: 10 if rank < 3 else 6], 200 if rank < 3 else 5]) for _ in range(rank)]
        axes = run_of_axes(random, rank)
        x = random.integers(bounds.min, bounds.max, dims, dtype, endpoint=True)
        graph = build(op, x, [np.array(axes, np.int64)], {"keepdims": seed % 2}, seed % 3 == 0)
        check(graph, tier, TYPED, x, 1, True)


@by_tier
@pytest.mark.parametrize("op", SUMS + PICKS)
def test_reductions_of_float64(op, tier):
    for seed in range(6):
        random = np.random.default_rng(seed)
        dims = [pick(random, [*SIZES, 200]) for _ in range(int(random.integers(1, 4)))]
        axes = run_of_axes(random, len(dims))
        x = random.uniform(0.5, 1.5, dims)
        graph = build(op, x, [np.array(axes, np.int64)], {"keepdims": seed % 2}, seed % 3 == 0)
        pinned = compile_pinned(graph, tier, {"node": TYPED})
        assert pinned.routines["node"] == TYPED
        np.testing.assert_allclose(pinned(x), graph.evaluate([x])[0], rtol=1e-12)
        np.testing.assert_array_equal(pinned(x, threads=3), pinned(x))


@by_tier
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float64"])
def test_reductions_of_nothing_of_other_dtypes(dtype, tier):
    x = np.zeros((3, 0, 5), dtype)
    for op in ["ReduceMax", "ReduceMin", *([] if dtype == "bool" else ["ReduceSum", "ReduceProd"])]:
        for axes in ([1], [1, 2], [2]):
            check_bits(build(op, x, [np.array(axes, np.int64)], symbols=True), tier, x)


@by_tier
def test_extremes_of_truth_values(tier):
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (7, 67, 5)).astype(bool)
    for op in PICKS:
        for axis in range(3):
            check_bits(build(op, x, [np.array([axis], np.int64)]), tier, x)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", *WHOLE])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_positions_of_extremes(op, dtype, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [*SIZES[:6], 150]) for _ in range(int(random.integers(1, 4)))]
        x = random.integers(0, pick(random, [3, 100]), dims).astype(dtype)
        if x.dtype.kind == "f" and seed % 4 == 0:
            x.ravel()[random.integers(0, x.size, 2)] = np.nan
        attrs = {
            "axis": int(random.integers(-x.ndim, x.ndim)),
            "select_last_index": seed % 2,
            "keepdims": seed // 2 % 2,
        }
        check(build(op, x, attrs=attrs), tier, TYPED, x, 1, True)


@by_tier
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_lengths_of_integers(dtype, tier):
    """Rounded down, of sums that 64 bits hold, of longer ones, and of some that 128 do not."""
    bounds = np.iinfo(dtype)
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [0 if seed == 5 else 1, *SIZES, 200]) for _ in range(int(random.integers(1, 4)))]
        axes = run_of_axes(random, len(dims))
        most = pick(random, [3, 10000, 1 << 31, bounds.max])
        x = random.integers(max(bounds.min, -most), min(bounds.max, most), dims, dtype, endpoint=True)
        x.ravel()[: seed % 3] = bounds.min if seed % 2 else bounds.max
        check(build("ReduceL2", x, [np.array(axes, np.int64)], {"keepdims": seed % 2}), tier, TYPED, x, 1, True)


@by_tier
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_integers(op, dtype, tier):
    """Whole parts of numbers that are no integers; powers of two have logarithms far from one."""
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [*SIZES, 200]) for _ in range(int(random.integers(1, 4)))]
        axes = run_of_axes(random, len(dims))
        x = random.integers(1, 60, dims, dtype)
        check(build(op, x, [np.array(axes, np.int64)], {"keepdims": seed % 2}), tier, TYPED, x, 1, True)


@by_tier
@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_no_integers(op, tier):
    x = np.zeros([3, 4], np.int64) if op == "ReduceLogSum" else np.full([3, 4], np.iinfo(np.int64).min)
    for axis in (0, 1):
        check(build(op, x, [np.array([axis], np.int64)]), tier, TYPED, x, 1, True)


@by_tier
@pytest.mark.parametrize("shape", [[40, 1000], [1000, 40], [8, 130, 65]])
def test_reductions_large_enough_for_a_team(shape, tier):
    x = floats(np.random.default_rng(1), shape)
    for axis in range(len(shape)):
        check(build("ReduceSum", x, [np.array([axis], np.int64)]), tier, REDUCE, x, shape[axis])


@by_tier
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op, tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, SIZES) for _ in range(int(random.integers(1, 4)))]
        x = (floats(random, dims) * np.float32(pick(random, [1, 20, 90]))).astype(np.float32)
        axis = int(random.integers(-x.ndim, x.ndim))
        check(build(op, x, attrs={"axis": axis}, symbols=bool(random.integers(2))), tier, SOFTMAX, x, dims[axis])


@by_tier
def test_softmax_of_large_numbers_and_of_nothing(tier):
    x = np.array([[3e38, -3e38, 0], [88, 89, 90]], np.float32)
    check(build("Softmax", x), tier, SOFTMAX, x, 3)
    x = np.zeros((2, 0, 3), np.float32)
    check(build("Softmax", x, attrs={"axis": 1}), tier, SOFTMAX, x, 1, True)


@by_tier
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_makes_no_subnormals(axis, tier):
    x = np.zeros([40, 40], np.float32)
    x[1:, 1:] = -np.linspace(86, 105, 39, dtype=np.float32)
    pinned = compile_pinned(build("Softmax", x, attrs={"axis": axis}), tier, {"node": SOFTMAX})
    y = pinned(x if axis == 1 else x.T.copy())
    assert np.all((y == 0) | (y >= np.finfo(np.float32).tiny / 40))
    assert np.any(y == 0)


@by_tier
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_layer_norms(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, SIZES[1:]) for _ in range(int(random.integers(1, 4)))]
        axis = int(random.integers(-len(dims), 0))
        row = dims[axis:]
        x = floats(random, dims)
        operands = [floats(random, row)]
        if op == "LayerNormalization" and seed % 2:
            operands.append(floats(random, row))
        check(build(op, x, operands, {"axis": axis, "epsilon": 1e-3}), tier, NORM, x, int(np.prod(row)))


@by_tier
@pytest.mark.parametrize("op", ["InstanceNormalization", "GroupNormalization"])
def test_channel_norms(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        groups = pick(random, [1, 2, 3])
        channels = groups * pick(random, [1, 2, 5])
        dims = [
            int(random.integers(1, 4)),
            channels,
            *(pick(random, SIZES[1:8]) for _ in range(int(random.integers(1, 3)))),
        ]
        x = floats(random, dims)
        operands = [floats(random, [channels]) for _ in range(2)]
        attrs = {"epsilon": 1e-3, **({"num_groups": groups} if op == "GroupNormalization" else {})}
        check(build(op, x, operands, attrs), tier, NORM, x, int(np.prod(dims[1:])))


@by_tier
@pytest.mark.parametrize("op", ["LayerNormalization", "InstanceNormalization"])
@pytest.mark.parametrize("dims", [[2, 5, 5], [0, 5, 5], [3, 5, 7]])
def test_a_norm_whose_scale_and_bias_are_one_value(op, dims, tier):
    random = np.random.default_rng(0)
    x = floats(random, dims)
    graph = _native.Graph()
    both = graph.add_constant("both", floats(random, [dims[1 if op == "InstanceNormalization" else 2]]))
    inputs = [graph.add_input("x", "float32", dims), both, both]
    graph.outputs = graph.add_node(op, inputs, ["y"], {}, "node").outputs
    check(graph, tier, NORM, x, dims[2])


def run_time_axes(op, x, rank_of_axes, attrs):
    """A graph of one node whose axes are an input."""
    graph = _native.Graph()
    operands = [graph.add_input("x", x.dtype.name, list(x.shape)), graph.add_input("axes", "int64", rank_of_axes)]
    graph.outputs = graph.add_node(op, operands, ["y"], attrs, "node").outputs
    return graph


@by_tier
@pytest.mark.parametrize(("op", "dtype"), [("ReduceSum", "float32"), ("ReduceMax", "int8"), ("ReduceL2", "int64")])
def test_axes_that_only_a_call_tells(op, dtype, tier):
    """Neighbours, some of which are of one element, and those that are none, which are brought together first."""
    routine = REDUCE if dtype == "float32" else TYPED
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 1, 2, 5, 17]) for _ in range(int(random.integers(1, 5)))]
        x = random.integers(-9, 9, dims).astype(dtype)
        count = int(random.integers(0, len(dims) + 1))
        axes = random.permutation(len(dims))[:count] - len(dims) * (seed % 2)
        attrs = {"keepdims": 1 if count == 0 else seed // 2 % 2, "noop_with_empty_axes": seed % 2}
        graph = run_time_axes(op, x, ["A"] if attrs["keepdims"] else [count], attrs)
        pinned = compile_pinned(graph, tier, {"node": routine})
        assert pinned.routines["node"] == routine
        for threads in (1, 3):
            np.testing.assert_array_equal(pinned(x, axes, threads=threads), graph.evaluate([x, axes])[0])


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_scans_along_axes_that_only_a_call_tells(dtype, tier):
    x = np.random.default_rng(0).integers(-9, 9, [3, 5, 67]).astype(dtype)
    for attrs in ({}, {"exclusive": 1, "reverse": 1}):
        graph = run_time_axes("CumSum", x, [], attrs)
        pinned = compile_pinned(graph, tier, {"node": "cpu/scan"})
        for axis in (*range(-3, 3), 1):
            np.testing.assert_array_equal(pinned(x, np.array(axis)), graph.evaluate([x, np.array(axis)])[0])


def test_says_which_axis_lies_outside():
    x = np.zeros([2, 3], np.float32)
    for op, routine, axes in (("ReduceSum", REDUCE, np.array([2])), ("CumSum", "cpu/scan", np.array(-3))):
        pinned = compile_pinned(run_time_axes(op, x, list(axes.shape), {}), TIERS[0], {"node": routine})
        with pytest.raises(Error, match="ax"):
            pinned(x, axes)


def test_says_why_it_declines():
    x = np.zeros((2, 3, 4), np.float32)
    graph = build("ReduceSum", x, [np.array([0, 2], np.int64)])
    assert rejections(graph, TIERS[0], "node")[REDUCE] == "the axes are not known neighbours"


@by_tier
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"])
def test_rows_of_float64(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [*SIZES, 200]) for _ in range(int(random.integers(1, 4)))]
        x = random.normal(size=dims) * pick(random, [1, 300])
        axis = int(random.integers(-x.ndim, x.ndim))
        operands = []
        if op.endswith("Normalization"):
            axis -= x.ndim if axis >= 0 else 0
            operands = [random.normal(size=dims[axis:]) for _ in range(1 + (op[0] == "L" and seed % 2))]
        graph = build(op, x, operands, {"axis": axis}, not operands and seed % 2 == 0)
        routine = "cpu/norm" if operands else "cpu/softmax"
        pinned = compile_pinned(graph, tier, {"node": routine})
        assert pinned.routines["node"] == routine
        expected = graph.evaluate([x])[0]
        np.testing.assert_allclose(pinned(x), expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(pinned(x, threads=3), pinned(x))


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "LayerNormalization"])
def test_rows_in_place(op, dtype, tier):
    """The values of a step before, which nobody else reads, are where the results go."""
    random = np.random.default_rng(0)
    for dims, axis in (([7, 300], 1), ([300, 7], 0), ([2, 5, 33], -1)):
        if op == "LayerNormalization" and axis == 0:
            continue
        x = random.normal(size=dims).astype(dtype)
        scale = np.linspace(1, 2, dims[axis], dtype=dtype)
        graph = _native.Graph()
        value = graph.add_node("Neg", [graph.add_input("x", dtype, dims)], ["negated"], {}, "neg").outputs[0]
        operands = [graph.add_constant("scale", scale)] if op == "LayerNormalization" else []
        graph.outputs = [graph.add_node(op, [value, *operands], ["y"], {"axis": axis}, "node").outputs[0]]
        routine = {"LayerNormalization": "norm"}.get(op, "softmax")
        routine = f"cpu:float32/{routine}" if dtype == "float32" else f"cpu/{routine}"
        tolerance = 1e-11 if dtype == "float64" else 1e-5
        found = compile_pinned(graph, tier, {"node": routine})(x)
        np.testing.assert_allclose(found, graph.evaluate([x])[0], rtol=tolerance, atol=tolerance)


@by_tier
@pytest.mark.parametrize("op", ["InstanceNormalization", "GroupNormalization"])
def test_channel_norms_of_float64(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        groups = pick(random, [1, 2, 3])
        channels = groups * pick(random, [1, 2, 5])
        x = random.normal(size=[2, channels, *(pick(random, SIZES[1:8]) for _ in range(int(random.integers(1, 3))))])
        operands = [random.normal(size=[channels]) for _ in range(2)]
        attrs = {"num_groups": groups} if op == "GroupNormalization" else {}
        pinned = compile_pinned(build(op, x, operands, attrs), tier, {"node": "cpu/norm"})
        assert pinned.routines["node"] == "cpu/norm"
        np.testing.assert_allclose(pinned(x), build(op, x, operands, attrs).evaluate([x])[0], rtol=1e-10, atol=1e-10)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hardmax(dtype, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [*SIZES, 150]) for _ in range(int(random.integers(1, 4)))]
        x = random.integers(0, pick(random, [2, 1000]), dims).astype(dtype)
        axis = int(random.integers(-x.ndim, x.ndim))
        check(build("Hardmax", x, attrs={"axis": axis}, symbols=seed % 2 == 0), tier, "cpu/hardmax", x, 1, True)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_scans(op, dtype, tier):
    """Sums of float32 are held in double, as the reference has them; integers wrap."""
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [0 if seed == 5 else 1, *SIZES, 150]) for _ in range(int(random.integers(1, 4)))]
        x = random.uniform(0.5, 1.5, dims) if dtype[0] == "f" else random.integers(0, 1 << 31, dims)
        x = np.asarray(x).astype(dtype)
        attrs = {"exclusive": seed % 2, "reverse": seed // 2 % 2}
        axis = np.array(int(random.integers(-x.ndim, x.ndim)))
        check(build(op, x, [axis], attrs, seed % 3 == 0), tier, "cpu/scan", x, 1, True)


def test_scans_of_few_bits_are_left_to_the_reference():
    graph = build("CumSum", np.zeros([3, 4], np.float16), [np.array(1)])
    assert rejections(graph, TIERS[0], "node")["cpu/scan"] == "there is no kernel for its dtype"
