"""Operators of com.microsoft on codes, in each form that they have, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import node_model
from .peer import DOMAIN, Random, answers, check, check_model, declared, open_sizes

RANDOM = Random(43)
normal = RANDOM.normal

DTYPES = [np.uint8, np.int8]


def codes(*dims: int, dtype: type) -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, *dims, dtype=dtype)


def weights(*dims: int, dtype: type = np.int8) -> np.ndarray:
    """Codes of seven bits: ONNX Runtime adds two products as int16 where there is no VNNI, and larger ones saturate."""
    low = 0 if dtype == np.uint8 else -64
    return RANDOM.integers(low, low + 128, *dims, dtype=dtype)


def scale(low: float = 0.005, high: float = 0.05) -> np.ndarray:
    return np.float32(RANDOM.generator.uniform(low, high))


def zero(dtype: type) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array(RANDOM.generator.integers(info.min // 4, info.max // 2), dtype)


def enum(dtype: type) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def check_defaults(op: str, inputs: list[Any], zeros: tuple[int, ...], **attrs: Any) -> None:
    """Zero points that are left out are 0; ONNX Runtime ends the process where some are."""
    dtype = inputs[0].dtype.type
    whole = [np.array(0, dtype) if i in zeros else x for i, x in enumerate(inputs)]
    model, arrays = node_model(op, whole, attrs, opset=17, domain=DOMAIN)
    want = answers(declared(model, [enum(dtype)]), arrays)
    check(op, [None if i in zeros else x for i, x in enumerate(inputs)], want=want, steps=1, **attrs)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "dims", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (2, 3, 4)), ((1,), (2, 5)), ((0, 3), (3,))]
)
def test_sums_and_products(op: str, dtype: type, dims: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (codes(*d, dtype=dtype) for d in dims)
    inputs = [a, scale(), zero(dtype), b, scale(), zero(dtype), scale(), zero(dtype)]
    check(op, inputs, steps=1, dtypes=[enum(dtype)])
    if len(dims[0]) == 3:
        check(op, inputs, steps=1, dtypes=[enum(dtype)], symbols={0: ["A", "B", 4], 3: ["A", "B", 4][-len(dims[1]) :]})
    check_defaults(op, inputs, (2, 5, 7))


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_activations(op: str, dtype: type) -> None:
    attrs = {"alpha": 0.3} if op == "QLinearLeakyRelu" else {}
    inputs = [codes(3, 7, dtype=dtype), scale(), zero(dtype), np.float32(0.01), zero(dtype)]
    check(op, inputs, steps=1, symbols={0: ["M", "N"]}, dtypes=[enum(dtype)], **attrs)
    check_defaults(op, inputs, (2, 4), **attrs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_softmax(dtype: type, opset: int, axis: int) -> None:
    x = codes(2, 3, 5, dtype=dtype)
    tail = [np.float32(1 / 256), np.array(0 if dtype == np.uint8 else -128, dtype)]
    inputs = [x, np.float32(0.02), zero(dtype), *tail]
    model, arrays = node_model("QLinearSoftmax", inputs, {"axis": axis, "opset": opset}, opset=21, domain=DOMAIN)
    want = answers(declared(model, [enum(dtype)]), arrays)
    check_model(model, arrays, want, steps=1)
    check_model(open_sizes(model, {0: ["A", "B", "C"]}), arrays, want, steps=1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dtype: type, axis: int) -> None:
    parts: list[Any] = []
    for i in range(3):
        dims = [2, 3, 4]
        dims[axis] += i
        parts += [codes(*dims, dtype=dtype), scale(), zero(dtype)]
    constants = tuple(i for i in range(2 + len(parts)) if i < 2 or (i - 2) % 3)
    check(
        "QLinearConcat",
        [scale(0.02, 0.04), zero(dtype), *parts],
        constants=constants,
        axis=axis,
        steps=1,
        dtypes=[enum(dtype)],
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(
    "attrs",
    [
        {"kernel_shape": [2, 3]},
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "strides": [2, 1], "count_include_pad": 1},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ],
)
def test_average_pools(dtype: type, last: int, attrs: dict[str, Any]) -> None:
    x = codes(*([2, 7, 8, 3] if last else [2, 3, 7, 8]), dtype=dtype)
    inputs = [x, scale(), zero(dtype), scale(), zero(dtype)]
    names: list[Any] = ["B", "H", "W", 3] if last else ["B", 3, "H", "W"]
    check("QLinearAveragePool", inputs, steps=1, channels_last=last, symbols={0: names}, dtypes=[enum(dtype)], **attrs)
    if not last and "ceil_mode" in attrs:
        check_defaults("QLinearAveragePool", inputs, (2, 4), **attrs)
    check("QLinearGlobalAveragePool", inputs, steps=1, channels_last=last, symbols={0: names}, dtypes=[enum(dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [((2, 3, 4), (4,), (2, 1, 4)), ((1,), (3, 4), (4,))])
def test_where(dtype: type, dims: tuple[tuple[int, ...], ...]) -> None:
    condition = RANDOM.integers(0, 2, *dims[0]).astype(bool)
    inputs = [
        condition,
        codes(*dims[1], dtype=dtype),
        scale(),
        zero(dtype),
        codes(*dims[2], dtype=dtype),
        scale(),
        zero(dtype),
        scale(),
        zero(dtype),
    ]
    check("QLinearWhere", inputs, constants=(2, 3, 5, 6, 7, 8), steps=1, dtypes=[enum(dtype)])


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
@pytest.mark.parametrize("transposed", [(0, 0), (1, 1), (0, 1)])
@pytest.mark.parametrize("form", ["codes", "float", "per column", "with c"])
def test_gemm(a: type, b: type, transposed: tuple[int, int], form: str) -> None:
    if (a, b) == (np.uint8, np.uint8) and form == "per column":
        b = np.int8
    if (a, b) == (np.int8, np.uint8):
        b = np.int8
    m, k, n = 4, 8, 6
    left = weights(*((k, m) if transposed[0] else (m, k)), dtype=a)
    right = weights(*((n, k) if transposed[1] else (k, n)), dtype=b)
    columns = form == "per column"
    b_scale = RANDOM.generator.uniform(0.005, 0.03, n).astype(np.float32) if columns else scale()
    b_zero = np.zeros(n, b) if columns else np.array(2, b)
    c = RANDOM.integers(-500, 500, n) if form == "with c" else None
    tail: list[Any] = [] if form == "float" else [np.float32(0.1), zero(a)]
    inputs = [left, scale(), zero(a), right, b_scale, b_zero, c, *tail]
    dtype = 1 if form == "float" else 2 if a == np.uint8 else 3
    check(
        "QGemm",
        inputs,
        constants=(3, 4, 5),
        steps=1,
        transA=transposed[0],
        transB=transposed[1],
        alpha=0.7,
        dtypes=[dtype],
        symbols={0: [m, "M"] if transposed[0] else ["M", k]} if not transposed[0] else None,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_products_of_float_by_codes(dtype: type, columns: bool, bias: bool, lead: tuple[int, ...]) -> None:
    k, n = 8, 6
    b = weights(k, n, dtype=dtype)
    b_scale = RANDOM.generator.uniform(0.005, 0.03, n).astype(np.float32) if columns else scale()
    b_zero = RANDOM.integers(0, 20, n, dtype=dtype) if columns else np.array(5, dtype)
    shift = normal(n) if bias else None
    names: list[Any] = [f"d{i}" for i in range(len(lead))]
    check(
        "DynamicQuantizeMatMul",
        [normal(*lead, 4, k), b, b_scale, b_zero, shift],
        constants=(1, 2, 3),
        symbols={0: [*names, "M", k]},
        tolerance=5e-3,
    )
    a = weights(*lead, 4, k, dtype=np.uint8)
    inputs = [a, b, scale(), b_scale, np.uint8(100), b_zero, shift]
    check("MatMulIntegerToFloat", inputs, constants=(1,), symbols={0: [*names, "M", k]}, tolerance=1e-3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32])
def test_quantization(dtype: type) -> None:
    x, step, point = normal(3, 8), np.float32(0.05), np.array(3, dtype)
    if dtype != np.int32:
        check("QuantizeLinear", [x, step, point], dtypes=[enum(dtype)], symbols={0: ["M", "N"]})
    elements = RANDOM.integers(0, 100, 3, 8, dtype=dtype)
    check("DequantizeLinear", [elements, step, None if dtype == np.int32 else point], symbols={0: ["M", "N"]})
    columns = RANDOM.generator.uniform(0.01, 0.1, 8).astype(np.float32)
    if dtype in (np.uint8, np.int8):
        check("QuantizeLinear", [x, columns, np.full(8, 3, dtype)], axis=1, dtypes=[enum(dtype)])
        check("DequantizeLinear", [elements, columns, np.full(8, 3, dtype)], axis=1)
