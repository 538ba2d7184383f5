"""Scatters, gathers, and selections of elements against the reference, bit for bit."""

import ml_dtypes
import numpy as np
import pytest
from neo import _native
from neo.errors import Error, ShapeError

from tests.routines.pinning import TIERS, compile_pinned, floats, pick, rejections

SCATTER = "cpu/scatter_nd"
INDEX = "cpu/index"
ROWS = "cpu/gather_rows"
CASES = 40

by_tier = pytest.mark.parametrize("tier", TIERS)
DTYPES = ["float32", "int64", "uint8", "bool", "int16", "float64", "bfloat16", "complex128"]


def any_bits(random, dtype, dims):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype == np.bool_:
        return random.integers(0, 2, dims).astype(dtype)
    if dtype.kind == "c":
        return random.normal(size=dims).astype(dtype)
    return random.integers(0, 100, dims).astype(dtype)


def symbolic(dims, symbols, prefix="d"):
    return [f"{prefix}{i}" for i in range(len(dims))] if symbols else list(dims)


def check(graph, tier, node, routine, inputs):
    pinned = compile_pinned(graph, tier, {node: routine})
    assert pinned.routines[node] == routine
    expected = graph.evaluate(inputs)
    module = pinned.module
    for threads in (1, 2, 5):
        actual = (module if threads == 1 else module.with_threads(threads)).call(list(inputs))
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype
            np.testing.assert_array_equal(a.view(np.uint8) if a.ndim else a, e.view(np.uint8) if e.ndim else e)


def scatter_graph(data, indices, updates, attrs, constant, symbols=False):
    graph = _native.Graph()
    x = graph.add_input("x", data.dtype.name, symbolic(data.shape, symbols))
    i = graph.add_constant("i", indices) if constant else graph.add_input("i", "int64", list(indices.shape))
    u = graph.add_input("u", data.dtype.name, symbolic(updates.shape, symbols, "u"))
    graph.outputs = graph.add_node("ScatterND", [x, i, u], ["y"], attrs, "scatter").outputs
    return graph, ([data, updates] if constant else [data, indices, updates])


def scatter_case(random, dtype, lead=(1, 2, 3, 7, 16)):
    dims = [pick(random, lead) for _ in range(int(random.integers(1, 5)))]
    depth = int(random.integers(0, len(dims) + 1))
    batch = [pick(random, [0, 1, 2, 5, 6]) for _ in range(int(random.integers(0, 3)))]
    indices = np.empty([*batch, depth], np.int64)
    for axis in range(depth):
        indices[..., axis] = random.integers(-dims[axis], dims[axis], batch)
    return any_bits(random, dtype, dims), indices, any_bits(random, dtype, [*batch, *dims[depth:]])


