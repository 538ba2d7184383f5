"""What a user holds: every form of a call, every kind of array."""

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.api.conftest import build, value

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


class OnlyDlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnlyArrayMethod:
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


def misaligned(array):
    buffer = np.empty(array.nbytes + 1, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def test_inputs_and_outputs_carry_the_models_names_dtypes_and_shapes(digits, pair):
    assert digits.inputs == (neo.Tensor("image", "float32", ("N", 1, 8, 8)),)
    assert digits.outputs == (neo.Tensor("probabilities", "float32", ("N", 10)),)
    assert [t.name for t in pair.outputs] == ["sum", "rest"]
    assert str(pair.inputs[0]) == "a: float32[N, 3]"
    assert repr(pair).startswith("neo.Module(a: float32[N, 3], b: float32[N, 3] -> sum: float32[N, 3]")


def test_one_output_is_the_array_and_several_are_a_tuple_in_the_models_order(digits, pair, images):
    assert isinstance(digits(images), np.ndarray)
    result = pair(A, B)
    assert isinstance(result, tuple)
    np.testing.assert_array_equal(result[0], A + B)
    np.testing.assert_array_equal(result[1], A - B)


def test_arrays_go_by_position_by_name_and_by_both(pair):
    for got in (pair(A, B), pair(A, b=B), pair(b=B, a=A)):
        np.testing.assert_array_equal(got[1], A - B)


def test_a_dict_of_nothing_is_the_inputs_of_a_model_without_any():
    node = helper.make_node("Constant", [], ["y"], value_floats=[1.0, 2.0])
    module = neo.compile(build([node], [], [value("y", [2])]), threads=1)
    np.testing.assert_array_equal(module({}), [1, 2])
    with pytest.raises(neo.ModelError, match="Got 1 arrays, expected at most 0"):
        module(A)


def test_run_takes_and_gives_arrays_by_the_models_names(pair):
    out = pair.run({"b": B, "a": A})
    assert list(out) == ["sum", "rest"]
    np.testing.assert_array_equal(out["rest"], A - B)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda x: x.tolist(), id="list"),
        pytest.param(OnlyDlpack, id="dlpack"),
        pytest.param(OnlyArrayMethod, id="array method"),
        pytest.param(memoryview, id="buffer"),
        pytest.param(np.asfortranarray, id="columns first"),
        pytest.param(lambda x: np.repeat(x, 2, axis=1)[:, ::2], id="strided"),
        pytest.param(lambda x: x[::-1].copy()[::-1], id="negative strides"),
        pytest.param(lambda x: np.ascontiguousarray(x).astype(">f4"), id="big-endian"),
        pytest.param(read_only, id="read-only"),
        pytest.param(misaligned, id="misaligned"),
    ],
)
def test_whatever_holds_the_elements_is_taken(pair, make):
    for got, expected in zip(pair(make(A), make(B)), (A + B, A - B), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_axis_repeated_by_a_stride_of_zero_is_taken(pair):
    np.testing.assert_array_equal(pair(A, np.broadcast_to(np.float32(2), (2, 3)))[0], A + 2)


@pytest.mark.parametrize(
    ("dtype", "number", "numpy_dtype"),
    [(TensorProto.INT32, 7, "int32"), (TensorProto.UINT8, 255, "uint8"), (TensorProto.FLOAT, 7, "float32")],
)
def test_plain_numbers_take_the_inputs_dtype(dtype, number, numpy_dtype):
    module = neo.compile(
        build([helper.make_node("Identity", ["x"], ["y"])], [value("x", [], dtype)], [value("y", [], dtype)])
    )
    y = module(number)
    assert y.dtype == numpy_dtype
    assert y.shape == ()
    assert y == number


def test_a_big_endian_scalar_keeps_its_rank():
    module = neo.compile(build([helper.make_node("Neg", ["x"], ["y"])], [value("x", [])], [value("y", [])]))
    y = module(np.array(3, ">f4"))
    assert y.shape == ()
    assert y == -3


def test_a_batch_of_nothing_gives_nothing(digits, images):
    assert digits(images[:0]).shape == (0, 10)
    np.testing.assert_array_equal(digits(images[:1]), digits(images[:1]))


def test_outputs_are_the_callers_to_write(digits, images):
    first = digits(images)
    kept = first.copy()
    assert first.flags.writeable
    first[:] = -1
    second = digits(images)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(second, kept)


def test_results_of_earlier_calls_stay_as_they_were(digits, images):
    results = [digits(images[i : i + 2]) for i in range(8)]
    again = [digits(images[i : i + 2]) for i in range(8)]
    for a, b in zip(results, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", ["Identity", "Reshape"])
def test_an_output_never_shares_memory_with_an_input(op):
    node = helper.make_node(op, ["x", "shape"] if op == "Reshape" else ["x"], ["y"])
    constants = {"shape": np.array([6], np.int64)} if op == "Reshape" else {}
    module = neo.compile(build([node], [value("x", [2, 3])], [value("y", None)], constants))
    x = A.copy()
    y = module(x)
    y[...] = 0
    np.testing.assert_array_equal(x, A)


def test_an_output_that_is_a_constant_is_a_copy_of_it():
    module = neo.compile(
        build(
            [helper.make_node("Identity", ["c"], ["y"]), helper.make_node("Neg", ["x"], ["z"])],
            [value("x", [2])],
            [value("y", [3]), value("z", [2])],
            {"c": np.array([1, 2, 3], np.float32)},
        )
    )
    x = np.zeros(2, np.float32)
    module(x)[0][:] = 0
    np.testing.assert_array_equal(module(x)[0], [1, 2, 3])


def test_two_outputs_of_one_value_can_be_written_apart():
    module = neo.compile(
        build(
            [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["y"], ["z"])],
            [value("x", [2])],
            [value("y", [2]), value("z", [2])],
        )
    )
    y, z = module(np.ones(2, np.float32))
    y[:] = 5
    np.testing.assert_array_equal(z, [-1, -1])


def test_inputs_are_not_kept_after_the_call(digits, images):
    import weakref

    class Tracked(np.ndarray):
        pass

    x = images.copy().view(Tracked)
    reference = weakref.ref(x)
    digits(x)
    del x
    assert reference() is None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_a_bit(digits, images, threads):
    other = digits.with_threads(threads)
    assert other.threads == threads
    for batch in (images, images[:1], images[:7]):
        expected = digits(batch)
        np.testing.assert_array_equal(other(batch), expected)
        np.testing.assert_array_equal(other(batch), expected)


def test_steps_list_what_runs_in_order(digits):
    steps = digits.steps
    assert [s.op for s in steps if s.op in ("Conv", "MaxPool", "Gemm", "Softmax")][-2:] == ["Gemm", "Softmax"]
    assert all(s.routine and s.depth == 0 for s in steps)


def test_steps_of_a_body_lie_deeper(loop):
    assert {s.op: s.depth for s in loop.steps}["Loop"] == 0
    assert {s.op: s.depth for s in loop.steps}["Add"] == 1


def test_a_module_is_not_iterated(digits):
    with pytest.raises(neo.DTypeError, match="a module is called, not iterated"):
        iter(digits)
