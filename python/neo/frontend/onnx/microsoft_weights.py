"""Operators of com.microsoft whose weights are blocks of few bits: the weights are made float on import."""

from __future__ import annotations

from typing import Any

import numpy as np

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []

_DOMAIN = "com.microsoft"

# Quantiles of the normal distribution, as QLoRA's NF4 defines them.
_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
_FP4_MAGNITUDES = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)

_Array = np.ndarray[Any, Any]


def _positive(call: Call, name: str) -> int:
    value = int(call.attrs.get(name, 0))
    if value < 1:
        msg = f"[{call.op}] attribute {name!r} must be positive. Got {value}"
        raise ModelError(msg)
    return value


def _unpack(packed: _Array, bits: int, count: int) -> _Array:
    """The first `count` codes of each row of the last axis, packed from the lowest bit on, as uint8."""
    if bits == 8:
        return packed[..., :count]
    if bits in (2, 4):
        parts = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
        return np.stack(parts, axis=-1).reshape(*packed.shape[:-1], -1)[..., :count]
    flat = np.unpackbits(packed, axis=-1, bitorder="little")
    flat = flat[..., : flat.shape[-1] // bits * bits].reshape(*packed.shape[:-1], -1, bits)
    codes: _Array = (flat * (1 << np.arange(bits))).sum(axis=-1).astype(np.uint8)
    return codes[..., :count]


def _check_size(call: Call, what: str, array: _Array, size: int) -> None:
    if array.size != size:
        msg = f"[{call.op}] {what} must have {size} elements. Got {list(array.shape)}"
        raise ModelError(msg)


def _zero_points(call: Call, index: int, rows: int, blocks: int, bits: int) -> _Array:
    array = call.constant(index)
    if array is None:
        if call.input(index) is not None:
            raise call.refuse("the zero points must be a constant")
        return np.full((rows, blocks), float(1 << (bits - 1)), np.float32)
    if array.dtype == np.uint8:
        row = -(-blocks * bits // 8)
        _check_size(call, "the zero points", array, rows * row)
        return _unpack(array.reshape(rows, row), bits, blocks).astype(np.float32)
    _check_size(call, "the zero points", array, rows * blocks)
    return array.reshape(rows, blocks).astype(np.float32)


@register("MatMulNBits", domain=_DOMAIN)
def _matmul_nbits(call: Call) -> Results:
    """Weights [N, blocks, bytes] with a scale and a zero point for each block along K."""
    if call.attrs.get("weight_prepacked", 0):
        raise call.refuse(f"weights packed for a device are not supported. Got {call.attrs['weight_prepacked']}")
    n, k, size = (_positive(call, name) for name in ("N", "K", "block_size"))
    bits = int(call.attrs.get("bits", 4))
    if not 2 <= bits <= 8 or size * bits % 8:
        msg = f"[{call.op}] bits must be 2 to 8 and fill the bytes of a block. Got {bits} and blocks of {size}"
        raise ModelError(msg)
    blocks = -(-k // size)
    packed = call.need_constant(1, "the weights")
    scales = call.need_constant(2, "the scales")
    _check_size(call, "the weights", packed, n * blocks * (size * bits // 8))
    _check_size(call, "the scales", scales, n * blocks)
    codes = _unpack(packed.reshape(n, blocks, -1), bits, size).reshape(n, -1)[:, :k]
    zeros = _zero_points(call, 3, n, blocks, bits)
    block_of = np.arange(k) // size
    if call.input(4) is not None:
        block_of = call.need_constant(4, "the groups").reshape(-1)[:k]
        if block_of.size != k or (k and not 0 <= block_of.min() <= block_of.max() < blocks):
            msg = f"[{call.op}] g_idx must give each of {k} rows one of {blocks} blocks. Got {block_of.size}"
            raise ModelError(msg)
    factors = scales.reshape(n, blocks).astype(np.float32)[:, block_of]
    weights = (codes.astype(np.float32) - zeros[:, block_of]) * factors
    x = call.need(0)
    y = call.add("MatMul", [x, call.array(weights.T, x.dtype)])
    if call.input(5) is not None:
        y = call.add("Add", [y, call.need(5)])
    return [y]


@register("MatMulBnb4", domain=_DOMAIN)
def _matmul_bnb4(call: Call) -> Results:
    """Codes of four bits, the earlier in the higher half of its byte, in blocks of the flat [N, K]."""
    n, k, size = (_positive(call, name) for name in ("N", "K", "block_size"))
    kind = int(call.attrs.get("quant_type", -1))
    if kind not in (0, 1):
        msg = f"[{call.op}] quant_type must be 0 or 1. Got {kind}"
        raise ModelError(msg)
    levels = np.array(_NF4 if kind else (*_FP4_MAGNITUDES, *(-m for m in _FP4_MAGNITUDES)), np.float32)
    packed = call.need_constant(1, "the weights").reshape(-1)
    most = call.need_constant(2, "the largest magnitudes").reshape(-1).astype(np.float32)
    _check_size(call, "the weights", packed, (n * k + 1) // 2)
    _check_size(call, "the largest magnitudes", most, -(-n * k // size))
    codes = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)[: n * k]
    weights = (levels[codes] * most[np.arange(n * k) // size]).reshape(n, k)
    x = call.need(0)
    return call.finish("MatMul", [x, call.array(weights.T if call.attrs.get("transB", 1) else weights, x.dtype)])


@register("GatherBlockQuantized", domain=_DOMAIN)
def _gather_block_quantized(call: Call) -> Results:
    """Rows of codes with the scales and zero points of their blocks; only what is gathered becomes float."""
    data = call.need_constant(0, "the data")
    scales, indices = call.need_constant(2, "the scales"), call.need(1)
    size = int(call.attrs.get("block_size", 128))
    rank = data.ndim
    gather, along = (int(call.attrs.get(name, default)) for name, default in (("gather_axis", 0), ("quantize_axis", 1)))
    if not (-rank <= gather < rank and -rank <= along < rank):
        msg = f"[{call.op}] gather_axis and quantize_axis must be axes of the data. Got {gather} and {along}"
        raise ModelError(msg)
    gather, along = gather % rank, along % rank
    codes, zeros, middle = data, call.constant(3), 0
    if zeros is None and call.input(3) is not None:
        raise call.refuse("the zero points must be a constant")
    if data.dtype == np.uint8:
        bits = int(call.attrs.get("bits", 4))
        if bits not in (2, 4, 8):
            msg = f"[{call.op}] bits must be 2, 4 or 8. Got {bits}"
            raise ModelError(msg)
        middle = 1 << (bits - 1)
        codes = _unpack(data, bits, data.shape[-1] * 8 // bits)
        if zeros is not None:
            zeros = _unpack(zeros, bits, scales.shape[-1])
    kind = call.need(0).dtype
    if kind not in ("uint8", "int4", "uint4"):
        raise call.refuse(f"the data must be uint8, int4 or uint4. Got {kind}")
    dtype = "int8" if kind == "int4" else "uint8"
    codes = codes.astype(dtype)
    zeros = np.full(scales.shape, middle, dtype) if zeros is None else zeros.astype(dtype)
    if size < 1 or zeros.shape != scales.shape or scales.shape[along] != -(-codes.shape[along] // size):
        msg = (
            f"[{call.op}] scales and zero points must have one element for each block of {size}. "
            f"Got {list(scales.shape)} and {list(zeros.shape)} for {list(codes.shape)}"
        )
        raise ModelError(msg)
    if gather == along:
        raise call.refuse("gathering along the axis of the blocks is not supported")
    parts = [
        call.add("Gather", [call.array(array, kind), indices], {"axis": gather})
        for array, kind in ((codes, dtype), (scales, call.need(2).dtype), (zeros, dtype))
    ]
    axis = along + call.rank(1) - 1 if along > gather else along
    return call.finish("DequantizeLinear", parts, {"axis": axis, "block_size": size})
