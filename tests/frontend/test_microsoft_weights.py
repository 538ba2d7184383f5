"""Weights of few bits of com.microsoft, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper

from .models import model_of, node_model
from .peer import DOMAIN, Random, answers, check, check_model, declared

RANDOM = Random(41)
normal = RANDOM.normal


def packed(rows: int, bits: int, count: int) -> np.ndarray:
    return RANDOM.integers(0, 256, rows, -(-count * bits // 8), dtype=np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("sizes", [(32, 64, 32), (7, 40, 16), (16, 48, 16)])
def test_matmul_nbits(bits: int, zeros: str, sizes: tuple[int, int, int]) -> None:
    n, k, block = sizes
    blocks = -(-k // block)
    w = RANDOM.integers(0, 256, n, blocks, block * bits // 8, dtype=np.uint8)
    scales = RANDOM.generator.uniform(0.01, 0.1, n * blocks).astype(np.float32).reshape(n, blocks)
    inputs: list[Any] = [normal(2, 3, k), w, scales]
    if zeros == "packed":
        inputs.append(packed(n, bits, blocks))
    elif zeros == "float":
        inputs.append(RANDOM.generator.uniform(0, (1 << bits) - 1, (n, blocks)).astype(np.float32))
    constants = tuple(range(1, len(inputs)))
    attrs = {"K": k, "N": n, "bits": bits, "block_size": block}
    want = None
    if zeros == "float" and bits == 8:  # ONNX Runtime has it for other bits only
        codes = w.reshape(n, -1)[:, :k].astype(np.float64)
        factors, points = (np.repeat(a, block, axis=1)[:, :k] for a in (scales, inputs[3]))
        want = [(inputs[0] @ ((codes - points) * factors).T).astype(np.float32)]
    check("MatMulNBits", inputs, constants=constants, want=want, symbols={0: ["B", "S", k]}, tolerance=2e-3, **attrs)
    bias = normal(n)
    plain = neo.compile(node_model("MatMulNBits", inputs, attrs, opset=17, domain=DOMAIN, constants=constants)[0])
    more = [*inputs, *[None] * (5 - len(inputs)), bias]
    model, arrays = node_model("MatMulNBits", more, attrs, opset=17, domain=DOMAIN, constants=(*constants, 5))
    np.testing.assert_allclose(neo.compile(model)(arrays["x0"]), plain(inputs[0]) + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("accuracy", ["default", "strict"])
@pytest.mark.parametrize("level", [0, 1, 4])
def test_matmul_nbits_whose_rows_may_be_rounded(level: int, accuracy: str) -> None:
    """Numbers that codes of 8 bits hold are not changed by rounding them; others are where level 4 allows it, no more."""
    n, k, block = 128, 256, 32
    w = RANDOM.integers(0, 256, n, k // block, block // 2, dtype=np.uint8)
    scales = np.full((n, k // block), 0.125, np.float32)
    x = RANDOM.integers(-127, 128, 64, k).astype(np.float32)
    x[:, ::block] = 127
    attrs = {"K": k, "N": n, "bits": 4, "block_size": block, "accuracy_level": level}
    model, arrays = node_model("MatMulNBits", [x, w, scales], attrs, opset=17, domain=DOMAIN, constants=(1, 2))
    module = neo.compile(model, accuracy=accuracy)
    codes = np.stack([w & 15, w >> 4], axis=-1).reshape(n, k).astype(np.float64) - 8
    np.testing.assert_allclose(module(arrays["x0"]), x @ codes.T * 0.125, rtol=1e-6, atol=1e-4)
    x = normal(64, k)
    expected = x.astype(np.float64) @ codes.T * 0.125
    error = np.linalg.norm(module(x) - expected) / np.linalg.norm(expected)
    assert error < (0.015 if level == 4 and accuracy == "default" else 1e-6)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("given", [(1,), (2, 3), (1, 2, 3, 4)])
def test_matmul_nbits_with_operands_of_the_call(bits: int, zeros: str, given: tuple[int, ...]) -> None:
    """The same as with constants."""
    n, k, block = 7, 40, 16
    w = RANDOM.integers(0, 256, n, 3, block * bits // 8, dtype=np.uint8)
    scales = RANDOM.generator.uniform(0.01, 0.1, (n, 3)).astype(np.float32)
    points = {"none": None, "packed": packed(n, bits, 3), "float": normal(n, 3)}[zeros]
    inputs: list[Any] = [normal(2, 3, k), w, scales, points, RANDOM.integers(0, 3, k) if 4 in given else None]
    attrs = {"K": k, "N": n, "bits": bits, "block_size": block}
    present = [i for i in range(1, 5) if inputs[i] is not None]
    constant, _ = node_model("MatMulNBits", inputs, attrs, opset=17, domain=DOMAIN, constants=present)
    some = [i for i in present if i not in given]
    model, arrays = node_model("MatMulNBits", inputs, attrs, opset=17, domain=DOMAIN, constants=some)
    want = next(iter(neo.compile(constant).run({"x0": inputs[0]}).values()))
    np.testing.assert_allclose(next(iter(neo.compile(model).run(arrays).values())), want, rtol=1e-4, atol=1e-4)


def test_matmul_nbits_with_groups() -> None:
    n, k, block = 8, 64, 16
    w = RANDOM.integers(0, 256, n, 4, block // 2, dtype=np.uint8)
    scales = RANDOM.generator.uniform(0.01, 0.1, (n, 4)).astype(np.float32)
    groups = RANDOM.integers(0, 4, k)
    codes = np.stack([w & 15, w >> 4], axis=-1).reshape(n, k).astype(np.float64) - 8
    x = normal(2, k)
    want = x @ (codes * scales[:, groups]).T
    check(
        "MatMulNBits",
        [x, w, scales, None, groups],
        constants=(1, 2, 4),
        K=k,
        N=n,
        bits=4,
        block_size=block,
        want=[want.astype(np.float32)],
        tolerance=1e-3,
    )


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("sizes", [(32, 64, 16), (7, 40, 32)])
def test_matmul_bnb4(kind: int, sizes: tuple[int, int, int]) -> None:
    n, k, block = sizes
    w = RANDOM.integers(0, 256, (n * k + 1) // 2, dtype=np.uint8)
    most = RANDOM.generator.uniform(0.5, 2, -(-n * k // block)).astype(np.float32)
    check(
        "MatMulBnb4",
        [normal(2, 3, k), w, most],
        constants=(1, 2),
        K=k,
        N=n,
        quant_type=kind,
        block_size=block,
        symbols={0: ["B", "S", k]},
        tolerance=1e-3,
    )
    check(
        "MatMulBnb4",
        [normal(2, 3, k), w, most],
        K=k,
        N=n,
        quant_type=kind,
        block_size=block,
        tolerance=1e-3,
    )


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_of_blocks_in_bytes(bits: int, zeros: bool) -> None:
    rows, width, block = 9, 64, 16
    data = packed(rows, bits, width)
    scales = RANDOM.generator.uniform(0.01, 0.1, (rows, width // block)).astype(np.float32)
    inputs: list[Any] = [data, np.array([[1, 8, -2], [0, 0, 3]]), scales]
    if zeros:
        inputs.append(packed(rows, bits, width // block))
    for constants in ((0, 2, 3) if zeros else (0, 2), ()):
        check(
            "GatherBlockQuantized",
            inputs,
            constants=constants,
            bits=bits,
            block_size=block,
            gather_axis=0,
            quantize_axis=1,
            symbols={1: ["A", "B"]},
        )


@pytest.mark.parametrize("dtype", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2)])
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_of_blocks_of_four_bits(dtype: int, axes: tuple[int, int], zeros: bool) -> None:
    dims = [5, 32, 48]
    blocks = list(dims)
    blocks[axes[1]] = -(-dims[axes[1]] // 16)
    low = -8 if dtype == TensorProto.INT4 else 0
    codes, points = RANDOM.integers(low, low + 16, *dims), RANDOM.integers(low, low + 16, *blocks)
    scales = RANDOM.generator.uniform(0.01, 0.1, blocks).astype(np.float32)
    at = np.array([1, 3, 0])
    node = helper.make_node(
        "GatherBlockQuantized",
        ["c", "x0", "s", *(["z"] if zeros else [])],
        ["y0"],
        domain=DOMAIN,
        gather_axis=axes[0],
        quantize_axis=axes[1],
        block_size=16,
    )
    initializers = [
        helper.make_tensor("c", dtype, dims, codes.reshape(-1)),
        helper.make_tensor("s", TensorProto.FLOAT, blocks, scales.reshape(-1)),
    ]
    if zeros:
        initializers.append(helper.make_tensor("z", dtype, blocks, points.reshape(-1)))
    model = model_of(
        [node],
        [helper.make_tensor_value_info("x0", TensorProto.INT64, [3])],
        ["y0"],
        domains={DOMAIN: 1},
        initializers=initializers,
    )
    check_model(model, {"x0": at}, answers(declared(model, [1]), {"x0": at}))


def test_bad_weights_are_refused_in_one_line() -> None:
    x, w, scales = normal(2, 32), np.zeros((4, 2, 8), np.uint8), np.ones((4, 2), np.float32)
    good = {"K": 32, "N": 4, "bits": 4, "block_size": 16}
    for inputs, attrs, constants, kind, reason in (
        ([x, w, scales], {"bits": 9}, (1, 2), neo.ModelError, "bits must be 2 to 8"),
        ([x, w[:3], scales], {}, (1, 2), neo.ModelError, "the weights must have 64 elements"),
        ([x, w, scales[:1]], {}, (1, 2), neo.ModelError, "the scales must have 8 elements"),
        ([x, w, scales], {"N": 0}, (1, 2), neo.ModelError, "'N' must be positive"),
        ([x, w, scales, None, np.full(32, 7, np.int32)], {}, (1, 2, 4), neo.ModelError, "g_idx must give"),
        ([x, w, scales], {"weight_prepacked": 1}, (1, 2), neo.UnsupportedError, "packed for a device"),
    ):
        model, _ = node_model("MatMulNBits", inputs, {**good, **attrs}, opset=17, domain=DOMAIN, constants=constants)
        with pytest.raises(kind, match=reason):
            neo.compile(model)
