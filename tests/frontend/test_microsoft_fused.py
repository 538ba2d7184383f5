"""Operators of com.microsoft that are several of ONNX in one, against ONNX Runtime or, where it has none here, NumPy."""

from __future__ import annotations

import math
from typing import Any

import neo
import numpy as np
import pytest
from scipy.special import erf

from .models import node_model
from .peer import DOMAIN, Random, check

RANDOM = Random(40)
normal = RANDOM.normal
ROWS = normal(2, 4, 8)


def float32(array: Any) -> np.ndarray:
    return np.asarray(array, np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


@pytest.mark.parametrize("positions", [None, 1, 2])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_embed_layer_normalization(positions: int | None, segments: bool, masked: bool) -> None:
    ids = RANDOM.integers(0, 10, 2, 4)
    inputs: list[Any] = [ids, None, normal(10, 8), normal(5, 8), None, normal(8), normal(8), None, None]
    symbols: dict[int, Any] = {0: ["B", "S"]}
    if segments:
        inputs[1], inputs[4], symbols[1] = ids % 2, normal(2, 8), ["B", "S"]
    if masked:
        inputs[7], symbols[7] = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32), ["B", "S"]
    if positions:
        inputs[8] = np.array([[3, 2, 1, 0]] * positions, np.int32)
        symbols[8] = ["B" if positions == 2 else 1, "S"]
    check("EmbedLayerNormalization", inputs, outputs=3, dtypes=[1, 6, 1], symbols=symbols, epsilon=1e-5)


@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embed_layer_normalization(segments: bool) -> None:
    ids = RANDOM.integers(0, 10, 2, 4)
    tables = [RANDOM.integers(0, 255, n, 8, dtype=np.uint8) for n in (10, 5, 2)]
    norm = [RANDOM.integers(0, 255, 8, dtype=np.uint8) for _ in range(2)]
    scales = [np.float32(s) for s in (0.01, 0.02, 0.03, 0.01, 0.02)]
    zeros = [np.uint8(z) for z in (120, 130, 128, 20, 100)]
    keep = [True, True, segments, True, True]
    inputs = [ids, ids % 2 if segments else None, *tables[:2], tables[2] if segments else None, *norm]
    inputs += [np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)]
    inputs += [x if k else None for x, k in zip([*scales, *zeros], keep * 2, strict=True)]
    check("QEmbedLayerNormalization", inputs, outputs=2, dtypes=[1, 6], symbols={0: ["B", "S"]}, tolerance=1e-3)