@by_tier
@pytest.mark.parametrize("constant", [True, False])
def test_scatters(constant, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        data, indices, updates = scatter_case(random, pick(random, DTYPES))
        graph, inputs = scatter_graph(data, indices, updates, {}, constant)
        check(graph, tier, "scatter", SCATTER, inputs)


@by_tier
@pytest.mark.parametrize("constant", [True, False])
def test_scatters_sums_in_the_order_of_the_updates(constant, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        data, indices, updates = scatter_case(random, "float32")
        updates = floats(random, updates.shape)
        graph, inputs = scatter_graph(data, indices, updates, {"reduction": "add"}, constant)
        check(graph, tier, "scatter", SCATTER, inputs)


@by_tier
@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("constant", [True, False])
def test_scatters_enough_for_a_team(constant, reduction, tier):
    random = np.random.default_rng(1)
    data, updates = floats(random, [300, 7, 211]), floats(random, [300, 3, 211])
    rows = np.stack([np.repeat(np.arange(300), 3), np.tile([0, 2, 5], 300)], axis=-1).reshape(300, 3, 2)
    graph, inputs = scatter_graph(data, rows.astype(np.int64), updates, {"reduction": reduction}, constant)
    check(graph, tier, "scatter", SCATTER, inputs)


@by_tier
def test_scatters_into_sizes_that_are_not_known(tier):
    """Negative indices count from an end that is known only when it runs, so they are looked at then."""
    random = np.random.default_rng(2)
    data, updates = floats(random, [5, 4]), floats(random, [3, 4])
    graph, inputs = scatter_graph(data, np.array([[4], [-5], [2]], np.int64), updates, {}, True, symbols=True)
    check(graph, tier, "scatter", SCATTER, inputs)


@by_tier
def test_scatters_over_its_data(tier):
    """The memory of a value that nobody else reads is taken over."""
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [40, 9])
    u = graph.add_input("u", "float32", [2, 9])
    i = graph.add_constant("i", np.array([[3], [17]], np.int64))
    value = graph.add_node("Neg", [x], ["a"], {}, "a").outputs[0]
    value = graph.add_node("ScatterND", [value, i, u], ["b"], {}, "scatter").outputs[0]
    graph.outputs = graph.add_node("Neg", [value], ["y"], {}, "c").outputs
    random = np.random.default_rng(3)
    check(graph, tier, "scatter", SCATTER, [floats(random, [40, 9]), floats(random, [2, 9])])


@by_tier
def test_scatters_a_value_into_itself(tier):
    graph = _native.Graph()
    x = graph.add_input("x", "float32", [4, 3])
    i = graph.add_constant("i", np.array([[3], [1], [0], [2]], np.int64))
    graph.outputs = graph.add_node("ScatterND", [x, i, x], ["y"], {}, "scatter").outputs
    check(graph, tier, "scatter", SCATTER, [floats(np.random.default_rng(4), [4, 3])])


def test_scatter_says_which_index_lies_outside():
    data, updates = np.zeros([5, 2], np.float32), np.zeros([1, 2], np.float32)
    graph, inputs = scatter_graph(data, np.array([[5]], np.int64), updates, {}, False)
    pinned = compile_pinned(graph, TIERS[0], {"scatter": SCATTER})
    with pytest.raises(
        ShapeError, match="an index must lie inside its axis. Got 5, expected -5 to 4 - at node .scatter."
    ):
        pinned(*inputs)


def test_scatter_refuses_updates_that_do_not_fit():
    data, indices = np.zeros([5, 2], np.float32), np.zeros([3, 1], np.int64)
    graph, _ = scatter_graph(data, indices, np.zeros([3, 2], np.float32), {}, False, symbols=True)
    pinned = compile_pinned(graph, TIERS[0], {"scatter": SCATTER})
    with pytest.raises(ShapeError, match="updates must fit indices and data"):
        pinned(data, indices, np.zeros([2, 2], np.float32))


def test_scatter_says_why_it_declines():
    data = np.zeros([5, 2], np.complex64)
    graph, _ = scatter_graph(data, np.array([[1]], np.int64), data[:1], {"reduction": "add"}, True)
    assert rejections(graph, TIERS[0], "scatter")[SCATTER] == "there is no kernel that reduces its dtype"


NUMBERS = ["float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
REDUCED = ["float32", "float64", "int8", "uint8", "int32", "int64"]
REDUCTIONS = ["add", "mul", "max", "min"]


@by_tier
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["bool", *REDUCED])
def test_scatters_that_reduce(dtype, reduction, tier):
    for seed in range(6):
        random = np.random.default_rng(seed)
        data, indices, updates = scatter_case(random, dtype)
        graph, inputs = scatter_graph(data, indices, updates, {"reduction": reduction}, bool(seed % 2))
        check(graph, tier, "scatter", SCATTER, inputs)


def node_graph(op, inputs, attrs=None, outputs=("y",), symbols=False):
    """One node "node" whose inputs all arrive at run time."""
    graph = _native.Graph()
    values = [
        graph.add_input(f"x{i}", x.dtype.name, symbolic(x.shape, symbols, f"x{i}_")) for i, x in enumerate(inputs)
    ]
    made = graph.add_node(op, values, list(outputs), attrs or {}, "node").outputs
    graph.outputs = [v for v in made if v is not None]
    return graph


def elements_case(random, dtype):
    """Data, indices along an axis in both directions, and updates of their shape."""
    dims = [pick(random, [1, 2, 3, 7, 16]) for _ in range(int(random.integers(1, 5)))]
    axis = int(random.integers(len(dims)))
    picked = [int(random.integers(1, d + 1)) for d in dims]
    picked[axis] = pick(random, [0, 1, 5, 17])
    indices = random.integers(-dims[axis], dims[axis], picked).astype(pick(random, ["int64", "int32"]))
    return any_bits(random, dtype, dims), indices, any_bits(random, dtype, picked), axis


@by_tier
@pytest.mark.parametrize("reduction", ["none", *REDUCTIONS])
def test_scatters_elements(reduction, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        data, indices, updates, axis = elements_case(random, pick(random, DTYPES if reduction == "none" else REDUCED))
        graph = node_graph("ScatterElements", [data, indices, updates], {"axis": axis, "reduction": reduction})
        check(graph, tier, "node", INDEX, [data, indices, updates])


def test_scatter_of_elements_says_which_index_lies_outside():
    inputs = [np.zeros([5], np.float32), np.array([0, 5]), np.zeros([2], np.float32)]
    pinned = compile_pinned(node_graph("ScatterElements", inputs), TIERS[0], {"node": INDEX})
    with pytest.raises(ShapeError, match="an index must lie inside its axis. Got 5, expected -5 to 4 - at node .node."):
        pinned(*inputs)


def sparse(random, dtype, dims):
    """Elements most of which are zero, some of them negative zeros."""
    x = random.integers(-2, 3, dims) * (random.random(dims) < 0.4)
    x = np.abs(x) if np.dtype(getattr(ml_dtypes, dtype, dtype)).kind in "bu" else x
    x = x.astype(getattr(ml_dtypes, dtype, dtype))
    return -x if x.dtype.kind == "f" else x


@by_tier
@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", *NUMBERS])
def test_positions_of_what_is_not_zero(dtype, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [pick(random, [0 if seed == 7 else 1, 2, 3, 17, 65]) for _ in range(int(random.integers(1, 4)))]
        x = sparse(random, dtype, dims)
        check(node_graph("NonZero", [x], symbols=seed % 2 == 0), tier, "node", INDEX, [x])


@by_tier
def test_compresses(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        x = any_bits(
            random, pick(random, DTYPES), [pick(random, [1, 2, 3, 7]) for _ in range(int(random.integers(1, 4)))]
        )
        axis = None if seed % 4 == 0 else int(random.integers(-x.ndim, x.ndim))
        length = x.size if axis is None else x.shape[axis]
        condition = random.integers(0, 2, int(random.integers(0, length + 3))).astype(bool)
        graph = node_graph("Compress", [x, condition], {} if axis is None else {"axis": axis}, symbols=seed % 2 == 0)
        check(graph, tier, "node", INDEX, [x, condition])


@by_tier
def test_reverses_sequences(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 3, 7]) for _ in range(int(random.integers(2, 5)))]
        x, batch = any_bits(random, pick(random, DTYPES), dims), seed % 2
        lengths = random.integers(0, dims[1 - batch] + 1, dims[batch])
        graph = node_graph("ReverseSequence", [x, lengths], {"batch_axis": batch, "time_axis": 1 - batch})
        check(graph, tier, "node", INDEX, [x, lengths])


def slice_graph(x, bounds, index, symbols):
    graph = _native.Graph()
    values = [graph.add_input("x", x.dtype.name, symbolic(x.shape, symbols))]
    values += [graph.add_input(f"b{i}", index, list(b.shape)) for i, b in enumerate(bounds)]
    graph.outputs = graph.add_node("Slice", values, ["y"], {}, "node").outputs
    return graph


@by_tier
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_slices_by_what_running_tells(index, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        x = any_bits(random, pick(random, DTYPES), [pick(random, [0, 1, 2, 7, 33]) for _ in range(seed % 5 + 1)])
        axes = random.permutation(x.ndim)[: int(random.integers(1, x.ndim + 1))] - x.ndim * int(random.integers(2))
        steps = random.choice([-3, -1, 1, 1, 2], len(axes))
        bounds = [random.integers(-40, 40, len(axes)), random.integers(-40, 40, len(axes)), axes, steps]
        if seed % 4 == 0:
            bounds = [bound[:1] for bound in bounds[:2]]  # the first axis, forward
        bounds = [bound.astype(index) for bound in bounds]
        check(slice_graph(x, bounds, index, seed % 2 == 0), tier, "node", INDEX, [x, *bounds])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([[0], [1], [0], [0]], "steps must not be 0"),
        ([[0, 0], [1, 1], [1, -1], [1, 1]], "an axis must be listed once. Got -1 twice"),
        ([[0], [1], [2], [1]], r"an axis must lie in \[-2, 1\]. Got 2"),
        ([[0], [1, 2], [0], [1]], "starts, ends, axes and steps must have one length. Got 1, 2, 1, 1"),
    ],
)
def test_slice_says_what_its_bounds_must_be(bounds, message):
    x, bounds = np.zeros([3, 2], np.float32), [np.array(bound) for bound in bounds]
    graph = _native.Graph()
    values = [graph.add_input("x", "float32", [3, 2])]
    values += [graph.add_input(f"b{i}", "int64", [f"n{i}"]) for i in range(4)]
    graph.outputs = graph.add_node("Slice", values, ["y"], {}, "node").outputs
    pinned = compile_pinned(graph, TIERS[0], {"node": INDEX})
    with pytest.raises(Error, match=message):
        pinned(x, *bounds)


def test_slices_that_are_known_are_left_to_the_copy():
    graph = _native.Graph()
    bounds = [graph.add_constant(f"k{i}", np.array([i])) for i in (1, 2)]
    x = graph.add_input("x", "float32", [3, 2])
    graph.outputs = graph.add_node("Slice", [x, *bounds], ["y"], {}, "node").outputs
    assert rejections(graph, TIERS[0], "node")[INDEX] == "where the parts begin is known"


def test_a_sequence_must_fit():
    inputs = [np.zeros([3, 2], np.float32), np.array([1, 4])]
    pinned = compile_pinned(node_graph("ReverseSequence", inputs), TIERS[0], {"node": INDEX})
    with pytest.raises(ShapeError, match="a sequence must fit the time axis. Got 4, expected 0 to 3"):
        pinned(*inputs)


@by_tier
@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_unique_elements(dtype, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        count, most = pick(random, [0, 1, 5, 300]), pick(random, [2, 100])
        x = random.integers(0, most, count).astype(dtype)
        if x.dtype.kind == "f":
            x = np.where(random.random(count) < 0.2, np.array(pick(random, [np.nan, -0.0, np.inf]), dtype), x)
        if x.dtype.kind == "i":
            x = -x
        outputs = pick(random, [["y", "f", "i", "c"], ["y"], ["y", "", "i"]])
        graph = node_graph("Unique", [x], {"sorted": seed % 2, **({"axis": 0} if seed % 3 == 0 else {})}, outputs)
        check(graph, tier, "node", INDEX, [x])


def test_unique_slices_are_left_to_the_reference():
    graph = node_graph("Unique", [np.zeros([3, 4], np.float32)], {"axis": 0})
    assert rejections(graph, TIERS[0], "node")[INDEX] == "it compares slices, not elements"


@by_tier
@pytest.mark.parametrize("centered", [0, 1])
def test_suppresses_overlapping_boxes(centered, tier):
    for seed in range(12):
        random = np.random.default_rng(seed)
        batch, classes, count = int(random.integers(1, 3)), int(random.integers(1, 4)), pick(random, [0, 1, 9, 150])
        boxes = random.uniform(0, 1, [batch, count, 4]).astype(np.float32)
        boxes[:, ::7, 2] = boxes[:, ::7, 0]  # no area
        scores = random.choice(np.array([0.1, 0.5, 0.9, np.nan], np.float32), [batch, classes, count])
        scores = np.where(random.random(scores.shape) < 0.5, floats(random, scores.shape), scores).astype(np.float32)
        inputs = [boxes, scores, np.array([pick(random, [0, 3, 1000])]), np.array([0.3], np.float32)]
        inputs += [np.array([0.2], np.float32)] if seed % 2 else []
        graph = node_graph("NonMaxSuppression", inputs, {"center_point_box": centered})
        check(graph, tier, "node", INDEX, inputs)


@by_tier
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_samples_regions(mode, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [2, pick(random, [1, 5, 16, 33]), 9, 7]
        corners = random.uniform(-3, 8, [pick(random, [0, 1, 6]), 2])
        regions = np.concatenate([corners, corners + random.uniform(0, 6, corners.shape)], 1).astype(np.float32)
        inputs = [floats(random, dims), regions, random.integers(0, 2, len(regions))]
        attrs = {"mode": mode, "output_height": 3, "output_width": 2, "sampling_ratio": seed % 3, "spatial_scale": 0.75}
        attrs["coordinate_transformation_mode"] = pick(random, ["half_pixel", "output_half_pixel"])
        graph = node_graph("RoiAlign", inputs, attrs)
        pinned = compile_pinned(graph, tier, {"node": INDEX})
        assert pinned.routines["node"] == INDEX
        np.testing.assert_allclose(pinned(*inputs), graph.evaluate(inputs)[0], rtol=0, atol=1e-5)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_to_images(dtype, tier):
    """Of whole numbers, whose sums are exact in any order."""
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 4))
        block, strides, dilations = (random.integers(1, 4, rank) for _ in range(3))
        pads = random.integers(0, 3, 2 * rank)
        image = np.array([pick(random, [1, 2, 5, 7, 11]) for _ in range(rank)])
        free = image + pads[:rank] + pads[rank:] - dilations * (block - 1) - 1
        positions = np.where(free < 0, 0, free // strides + 1)
        dims = [int(random.integers(0 if seed == 0 else 1, 3)), int(2 * block.prod()), int(positions.prod())]
        graph = _native.Graph()
        operands = [graph.add_input("x", dtype, symbolic(dims, seed % 2))]
        operands.append(graph.add_constant("i", image) if seed % 3 else graph.add_input("i", "int64", [rank]))
        operands.append(graph.add_constant("b", block))
        attrs = {"strides": strides.tolist(), "dilations": dilations.tolist(), "pads": pads.tolist()}
        graph.outputs = graph.add_node("Col2Im", operands, ["y"], attrs, "sum").outputs
        x = random.integers(-9, 10, dims).astype(dtype)
        check(graph, tier, "sum", INDEX, [x] if seed % 3 else [x, image])


@by_tier
@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_signals(op, tier):
    for dtype, tolerance in ((1, 1e-6), (11, 1e-13)):
        for periodic in (0, 1):
            graph = node_graph(op, [np.array(5)], {"output_datatype": dtype, "periodic": periodic})
            pinned = compile_pinned(graph, tier, {"node": INDEX})
            assert pinned.routines["node"] == INDEX
            for size in (0, 1, 2, 3, 31, 32, 33, 400, 1023):
                expected = graph.evaluate([np.array(size)])[0]
                found = pinned(np.array(size))
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "int64", "complex128"])
def test_one_hot(dtype, tier):
    for seed in range(8):
        random = np.random.default_rng(seed)
        dims = [pick(random, [0 if seed == 7 else 1, 2, 5, 400]) for _ in range(int(random.integers(0, 3)))]
        depth = pick(random, [1, 3, 70])
        indices = np.asarray(random.integers(-depth - 2, depth + 2, dims)).astype(pick(random, ["int64", "int32"]))
        values = any_bits(random, dtype, [2])
        graph = _native.Graph()
        i = graph.add_input("i", indices.dtype.name, symbolic(dims, seed % 2 == 0))
        operands = [i, graph.add_constant("d", np.array(depth)), graph.add_input("v", dtype, [2])]
        axis = int(random.integers(-len(dims) - 1, len(dims) + 1))
        graph.outputs = graph.add_node("OneHot", operands, ["y"], {"axis": axis}, "node").outputs
        check(graph, tier, "node", "cpu/one_hot", [indices, values])


