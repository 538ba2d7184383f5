"""Operators of com.microsoft against ONNX Runtime, which defines them."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from .models import model_of, node_model, value_info

DOMAIN = "com.microsoft"
RANDOM = np.random.default_rng(5)


def normal(*dims: int) -> np.ndarray:
    return RANDOM.standard_normal(dims).astype(np.float32)


def codes(*dims: int, dtype: type = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max, dims, dtype=dtype, endpoint=True)


def weights(*dims: int) -> np.ndarray:
    """Codes of seven bits: ONNX Runtime adds two products as int16 where there is no VNNI, and larger ones saturate."""
    return RANDOM.integers(-64, 63, dims, dtype=np.int8, endpoint=True)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, dtype: type = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


def declared(model: onnx.ModelProto, dtypes: list[int]) -> onnx.ModelProto:
    for output, dtype in zip(model.graph.output, dtypes, strict=True):
        output.type.tensor_type.elem_type = dtype
    return model


def peer(model: onnx.ModelProto, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, arrays)
    return results


def check(
    op: str,
    inputs: list[Any],
    *,
    outputs: int = 1,
    constants: tuple[int, ...] = (),
    dtypes: list[int] | None = None,
    rtol: float = 1e-4,
    steps: int = 0,
    **attrs: Any,
) -> None:
    """Compare with ONNX Runtime; `steps` that codes may be apart, where it rounds otherwise than its text."""
    model, arrays = node_model(op, inputs, attrs, opset=21, domain=DOMAIN, outputs=outputs, constants=constants)
    got = list(neo.compile(model).run(arrays).values())
    want = peer(declared(model, dtypes) if dtypes else model, arrays)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        if w.dtype.kind in "iu":
            assert np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0) <= steps
        else:
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


X = normal(2, 3, 6, 6)
ROWS = normal(2, 4, 8)


def test_activations() -> None:
    check("Gelu", [ROWS])
    check("FastGelu", [ROWS])
    check("FastGelu", [ROWS, normal(8)])
    check("BiasGelu", [ROWS, normal(8)])
    check("QuickGelu", [ROWS], alpha=1.5)


def test_fused_conv() -> None:
    w, b = normal(4, 3, 3, 3), normal(4)
    check("FusedConv", [X, w, b], activation="Relu", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
    check("FusedConv", [X, w], activation="LeakyRelu", activation_params=[0.2], kernel_shape=[3, 3])
    check("FusedConv", [X, w, b, normal(2, 4, 4, 4)], activation="Relu", kernel_shape=[3, 3])


def test_fused_products() -> None:
    check("FusedMatMul", [normal(2, 4, 5), normal(2, 6, 5)], transB=1, alpha=0.5)
    check("TransposeMatMul", [normal(2, 5, 4), normal(2, 5, 6)], transA=1)
    check("FusedGemm", [normal(4, 5), normal(6, 5), normal(6)], transB=1, activation="Relu", alpha=2.0, beta=0.5)


def test_skip_normalizations() -> None:
    check("SkipLayerNormalization", [ROWS, ROWS + 1, normal(8), normal(8), normal(8)], epsilon=1e-5)
    check("SkipSimplifiedLayerNormalization", [ROWS, ROWS * 2, normal(8)], epsilon=1e-5)


def test_renamed_operators() -> None:
    check("ExpandDims", [ROWS, np.int32(1)], constants=(1,))
    check("ExpandDims", [ROWS, np.int32(-1)])
    check("Trilu", [ROWS, np.int64(1)], upper=0)
    check("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3, dtypes=[1, 7, 7])
    check("GridSample", [X, RANDOM.uniform(-1, 1, (2, 4, 4, 2)).astype(np.float32)], mode="bilinear")
    check("Pad", [ROWS, np.array([0, 1, 0, 0, 0, 2]), scale(1.5)], mode="constant")
    check("Range", [np.float32(1), np.float32(6), np.float32(2)])


def test_quantize_and_dequantize() -> None:
    check("QuantizeLinear", [ROWS, scale(0.03), zero(7)], steps=0)
    check("DequantizeLinear", [codes(2, 4), scale(0.03), zero(7)])


def test_quantized_arithmetic() -> None:
    a, b = codes(2, 4, 8), codes(8)
    pair = [a, scale(0.02), zero(120), b, scale(0.03), zero(110), scale(0.05), zero(130)]
    check("QLinearAdd", pair, steps=1)
    check("QLinearMul", pair, steps=1)
    single = [a, scale(0.02), zero(120), scale(0.01), zero(100)]
    check("QLinearSigmoid", single, steps=1)
    check("QLinearLeakyRelu", single, alpha=0.2, steps=1)
    check("QLinearSoftmax", [a, scale(0.02), zero(120), scale(1 / 256), zero(0)], axis=-1, opset=13, steps=1)
    check("QLinearConcat", [scale(0.04), zero(9), a, scale(0.02), zero(120), a, scale(0.03), zero(5)], axis=1, steps=1)
    condition = RANDOM.integers(0, 2, (2, 4, 8)).astype(bool)
    check("QLinearWhere", [condition, *pair[:6], scale(0.04), zero(12)], constants=(2, 3, 5, 6, 7, 8), steps=1)


def test_quantized_products() -> None:
    a, b = codes(4, 8), weights(8, 6)
    check("QGemm", [a, scale(0.02), zero(120), b, scale(0.03), zero(0, np.int8), None, scale(0.2), zero(100)], steps=1)
    check("DynamicQuantizeMatMul", [normal(4, 8), b, scale(0.03)], rtol=1e-3)
    check("MatMulIntegerToFloat", [a, b, scale(0.02), scale(0.03), zero(120), zero(0, np.int8)])


def test_quantized_pools() -> None:
    x = codes(1, 3, 6, 6)
    tail = [scale(0.02), zero(120), scale(0.015), zero(100)]
    check("QLinearAveragePool", [x, *tail], kernel_shape=[2, 2], strides=[2, 2], steps=1)
    check("QLinearGlobalAveragePool", [x, *tail], channels_last=0, steps=1)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    check("QLinearAveragePool", [last, *tail], kernel_shape=[2, 2], strides=[2, 2], channels_last=1, steps=1)
    check("QLinearGlobalAveragePool", [last, *tail], channels_last=1, steps=1)
    check("NhwcMaxPool", [last], kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("channels_last", [0, 1])
def test_quantized_convolution(channels_last: int) -> None:
    x, w = codes(1, 3, 6, 6), weights(4, 3, 3, 3)
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    inputs = [x, scale(0.02), zero(120), w, scale(0.01), zero(0, np.int8), scale(0.2), zero(128)]
    check("QLinearConv", inputs, constants=(3,), channels_last=channels_last, kernel_shape=[3, 3], steps=1)


def test_dynamic_quantize_lstm() -> None:
    x, hidden = normal(3, 2, 4), 5
    w, r = weights(1, 4, 4 * hidden), weights(1, hidden, 4 * hidden)
    zeros = np.zeros(1, np.int8)
    scales = np.array([0.01], np.float32)
    inputs = [x, w, r, normal(1, 8 * hidden), None, None, None, None, scales, zeros, scales, zeros]
    check("DynamicQuantizeLSTM", inputs, constants=(1, 2, 8, 9, 10, 11), hidden_size=hidden, rtol=2e-2)


def test_nhwc_fused_conv_keeps_the_order_of_its_weights() -> None:
    x, w, b = normal(1, 6, 6, 3), normal(4, 3, 3, 3), normal(4)
    model, arrays = node_model(
        "NhwcFusedConv",
        [x, w, b],
        {"activation": "Relu", "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        opset=17,
        domain=DOMAIN,
        constants=(1, 2),
    )
    second = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    plain, again = node_model(
        "FusedConv",
        [second, w, b],
        {"activation": "Relu", "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        opset=17,
        domain=DOMAIN,
        constants=(1, 2),
    )
    want = next(iter(neo.compile(plain).run(again).values())).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(next(iter(neo.compile(model).run(arrays).values())), want, rtol=1e-5, atol=1e-5)


def test_the_domain_need_not_be_imported() -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], domain=DOMAIN)
    model = model_of([node], [value_info("x", ROWS)], ["y"])
    assert neo.compile(model)(ROWS).shape == ROWS.shape


@pytest.mark.parametrize("op", ["LongformerAttention", "QMoE", "AttnLSTM", "NotAnOperator"])
def test_others_are_refused_by_name(op: str) -> None:
    model, _ = node_model(op, [ROWS], {}, opset=17, domain=DOMAIN)
    with pytest.raises(neo.UnsupportedError, match=rf"com\.microsoft\.{op} .*neo has no such operator"):
        neo.compile(model)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("Attention", [ROWS, normal(8, 24)], {"num_heads": "two"}),
        ("GroupNorm", [X, normal(3), normal(3)], {"groups": 3, "epsilon": "small"}),
        ("CropAndResize", [X, normal(1, 4), np.zeros(1, np.int32), np.array([2, 2], np.int32)], {"mode": 1}),
        ("QLinearReduceMean", [codes(2, 3), scale(0.1), zero(3), scale(0.1), zero(3)], {"axes": 1}),
    ],
)
def test_attributes_of_another_kind_are_one_line(op: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    model, _ = node_model(op, inputs, attrs, opset=17, domain=DOMAIN, constants=(3,) if op == "CropAndResize" else ())
    with pytest.raises(neo.ModelError, match=rf"^\[{op}\] [^\n]*$"):
        neo.compile(model)


def test_simplified_layer_normalization_of_onnx_domain() -> None:
    model, arrays = node_model(
        "SimplifiedLayerNormalization", [ROWS, normal(8)], {"axis": -1, "epsilon": 1e-5}, opset=17
    )
    [want] = peer(declared(model, [TensorProto.FLOAT]), arrays)
    np.testing.assert_allclose(next(iter(neo.compile(model).run(arrays).values())), want, rtol=1e-5, atol=1e-5)
