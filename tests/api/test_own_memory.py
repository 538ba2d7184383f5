"""Outputs in the caller's memory, inputs of other libraries without a copy, and what a module holds."""

import ctypes

import ml_dtypes
import neo
import numpy as np
import pytest
from neo.dlpack import from_dlpack
from onnx import TensorProto, helper

from tests.api.conftest import build, value

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


def unaligned(shape):
    memory = np.zeros(4 * int(np.prod(shape)) + 1, np.uint8)
    return memory[1:].view(np.float32).reshape(shape)


@pytest.mark.parametrize(
    "make",
    [
        lambda shape: np.zeros(shape, np.float32),
        lambda shape: np.zeros((shape[0], 2 * shape[1]), np.float32)[:, ::2],
        lambda shape: np.zeros(shape[::-1], np.float32).T,
        lambda shape: np.zeros(shape, np.float32)[::-1],
        lambda shape: np.zeros(shape, ">f4"),
        unaligned,
    ],
    ids=["dense", "strided", "transposed", "reversed", "foreign order", "unaligned"],
)
@pytest.mark.parametrize("count", [1, 7, 64])
def test_an_output_is_written_to_memory_of_any_layout(digits, images, make, count):
    expected = digits(images[:count])
    memory = make((count, 10))
    assert digits(images[:count], out=memory) is memory
    np.testing.assert_array_equal(memory, expected)


def test_dense_memory_is_written_where_it_is(digits, images):
    memory = np.full((3, 10), -1, np.float32)
    address = memory.ctypes.data
    digits(images[:3], out=memory)
    assert memory.ctypes.data == address
    assert (memory >= 0).all()


def test_several_outputs_by_place_by_name_and_in_part(pair):
    one, two = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    got = pair(A, B, out=(one, two))
    assert got[0] is one
    assert got[1] is two
    np.testing.assert_array_equal(two, A - B)
    got = pair(A, B, out=[None, one])
    assert got[1] is one
    np.testing.assert_array_equal(got[0], A + B)
    got = pair.run({"a": A, "b": B}, out={"rest": two})
    assert got["rest"] is two
    np.testing.assert_array_equal(got["sum"], A + B)
    assert pair.run_async({"a": B, "b": A}, out={"sum": one}).result()["sum"] is one
    np.testing.assert_array_equal(one, A + B)


def test_an_output_may_be_an_input(pair):
    x = A.copy()
    pair(x, B, out={"rest": x})
    np.testing.assert_array_equal(x, A - B)
    memory = np.zeros(9, np.float32)
    memory[:6] = A.ravel()
    pair(memory[:6].reshape(2, 3), B, out={"sum": memory[3:].reshape(3, 2).reshape(2, 3)})
    np.testing.assert_array_equal(memory[3:].reshape(2, 3), A + B)


def test_outputs_must_not_share_memory(pair):
    memory = np.zeros(9, np.float32)
    with pytest.raises(neo.ModelError, match="outputs must not share memory"):
        pair(A, B, out=(memory[:6].reshape(2, 3), memory[3:].reshape(2, 3)))


def test_an_output_that_is_a_constant_or_an_input(tmp_path):
    constant = np.arange(3, dtype=np.float32)
    model = build(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["c"], ["z"])],
        [value("x", ["N"])],
        [value("y", ["N"]), value("z", [3])],
        {"c": constant},
    )
    y, z = np.zeros(2, np.float32), np.zeros(3, np.float32)
    neo.compile(model)(np.ones(2, np.float32), out=(y, z))
    np.testing.assert_array_equal(y, 1)
    np.testing.assert_array_equal(z, constant)


def test_an_output_without_elements(digits, images):
    memory = np.zeros((0, 10), np.float32)
    assert digits(images[:0], out=memory) is memory


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (np.zeros((2, 4), np.float32), neo.ShapeError, r"must have its shape. Got \[2,4\], expected \[2,3\]"),
        (np.zeros((2, 4), np.float32)[:, ::1][:, :4], neo.ShapeError, "must have its shape"),
        (np.zeros((2, 3)), neo.DTypeError, "must have its dtype. Got float64, expected float32"),
        (3, neo.DTypeError, "memory for an output must be an array. Got int"),
        (np.broadcast_to(np.float32(0), (2, 3)), neo.ModelError, "memory for an output must be writable"),
    ],
)
def test_memory_that_does_not_fit(pair, out, error, text):
    with pytest.raises(error, match=text + ".*at output 'sum'"):
        pair(A, B, out={"sum": out})


