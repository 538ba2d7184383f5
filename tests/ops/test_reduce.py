"""Reductions, softmax, scans and TopK."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import floats, infer, run, sizes_value


def log_sum_exp(x, axis, keepdims):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.abs(x).sum(**k),
    "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)),
    "ReduceSumSquare": lambda x, **k: (x * x).sum(**k),
    "ReduceLogSumExp": log_sum_exp,
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2), (0, 1, 2), (2, 0)])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(op, axes, keepdims):
    x = floats(2, 3, 4)
    expected = REDUCTIONS[op](x, axis=tuple(a % 3 for a in axes), keepdims=bool(keepdims))
    np.testing.assert_allclose(run(op, x, np.array(axes), keepdims=keepdims), expected, atol=1e-12)


def test_no_axes_are_all_or_none():
    x = floats(2, 3)
    assert run("ReduceSum", x, keepdims=0).shape == ()
    assert run("ReduceSum", x, np.zeros(0, np.int64), keepdims=1).shape == (1, 1)
    np.testing.assert_array_equal(run("ReduceSum", x, noop_with_empty_axes=1), x)
    np.testing.assert_allclose(run("ReduceSumSquare", x, noop_with_empty_axes=1), x * x)
    assert infer("ReduceMax", "float32[N,3]", noop_with_empty_axes=1) == "float32[N,3]"


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("ReduceSum", np.float32, 0),
        ("ReduceProd", np.int32, 1),
        ("ReduceMax", np.float32, -np.inf),
        ("ReduceMax", np.int8, -128),
        ("ReduceMin", np.uint64, 2**64 - 1),
        ("ReduceMin", np.bool_, True),
        ("ReduceMax", np.bool_, False),
        ("ReduceLogSum", np.float32, -np.inf),
        ("ReduceLogSumExp", np.float32, -np.inf),
    ],
)
def test_reduction_of_nothing(op, dtype, expected):
    result = run(op, np.zeros((2, 0), dtype), np.array([1]), keepdims=0)
    assert result.tolist() == [expected] * 2


def test_integers_reduce_exactly():
    x = np.array([[2**62, 2**61, -3], [2**62, 2**62, 5]])
    with np.errstate(over="ignore"):
        for op in ["ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceMax"]:
            np.testing.assert_array_equal(run(op, x, np.array([1]), keepdims=0), REDUCTIONS[op](x, axis=1))
    big = np.array([2**63 + 1, 5, 2**64 - 1], np.uint64)
    assert run("ReduceMax", big, keepdims=0) == 2**64 - 1


def test_log_sum_exp_does_not_overflow():
    np.testing.assert_allclose(run("ReduceLogSumExp", np.array([1000.0, 1000.0]), keepdims=0), 1000 + np.log(2))
    assert run("ReduceLogSumExp", np.array([-np.inf, -np.inf]), keepdims=0) == -np.inf


def test_sizes_from_symbols():
    assert infer("ReduceMean", "float32[N,C,H,W]", np.array([2, 3])) == "float32[N,C,1,1]"
    assert infer("ReduceMean", "float32[N,C,H,W]", np.array([-1]), keepdims=0) == "float32[N,C,H]"
    assert infer("ReduceSum", "float32[N,C]", "int64[1]", keepdims=0).count(",") == 0
    with pytest.raises(ModelError, match=r"must lie inside the rank. Got 2, expected -2 to 1"):
        infer("ReduceSum", "float32[N,C]", np.array([2]))


@pytest.mark.parametrize(
    ("op", "expected"), [("ReduceProd", "12*N"), ("ReduceSum", "N + 7"), ("ReduceMin", "min(3, N)")]
)
@pytest.mark.parametrize("code", [6, 7])
def test_sizes_flow_through_reductions(op, expected, code):
    graph = _native.Graph()
    sizes = graph.add_node("Cast", [sizes_value(graph, ["N", 3, 4])], ["sizes"], {"to": code}).outputs[0]
    reduced = graph.add_node(op, [sizes], ["reduced"], {"keepdims": 1}).outputs[0]
    reduced = graph.add_node("Cast", [reduced], ["wide"], {"to": 7}).outputs[0]
    assert graph.add_node("ConstantOfShape", [reduced], ["shaped"]).outputs[0].type == f"float32[{expected}]"


@pytest.mark.parametrize("largest", ["ArgMax", "ArgMin"])
def test_positions_among_equals(largest):
    x = np.array([[1, 1, 0, 0], [5, 5, 5, 5]], np.int8)
    sign = 1 if largest == "ArgMax" else -1
    first = run(largest, x, axis=1, keepdims=0)
    last = run(largest, x, axis=1, keepdims=0, select_last_index=1)
    np.testing.assert_array_equal(first, np.argmax(sign * x, axis=1))
    np.testing.assert_array_equal(last, 3 - np.argmax(sign * x[:, ::-1], axis=1))
    with pytest.raises(ShapeError, match="axis must not be empty"):
        infer(largest, "float32[2,0]", axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
    x = floats(3, 4, 5) * 300
    e = np.exp(x - x.max(axis, keepdims=True))
    np.testing.assert_allclose(run("Softmax", x, axis=axis), e / e.sum(axis, keepdims=True), atol=1e-12)
    logarithm = x - x.max(axis, keepdims=True) - np.log(e.sum(axis, keepdims=True))
    np.testing.assert_allclose(run("LogSoftmax", x, axis=axis), logarithm, atol=1e-9)
    np.testing.assert_array_equal(run("Hardmax", x, axis=axis), (x == x.max(axis, keepdims=True)).astype(float))
    assert run("Softmax", np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("op", "function", "first"), [("CumSum", np.cumsum, 0), ("CumProd", np.cumprod, 1)])
def test_cumulative(op, function, first, exclusive, reverse):
    for x in [floats(2, 4, 3), np.random.default_rng(1).integers(-9, 9, (2, 4, 3))]:
        turned = x[:, ::-1] if reverse else x
        expected = function(turned, axis=1)
        if exclusive:
            expected = np.concatenate([np.full_like(x[:, :1], first), expected[:, :-1]], axis=1)
        expected = expected[:, ::-1] if reverse else expected
        result = run(op, x, np.array(1), exclusive=exclusive, reverse=reverse)
        np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_top_k_prefers_lower_positions(axis, largest):
    x = np.random.default_rng(2).integers(0, 4, (4, 5, 6)).astype(np.float32)
    order = np.argsort(-x if largest else x, axis=axis, kind="stable").take([0, 1, 2], axis=axis)
    values, positions = run("TopK", x, np.array([3]), outputs=2, axis=axis, largest=largest)
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=axis))


def test_top_k_sizes():
    assert infer("TopK", "float32[N,C]", np.array([5]), outputs=2) == ["float32[N,5]", "int64[N,5]"]
    assert infer("TopK", "float32[N,C]", ["K"], outputs=2)[0] == "float32[N,K]"
    with pytest.raises(ShapeError, match="k must not exceed the axis"):
        infer("TopK", "float32[N,3]", np.array([5]), outputs=2)
    values, _ = run("TopK", np.array([1, np.nan, 3], np.float32), np.array([2]), outputs=2)
    np.testing.assert_array_equal(values, [np.nan, 3])