@pytest.mark.parametrize("skip", [(2, 4, 8), (1, 4, 8), (4, 8)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("beta", [False, True])
def test_skip_layer_normalization(skip: tuple[int, ...], bias: bool, beta: bool) -> None:
    inputs = [ROWS, normal(*skip), normal(8), normal(8) if beta else None, normal(8) if bias else None]
    model, arrays = node_model("SkipLayerNormalization", inputs, {"epsilon": 1e-5}, opset=17, domain=DOMAIN, outputs=4)
    del model.graph.node[0].output[:]
    model.graph.node[0].output.extend(["y0", "", "", "y3"])
    del model.graph.output[1:3]
    x = ROWS.astype(np.float64) + inputs[1] + (inputs[4] if bias else 0)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * inputs[2] + (
        inputs[3] if beta else 0
    )
    for got, want in zip(neo.compile(model).run(arrays).values(), (y, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    check("SkipLayerNormalization", inputs, epsilon=1e-5, symbols={0: ["B", "S", 8]})


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias: bool) -> None:
    for x in (ROWS, ROWS[0]):
        names: list[Any] = ["B", "S", 8][-x.ndim :]
        check(
            "SkipSimplifiedLayerNormalization",
            [x, x * 2, normal(8), *([normal(8)] if bias else [])],
            epsilon=1e-5,
            symbols={0: names, 1: names},
        )


def test_biases() -> None:
    x, bias = normal(2, 5, 8), normal(8)
    skip = normal(2, 5, 8)
    check("BiasAdd", [x, bias, skip], want=[x + bias + skip], symbols={0: ["B", "S", 8], 2: ["B", "S", 8]})
    left, right = np.split(x.astype(np.float64) + bias, 2, axis=-1)
    gelu = 0.5 * right * (1 + erf(right / math.sqrt(2)))
    check("BiasSplitGelu", [x, bias], want=[float32(left * gelu)], symbols={0: ["B", "S", 8]})
    check("BiasDropout", [x, bias, skip], want=[x + bias + skip])
    check("QuickGelu", [x], alpha=1.3, symbols={0: ["B", "S", 8]})
    check("BiasGelu", [x, bias], symbols={0: ["B", "S", 8]})
    check("FastGelu", [x, bias], symbols={0: ["B", "S", 8]})


@pytest.mark.parametrize("inner", [0, 1])
def test_bias_softmax(inner: int) -> None:
    x = normal(2, 3, 4, 5)
    bias = normal(2, 1, 1, 5) if inner else normal(4, 5)
    total = np.exp(x.astype(np.float64) + bias)
    want = [float32(total / total.sum(-1, keepdims=True))]
    check("BiasSoftmax", [x, bias], want=want, axis=3, is_inner_broadcast=inner, symbols={0: ["B", 3, "S", 5]})


@pytest.mark.parametrize("op", ["GroupNorm", "SkipGroupNorm"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_group_norm(op: str, last: int, activation: int) -> None:
    x, gamma, beta, bias = normal(2, 6, 4, 5), normal(6), normal(6), normal(6)
    skip = normal(2, 6)
    total = x.astype(np.float64)
    if op == "SkipGroupNorm":
        total = total + skip[:, :, None, None] + bias[:, None, None]
    parts = total.reshape(2, 3, -1)
    y = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    y = y * sigmoid(y) if activation else y
    order = [0, 2, 3, 1] if last else [0, 1, 2, 3]
    want = [float32(a.transpose(order)) for a in ([y, total] if op == "SkipGroupNorm" else [y])]
    inputs = [np.ascontiguousarray(x.transpose(order)), gamma, beta, *([skip, bias] if op == "SkipGroupNorm" else [])]
    names: list[Any] = ["B", "H", "W", 6] if last else ["B", 6, "H", "W"]
    symbols = {0: names, 3: ["B", 6]} if op == "SkipGroupNorm" else {0: names}
    check(
        op, inputs, outputs=len(want), want=want, groups=3, channels_last=last, activation=activation, symbols=symbols
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("order", ["last", "second"])
def test_nhwc_conv_takes_weights_in_either_order(groups: int, order: str) -> None:
    x, w, b = normal(2, 7, 8, 6), normal(4, 6 // groups, 2, 3), normal(4)
    attrs = {"kernel_shape": [2, 3], "pads": [1, 0, 0, 1], "strides": [2, 1], "group": groups}
    plain, arrays = node_model("Conv", [np.ascontiguousarray(x.transpose(0, 3, 1, 2)), w, b], attrs, opset=17)
    want = np.ascontiguousarray(neo.compile(plain).run(arrays)["y0"].transpose(0, 2, 3, 1))
    given = np.ascontiguousarray(w.transpose(0, 2, 3, 1)) if order == "last" else w
    check("NhwcConv", [x, given, b], constants=(1, 2), want=[want], symbols={0: ["B", "H", "W", 6]}, **attrs)


def test_products_with_activations() -> None:
    x, w, b = normal(2, 4, 8), normal(8, 6), normal(6)
    y = x.astype(np.float64) @ w + b
    fast = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    check("GemmFastGelu", [x, w, b], want=[float32(fast)], symbols={0: ["B", "S", 8]})
    y = 0.5 * (x.astype(np.float64) @ w)
    check("FusedMatMulActivation", [x, w], want=[float32(np.maximum(y, 0))], activation="Relu", alpha=0.5)
    leaky = np.where(y < 0, 0.2 * y, y)
    check(
        "FusedMatMulActivation", [x, w], want=[float32(leaky)], activation="LeakyRelu", activation_alpha=0.2, alpha=0.5
    )
    model, _ = node_model("FusedMatMulActivation", [x, w], {"activation": "Sine"}, opset=17, domain=DOMAIN)
    with pytest.raises(neo.UnsupportedError, match="the activation is not known"):
        neo.compile(model)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("batch", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(trans_a: int, trans_b: int, batch: tuple[int, int]) -> None:
    """A transposed batch has its first axis before the last two, or before the last."""

    def operand(rows: int, columns: int, transposed: int, moved: int) -> np.ndarray:
        if moved:
            return normal(columns, 3, rows) if transposed else normal(rows, 3, columns)
        return normal(3, columns, rows) if transposed else normal(3, rows, columns)

    a, b = operand(4, 5, trans_a, batch[0]), operand(5, 6, trans_b, batch[1])
    check("FusedMatMul", [a, b], transA=trans_a, transB=trans_b, transBatchA=batch[0], transBatchB=batch[1], alpha=0.7)


@pytest.mark.parametrize("name", ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip"])
def test_fused_conv(name: str) -> None:
    params = {"LeakyRelu": [0.2], "HardSigmoid": [0.3, 0.6], "Clip": [-0.5, 0.7]}.get(name, [])
    extra: dict[str, Any] = {"activation_params": params} if params else {}
    x, w, b = normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)
    check("FusedConv", [x, w, b], activation=name, kernel_shape=[3, 3], symbols={0: ["B", 3, "H", "W"]}, **extra)
    check("FusedConv", [x, w, b, normal(1, 4, 4, 4)], activation=name, kernel_shape=[3, 3], **extra)


@pytest.mark.parametrize(
    "name",
    ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Softsign", "Selu", "ThresholdedRelu"],
)
def test_fused_gemm(name: str) -> None:
    extra = {
        "LeakyRelu": {"activation_alpha": 0.2},
        "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
        "Elu": {"activation_alpha": 1.0},
        "Selu": {"activation_alpha": 1.67, "activation_gamma": 1.05},
        "ThresholdedRelu": {"activation_alpha": 1.0},
    }.get(name, {})
    check(
        "FusedGemm",
        [normal(4, 5), normal(6, 5), normal(6)],
        transB=1,
        activation=name,
        alpha=0.5,
        beta=0.5,
        symbols={0: ["M", 5]},
        **extra,
    )


def test_swiglu() -> None:
    gate, up = normal(2, 6), normal(2, 6)
    low, high = np.minimum(gate, 0.7), np.clip(up, -0.7, 0.7)
    want = [float32(low * sigmoid(1.5 * low) * (high + 0.25))]
    attrs = {"limit": 0.7, "activation_alpha": 1.5, "activation_beta": 0.25}
    check("SwiGLU", [gate, up], want=want, symbols={0: ["B", 6], 1: ["B", 6]}, **attrs)
    check("SwiGLU", [np.concatenate([gate, up], axis=1)], want=want, **attrs)
    check("SwiGLU", [gate, up], want=[float32(gate * sigmoid(gate) * up)])
    check("ScaledSiLU", [gate], alpha=1.5)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_cdist(metric: str) -> None:
    check("CDist", [normal(7, 5), normal(4, 5)], metric=metric, symbols={0: ["M", 5], 1: ["K", 5]})
    check("CDist", [normal(7, 5).astype(np.float64), normal(4, 5).astype(np.float64)], metric=metric, dtypes=[11])


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_inverse(size: int) -> None:
    x = normal(2, 3, size, size) + np.eye(size, dtype=np.float32) * 0.1
    got = neo.compile(node_model("Inverse", [x], {}, opset=17, domain=DOMAIN)[0])(x)
    np.testing.assert_allclose(got @ x, np.broadcast_to(np.eye(size), x.shape), atol=2e-3)
    swap = np.array([[0, 1, 0], [0, 0, 2], [4, 0, 0]], np.float64)
    check("Inverse", [swap], dtypes=[11], symbols={0: ["N", "N"]})
    check("Inverse", [normal(3, 4, 4) + 3 * np.eye(4, dtype=np.float32)], symbols={0: ["B", "N", "N"]}, tolerance=1e-3)


@pytest.mark.parametrize("both", [0, 1])
def test_relative_position_bias(both: int) -> None:
    """T5's buckets: exact for near keys, and growing with the logarithm of the distance."""
    buckets, heads, longest, length = 8, 3, 20, 30
    table = normal(buckets, heads)
    count = buckets // 2 if both else buckets
    want = np.zeros((1, heads, length, length), np.float32)
    for i in range(length):
        for j in range(length):
            back = i - j
            first = count if both and back < 0 else 0
            back = abs(back) if both else max(back, 0)
            exact = count // 2
            far = (
                exact
                if back < 1
                else exact + int(np.float32(math.log(back / exact)) / math.log(longest / exact) * (count - exact))
            )
            bucket = first + (back if back < exact else min(far, count - 1))
            want[0, :, i, j] = table[bucket]
    lengths = np.array([length], np.int64)
    stored = np.ascontiguousarray(table.T).reshape(buckets, heads)
    check("RelativePositionBias", [stored, lengths, lengths], want=[want], max_distance=longest, is_bidirectional=both)


def test_gated_relative_position_bias() -> None:
    b, s, n, h, d = 2, 3, 2, 4, 6
    q, bias, weight, shift = normal(b, s, n * h), normal(n * h), normal(h, d), normal(d)
    rel, eco = normal(1, n, s, s), normal(1, n, 1, 1)
    heads = (q.astype(np.float64) + bias).reshape(b, s, n, h).transpose(0, 2, 1, 3)
    gates = sigmoid((heads @ weight + shift).reshape(b, n, s, 2, d // 2).sum(-1))
    u, r = gates[..., :1], gates[..., 1:]
    want = [float32((u * (r * eco - 1) + 2) * rel)]
    check(
        "GatedRelativePositionBias",
        [q, bias, rel, weight, shift, eco],
        want=want,
        num_heads=n,
        symbols={0: ["B", "S", n * h], 2: [1, n, "S", "S"]},
    )


def test_word_conv_embedding() -> None:
    ids = np.array([[1, 2, 3, 4, 5, 0], [6, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [2, 3, 4, 5, 6, 7]], np.int32)
    w, b, table = normal(5, 1, 3, 4), normal(5), normal(9, 4)
    check("WordConvEmbedding", [ids, w, b, table], symbols={0: ["W", 6]}, seen={0: np.s_[[0, 1, 3]]})


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(4, 3), (1, 2), (2, 1)])
def test_crop_and_resize(mode: str, size: tuple[int, int]) -> None:
    boxes = np.array([[0, 0, 1, 1], [0.13, 0.22, 0.71, 0.83], [-0.3, 0.2, 1.3, 0.9], [0.8, 0.9, 0.2, 0.1]], np.float32)
    at = np.array([0, 1, 1, 0], np.int32)
    check(
        "CropAndResize",
        [normal(2, 3, 6, 7), boxes, at, np.array(size, np.int32)],
        constants=(3,),
        mode=mode,
        extrapolation_value=0.5,
        symbols={0: ["B", 3, "H", "W"], 1: ["N", 4], 2: ["N"]},
    )


def test_other_operators() -> None:
    x = normal(3, 4, 6)
    check("UnfoldTensor", [x], dim=1, size=2, step=1, symbols={0: ["A", "B", 6]})
    check("UnfoldTensor", [x], dim=-1, size=3, step=2)
    check("GatherND", [x, np.array([[0, 1], [2, 3]], np.int32)])
    check("SampleOp", [x])
    z = normal(3, 4, 2)
    pairs = [a[..., 0] + 1j * a[..., 1] for a in (z, z[::-1])]
    for op, product in (("ComplexMul", pairs[0] * pairs[1]), ("ComplexMulConj", pairs[0] * pairs[1].conj())):
        want = np.stack([product.real, product.imag], axis=-1)
        check(
            op, [z, np.ascontiguousarray(z[::-1])], want=[float32(want)], symbols={0: ["A", "B", 2], 1: ["A", "B", 2]}
        )
    spectrum = np.fft.rfft(x.astype(np.float64), axis=-1)
    parts = float32(np.stack([spectrum.real, spectrum.imag], axis=-1))
    check("Rfft", [x], want=[parts], signal_ndim=1)
    check("Irfft", [parts], want=[x], signal_ndim=1)
    for array, finite in (
        (x, True),
        (np.array([1, np.inf], np.float32), False),
        (np.array([np.nan], np.float32), False),
    ):
        check("IsAllFinite", [x, array], want=[np.array(finite)])
    check("IsAllFinite", [np.array([np.nan], np.float32)], want=[np.array(True)], isinf_only=1)
    table = normal(5, 3)
    check("TorchEmbedding", [table, np.array([[1, 4]])], want=[table[[[1, 4]]]])


def test_transposed_convolution_with_pads_as_an_input() -> None:
    check(
        "ConvTransposeWithDynamicPads",
        [normal(1, 3, 5, 5), normal(3, 2, 3, 3), np.array([1, 0, 1, 1])],
        constants=(2,),
        kernel_shape=[3, 3],
        strides=[2, 2],
    )


def test_integer_products() -> None:
    a, b = RANDOM.integers(0, 255, 3, 4, dtype=np.uint8), RANDOM.integers(0, 255, 4, dtype=np.uint8)
    want = (a.astype(np.int32) - 7) * (b.astype(np.int32) - 9)
    check("MulInteger", [a, np.uint8(7), b, np.uint8(9)], want=[want])
    check(
        "MatMulInteger16",
        [RANDOM.integers(-3000, 3000, 3, 4, dtype=np.int16), RANDOM.integers(-3000, 3000, 4, 5, dtype=np.int16)],
        dtypes=[6],
    )


@pytest.mark.parametrize("keepdims", [0, 1])
def test_quantized_mean(keepdims: int) -> None:
    x = RANDOM.integers(0, 255, 2, 3, 4, dtype=np.uint8)
    mean = (x.astype(np.float64) - 120).mean(axis=(1, 2), keepdims=bool(keepdims)) * 0.02
    want = np.clip(np.rint(mean / 0.01) + 100, 0, 255).astype(np.uint8)
    check(
        "QLinearReduceMean",
        [x, np.float32(0.02), np.uint8(120), np.float32(0.01), np.uint8(100)],
        want=[want],
        axes=[1, 2],
        keepdims=keepdims,
        steps=1,
    )


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "constants"),
    [
        (
            "CropAndResize",
            [normal(1, 1, 4, 4), normal(1, 4), np.zeros(1, np.int32), np.full(2, 2**31 - 1, np.int32)],
            {"mode": "bilinear"},
            (3,),
        ),
        ("UnfoldTensor", [normal(4, 4)], {"size": 2**45}, ()),
        (
            "MatMulBnb4",
            [normal(1, 16), np.zeros(8, np.uint8), np.ones(1, np.float32)],
            {"K": 16, "N": 1, "block_size": 2**45, "quant_type": 1},
            (1, 2),
        ),
    ],
)
def test_large_numbers_in_a_model_cost_nothing(
    op: str, inputs: list[Any], attrs: dict[str, Any], constants: tuple[int, ...]
) -> None:
    """Neither memory nor time of the size that an attribute names is taken on import."""
    model, arrays = node_model(op, inputs, attrs, opset=17, domain=DOMAIN, constants=constants)
    if op == "MatMulBnb4":
        assert neo.compile(model).run(arrays)["y0"].shape == (1, 1)
        return
    with pytest.raises(neo.Error):
        neo.compile(model).run(arrays)