def test_a_wrong_number_or_name_of_outputs(pair):
    with pytest.raises(neo.ModelError, match="out must have an array for every output. Got 1, expected 2"):
        pair(A, B, out=A)
    with pytest.raises(neo.ModelError, match="names of out must be outputs. Got 'other', expected 'sum', 'rest'"):
        pair(A, B, out={"other": A})


def test_an_output_that_is_no_tensor_has_no_memory():
    model = build(
        [helper.make_node("SequenceConstruct", ["x"], ["s"])],
        [value("x", [2])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
    )
    with pytest.raises(neo.DTypeError, match="memory for an output must have its dtype"):
        neo.compile(model).run({"x": np.zeros(2, np.float32)}, out={"s": np.zeros(2, np.float32)})


def test_variants_write_to_the_callers_memory():
    model = build([helper.make_node("Relu", ["x"], ["y"])], [value("x", ["N"])], [value("y", ["N"])])
    module = neo.compile(model, shapes={"N": [2, 5]})
    for count in (2, 5):
        x, y = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
        assert module(x, out=y) is y
        np.testing.assert_array_equal(y, x)


class Interface:
    """An array that has __array_interface__ alone."""

    def __init__(self, array):
        self._array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("wrap", [memoryview, Interface])
def test_memory_and_inputs_of_other_kinds(pair, wrap):
    memory = np.zeros((2, 3), np.float32)
    wrapped = wrap(memory)
    assert pair(wrap(A), b=wrap(B), out={"sum": wrapped})[0] is wrapped
    np.testing.assert_array_equal(memory, A + B)


def test_a_dict_of_inputs_is_taken_by_name(pair):
    np.testing.assert_array_equal(pair({"b": B, "a": A})[1], A - B)
    with pytest.raises(neo.ModelError, match="Got 'c', expected 'a', 'b'"):
        pair({"a": A, "b": B, "c": A})


class BFloat16:
    """A producer of DLPack as a library with bfloat16 is: NumPy refuses the dtype."""

    def __init__(self, bits, strides):
        self.bits = bits
        self.shape = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        self.strides = (ctypes.c_int64 * bits.ndim)(*strides) if strides else None

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        class Managed(ctypes.Structure):
            _fields_ = (
                ("data", ctypes.c_void_p),
                ("device", ctypes.c_int32 * 2),
                ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64),
                ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p),
            )

        self.tensor = Managed(
            self.bits.ctypes.data, (1, 0), self.bits.ndim, 4, 16, 1, ctypes.addressof(self.shape),
            ctypes.addressof(self.strides) if self.strides else None, 0, None, None,
        )  # fmt: skip
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize("strides", [None, (3, 1)])
def test_bfloat16_that_speaks_dlpack_is_read_where_it_is(strides):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    found = from_dlpack(BFloat16(numbers.view(np.uint16), strides))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.ctypes.data == numbers.ctypes.data
    np.testing.assert_array_equal(found, numbers)
    model = build(
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", [2, 3], TensorProto.BFLOAT16)],
        [value("y", [2, 3], TensorProto.BFLOAT16)],
    )
    np.testing.assert_array_equal(neo.compile(model)(BFloat16(numbers.view(np.uint16), strides)), numbers)


def test_transposed_bfloat16_that_speaks_dlpack():
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)

    class Transposed(BFloat16):
        def __init__(self):
            super().__init__(numbers.view(np.uint16), (1, 3))
            self.shape = (ctypes.c_int64 * 2)(3, 2)

    np.testing.assert_array_equal(from_dlpack(Transposed()), numbers.T)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int64, bool])
def test_an_error_of_dtypes_says_what_converts(pair, dtype):
    with pytest.raises(neo.DTypeError) as error:
        pair(A.astype(dtype), B)
    hint = str(error.value).partition("Hint: ")[2]
    assert hint == 'a.astype("float32")'
    pair(eval(hint, {"a": A.astype(dtype)}), B)


def test_memory_is_told(digits, images):
    digits(images)
    memory = digits.memory
    assert memory.constants > 0
    assert memory.kept > 0
    assert memory.call > 0


def test_a_model_without_inputs():
    model = build([helper.make_node("RandomUniform", [], ["y"], shape=[3], seed=1.0)], [], [value("y", [3])])
    module = neo.compile(model)
    memory = np.full(3, -1, np.float32)
    assert module().shape == (3,)
    assert module(out=memory) is memory
    assert (memory >= 0).all()
    assert module.run({})["y"].shape == (3,)
