"""Pooling by every routine of every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, pick, rejections

BLOCKED = "cpu:float32/pool_nchwc"
PLAIN = "cpu:float32/pool_nchw"
GLOBAL = "cpu:float32/global_pool_nchwc"
CASES = 40

by_tier = pytest.mark.parametrize("tier", TIERS)
by_routine = pytest.mark.parametrize("routine", [BLOCKED, PLAIN])
CHANNELS = [1, 3, 4, 7, 8, 16, 17, 33]


def window_attrs(random, rank):
    """Attributes of a window and spatial sizes that it fits."""
    attrs = {"kernel_shape": [], "strides": [], "dilations": [], "ceil_mode": int(random.integers(2))}
    begin, end, sizes = [], [], []
    for _ in range(rank):
        kernel, stride, dilation = (int(random.integers(1, n)) for n in ((6, 4, 3), (4, 3, 3))[rank > 2])
        extent = (kernel - 1) * dilation + 1
        begin.append(int(random.integers(0, extent)))
        end.append(int(random.integers(0, extent)))
        sizes.append(max(extent - begin[-1] - end[-1], 1) + int(random.integers(0, (24, 7)[rank > 2])))
        attrs["kernel_shape"].append(kernel)
        attrs["strides"].append(stride)
        attrs["dilations"].append(dilation)
    auto_pad = pick(random, ["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if auto_pad == "NOTSET":
        attrs["pads"] = begin + end
    else:
        attrs["auto_pad"] = auto_pad
        extents = [(k - 1) * d + 1 for k, d in zip(attrs["kernel_shape"], attrs["dilations"], strict=True)]
        sizes = [max(s, e) for s, e in zip(sizes, extents, strict=True)]
    return sizes, attrs


def pool_graph(op, dims, attrs, symbols=False, dtype="float32", outputs=("y",)):
    graph = _native.Graph()
    x = graph.add_input("x", dtype, [d if i == 1 or not symbols else f"d{i}" for i, d in enumerate(dims)])
    operands = [x]
    attrs = dict(attrs)
    if "axes" in attrs:
        operands.append(graph.add_constant("axes", np.asarray(attrs.pop("axes"), np.int64)))
    graph.outputs = graph.add_node(op, operands, list(outputs), attrs, "pool").outputs
    return graph


def check(graph, tier, routine, x, depth, exact):
    pinned = compile_pinned(graph, tier, {"pool": routine})
    assert pinned.routines["pool"].split("{")[0] == routine
    expected = graph.evaluate([x])[0]
    actual = pinned(x)
    if exact:
        np.testing.assert_array_equal(actual, expected)
    else:
        assert_close(actual, expected, depth)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), actual)


@by_tier
@by_routine
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_gives_what_the_reference_gives(op, routine, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = pick(random, [1, 2, 2, 2, 3])
        sizes, attrs = window_attrs(random, rank)
        if op == "AveragePool":
            attrs["count_include_pad"] = int(random.integers(2))
        dims = [int(random.integers(1, 4)), pick(random, CHANNELS), *sizes]
        graph = pool_graph(op, dims, attrs, symbols=bool(random.integers(2)))
        check(graph, tier, routine, floats(random, dims), int(np.prod(attrs["kernel_shape"])), op == "MaxPool")


@by_tier
@by_routine
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (2, 2), (2, 1)])
def test_small_square_windows(kernel, stride, op, routine, tier):
    """Whole ones, those that the borders cut at either side, and those that lie beside the input."""
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        begin, end = ([int(random.integers(0, kernel + seed % 2 * 2)) for _ in range(2)] for _ in range(2))
        sizes = [max(kernel - b - e, 1) + int(random.integers(0, 9)) for b, e in zip(begin, end, strict=True)]
        attrs = {"kernel_shape": [kernel] * 2, "strides": [int(random.integers(1, 3)), stride], "pads": begin + end}
        attrs["ceil_mode"] = int(random.integers(2))
        if op == "AveragePool":
            attrs["count_include_pad"] = int(random.integers(2))
        dims = [int(random.integers(1, 3)), pick(random, CHANNELS), *sizes]
        check(pool_graph(op, dims, attrs), tier, routine, floats(random, dims), kernel**2, op == "MaxPool")


@by_tier
@by_routine
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_large_enough_for_a_team(op, routine, tier):
    random = np.random.default_rng(1)
    graph = pool_graph(op, [2, 40, 57, 61], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})
    check(graph, tier, routine, floats(random, [2, 40, 57, 61]), 9, op == "MaxPool")


@by_tier
@by_routine
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_empty_batch(op, routine, tier):
    graph = pool_graph(op, [0, 5, 6, 6], {"kernel_shape": [2, 2]}, symbols=True)
    check(graph, tier, routine, np.zeros((0, 5, 6, 6), np.float32), 1, True)


@by_tier
@by_routine
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_windows_in_the_padding(op, routine, tier):
    attrs = {"kernel_shape": [2, 2], "pads": [3, 3, 3, 3]}
    x = floats(np.random.default_rng(2), [1, 5, 2, 3])
    graph = pool_graph(op, [1, 5, 2, 3], attrs)
    check(graph, tier, routine, x, 4, op == "MaxPool")
    if op == "AveragePool":  # the first rows lie in the padding: their factors are not what memory held before
        y = compile_pinned(graph, tier, {"pool": routine})(x)
        outside = graph.evaluate([x])[0] == 0
        assert outside[:, :, 0].all()
        np.testing.assert_array_equal(y[outside].view(np.uint32), 0)


@by_tier
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"])
@pytest.mark.parametrize("keepdims", [1, 0])
def test_whole_planes(op, keepdims, tier):
    for seed in range(CASES // 2):
        random = np.random.default_rng(seed)
        rank = pick(random, [1, 2, 2, 3])
        dims = [
            int(random.integers(0, 4)),
            pick(random, CHANNELS),
            *(pick(random, [1, 2, 5, 7, 19]) for _ in range(rank)),
        ]
        attrs = {} if op.startswith("Global") else {"axes": list(range(2, rank + 2)), "keepdims": keepdims}
        graph = pool_graph(op, dims, attrs)
        x = floats(random, dims)
        check(graph, tier, GLOBAL, x, int(np.prod(dims[2:])), op in ("GlobalMaxPool", "ReduceMax"))


@by_tier
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_planes_without_elements(op, tier):
    graph = pool_graph(op, [2, 5, 0, 3], {}, symbols=True)
    check(graph, tier, GLOBAL, np.zeros((2, 5, 0, 3), np.float32), 1, True)


@by_tier
def test_pools_pass_blocks_on(tier):
    """Two pools and a global one in a row give the same as the references; padding lanes never reach a result."""
    graph = _native.Graph()
    value = graph.add_input("x", "float32", [2, 19, 15, 14])
    value = graph.add_node("MaxPool", [value], ["a"], {"kernel_shape": [3, 3], "strides": [2, 2]}, "a").outputs[0]
    value = graph.add_node("AveragePool", [value], ["b"], {"kernel_shape": [2, 2]}, "b").outputs[0]
    graph.outputs = graph.add_node("GlobalAveragePool", [value], ["y"], {}, "c").outputs
    pinned = compile_pinned(graph, tier, {"a": BLOCKED, "b": BLOCKED, "c": GLOBAL})
    x = floats(np.random.default_rng(3), [2, 19, 15, 14])
    assert_close(pinned(x), graph.evaluate([x])[0], 120)


def test_says_why_it_declines():
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [1, 3, 8, 8])
    graph.outputs = graph.add_node("MaxPool", [x], ["y", "at"], {"kernel_shape": [2, 2]}, "pool").outputs
    assert rejections(graph, TIERS[0], "pool")[BLOCKED] == "the indices of the maxima are wanted"
    graph = pool_graph("ReduceMean", [1, 3, 8, 8], {"axes": [1, 2]})
    assert rejections(graph, TIERS[0], "pool")[GLOBAL] == "it does not reduce all spatial axes and no other"


TYPED = "cpu/pool"


def check_typed(graph, tier, x, tolerance):
    pinned = compile_pinned(graph, tier, {"pool": TYPED})
    assert pinned.routines["pool"] == TYPED
    expected = graph.evaluate([x])
    for threads in (1, 2, 5):
        for found, wanted in zip(pinned.module.with_threads(threads).call([x]), expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=str(graph))


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8"])
def test_places_of_maxima(dtype, tier):
    for seed in range(CASES // 2):
        random = np.random.default_rng(seed)
        sizes, attrs = window_attrs(random, int(random.integers(1, 4)))
        dims = [int(random.integers(1, 3)), pick(random, [1, 3]), *sizes]
        x = random.integers(0, 9, dims).astype(dtype)
        attrs["storage_order"] = seed % 2
        check_typed(pool_graph("MaxPool", dims, attrs, seed % 3 == 0, dtype, ["y", "i"]), tier, x, 0)
        if dtype != "float32":
            check_typed(pool_graph("MaxPool", dims, attrs, seed % 3 == 0, dtype), tier, x, 0)


@by_tier
def test_means_of_float64(tier):
    for seed in range(CASES // 2):
        random = np.random.default_rng(seed)
        sizes, attrs = window_attrs(random, int(random.integers(1, 4)))
        dims = [int(random.integers(1, 3)), pick(random, [1, 3]), *sizes]
        attrs |= {"count_include_pad": seed % 2}
        check_typed(pool_graph("AveragePool", dims, attrs, dtype="float64"), tier, random.uniform(-1, 1, dims), 1e-12)


def test_float32_without_places_has_routines_of_its_own():
    graph = pool_graph("AveragePool", [1, 2, 5, 5], {"kernel_shape": [2, 2]}, dtype="float32")
    assert rejections(graph, TIERS[0], "pool")["cpu/pool"] == "float32 without places has routines of its own"


def unpool_graph(dims, pool, unpool, dtype="float32", output=None):
    """x -> MaxPool -> MaxUnpool "unpool" of its results and places."""
    graph = _native.Graph()
    x = graph.add_input("x", dtype, dims)
    values, places = graph.add_node("MaxPool", [x], ["values", "places"], pool, "pool").outputs
    operands = [values, places]
    if output is not None:
        operands.append(graph.add_constant("output", np.asarray(output, np.int64)))
    graph.outputs = graph.add_node("MaxUnpool", operands, ["y"], unpool, "unpool").outputs
    return graph


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("dims", "window"),
    [
        ((2, 3, 8, 6), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((2, 3, 8, 6), {"kernel_shape": [3, 2], "strides": [1, 1]}),
        ((1, 5, 21), {"kernel_shape": [3], "strides": [3]}),
        ((2, 2, 4, 6, 600), {"kernel_shape": [2, 3, 2], "strides": [2, 3, 2]}),
    ],
)
def test_gradient_of_a_maximum_goes_where_it_came_from(tier, dtype, dims, window):
    x = np.random.default_rng(0).standard_normal(dims).astype(dtype)
    for sizes, output in ((dims, None), (dims, dims), ([f"d{i}" for i in range(len(dims))], None)):
        graph = unpool_graph(sizes, window, window, dtype, output)
        fixed = sizes is dims
        pinned = compile_pinned(graph, tier, {"unpool": "cpu/max_unpool"} if fixed else {})
        for threads in (1, 2):
            np.testing.assert_array_equal(pinned(x, threads=threads), graph.evaluate([x])[0])


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_unpools_by_any_indices(tier, dtype):
    graph = _native.Graph()
    operands = [graph.add_input("x", dtype, [1, 2, 2, 2]), graph.add_input("places", "int64", [1, 2, 2, 2])]
    operands.append(graph.add_constant("output", np.array([1, 2, 5, 6])))
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    graph.outputs = graph.add_node("MaxUnpool", operands, ["y"], attrs, "unpool").outputs
    x = np.arange(1, 9, dtype=dtype).reshape(1, 2, 2, 2)
    places = np.array([0, 31, 17, 17, 3, 8, 12, 30]).reshape(x.shape)
    pinned = compile_pinned(graph, tier, {"unpool": "cpu/index"})
    np.testing.assert_array_equal(pinned(x, places), graph.evaluate([x, places])[0])
    for outside in (-1, 32):
        with pytest.raises(ShapeError, match=f"an index must lie inside the unpooled tensor. Got {outside}"):
            pinned(x, np.where(places == 31, outside, places))


def test_says_why_not_to_unpool():
    def why(pool, unpool, output=None):
        return rejections(unpool_graph((1, 1, 7, 6), pool, unpool, output=output), "scalar", "unpool")["cpu/max_unpool"]

    pairs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    assert why(pairs, pairs) == "the output has not the size of what was pooled"
    assert why(pairs, pairs, (1, 1, 7, 6)) == "the output has not the size of what was pooled"
    assert why({**pairs, "pads": [1, 0, 0, 0]}, pairs) == "a window may have no element"
    assert why({**pairs, "storage_order": 1}, pairs) == "the indices are not those of a MaxPool"


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8"])
def test_places_of_long_rows(tier, dtype):
    random = np.random.default_rng(3)
    x = (random.standard_normal((2, 2, 5, 1031)) * 20).astype(dtype)
    if dtype.startswith("float"):
        x[0, 0, :, 100:400], x[1, 1, 2, 7] = -np.inf, np.nan
    for stride in (1, 2, 3):
        for order in (0, 1):
            attrs = {"kernel_shape": [2, 3], "strides": [1, stride], "pads": [1, 1, 0, 1], "storage_order": order}
            graph = pool_graph("MaxPool", x.shape, attrs, dtype=dtype, outputs=("y", "places"))
            pinned = compile_pinned(graph, tier, {"pool": "cpu/pool"})
            for found, expected in zip(pinned.module.call([x]), graph.evaluate([x]), strict=True):
                np.testing.assert_array_equal(found, expected)
