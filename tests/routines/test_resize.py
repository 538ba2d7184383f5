"""Resize of the last two axes by every instruction set against the reference."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, pick, rejections

BLOCKED = "cpu:float32/resize_nchwc"
PLAIN = "cpu:float32/resize_nchw"
CHANNELS_LAST = "cpu:float32/resize_nchwc_to_nhwc"
CASES = 30
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

by_tier = pytest.mark.parametrize("tier", TIERS)
by_routine = pytest.mark.parametrize("routine", [BLOCKED, PLAIN, CHANNELS_LAST])


def resize_graph(dims, attrs, *, scales=None, sizes=None, symbols=False, channels_last=False, dtype="float32"):
    """One node, "resize"; with channels last the Transpose after it has that name."""
    graph = _native.Graph()
    x = graph.add_input("x", dtype, [d if i == 1 or not symbols else f"d{i}" for i, d in enumerate(dims)])
    operands = [x, None, None if scales is None else graph.add_constant("scales", np.asarray(scales, np.float32))]
    if sizes is not None:
        operands.append(graph.add_constant("sizes", np.asarray(sizes, np.int64)))
    node = graph.add_node("Resize", operands, ["y"], attrs, "inner" if channels_last else "resize")
    if channels_last:
        perm = [0, *range(2, len(dims)), 1]
        node = graph.add_node("Transpose", node.outputs, ["z"], {"perm": perm}, "resize")
    graph.outputs = node.outputs
    return graph


def check(graph, tier, routine, x, exact):
    pinned = compile_pinned(graph, tier, {"resize": routine})
    assert pinned.routines["resize"] == routine
    expected = graph.evaluate([x])[0]
    actual = pinned(x)
    if exact:
        np.testing.assert_array_equal(actual, expected, str(graph))
    else:
        assert_close(actual, expected, 32, str(graph))
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), actual)


@by_tier
@by_routine
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_gives_what_the_reference_gives(mode, routine, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = pick(random, [3, 4, 4, 4, 4 if routine == CHANNELS_LAST else 5])
        dims = [
            int(random.integers(0 if seed == 0 else 1, 3)),
            pick(random, [1, 3, 8, 17]),
            *random.integers(1, 12, rank - 2),
        ]
        dims = [int(d) for d in dims]
        attrs = {"mode": mode, "coordinate_transformation_mode": pick(random, COORDINATES)}
        if mode == "nearest":
            attrs["nearest_mode"] = pick(random, ROUNDINGS)
        else:
            attrs["antialias"] = int(random.integers(2))
            attrs["exclude_outside"] = int(random.integers(2))
        if mode == "cubic":
            attrs["cubic_coeff_a"] = pick(random, [-0.75, -0.5])
        moved = min(2, rank - 2)
        graph_of = {"symbols": bool(random.integers(2)), "channels_last": routine == CHANNELS_LAST}
        whole = [1.0] * (rank - moved)
        factors = [pick(random, [0.5, 0.7, 1.0, 1.5, 2.0, 3.0]) for _ in range(moved)]
        sizes = [int(n) for n in random.integers(1, 25, moved)]
        if seed % 3 == 0:
            graph = resize_graph(dims, attrs, scales=[*whole, *factors], **graph_of)
        elif seed % 3 == 1:
            graph = resize_graph(dims, {**attrs, "axes": list(range(rank - moved, rank))}, sizes=sizes, **graph_of)
        else:
            graph_of["symbols"] = False
            graph = resize_graph(dims, attrs, sizes=[*dims[: rank - moved], *sizes], **graph_of)
        check(graph, tier, routine, floats(random, dims), mode == "nearest")


@by_tier
@by_routine
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_large_enough_for_a_team(mode, routine, tier):
    graph = resize_graph([2, 20, 33, 41], {"mode": mode}, scales=[1, 1, 2, 2], channels_last=routine == CHANNELS_LAST)
    check(graph, tier, routine, floats(np.random.default_rng(1), [2, 20, 33, 41]), mode == "nearest")


@by_tier
@by_routine
def test_an_element_without_weight_does_not_count(routine, tier):
    x = np.full((1, 3, 4, 4), np.inf, np.float32)
    x[:, :, ::2, ::2] = 1
    graph = resize_graph(
        [1, 3, 4, 4],
        {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
        sizes=[1, 3, 2, 2],
        channels_last=routine == CHANNELS_LAST,
    )
    check(graph, tier, routine, x, True)


@pytest.mark.parametrize(
    ("attrs", "reason"),
    [
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "a region is cropped"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "the aspect ratio is kept"),
    ],
)
def test_says_why_it_declines(attrs, reason):
    graph = resize_graph([1, 3, 4, 4], attrs, sizes=[1, 3, 8, 8])
    assert rejections(graph, TIERS[0], "resize")[PLAIN] == reason


def test_declines_when_channels_are_resized():
    graph = resize_graph([1, 3, 4, 4], {}, sizes=[1, 6, 8, 8])
    assert rejections(graph, TIERS[0], "resize")[BLOCKED] == "another axis than the last two is resized"


def test_declines_when_other_axes_move():
    graph = resize_graph([1, 3, 4, 4], {}, sizes=[1, 3, 8, 8])
    graph.outputs = graph.add_node("Transpose", graph.outputs, ["z"], {"perm": [0, 3, 2, 1]}, "moved").outputs
    assert rejections(graph, TIERS[0], "moved")[CHANNELS_LAST] == "other axes move"


def test_declines_more_axes_than_rows_and_columns():
    graph = resize_graph([1, 3, 2, 4, 4], {}, sizes=[1, 3, 2, 8, 8], channels_last=True)
    assert rejections(graph, TIERS[0], "resize")[CHANNELS_LAST] == "the rank is another"


def test_a_result_that_is_also_read_as_it_is_stays_a_step():
    graph = resize_graph([1, 3, 4, 4], {}, sizes=[1, 3, 8, 8])
    resized = graph.outputs
    graph.outputs = graph.add_node("Transpose", resized, ["z"], {"perm": [0, 2, 3, 1]}, "moved").outputs
    assert any(c["routine"] == CHANNELS_LAST for c in candidates(graph, TIERS[0], "moved"))
    graph.outputs = [*graph.outputs, *resized]
    assert not any(c["routine"] == CHANNELS_LAST for c in candidates(graph, TIERS[0], "moved"))


TYPED = "cpu/resize"
WHOLE = ["uint8", "int8", "int32", "int64"]


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "complex64", *WHOLE])
def test_nearest_elements_of_any_dtype_and_axis(dtype, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [int(d) for d in random.integers(1, 9, int(random.integers(1, 6)))]
        scales = random.choice([0.5, 1, 1, 1.5, 2], len(dims))
        attrs = {"mode": "nearest", "coordinate_transformation_mode": pick(random, COORDINATES)}
        attrs["nearest_mode"] = pick(random, ROUNDINGS)
        x = random.integers(0, 2, dims).astype(dtype)
        graph = resize_graph(dims, attrs, scales=np.maximum(scales, 1 / np.array(dims)), symbols=seed % 2, dtype=dtype)
        check(graph, tier, TYPED, x, True)


@by_tier
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", ["float32", "float64", *WHOLE])
def test_mixes_any_dtype_and_axis(dtype, mode, tier):
    """Integers are sums of float64 in the reference's order, rounded once."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [int(d) for d in random.integers(1, 9, int(random.integers(1, 5)))]
        attrs = {"mode": mode, "coordinate_transformation_mode": pick(random, COORDINATES), "antialias": seed % 2}
        sizes = [int(random.integers(1, 2 * d + 1)) for d in dims]
        x = random.integers(0, 120, dims).astype(dtype)
        graph = resize_graph(dims, attrs, sizes=sizes, dtype=dtype)
        if dtype == "float64":
            pinned = compile_pinned(graph, tier, {"resize": TYPED})
            np.testing.assert_allclose(pinned(x), graph.evaluate([x])[0], rtol=1e-12, atol=1e-12)
        else:
            check(graph, tier, TYPED, x, dtype != "float32")


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_codes_in_channel_blocks(mode, dtype, tier):
    """Between two pools of codes in blocks no layout changes."""
    for seed, channels in enumerate((2, 16, 35)):
        random = np.random.default_rng(seed)
        graph = _native.Graph()
        grid = [graph.add_constant("s", np.float32(0.5)), graph.add_constant("z", np.array(3, dtype))]

        def pool(x, name, graph=graph, grid=grid):
            (real,) = graph.add_node("DequantizeLinear", [x, *grid], ["a"]).outputs
            (taken,) = graph.add_node("MaxPool", [real], ["b"], {"kernel_shape": [1, 1]}).outputs
            return graph.add_node("QuantizeLinear", [taken, *grid], ["c"], {}, name).outputs[0]

        x = pool(graph.add_input("x", dtype, ["n", channels, 7, 9]), "before")
        operands = [x, None, graph.add_constant("k", np.array([1, 1, pick(random, [0.5, 2, 3]), 1.5], np.float32))]
        (x,) = graph.add_node("Resize", operands, ["r"], {"mode": mode}, "resize").outputs
        graph.outputs = [pool(x, "after")]
        blocked = "cpu:int8/pool_nchwc"
        pinned = compile_pinned(graph, tier, {"before": blocked, "resize": TYPED, "after": blocked})
        assert sum(step["op"] == "neo.Adapt" for step in pinned.module.steps) == 2
        for batch in (1, 3):
            codes = random.integers(0, 120, [batch, channels, 7, 9]).astype(dtype)
            for threads in (1, 3):
                np.testing.assert_array_equal(pinned(codes, threads=threads), graph.evaluate([codes])[0])


