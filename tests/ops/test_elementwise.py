"""Arithmetic, comparisons, casts, and the sizes that flow through them."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from neo import _native
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run, sizes_value

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def edges(dtype):
    info = np.iinfo(dtype)
    values = {0, 1, 2, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1}
    if info.min < 0:
        values |= {-1, -2, -7}
    return np.array(sorted(values), dtype)


def grid(dtype):
    pairs = np.array(list(itertools.product(edges(dtype), repeat=2)), dtype)
    return pairs[:, 0], pairs[:, 1]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("op", "function"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)])
def test_integers_wrap(op, function, dtype):
    a, b = grid(dtype)
    np.testing.assert_array_equal(run(op, a, b), function(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Equal", np.equal),
        ("Greater", np.greater),
        ("GreaterOrEqual", np.greater_equal),
        ("Less", np.less),
        ("LessOrEqual", np.less_equal),
        ("Max", np.maximum),
        ("Min", np.minimum),
    ],
)
def test_integers_compare_by_their_sign(op, function, dtype):
    a, b = grid(dtype)
    np.testing.assert_array_equal(run(op, a, b), function(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_truncates(dtype):
    a, b = grid(dtype)
    a, b = a[b != 0], b[b != 0]
    info = np.iinfo(dtype)
    quotients = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    wrapped = [(q - info.min) % (1 << info.bits) + info.min for q in quotients]
    np.testing.assert_array_equal(run("Div", a, b), np.array(wrapped, dtype))
    floored = [int(x) % int(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(run("Mod", a, b), np.array(floored, dtype))
    truncated = [int(x) - q * int(y) for x, y, q in zip(a, b, quotients, strict=True)]
    np.testing.assert_array_equal(run("Mod", a, b, fmod=1), np.array(truncated, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_division_by_zero_does_not_end_the_process(op, dtype):
    assert run(op, np.array([1, 0], dtype), np.array([0, 0], dtype)).shape == (2,)


def test_float_modulo_has_the_sign_of_the_divisor():
    inf = np.inf
    a = np.array([5.3, -5.3, 5.3, -5.3, 0.0, 1.0, -1.0, 1.0, inf, 1.0], np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, -3.0, inf, inf, -inf, 2.0, 0.0], np.float32)
    expected = np.array([1.3, 0.7, -0.7, -1.3, -0.0, 1.0, inf, -inf, np.nan, np.nan], np.float32)
    result = run("Mod", a, b)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert np.signbit(result[4])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_past_the_width(dtype):
    bits = np.iinfo(dtype).bits
    x = edges(dtype)
    for by in [0, 1, bits - 1, bits, bits + 3]:
        shift = np.full_like(x, by)
        left = [(int(v) << by if by < bits else 0) % (1 << bits) for v in x]
        np.testing.assert_array_equal(
            run("BitShift", x, shift, direction="LEFT"), np.array(left, np.uint64).astype(dtype)
        )
        right = [int(v) >> min(by, 200) for v in x]
        np.testing.assert_array_equal(run("BitShift", x, shift, direction="RIGHT"), np.array(right, dtype))


def test_power_keeps_the_type_of_the_base():
    np.testing.assert_array_equal(
        run("Pow", np.array([3, 2, -2, 1, -1], np.int64), np.array([39, 62, 3, -5, -3], np.int64)),
        np.array([3**39, 2**62, -8, 1, -1], np.int64),
    )
    assert run("Pow", np.array([2], np.int32), np.array([0.5], np.float32)).tolist() == [1]


@pytest.mark.parametrize("op", ["Add", "Max", "Equal", "Where"])
def test_empty_operands(op):
    a = np.zeros((0, 3), np.float32)
    operands = [np.ones((1, 3), np.bool_), a, np.ones(3, np.float32)] if op == "Where" else [a, np.ones(3, np.float32)]
    assert run(op, *operands).shape == (0, 3)


def test_operands_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"sizes must be equal or 1 to broadcast. Got 3 and 4 in \[2,3\] and \[4\]"):
        infer("Add", "float32[2,3]", "float32[4]")
    with pytest.raises(ModelError, match=r"one element type. Got float32 and int64"):
        infer("Add", "float32[2]", "int64[2]")


def test_clip_gives_the_upper_bound_when_bounds_cross():
    x = np.array([-3, 0, 3, np.nan], np.float32)
    result = run("Clip", x, np.float32(2), np.float32(-1))
    np.testing.assert_array_equal(result, np.array([-1, -1, -1, np.nan], np.float32))
    big = np.array([1, 2**63, 2**64 - 1], np.uint64)
    np.testing.assert_array_equal(run("Clip", big, None, np.uint64(2**63)), np.array([1, 2**63, 2**63], np.uint64))


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("3.14", np.float32, 3.14),
        ("1e-5", np.float64, 1e-5),
        ("+INF", np.float32, np.inf),
        ("-inf", np.float32, -np.inf),
        ("1e400", np.float64, np.inf),
        ("-1e-400", np.float64, -0.0),
        ("18446744073709551615", np.uint64, 2**64 - 1),
        ("-9223372036854775808", np.int64, -(2**63)),
        ("100.5", np.int32, 100),
    ],
)
def test_numbers_from_text(text, dtype, expected):
    result = run("Cast", np.array([text], object), to=np.dtype(dtype).name)
    assert result.dtype == dtype
    assert result[0] == np.array(expected, dtype)


@pytest.mark.parametrize("text", ["", "hello", "--1", "1x"])
def test_text_that_is_no_number(text):
    with pytest.raises(ShapeError, match="must be a number"):
        run("Cast", np.array([text], object), to="float32")


def test_text_from_numbers():
    texts = run("Cast", np.array([0.47892547, 1.0, 1e20, -np.inf, np.nan, 100000.0], np.float32), to="string")
    assert texts.tolist() == ["0.47892547", "1.0", "1e+20", "-INF", "NaN", "100000.0"]
    assert run("Cast", np.array([2**64 - 1], np.uint64), to="string").tolist() == ["18446744073709551615"]


@pytest.mark.parametrize(
    ("mode", "expected"), [("up", [1, 2, 2, 2, 4]), ("down", [1, 1, 1, 1, 2]), ("nearest", [1, 1, 2, 2, 4])]
)
def test_powers_of_two(mode, expected):
    x = np.array([1, 1.4, 1.5, 1.9, 3], np.float32)
    result = run("Cast", x, to="float8_e8m0fnu", round_mode=mode)
    assert result.dtype == ml_dtypes.float8_e8m0fnu
    assert result.astype(np.float32).tolist() == expected


def test_integers_to_integers_discard_bits():
    x = np.array([200, -1, 256, 65536 + 3], np.int32)
    np.testing.assert_array_equal(run("Cast", x, to="int8"), x.astype(np.int8))
    np.testing.assert_array_equal(run("Cast", x, to="bool"), np.array([True] * 4))


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("Add", [["N", 3], np.array([1, 2])], "[N + 1,5]"),
        ("Sub", [["N", 7], np.array([1, 2])], "[N - 1,5]"),
        ("Mul", [["N", 3], np.array(2)], "[2*N,6]"),
        ("Div", [["N", 9], np.array(2)], "[floordiv(N, 2),4]"),
        ("Mod", [["N", 9], np.array(4)], "[mod(N, 4),1]"),
        ("Max", [["N", 9], np.array([0, 12])], "[N,12]"),
        ("Min", [["N", 9], np.array([5, 12])], "[min(5, N),9]"),
    ],
)
def test_sizes_flow_through_arithmetic(op, operands, expected):
    graph = _native.Graph()
    sizes = sizes_value(graph, operands[0])
    computed = graph.add_node(op, [sizes, graph.add_constant("c", operands[1])], ["computed"]).outputs[0]
    shaped = graph.add_node("ConstantOfShape", [computed], ["shaped"]).outputs[0]
    assert shaped.type == "float32" + expected


def test_sizes_flow_through_comparisons():
    graph = _native.Graph()
    sizes = sizes_value(graph, ["N", 4])
    wanted = graph.add_constant("wanted", np.array([-1, 5]))
    unset = graph.add_node("Equal", [wanted, graph.add_constant("unset", np.array(-1))], ["equal"]).outputs[0]
    chosen = graph.add_node("Where", [unset, sizes, wanted], ["chosen"]).outputs[0]
    cast = graph.add_node("Cast", [chosen], ["cast"], {"to": "int64"}).outputs[0]
    shaped = graph.add_node("ConstantOfShape", [cast], ["shaped"]).outputs[0]
    assert shaped.type == "float32[N,5]"


@pytest.mark.parametrize("value", [np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_large_integers_are_no_sizes_but_fine(value):
    assert infer("Mul", np.array([value]), np.array([3])) == "int64[1]"
    np.testing.assert_array_equal(run("Neg", np.array([value])), -np.array([value]))
