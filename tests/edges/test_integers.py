"""Integer results are exact: products up to the edge of int32, and arithmetic up to the edges of every type."""

from __future__ import annotations

import itertools
import math

import neo
import numpy as np
import pytest
from neo import _native
from onnx import ValueInfoProto, helper, numpy_helper

TARGETS = [f"cpu:{tier}" for tier in _native.host_tiers()]
ACCURACIES = ["default", "strict", "reduced"]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def run(op, inputs, attrs=None, constants=(), target="cpu", accuracy="default", after=(), opset=22, symbols=False):
    """The result of a node and of the nodes after it, which read and write ``y``."""
    names = [f"x{i}" for i in range(len(inputs) + len(constants))]
    node = helper.make_node(op, names, ["y0"], **(attrs or {}))
    nodes = [node, *(helper.make_node(o, [f"y{i}", *more], [f"y{i + 1}"], **a) for i, (o, more, a) in enumerate(after))]
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{n}_{i}" for i in range(x.ndim)] if symbols else x.shape
        )
        for n, x in zip(names, inputs, strict=False)
    ]
    weights = [numpy_helper.from_array(c, n) for n, c in zip(names[len(inputs) :], constants, strict=True)]
    graph = helper.make_graph(nodes, "g", infos, [ValueInfoProto(name=nodes[-1].output[0])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    module = neo.compile(model, threads=1, target=target, accuracy=accuracy)
    return module(*inputs)


def codes(random, dims, dtype, extreme):
    """8-bit codes: of both ends of the type alone, or of all of it."""
    info = np.iinfo(dtype)
    if extreme:
        return random.choice(np.array([info.min, info.max], dtype), dims)
    return random.integers(info.min, info.max, dims, dtype, endpoint=True)


def convolved(x, w, pads, strides, dilations, group):
    """A convolution of int64 numbers."""
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pads]])
    span = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, span, (2, 3))[:, :, :: strides[0], :: strides[1]]
    windows = windows[..., :: dilations[0], :: dilations[1]]
    parts = [
        np.einsum("nchwij,ocij->nohw", a, b)
        for a, b in zip(np.split(windows, group, 1), np.split(w, group, 0), strict=True)
    ]
    return np.concatenate(parts, 1)