def test_says_why_it_leaves_a_resize_to_others():
    graph = resize_graph([2, 3], {"mode": "linear"}, sizes=[3, 3], dtype="uint16")
    assert rejections(graph, TIERS[0], "resize")[TYPED] == "there is no kernel for its dtype"


def run_time_graph(dims, attrs, dtype, operands):
    """One node, "resize", whose operands are inputs of the graph, as is every size of x."""
    graph = _native.Graph()
    values = [graph.add_input("x", dtype, [f"d{i}" for i in range(len(dims))])]
    for name, operand in zip(("roi", "scales", "sizes"), operands, strict=True):
        given = operand is not None
        values.append(graph.add_input(name, operand.dtype.name, list(operand.shape)) if given else None)
    graph.outputs = graph.add_node("Resize", values, ["y"], attrs, "resize").outputs
    return graph


def check_run_time(graph, tier, inputs, exact):
    pinned = compile_pinned(graph, tier, {"resize": TYPED})
    assert pinned.routines["resize"] == TYPED
    expected = graph.evaluate(inputs)[0]
    for threads in (1, 2, 5):
        for _ in range(2):  # by tables that are made, then by those that are kept
            actual = pinned(*inputs, threads=threads)
            assert actual.dtype == expected.dtype
            if exact:
                np.testing.assert_array_equal(actual, expected, str(graph))
            else:
                np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5, err_msg=str(graph))
    return pinned