def gather_graph(data, indices, axis, symbols=False):
    graph = _native.Graph()
    x = graph.add_input("x", data.dtype.name, symbolic(data.shape, symbols))
    i = graph.add_input("i", "int64", symbolic(indices.shape, symbols, "i"))
    graph.outputs = graph.add_node("GatherElements", [x, i], ["y"], {"axis": axis}, "gather").outputs
    return graph


@by_tier
def test_gathers_elements(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 3, 7, 16]) for _ in range(int(random.integers(1, 5)))]
        axis = int(random.integers(len(dims)))
        picked = [int(random.integers(0 if seed % 7 == 0 else 1, d + 1)) for d in dims]
        picked[axis] = pick(random, [0, 1, 5, 17])
        indices = random.integers(-dims[axis], dims[axis], picked)
        data = any_bits(random, pick(random, DTYPES), dims)
        graph = gather_graph(data, indices, axis - pick(random, [0, len(dims)]), bool(random.integers(2)))
        check(graph, tier, "gather", INDEX, [data, indices])


def test_gather_says_which_index_lies_outside():
    pinned = compile_pinned(
        gather_graph(np.zeros([5], np.float32), np.zeros([2], np.int64), 0), TIERS[0], {"gather": INDEX}
    )
    with pytest.raises(
        ShapeError, match="an index must lie inside its axis. Got -6, expected -5 to 4 - at node .gather."
    ):
        pinned(np.zeros([5], np.float32), np.array([0, -6], np.int64))


