"""Quantization: what is rounded where, granularities, and the operators on codes."""

import ml_dtypes
import numpy as np
import pytest
from neo.errors import ModelError, ShapeError, UnsupportedError

from tests.ops.single_node import infer, run

F = np.float32


def floats(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype(F)


def codes(*dims, dtype=np.uint8, seed=0):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, dims).astype(dtype)


def saturated(steps, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(steps).astype(np.float64) + zero, info.min, info.max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quotients_are_float32_and_halves_go_to_even(dtype):
    info = np.iinfo(dtype)
    steps = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf], F)
    result = run("QuantizeLinear", steps * F(0.25), F(0.25), dtype(3))
    np.testing.assert_array_equal(result, saturated(np.nan_to_num(steps, posinf=1e9), 3, dtype))
    assert result[5] == info.max
    # 0.3 / 0.1 is above 3 in double and 3 in float32; 2.5 steps of 0.1 are not a tie in double.
    x = (np.arange(-200, 200) * F(0.05)).astype(F)
    np.testing.assert_array_equal(run("QuantizeLinear", x, F(0.1), dtype(3)), saturated(x / F(0.1), 3, dtype))


def test_precision_is_that_of_the_scale():
    x = np.array([1.0009765625 * 2048], F)
    scale = np.array(2.0, np.float16)
    assert run("QuantizeLinear", x, scale, np.int16(0), precision=1)[0] == 1025
    assert run("QuantizeLinear", x + F(1), scale, np.int16(0), precision=1)[0] == 1026  # 1025.5, to even
    assert run("QuantizeLinear", x + F(1), scale, np.int16(0))[0] == 1026


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_granularities_agree(axis):
    x = floats(4, 6, 8)
    size = x.shape[axis]
    scale, zero = np.abs(floats(size, seed=1)) + F(0.1), codes(size, seed=2)
    shape = [1, 1, 1]
    shape[axis] = size
    y = run("QuantizeLinear", x, scale, zero, axis=axis)
    np.testing.assert_array_equal(y, saturated(x / scale.reshape(shape), zero.reshape(shape), np.uint8))
    back = run("DequantizeLinear", y, scale, zero, axis=axis)
    np.testing.assert_array_equal(back, (y.astype(F) - zero.reshape(shape)) * scale.reshape(shape))


@pytest.mark.parametrize("block", [1, 2, 3, 6])
def test_blocks(block):
    x = floats(2, 6, 3)
    count = -(-6 // block)
    scale, zero = np.abs(floats(2, count, 3, seed=1)) + F(0.1), codes(2, count, 3, dtype=np.int8, seed=2)
    wide_scale, wide_zero = (a.repeat(block, axis=1)[:, :6] for a in (scale, zero))
    y = run("QuantizeLinear", x, scale, zero, axis=1, block_size=block)
    np.testing.assert_array_equal(y, saturated(x / wide_scale, wide_zero, np.int8))
    back = run("DequantizeLinear", y, scale, zero, axis=1, block_size=block)
    np.testing.assert_array_equal(back, (y.astype(F) - wide_zero) * wide_scale)
    with pytest.raises(ShapeError, match="one scale per block"):
        infer("QuantizeLinear", "float32[2,7,3]", "float32[2,1,3]", axis=1, block_size=block)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2])
def test_narrow_integers(dtype):
    info = ml_dtypes.iinfo(dtype)
    x = np.arange(-20, 21, dtype=F) / 2
    y = run("QuantizeLinear", x, F(0.5), output_dtype=np.dtype(dtype).name)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.int32), np.clip(np.arange(-20, 21), info.min, info.max))
    np.testing.assert_array_equal(run("DequantizeLinear", y, F(0.5)), y.astype(F) / 2)


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [(ml_dtypes.float8_e4m3fn, 448), (ml_dtypes.float8_e5m2, 57344), (ml_dtypes.float4_e2m1fn, 6)],
)
def test_small_floats_saturate(dtype, largest):
    x = np.array([1e6, -1e6, 3, 1], F)
    y = run("QuantizeLinear", x, F(2), np.zeros((), dtype))
    assert y.astype(F).tolist() == [largest, -largest, 1.5, 0.5]
    if dtype is ml_dtypes.float8_e4m3fn:
        assert np.isnan(run("QuantizeLinear", x, F(2), np.zeros((), dtype), saturate=0).astype(F)[0])