@by_tier
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dtype", ["float32", "float64", *WHOLE])
def test_operands_that_only_a_call_tells(dtype, mode, tier):
    for seed in range(16):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 6))
        dims = [int(d) for d in random.integers(0 if seed == 0 else 1, 9, rank)]
        axes = sorted(int(a) for a in random.permutation(rank)[: int(random.integers(1, rank + 1))])
        attrs = {"mode": mode, "coordinate_transformation_mode": pick(random, COORDINATES), "axes": axes}
        if mode == "nearest":
            attrs["nearest_mode"] = pick(random, ROUNDINGS)
        else:
            attrs["antialias"] = int(random.integers(2))
            attrs["exclude_outside"] = int(random.integers(2))
        operands = [None, None, None]
        if seed % 3:
            operands[1] = np.array([pick(random, [0.3, 0.5, 0.7, 1, 1, 1.37, 2, 3.1]) for _ in axes], np.float32)
        else:
            operands[2] = np.array([int(random.integers(0, 2 * dims[a] + 1)) for a in axes], np.int64)
            if seed % 2 and 0 not in dims:
                operands[2] += 1
                attrs["keep_aspect_ratio_policy"] = pick(random, ["not_larger", "not_smaller"])
        x = floats(random, dims) if dtype == "float32" else random.integers(0, 120, dims)
        graph = run_time_graph(dims, attrs, dtype, operands)
        inputs = [x.astype(dtype), *(o for o in operands if o is not None)]
        check_run_time(graph, tier, inputs, dtype in WHOLE or mode == "nearest")


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int8"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_regions_that_only_a_call_tells(mode, dtype, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [int(d) for d in random.integers(1, 9, 3)]
        attrs = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.25}
        roi = random.uniform(-0.3, 1.3, 6).astype(np.float32)
        roi[seed % 3], roi[seed % 3 + 3] = 0, 1
        sizes = np.array([dims[a] if a == seed % 3 else int(random.integers(1, 12)) for a in range(3)], np.int64)
        graph = run_time_graph(dims, attrs, dtype, [roi, None, sizes])
        x = random.integers(0, 120, dims).astype(dtype)
        check_run_time(graph, tier, [x, roi, sizes], dtype in WHOLE or mode == "nearest")


@by_tier
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_run_time_sizes_give_the_bits_of_fixed_ones(mode, tier):
    """And a call with other sizes than the one before takes its own tables."""
    x = floats(np.random.default_rng(2), [2, 5, 19, 23])
    attrs = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    some = np.array([2, 5, 31, 40], np.int64)
    pinned = compile_pinned(run_time_graph(x.shape, attrs, "float32", [None, None, some]), tier, {"resize": TYPED})
    for sizes in (some, [2, 5, 7, 9], [2, 5, 31, 9], some, [2, 5, 19, 23]):
        fixed = compile_pinned(resize_graph(list(x.shape), attrs, sizes=sizes), tier, {"resize": PLAIN})
        assert pinned(x, np.asarray(sizes, np.int64)).tobytes() == fixed(x).tobytes()


def test_run_time_operands_that_do_not_fit():
    x = np.zeros((3, 4), np.float32)
    by_scales = compile_pinned(
        run_time_graph([3, 4], {"mode": "linear"}, "float32", [None, np.ones(2, np.float32), None]),
        TIERS[0],
        {"resize": TYPED},
    )
    with pytest.raises(ShapeError, match=r"scales must be positive\. Got 0"):
        by_scales(x, np.array([1, 0], np.float32))
    with pytest.raises(ShapeError, match="an empty axis cannot grow"):
        compile_pinned(
            run_time_graph([3, 4], {}, "float32", [None, None, np.ones(2, np.int64)]), TIERS[0], {"resize": TYPED}
        )(x[:0], np.array([1, 4]))