def test_gather_refuses_more_lines_than_the_data_has():
    data, indices = np.zeros([2, 3], np.float32), np.zeros([3, 3], np.int64)
    pinned = compile_pinned(gather_graph(data, indices, 1, symbols=True), TIERS[0], {"gather": INDEX})
    with pytest.raises(
        ShapeError, match="an index must lie inside its axis. Got 2, expected -2 to 1 - at node .gather."
    ):
        pinned(data, indices)


def rows_graph(op, data, indices, attrs, symbols=False):
    graph = _native.Graph()
    x = graph.add_input("x", data.dtype.name, symbolic(data.shape, symbols))
    last = [indices.shape[-1]] if op == "GatherND" else []
    lead = indices.shape[: indices.ndim - len(last)]
    batch = attrs.get("batch_dims", 0)
    names = [*symbolic(lead[:batch], symbols), *symbolic(lead[batch:], symbols, "i"), *last]
    i = graph.add_input("i", indices.dtype.name, names)
    graph.outputs = graph.add_node(op, [x, i], ["y"], attrs, "gather").outputs
    return graph


@by_tier
@pytest.mark.parametrize("index", ["int64", "int32"])
def test_gathers_rows(index, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 3, 7, 16]) for _ in range(int(random.integers(1, 5)))]
        axis = int(random.integers(len(dims)))
        picked = [pick(random, [0, 1, 2, 5]) for _ in range(int(random.integers(0, 3)))]
        indices = np.asarray(random.integers(-dims[axis], dims[axis], picked)).astype(index)
        data = any_bits(random, pick(random, DTYPES), dims)
        graph = rows_graph("Gather", data, indices, {"axis": axis - pick(random, [0, len(dims)])}, seed % 2 == 0)
        check(graph, tier, "gather", ROWS, [data, indices])


