"""Gathering, scattering and what is found at run time."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_index_outside_the_axis_is_named(op):
    x = np.zeros((3, 2), np.float32)
    with pytest.raises(ShapeError, match="Got 3, expected -3 to 2"):
        run(op, x, np.array([[0, 3]]), axis=0)


def test_shape_computations_refuse_an_index_outside():
    with pytest.raises(ShapeError, match="Got 4, expected -2 to 1"):
        infer("Gather", ["N", "M"], np.array(4))


def test_scatter_nd_adds_to_repeated_places():
    x = np.zeros((2, 2), np.float32)
    got = run("ScatterND", x, np.array([[0], [0]]), np.ones((2, 2), np.float32), reduction="add")
    np.testing.assert_array_equal(got, [[2, 2], [0, 0]])


@pytest.mark.parametrize(("reduction", "want"), [("max", 2**63 + 5), ("min", 1)])
def test_scatter_compares_large_unsigned_numbers(reduction, want):
    x = np.array([2**63 + 5], np.uint64)
    assert run("ScatterElements", x, np.array([0]), np.array([1], np.uint64), reduction=reduction) == want


def test_scatter_refuses_unknown_reductions():
    with pytest.raises(ModelError, match="reduction must be none"):
        infer("ScatterND", "float32[3]", "int64[1,1]", "float32[1]", reduction="mean")


def test_unique_takes_nan_as_one_value():
    y, first, inverse, counts = run("Unique", np.array([np.nan, 1, np.nan], np.float32), outputs=4)
    np.testing.assert_array_equal(y, np.array([1, np.nan], np.float32))
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([1, 0], [1, 0, 1], [1, 2])


def test_unique_of_strings_keeps_the_order_of_appearance():
    y, counts = run("Unique", np.array(["b", "a", "b"], object), outputs=4, sorted=0)[::3]
    assert (y.tolist(), counts.tolist()) == (["b", "a"], [2, 1])


def test_sizes_born_at_run_time_are_symbols():
    assert infer("NonZero", "float32[N,4]") == "int64[2,nonzero]"
    assert infer("Compress", "float32[N,4]", "bool[N]", axis=0) == "float32[compress,4]"
    assert infer("NonMaxSuppression", "float32[1,N,4]", "float32[1,80,N]", np.array(10)) == "int64[selected,3]"


def test_nonzero_of_a_scalar_has_no_coordinates():
    assert run("NonZero", np.float32(3)).shape == (0, 1)


def test_one_hot_ignores_indices_outside():
    got = run("OneHot", np.array([-1, 3, 1]), np.array(3), np.array([0, 1], np.int32))
    np.testing.assert_array_equal(got, [[0, 0, 1], [0, 0, 0], [0, 1, 0]])


def test_tensor_scatter_wraps_around():
    past = np.zeros((1, 4, 1), np.float32)
    update = np.array([[[1], [2]]], np.float32)
    got = run("TensorScatter", past, update, np.array([3]), mode="circular")
    np.testing.assert_array_equal(got.ravel(), [2, 0, 0, 1])
    with pytest.raises(ShapeError, match="Got 4, expected -4 to 3"):
        run("TensorScatter", past, update, np.array([3]))


def test_nms_keeps_overlap_equal_to_the_threshold():
    # Two boxes that share half of each: intersection over union is 1/3.
    boxes = np.array([[[0, 0, 1, 1], [0, 0.5, 1, 1.5]]], np.float32)
    scores = np.array([[[0.9, 0.8]]], np.float32)
    limit = np.array([2])
    third = np.float32(0.5) / np.float32(1.5)
    assert len(run("NonMaxSuppression", boxes, scores, limit, np.array([third]))) == 2
    assert len(run("NonMaxSuppression", boxes, scores, limit, np.array([0.3], np.float32))) == 1


def test_nms_removes_scores_below_the_threshold_only():
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3]]], np.float32)
    scores = np.array([[[0.5, 0.25]]], np.float32)
    got = run("NonMaxSuppression", boxes, scores, np.array([5]), np.array([0.5], np.float32), np.array([0.5], np.float32))
    np.testing.assert_array_equal(got, [[0, 0, 0]])