def test_types_of_results():
    assert infer("QuantizeLinear", "float32[N,3]", "float32[]") == "uint8[N,3]"
    assert infer("QuantizeLinear", "float32[N,3]", "float32[]", "int8[]") == "int8[N,3]"
    assert infer("DequantizeLinear", "int8[N,3]", "float16[]") == "float16[N,3]"
    assert infer("DequantizeLinear", "int8[N,3]", "float16[]", output_dtype="float32") == "float32[N,3]"
    with pytest.raises(ModelError, match="output_dtype must be the type of the zero point"):
        infer("QuantizeLinear", "float32[3]", "float32[]", "int8[]", output_dtype="uint8")
    with pytest.raises(ShapeError, match=r"one per position of the axis. Got 4 and 3"):
        infer("QuantizeLinear", "float32[2,3]", "float32[4]")


def test_dynamic_quantization_covers_zero():
    x = floats(50) + F(10)
    y, scale, zero = run("DynamicQuantizeLinear", x, outputs=3)
    assert zero == 0
    np.testing.assert_array_equal(scale, x.max() / F(255))
    np.testing.assert_array_equal(y, saturated(x / scale, 0, np.uint8))
    _, scale, zero = run("DynamicQuantizeLinear", np.zeros(3, F), outputs=3)
    assert (scale, zero) == (1, 0)


def test_convolution_rescales_by_channel():
    x, w = codes(2, 4, 5, 5), codes(6, 2, 3, 3, dtype=np.int8, seed=1)
    w_scale, w_zero = np.abs(floats(6, seed=2)) / F(100), codes(6, dtype=np.int8, seed=3) // np.int8(16)
    bias = codes(6, dtype=np.int16, seed=4).astype(np.int32)
    attrs = {"group": 2, "pads": [1, 1, 1, 1]}
    sums = run("ConvInteger", x, w, np.uint8(120), w_zero, **attrs) + bias.reshape(6, 1, 1)
    multiplier = (F(0.02) * w_scale / F(0.5)).reshape(6, 1, 1)
    result = run("QLinearConv", x, F(0.02), np.uint8(120), w, w_scale, w_zero, F(0.5), np.uint8(9), bias, **attrs)
    np.testing.assert_array_equal(result, saturated(sums.astype(F) * multiplier, 9, np.uint8))
    assert len(np.unique(result)) > 50


def test_products_by_row_and_column():
    a, b = codes(2, 3, 8), codes(8, 5, dtype=np.int8, seed=1)
    a_zero, b_zero = codes(2, 3, 1, seed=2), codes(5, dtype=np.int8, seed=3)
    sums = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    np.testing.assert_array_equal(run("MatMulInteger", a, b, a_zero, b_zero), sums.astype(np.int32))
    np.testing.assert_array_equal(run("MatMulInteger", a[0], b, a_zero[0, :, 0], b_zero), sums[0].astype(np.int32))
    b_scale = np.abs(floats(5, seed=4)) / F(100)
    result = run("QLinearMatMul", a, F(0.02), np.uint8(0), b, b_scale, b_zero, F(0.3), np.int8(-3))
    sums = a.astype(np.int64) @ (b.astype(np.int64) - b_zero)
    np.testing.assert_array_equal(result, saturated(sums.astype(F) * (F(0.02) * b_scale / F(0.3)), -3, np.int8))
    assert result.dtype == np.int8