@by_tier
@pytest.mark.parametrize("index", ["int64", "int32"])
def test_gathers_by_tuples(index, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 2, 3, 7, 16]) for _ in range(int(random.integers(1, 5)))]
        batch = int(random.integers(len(dims)))
        depth = int(random.integers(1, len(dims) - batch + 1))
        lead = [*dims[:batch], *[pick(random, [0, 1, 2, 5]) for _ in range(int(random.integers(0, 3)))]]
        indices = np.empty([*lead, depth], index)
        for d in range(depth):
            indices[..., d] = random.integers(-dims[batch + d], dims[batch + d], lead)
        data = any_bits(random, pick(random, DTYPES), dims)
        graph = rows_graph("GatherND", data, indices, {"batch_dims": batch}, seed % 2 == 0)
        check(graph, tier, "gather", ROWS, [data, indices])


@pytest.mark.parametrize("width", [0, 3])
def test_gathering_rows_says_which_index_lies_outside(width):
    data = np.zeros([5, width], np.float32)
    for op, indices in (("Gather", np.array([0, -6])), ("GatherND", np.array([[0], [-6]]))):
        pinned = compile_pinned(rows_graph(op, data, indices, {}), TIERS[0], {"gather": ROWS})
        with pytest.raises(
            ShapeError, match="an index must lie inside its axis. Got -6, expected -5 to 4 - at node .gather."
        ):
            pinned(data, indices)