FORMS = [  # channels, outputs, kernel, stride, dilation, group, size
    (16, 32, (3, 3), 1, 1, 1, 21),
    (64, 64, (3, 3), 1, 1, 1, 14),
    (128, 32, (3, 3), 1, 1, 1, 30),
    (128, 16, (1, 7), 1, 1, 1, 24),
    (128, 16, (7, 1), 1, 1, 1, 24),
    (32, 32, (5, 5), 1, 1, 1, 20),
    (3, 64, (7, 7), 2, 1, 1, 40),
    (64, 64, (3, 3), 2, 1, 1, 28),
    (128, 128, (1, 1), 1, 1, 1, 32),
    (512, 256, (1, 1), 1, 1, 1, 16),
    (32, 32, (3, 3), 1, 1, 32, 20),
    (32, 32, (3, 3), 1, 2, 1, 20),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
def test_convolutions_of_integers(form, target):
    channels, out, kernel, stride, dilation, group, size = form
    random = np.random.default_rng(channels * kernel[0] + stride)
    pads = [(k - 1) * dilation // 2 for k in kernel]
    attrs = {"pads": [*pads, *pads], "strides": [stride] * 2, "dilations": [dilation] * 2, "group": group}
    for x_type, w_type, extreme in itertools.product((np.uint8, np.int8), (np.uint8, np.int8), (False, True)):
        x = codes(random, (1, channels, size, size), x_type, extreme)
        w = codes(random, (out, channels // group, *kernel), w_type, extreme)
        zeros = [codes(random, (), x_type, extreme), codes(random, (), w_type, extreme)]
        expected = convolved(
            x.astype(np.int64) - int(zeros[0]),
            w.astype(np.int64) - int(zeros[1]),
            pads,
            [stride] * 2,
            [dilation] * 2,
            group,
        )
        for accuracy, symbols in ((ACCURACIES[int(extreme)], False), ("default", True)):
            found = run("ConvInteger", [x], attrs, [w, *zeros], target, accuracy, symbols=symbols)
            assert found.dtype == np.int32
            np.testing.assert_array_equal(found, expected.astype(np.int32), f"{x_type} {w_type} {accuracy}")


@pytest.mark.parametrize("accuracy", ACCURACIES)
def test_what_reads_the_sums_as_floats_reads_them_exactly(accuracy):
    random = np.random.default_rng(5)
    x, w = codes(random, (1, 64, 20, 20), np.uint8, False), codes(random, (64, 64, 3, 3), np.int8, False)
    expected = convolved(x.astype(np.int64) - 100, w.astype(np.int64), [1, 1], [1, 1], [1, 1], 1)
    found = run(
        "ConvInteger", [x], {"pads": [1] * 4}, [w, np.uint8(100)], accuracy=accuracy, after=[("Cast", [], {"to": 1})]
    )
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [1, 7, 63, 257, 258, 259, 1000, 33_024])
def test_products_up_to_the_edge_of_int32(depth, target):
    random = np.random.default_rng(depth)
    for x_type, w_type, extreme in itertools.product((np.uint8, np.int8), (np.uint8, np.int8), (False, True)):
        x, w = codes(random, (3, depth), x_type, extreme), codes(random, (depth, 18), w_type, extreme)
        zeros = [codes(random, (), x_type, extreme), codes(random, (), w_type, extreme)]
        x[0], w[:, 0] = (
            np.iinfo(t).max if z <= 0 else np.iinfo(t).min for t, z in ((x_type, zeros[0]), (w_type, zeros[1]))
        )
        expected = (x.astype(np.int64) - int(zeros[0])) @ (w.astype(np.int64) - int(zeros[1]))
        assert np.abs(expected).max() <= np.iinfo(np.int32).max
        found = run("MatMulInteger", [x], {}, [w, *zeros], target)
        np.testing.assert_array_equal(found, expected.astype(np.int32), f"constant {x_type} {w_type}")
        found = run("MatMulInteger", [x, w, *zeros], {}, [], target)
        np.testing.assert_array_equal(found, expected.astype(np.int32), f"{x_type} {w_type}")


@pytest.mark.parametrize("channels", [3_669, 3_600, 28, 29])
def test_sums_of_a_convolution_up_to_the_edge_of_int32(channels):
    x, w = np.full((1, channels, 3, 3), 255, np.uint8), np.full((2, channels, 3, 3), 255, np.uint8)
    w[1] = 0
    found = run("ConvInteger", [x], {}, [w, np.uint8(0), np.uint8(0)])
    np.testing.assert_array_equal(found.ravel(), [channels * 9 * 255 * 255, 0])
    np.testing.assert_array_equal(
        run("ConvInteger", [x], {}, [w, np.uint8(0), np.uint8(255)]).ravel(), [0, -channels * 9 * 255 * 255]
    )


def edges(random, dtype, count):
    """The ends of a type, numbers around its powers of two, and others."""
    info = np.iinfo(dtype)
    powers = {s * 2**p + d for p in (23, 24, 31, 32, 52, 53, 54, 62, 63) for d in (-1, 0, 1) for s in (-1, 1)}
    ends = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, -1, -2, *powers}
    near = np.array(sorted(n for n in ends if info.min <= n <= info.max), dtype)
    numbers = np.concatenate([near, random.integers(info.min, info.max, count, dtype, endpoint=True)])
    return random.permutation(numbers)[:count]


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
    "LessOrEqual": np.less_equal,
    "GreaterOrEqual": np.greater_equal,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
REDUCED = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}

by_dtype = pytest.mark.parametrize("dtype", INTEGERS, ids=lambda t: t.__name__)


@by_dtype
@pytest.mark.filterwarnings("ignore:overflow")
def test_arithmetic_wraps_as_the_type_does(dtype):
    random = np.random.default_rng(1)
    a, b = edges(random, dtype, 240), edges(random, dtype, 240)
    for op, f in BINARY.items():
        np.testing.assert_array_equal(run(op, [a, b]), f(a, b), op)
    np.testing.assert_array_equal(run("Abs", [a]), np.abs(a))
    np.testing.assert_array_equal(run("Sign", [a]), np.sign(a))
    np.testing.assert_array_equal(run("BitwiseNot", [a]), ~a)
    # A wrapped sum is what the nodes after it read, also where one routine runs both.
    for first, second in itertools.product(("Add", "Sub", "Mul"), ("Max", "Min", "Less", "Equal", "Mul")):
        found = run(first, [a, b], after=[(second, ["x1"], {})])
        np.testing.assert_array_equal(found, BINARY[second](BINARY[first](a, b), b), f"{first} {second}")


@by_dtype
def test_division_and_remainders(dtype):
    random = np.random.default_rng(2)
    a, b = edges(random, dtype, 240), edges(random, dtype, 240)
    b[b == 0] = 1
    if np.iinfo(dtype).min < 0:
        a[a == np.iinfo(dtype).min] = 1  # divided by -1 it is outside the type
    towards_zero = [int(x) // int(y) if (x < 0) == (y < 0) else -(-int(x) // int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(run("Div", [a, b]), np.array(towards_zero, object).astype(dtype))
    np.testing.assert_array_equal(run("Mod", [a, b]), np.mod(a, b))
    np.testing.assert_array_equal(run("Mod", [a, b], {"fmod": 1}), np.fmod(a, b))


@by_dtype
@pytest.mark.filterwarnings("ignore:overflow")
def test_reductions_and_products(dtype):
    random = np.random.default_rng(3)
    x, w = edges(random, dtype, 240).reshape(12, 20), edges(random, dtype, 100).reshape(20, 5)
    wide = dtype in (np.int32, np.int64, np.uint32, np.uint64)
    for op, f in REDUCED.items():
        if wide or (op in ("ReduceMax", "ReduceMin") and np.dtype(dtype).itemsize == 1):
            expected = f(x, axis=1) if op in ("ReduceMax", "ReduceMin") else f(x, axis=1, dtype=dtype)
            np.testing.assert_array_equal(run(op, [x], {"keepdims": 0}, [np.array([1])]), expected, op)
    if not wide:
        return
    mean = [abs(sum(map(int, row))) // 20 * (1 if sum(map(int, row)) >= 0 else -1) for row in x]
    np.testing.assert_array_equal(run("ReduceMean", [x], {"keepdims": 0}, [np.array([1])]), np.array(mean, dtype))
    # A length is the whole root of the whole sum, whose squares leave 53 and 64 bits.
    for part in (x, x[:, :1], np.full((1, 1), np.iinfo(dtype).max, dtype), x // 5):
        roots = [min(math.isqrt(sum(int(v) ** 2 for v in row)), np.iinfo(dtype).max) for row in part]
        np.testing.assert_array_equal(
            run("ReduceL2", [part], {"keepdims": 0}, [np.array([1])]), np.array(roots, dtype), str(part.shape)
        )
    for product in (run("MatMul", [x, w]), run("MatMul", [x], {}, [w]), run("Gemm", [x, w])):
        np.testing.assert_array_equal(product, x @ w)
    np.testing.assert_array_equal(run("Einsum", [x, w], {"equation": "ij,jk->ik"}), x @ w)
    np.testing.assert_array_equal(run("CumSum", [x], {}, [np.array(0)]), np.cumsum(x, 0, dtype))
    np.testing.assert_array_equal(run("ArgMax", [x], {"axis": 1, "keepdims": 0}), x.argmax(1))
    low, high = dtype(5), dtype(np.iinfo(dtype).max - 1)
    np.testing.assert_array_equal(run("Clip", [x], {}, [low, high]), np.clip(x, low, high))


@by_dtype
def test_activations(dtype):
    random = np.random.default_rng(4)
    x = edges(random, dtype, 240)
    if np.iinfo(dtype).min < 0:
        np.testing.assert_array_equal(run("Relu", [x]), np.maximum(x, 0))
    shrunk = [0 if -3 <= int(n) <= 3 else int(n) + 2 if n < 0 else int(n) - 2 for n in x]
    np.testing.assert_array_equal(
        run("Shrink", [x], {"bias": 2.0, "lambd": 3.0}), np.array(shrunk, object).astype(dtype)
    )


@by_dtype
def test_casts(dtype):
    random = np.random.default_rng(5)
    x = edges(random, dtype, 240)
    for to in (*INTEGERS, np.float32, np.float64):
        found = run("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))})
        np.testing.assert_array_equal(found, x.astype(to), str(to))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=lambda t: t.__name__)
def test_pools_of_codes(dtype):
    random = np.random.default_rng(6)
    x = edges(random, dtype, 2 * 16 * 81).reshape(2, 16, 9, 9)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(
        run("MaxPool", [x], {"kernel_shape": [3, 3], "strides": [2, 2]}), windows.max((-1, -2))
    )


def test_no_routine_that_rounds_is_offered_for_integers():
    random = np.random.default_rng(7)
    x = codes(random, (1, 64, 28, 28), np.uint8, False)
    for kernel in (1, 3):
        w = codes(random, (64, 64, kernel, kernel), np.int8, False)
        graph = _native.Graph()
        node = graph.add_node(
            "ConvInteger",
            [graph.add_input("x", "uint8", list(x.shape)), graph.add_constant("w", w)],
            ["y"],
            {"pads": [kernel // 2] * 4},
            "product",
        )
        graph.outputs = node.outputs
        problem = _native.build_problem(_native.run_passes(graph), "cpu", 1)
        assert all(not any(errors) for errors in problem.resource("error"))
        reasons = [r for entry in problem.nodes for r in dict(entry["rejections"]).values()]
        assert any("the result is an integer" in r for r in reasons)
