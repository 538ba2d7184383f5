"""Views, copies and the sizes that inference computes for them."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run

ALL = np.iinfo(np.int64).max


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("float32[N,C,H,W]", ["N", "C", -1], "float32[N,C,H*W]"),
        ("float32[N,12,H,W]", ints(0, 3, 4, -1), "float32[N,3,4,H*W]"),
        ("float32[N,12,H]", ints(-1, 4), "float32[3*H*N,4]"),
        ("float32[N,12,H]", ["N", 3, 4, "H"], "float32[N,3,4,H]"),
        ("float32[B,T,768]", ints(0, 0, 12, 64), "float32[B,T,12,64]"),
        ("float32[0,3]", ints(0, -1), "float32[0,3]"),
    ],
)
def test_reshape_solves_sizes(source, target, expected):
    assert infer("Reshape", source, target) == expected


def test_reshape_refuses_what_does_not_divide():
    with pytest.raises(ShapeError, match=r"as many elements.*12 by 5"):
        infer("Reshape", "float32[3,4]", ints(5, -1))
    with pytest.raises(ModelError, match="at most one size may be -1"):
        infer("Reshape", "float32[3,4]", ints(-1, -1))


def test_reshape_keeps_zero_when_allowed():
    assert run("Reshape", np.zeros((0, 3, 4), np.float32), ints(3, 4, 0), allowzero=1).shape == (3, 4, 0)


@pytest.mark.parametrize(
    ("size", "start", "end", "step", "expected"),
    [
        ("N", 0, -1, 1, "max(0, N - 1)"),
        ("N", 1, ALL, 1, "max(0, N - 1)"),
        ("N", 0, 10, 1, "min(10, N)"),
        ("N", -1, -ALL, -1, "N"),
        ("N", 0, ALL, 2, "floordiv(N + 1, 2)"),
        (7, -3, ALL, 1, "3"),
        (7, 5, 1, -2, "2"),
    ],
)
def test_slice_sizes(size, start, end, step, expected):
    assert infer("Slice", f"float32[{size}]", ints(start), ints(end), ints(0), ints(step)) == f"float32[{expected}]"


def test_slice_with_computed_end():
    assert infer("Slice", "float32[1000,5]", ints(0), ["T"], ints(0)) == "float32[min(1000, T),5]"


def test_slice_agrees_with_numpy_on_random_steps():
    random = np.random.default_rng(0)
    x = random.standard_normal((5, 6)).astype(np.float32)
    for _ in range(200):
        start, end = random.integers(-5, 8, 2)
        step = int(random.integers(1, 4)) * int(random.choice([-1, 1]))
        got = run("Slice", x, ints(start), ints(end), ints(1), ints(step))
        np.testing.assert_array_equal(got, x[:, start:end:step])


def test_slice_backwards_from_before_the_axis_starts_at_its_first_element():
    # ONNX clamps the start to [0, size - 1] where NumPy gives nothing.
    np.testing.assert_array_equal(run("Slice", np.arange(2.0), ints(-4), ints(-4), ints(0), ints(-1)), [0.0])


def test_split_leaves_the_last_parts_smaller():
    parts = run("Split", np.arange(5), outputs=3, num_outputs=3)
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3], [4]]
    assert infer("Split", "float32[N,6]", outputs=2, axis=1) == ["float32[N,3]", "float32[N,3]"]


def test_concat_adds_sizes_and_wants_equal_others():
    assert infer("Concat", "float32[N,3,H]", "float32[N,4,7]", axis=1) == "float32[N,7,7]"
    with pytest.raises(ShapeError, match="agree on the axes that are not joined"):
        infer("Concat", "float32[2,3]", "float32[4,3]", axis=1)


def test_squeeze_of_a_symbol_without_axes_has_no_rank():
    assert infer("Squeeze", "float32[1,4,1]") == "float32[4]"
    assert infer("Squeeze", "float32[1,N,1]") == "float32[*]"
    assert infer("Squeeze", "float32[1,N,1]", ints(0)) == "float32[N,1]"


def test_unsqueeze_refuses_repeated_axes():
    with pytest.raises(ModelError, match="axes must not repeat"):
        infer("Unsqueeze", "float32[3]", ints(0, -3))


def test_transpose_refuses_what_is_no_permutation():
    with pytest.raises(ModelError, match="every axis once"):
        infer("Transpose", "float32[2,3]", perm=[0, 0])


def test_movement_keeps_every_bit():
    bits = np.array([[0x7FC00001, 0xFFC12345], [0x7F800001, 0x80000000]], np.uint32)
    x = bits.view(np.float32)
    for got, want in (
        (run("Transpose", x), bits.T),
        (run("Expand", x, ints(2, 2, 2)), np.broadcast_to(bits, (2, 2, 2))),
        (run("Pad", x, ints(0, 0, 0, 0)), bits),
        (run("Gather", x, ints(1, 0)), bits[::-1]),
        (run("Resize", x, None, np.array([1, 1], np.float32), mode="nearest"), bits),
    ):
        np.testing.assert_array_equal(np.ascontiguousarray(got).view(np.uint32), want)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pad_agrees_with_numpy(mode):
    random = np.random.default_rng(0)
    for _ in range(50):
        x = random.standard_normal(random.integers(1, 5, 3)).astype(np.float32)
        pads = random.integers(0, 9, (2, 3))
        want = np.pad(x, pads.T, mode=mode)
        np.testing.assert_array_equal(run("Pad", x, pads.ravel(), mode=mode), want)


def test_pad_crops_where_pads_are_negative():
    x = np.arange(6.0).reshape(2, 3)
    got = run("Pad", x, ints(-1, 2), np.array(9.0), ints(1))
    np.testing.assert_array_equal(got, [[1, 2, 9, 9], [4, 5, 9, 9]])
    with pytest.raises(ShapeError, match="must not remove more"):
        run("Pad", x, ints(-2, -2), None, ints(1))


def test_what_is_expanded_or_repeated_by_unknown_numbers_keeps_the_sizes_that_are_certain():
    assert infer("Expand", "float32[3,1,N]", "int64[4]") == "float32[expand,3,expand_2,expand_3]"
    assert infer("Expand", "float32[0,7]", "int64[1]") == "float32[0,7]"
    assert infer("Tile", "float32[0,4]", "int64[2]") == "float32[0,tile]"


def test_strings_move():
    x = np.array([["a", ""], ["ccc", "d" * 40]], object)
    np.testing.assert_array_equal(run("Transpose", x), x.T)
    np.testing.assert_array_equal(run("Concat", x, x, axis=1), np.concatenate([x, x], 1))
    assert run("Pad", x, ints(0, 0, 0, 1))[0].tolist() == ["a", "", ""]


@pytest.mark.parametrize("dims", [(), (0,), (3, 0, 2)])
def test_scalars_and_empty_arrays_move(dims):
    x = np.zeros(dims, np.int32)
    assert run("Transpose", x).shape == dims[::-1]
    assert run("Identity", x).shape == dims
    assert run("Flatten", x, axis=0).shape == (1, x.size)
    assert run("Size", x) == x.size
    np.testing.assert_array_equal(run("Shape", x), dims)