def test_float_results_of_integer_products():
    a, b = codes(3, 8), codes(8, 5, dtype=np.int8, seed=1)
    b_scale, b_zero, bias = np.abs(floats(5)), codes(5, dtype=np.int8, seed=2), floats(5, seed=3)
    sums = (a.astype(np.int64) - 7) @ (b.astype(np.int64) - b_zero)
    expected = sums.astype(F) * (F(0.02) * b_scale) + bias
    result = run("com.microsoft.MatMulIntegerToFloat", a, b, F(0.02), b_scale, np.uint8(7), b_zero, bias)
    np.testing.assert_array_equal(result, expected)
    x = floats(3, 8, seed=5)
    y, scale, zero = run("DynamicQuantizeLinear", x, outputs=3)
    composed = run("com.microsoft.MatMulIntegerToFloat", y, b, scale, b_scale, zero, b_zero, bias)
    dynamic = run("com.microsoft.DynamicQuantizeMatMul", x, b, b_scale, b_zero, bias)
    np.testing.assert_array_equal(dynamic, composed)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_qgemm(trans_a, trans_b):
    a, b = codes(3, 8), codes(8, 5, dtype=np.int8, seed=1)
    b_scale, b_zero = np.abs(floats(5)) / F(100), codes(5, dtype=np.int8, seed=2)
    c = codes(5, dtype=np.int16, seed=3).astype(np.int32)
    sums = (a.astype(np.int64) - 7) @ (b.astype(np.int64) - b_zero) + c
    inputs = [a.T.copy() if trans_a else a, F(0.02), np.uint8(7), b.T.copy() if trans_b else b, b_scale, b_zero, c]
    attrs = {"transA": trans_a, "transB": trans_b, "alpha": 0.5}
    scale = F(0.5) * F(0.02) * b_scale
    np.testing.assert_array_equal(run("com.microsoft.QGemm", *inputs, **attrs), sums.astype(F) * scale)
    quantized = run("com.microsoft.QGemm", *inputs, F(0.1), np.uint8(100), **attrs)
    np.testing.assert_array_equal(quantized, saturated(sums.astype(F) * (scale / F(0.1)), 100, np.uint8))


def real(x, scale, zero):
    return (x.astype(F) - F(zero)) * F(scale)


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_sums_and_products_of_codes(op):
    a, b = codes(3, 4), codes(4, seed=1)
    result = run(f"com.microsoft.QLinear{op}", a, F(0.02), np.uint8(120), b, F(0.03), np.uint8(7), F(0.07), np.uint8(5))
    left, right = real(a, 0.02, 120).astype(np.float64), real(b, 0.03, 7)
    steps = (left + right if op == "Add" else left * right) / 0.07
    # A tie may fall to either side: the scales are divided first.
    assert np.abs(result - np.clip(steps + 5, 0, 255)).max() < 0.501


@pytest.mark.parametrize(
    ("op", "attrs", "function"),
    [
        ("QLinearSigmoid", {}, lambda x: 1 / (1 + np.exp(-x))),
        ("QLinearLeakyRelu", {"alpha": 0.25}, lambda x: np.where(x < 0, x * 0.25, x)),
        ("QLinearSoftmax", {"axis": 1}, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        ("QLinearSoftmax", {"axis": 1, "opset": 12}, lambda x: np.exp(x) / np.exp(x).sum((1, 2, 3), keepdims=True)),
        ("QLinearGlobalAveragePool", {}, lambda x: x.mean((2, 3), keepdims=True)),
        ("QLinearGlobalAveragePool", {"channels_last": 1}, lambda x: x.mean((1, 2), keepdims=True)),
        ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]},
         lambda x: x.reshape(2, 3, 2, 2, 3, 2).mean((3, 5))),
    ],
)  # fmt: skip
def test_functions_of_codes(op, attrs, function):
    x = codes(2, 3, 4, 6)
    result = run(f"com.microsoft.{op}", x, F(0.02), np.uint8(120), F(0.01), np.uint8(50), **attrs)
    steps = function(real(x, 0.02, 120).astype(np.float64)) / 0.01
    assert result.shape == steps.shape
    assert np.abs(result - np.clip(steps + 50, 0, 255)).max() < 0.51


def test_concatenation_of_codes():
    a, b = codes(2, 3), codes(2, 4, seed=1)
    result = run(
        "com.microsoft.QLinearConcat", F(0.05), np.uint8(9), a, F(0.02), np.uint8(1), b, F(0.05), np.uint8(9), axis=1
    )
    np.testing.assert_array_equal(result[:, 3:], b)
    np.testing.assert_array_equal(result[:, :3], saturated(real(a, 0.02, 1) / F(0.05), 9, np.uint8))


def test_pools_of_codes_with_channels_last_are_refused():
    with pytest.raises(UnsupportedError, match="channels second"):
        infer("com.microsoft.QLinearAveragePool", "uint8[1,4,4,3]", "float32[]", "uint8[]", "float32[]", "uint8[]",
              kernel_shape=[2, 2], channels_last=1)  # fmt: skip
