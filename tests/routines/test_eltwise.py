"""Elementwise programs of every instruction set, plain and in channel blocks, against the references."""

import ml_dtypes
import numpy as np
import pytest
from neo import _native

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, pick

ELTWISE = "cpu:float32/eltwise"
BLOCKED_POOL = "cpu:float32/pool_nchwc"
UNARY = [
    *("Neg", "Abs", "Exp", "Tanh", "Sigmoid", "Erf", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid"),
    *("HardSwish", "Softplus", "Softsign", "Gelu", "Mish", "Swish", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos"),
    *("ThresholdedRelu", "Sqrt", "Log", "Reciprocal", "Tan", "Asinh", "Atan", "Sinh", "Cosh", "Shrink"),
]
POSITIVE = {"Sqrt", "Log", "Reciprocal"}
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Less", "GreaterOrEqual", "Equal"]
SIZES = [1, 2, 3, 7, 8, 16, 17, 33]
CASES = 10

by_tier = pytest.mark.parametrize("tier", TIERS)


def check(graph, tier, pins, xs, depth=16):
    pinned = compile_pinned(graph, tier, pins)
    for node, routine in pins.items():
        if node in pinned.routines:
            assert pinned.routines[node].split("{")[0] == routine
    expected = graph.evaluate(xs)[0]
    actual = pinned(*xs)
    if expected.dtype == np.float32:
        assert_close(actual, expected, depth, str(graph))
    else:
        np.testing.assert_array_equal(actual, expected, str(graph))
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(*xs, threads=threads), actual)
    return pinned


@by_tier
@pytest.mark.parametrize("op", UNARY)
def test_functions(op, tier):
    for size in (1, 5, 64, 515, 70000):
        x = floats(np.random.default_rng(size), [size]) * np.float32(6)
        if op in POSITIVE:
            x = np.abs(x) + np.float32(0.25)
        graph = _native.Graph()
        value = graph.add_input("x", "float32", ["n"])
        graph.outputs = graph.add_node(op, [value], ["y"], {}, "node").outputs
        check(graph, tier, {"node": ELTWISE}, [x])


@by_tier
@pytest.mark.parametrize("op", BINARY)
def test_broadcasts(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        whole = [pick(random, SIZES) for _ in range(rank)]
        dims = [[1 if random.random() < 0.3 else d for d in whole] for _ in range(2)]
        dims[1] = dims[1][int(random.integers(rank)) :]
        if op == "PRelu":
            dims[0] = whole
        xs = [floats(random, d) for d in dims]
        if op == "Pow":
            xs[0] = np.abs(xs[0]) + np.float32(0.1)
        if op == "Div":
            xs[1] = np.abs(xs[1]) + np.float32(0.5)
        if op == "Equal":
            xs = [np.round(x) for x in xs]
        graph = _native.Graph()
        values = [graph.add_input(n, "float32", d) for n, d in zip("ab", dims, strict=True)]
        graph.outputs = graph.add_node(op, values, ["y"], {}, "node").outputs
        check(graph, tier, {"node": ELTWISE}, xs)


@by_tier
@pytest.mark.parametrize("dims", [[100, 8, 6, 2], [9, 3, 5, 3], [2, 17, 1, 7], [700, 2, 2, 2]])
def test_short_rows_along_several_axes(dims, tier):
    """Operands repeat along different axes of rows that together are one tile or more."""
    random = np.random.default_rng(len(dims))
    operands = [dims, [dims[2], 1], [dims[0], 1, 1, dims[3]], [1, dims[1], 1, 1]]
    xs = [floats(random, shape) for shape in operands]
    graph = _native.Graph()
    values = [graph.add_input(f"x{i}", "float32", shape) for i, shape in enumerate(operands)]
    value = values[0]
    for i, other in enumerate(values[1:]):
        value = graph.add_node("Mul" if i else "Add", [value, other], [f"y{i}"], {}, f"n{i}").outputs[0]
    graph.outputs = [value]
    check(graph, tier, {"n2": ELTWISE}, xs)


@by_tier
@pytest.mark.parametrize("run", [1, 2, 8, 9, 15, 16, 17, 61, 130, 511, 513, 1025])
@pytest.mark.parametrize("form", ["first", "second", "both", "MulAdd", "Where", "images"])
def test_rows_with_an_element_of_their_own(form, run, tier):
    random = np.random.default_rng(run)
    graph = _native.Graph()
    # Whole tasks of a team begin and end within rows.
    whole, row = ([40, 5, run], [5, 1]) if form == "images" else ([200, run], [200, 1])
    dims = {
        "first": [row, whole],
        "second": [whole, row],
        "both": [row, whole[-1:]],
        "MulAdd": [whole, row, row],
        "Where": [row, whole, row],
        "images": [whole, row],
    }[form]
    xs = [floats(random, d) for d in dims]
    if form == "Where":
        xs[0] = xs[0] > 0
    values = [graph.add_input(f"x{i}", x.dtype.name, list(x.shape)) for i, x in enumerate(xs)]
    if form == "MulAdd":
        product = graph.add_node("Mul", values[:2], ["product"], {}, "mul").outputs[0]
        values = [product, values[2]]
    op = {"Where": "Where", "MulAdd": "Add"}.get(form, "Sub")
    graph.outputs = graph.add_node(op, values, ["y"], {}, "node").outputs
    check(graph, tier, {"node": ELTWISE}, xs)


@by_tier
@pytest.mark.parametrize(("op", "dtype"), [("Add", "float16"), ("Less", "bfloat16"), ("Xor", "bool")])
@pytest.mark.parametrize("dims", [[100, 8, 6, 2], [3, 5, 40], [2, 17, 1, 7], [9, 33]])
def test_short_rows_of_narrow_elements(dims, op, dtype, tier):
    """An operand that repeats along a row, along the rows, and along both."""
    random = np.random.default_rng(len(dims))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for other in ([*dims[:-1], 1], dims[-1:], [dims[0], *[1] * (len(dims) - 1)]):
        xs = [random.integers(0, 2 if dtype == "bool" else 9, shape).astype(kind) for shape in (dims, other)]
        graph = _native.Graph()
        values = [graph.add_input(n, dtype, list(x.shape)) for n, x in zip("ab", xs, strict=True)]
        graph.outputs = graph.add_node(op, values, ["y"], {}, "node").outputs
        check(graph, tier, {"node": ELTWISE}, xs)


@by_tier
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_codes(dtype, tier):
    for size in (1, 7, 16, 33, 515, 40000):
        x = floats(np.random.default_rng(size), [size]) * np.float32(90)
        x[0] = np.nan
        graph = _native.Graph()
        scale, zero = graph.add_constant("s", np.float32(0.37)), graph.add_constant("z", np.array(11, dtype))
        value = graph.add_input("x", "float32", ["n"])
        graph.outputs = graph.add_node("QuantizeLinear", [value, scale, zero], ["y"], {}, "node").outputs
        check(graph, tier, {"node": ELTWISE}, [x])


def product_and_sum(form, x, y, z):
    """Values whose product is added to, by NumPy and as nodes: operator, its operands and its result."""
    nodes = {
        "product first": [("Mul", "xy", "p"), ("Add", "pz", "r")],
        "product last": [("Mul", "xy", "p"), ("Add", "zp", "r")],
        "of a sum": [("Add", "xy", "s"), ("Mul", "sz", "p"), ("Add", "px", "r")],
        "twice": [("Mul", "xy", "p"), ("Add", "pp", "r")],
        "read again": [("Mul", "xy", "p"), ("Add", "pz", "s"), ("Mul", "sp", "r")],
        "one after the other": [("Mul", "xy", "p"), ("Add", "pz", "s"), ("Mul", "sy", "q"), ("Add", "qx", "r")],
        "of two products": [("Mul", "xy", "p"), ("Mul", "yz", "q"), ("Add", "pq", "r")],
    }[form]
    values = {"x": x, "y": y, "z": z}
    for op, (a, b), result in nodes:
        values[result] = values[a] * values[b] if op == "Mul" else values[a] + values[b]
    return nodes, values["r"]


@by_tier
@pytest.mark.parametrize(
    "form",
    ["product first", "product last", "of a sum", "twice", "read again", "one after the other", "of two products"],
)
def test_products_with_sums_are_rounded_twice(form, tier):
    for seed, size in enumerate((1, 16, 100, 1600, 5000)):
        random = np.random.default_rng(seed)
        xs = [floats(random, dims) for dims in ([3, size], [3, 1], [3, 1] if seed % 2 else [3, size])]
        nodes, expected = product_and_sum(form, *xs)
        graph = _native.Graph()
        values = {n: graph.add_input(n, "float32", list(x.shape)) for n, x in zip("xyz", xs, strict=True)}
        for op, (a, b), result in nodes:
            values[result] = graph.add_node(op, [values[a], values[b]], [result], {}, result).outputs[0]
        graph.outputs = [values["r"]]
        pinned = compile_pinned(graph, tier, {"r": ELTWISE})
        np.testing.assert_array_equal(pinned(*xs), expected, form)


@by_tier
def test_chains_become_one_step(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, SIZES) for _ in range(3)]
        graph = _native.Graph()
        x, y = (graph.add_input(n, "float32", dims) for n in "xy")
        scale = graph.add_constant("scale", floats(random, dims[-1:]))
        value = graph.add_node("Mul", [x, scale], ["a"], {}, "a").outputs[0]
        value = graph.add_node("Add", [value, y], ["b"], {}, "b").outputs[0]
        gate = graph.add_node("Sigmoid", [value], ["c"], {}, "c").outputs[0]
        graph.outputs = graph.add_node("Mul", [gate, value], ["d"], {}, "d").outputs
        pinned = check(graph, tier, {"d": ELTWISE}, [floats(random, dims) for _ in range(2)])
        assert len(pinned.module.steps) <= 2


@by_tier
def test_a_chain_behind_a_product_that_ends_in_an_activation(tier):
    """The product keeps its activation, and what follows is one step."""
    random = np.random.default_rng(0)
    for rows, columns in ((1, 64), (3, 7), (40, 30)):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", [rows, 9])
        y, z = (graph.add_input(n, "float32", [rows, columns]) for n in "yz")
        w = graph.add_constant("w", floats(random, [9, columns]))
        value = graph.add_node("MatMul", [x, w], ["p"], {}, "p").outputs[0]
        value = graph.add_node("Sigmoid", [value], ["s"], {}, "s").outputs[0]
        value = graph.add_node("Mul", [value, y], ["a"], {}, "a").outputs[0]
        value = graph.add_node("Add", [value, z], ["b"], {}, "b").outputs[0]
        graph.outputs = graph.add_node("Softsign", [value], ["c"], {}, "c").outputs
        feeds = [floats(random, [rows, 9]), *(floats(random, [rows, columns]) for _ in range(2))]
        pinned = check(graph, tier, {"s": "cpu:float32/gemm", "c": ELTWISE}, feeds)
        assert sorted(pinned.routines) == ["c", "s"]


@by_tier
@pytest.mark.parametrize("other", ["all", "channels", "image", "scalar"])
def test_channel_blocks(other, tier):
    """Between two pools that hold blocks, an addition and an activation hold them too, whatever is broadcast."""
    for channels in (3, 8, 17, 33):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", [2, channels, 5, 7])
        value = graph.add_node("MaxPool", [x], ["p"], {"kernel_shape": [1, 1]}, "p").outputs[0]
        random = np.random.default_rng(channels)
        xs = [floats(random, [2, channels, 5, 7])]
        dims = {"channels": [channels, 1, 1], "image": [2, 1, 5, 7], "scalar": [1]}.get(other)
        if dims is None:
            operand = graph.add_node("AveragePool", [x], ["r"], {"kernel_shape": [1, 1]}, "r").outputs[0]
        elif other == "image":
            operand = graph.add_input("other", "float32", dims)
            xs.append(floats(random, dims))
        else:
            operand = graph.add_constant("other", floats(random, dims))
        value = graph.add_node("Add", [value, operand], ["s"], {}, "s").outputs[0]
        # exp(0) is not zero, so padding lanes that were forgotten would show in what follows.
        value = graph.add_node("Exp", [value], ["e"], {}, "e").outputs[0]
        graph.outputs = graph.add_node("GlobalAveragePool", [value], ["y"], {}, "q").outputs
        pins = {"p": BLOCKED_POOL, "r": BLOCKED_POOL, "q": "cpu:float32/global_pool_nchwc", "e": ELTWISE}
        check(graph, tier, pins, xs, 35)


HEADS = {
    "Conv": ([2, 3, 5, 7], [4, 3, 3, 3], {}),
    "ConvTranspose": ([2, 3, 5, 7], [3, 4, 3, 3], {}),
    "MatMul": ([5, 7], [7, 3], {}),
    "Gemm": ([5, 7], [7, 3], {}),
    "MaxPool": ([2, 3, 5, 7], None, {"kernel_shape": [2, 2]}),
    "Relu": ([5, 7], None, {}),
}


@pytest.mark.parametrize("bounds", ["low", "high", "both", "low, and a constant"])
@pytest.mark.parametrize("op", HEADS)
def test_bounds_of_a_clip_that_arrive_at_run_time(op, bounds):
    sizes, weights, attrs = HEADS[op]
    random = np.random.default_rng(len(op))
    x = random.standard_normal(sizes, dtype=np.float32)
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", sizes)]
    if weights:
        operands.append(graph.add_constant("w", random.standard_normal(weights, dtype=np.float32)))
    plain = graph.add_node(op, operands, ["v"], attrs, op).outputs[0]
    low = graph.add_input("low", "float32", []) if bounds != "high" else None
    high = graph.add_input("high", "float32", []) if bounds in ("high", "both") else None
    if bounds.endswith("constant"):
        high = graph.add_constant("high", np.float32(0.5))
    graph.outputs = [graph.add_node("Clip", [plain, low, high], ["y"], {}, "clip").outputs[0]]
    values = {"x": x, "low": np.float32(-0.25), "high": np.float32(0.5)}
    given = [np.asarray(values[value.name]) for value in graph.inputs]
    pinned = compile_pinned(graph, TIERS[-1], {})
    assert_close(pinned(*given), graph.evaluate(given)[0], 32, str(graph))
