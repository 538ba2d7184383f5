"""Operators of com.microsoft whose weights are blocks of few bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from neo import _native
from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []

_DOMAIN = "com.microsoft"

# The accuracy_level of products whose rows may be rounded to codes of 8 bits, block by block.
_ROUNDED_ROWS = 4

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
        return np.full((rows, blocks), float(1 << (bits - 1)), np.float32)
    if array.dtype == np.uint8:
        row = -(-blocks * bits // 8)
        _check_size(call, "the zero points", array, rows * row)
        return _unpack(array.reshape(rows, row), bits, blocks).astype(np.float32)
    _check_size(call, "the zero points", array, rows * blocks)
    return array.reshape(rows, blocks).astype(np.float32)


def _codes_at_run_time(call: Call, packed: _native.Value, bits: int, shape: tuple[int, int], count: int) -> Any:
    """The codes of `packed`, which has `shape` in bytes, as uint8 [rows, count]."""
    rows, row_bytes = shape
    field = bits if bits in (2, 4, 8) else 1
    x = call.add("Reshape", [packed, call.array([rows, row_bytes, 1])])
    if field < 8:
        shifts = call.array(np.arange(0, 8, field, dtype=np.uint8), "uint8")
        x = call.add("BitShift", [x, shifts], {"direction": "RIGHT"})
        x = call.add("BitwiseAnd", [x, call.array(np.uint8((1 << field) - 1), "uint8")])
    if field < bits:
        codes = row_bytes * 8 // bits
        x = call.add("Reshape", [x, call.array([rows, row_bytes * 8])])
        x = call.add("Slice", [x, call.array([0]), call.array([codes * bits]), call.array([1])])
        x = call.add("Reshape", [x, call.array([rows, codes, bits])])
        x = call.add("BitShift", [x, call.array(np.arange(bits, dtype=np.uint8), "uint8")], {"direction": "LEFT"})
        x = call.add("Cast", [x], {"to": "int32"})
        x = call.add("ReduceSum", [x, call.array([2])], {"keepdims": 0})
        x = call.add("Cast", [x], {"to": "uint8"})
    x = call.add("Reshape", [x, call.array([rows, -1])])
    return call.add("Slice", [x, call.array([0]), call.array([count]), call.array([1])])


def _matmul_nbits_at_run_time(call: Call, n: int, k: int, size: int, bits: int) -> Results:
    """Weights, scales, zero points or groups that only a call knows."""
    blocks = -(-k // size)
    x = call.need(0)
    codes = _codes_at_run_time(call, call.need(1), bits, (n * blocks, size * bits // 8), size)
    codes = call.add("Reshape", [codes, call.array([n, blocks * size])])
    codes = call.add("Slice", [codes, call.array([0]), call.array([k]), call.array([1])])
    points = call.input(3)
    if points is None:
        points = call.array(np.full((n, blocks), 1 << (bits - 1), np.float32), "float32")
    elif points.dtype == "uint8":
        points = _codes_at_run_time(call, points, bits, (n, -(-blocks * bits // 8)), blocks)
    block_of: Any = call.array(np.arange(k) // size)
    if call.input(4) is not None:
        block_of = call.add("Reshape", [call.need(4), call.array([-1])])
        block_of = call.add("Slice", [block_of, call.array([0]), call.array([k]), call.array([0])])

    def by_row_of_the_weights(value: Any) -> Any:
        value = call.add("Cast", [call.add("Reshape", [value, call.array([n, blocks])])], {"to": "float32"})
        return call.add("Gather", [value, block_of], {"axis": 1})

    weights = call.add("Sub", [call.add("Cast", [codes], {"to": "float32"}), by_row_of_the_weights(points)])
    weights = call.add("Mul", [weights, by_row_of_the_weights(call.need(2))])
    weights = call.add("Transpose", [weights], {"perm": [1, 0]})
    if x.dtype != "float32":
        weights = call.add("Cast", [weights], {"to": x.dtype})
    y = call.add("MatMul", [x, weights])
    if call.input(5) is not None:
        y = call.add("Add", [y, call.need(5)])
    return [y]


def _block_weights(call: Call, codes: _Array, factors: _Array, zeros: _Array, size: int) -> Any:
    """The weights [K, N] of codes [N, K] with a scale and a zero point for each block of `size`, [N, blocks].

    Codes stay codes where each block has neighbours along K and a zero point that is a code.
    """
    k, blocks, dtype = codes.shape[1], factors.shape[1], call.need(0).dtype
    if call.input(4) is None and np.array_equal(zeros, zeros.astype(np.uint8)):
        parts = [call.array(np.ascontiguousarray(codes.T), "uint8")]
        parts.append(call.array(np.ascontiguousarray(factors.T), "float32"))
        parts.append(call.array(np.ascontiguousarray(zeros.T).astype(np.uint8), "uint8"))
        attrs = {"axis": 0, "block_size": size}
        if int(call.attrs.get("accuracy_level", 0)) == _ROUNDED_ROWS:
            attrs["row_bits"] = 8
        weights = call.add("DequantizeLinear", parts, attrs)
        return weights if dtype == "float32" else call.add("Cast", [weights], {"to": dtype})
    block_of = np.arange(k) // size
    if call.input(4) is not None:
        block_of = call.need_constant(4, "the groups").reshape(-1)[:k]
        if block_of.size != k or (k and not 0 <= block_of.min() <= block_of.max() < blocks):
            msg = f"[{call.op}] g_idx must give each of {k} rows one of {blocks} blocks. Got {block_of.size}"
            raise ModelError(msg)
    return call.array(((codes.astype(np.float32) - zeros[:, block_of]) * factors[:, block_of]).T, dtype)


@register("MatMulNBits", domain=_DOMAIN)
def _matmul_nbits(call: Call) -> Results:
    """Weights [N, blocks, bytes] with a scale and a zero point for each block along K."""
    if call.attrs.get("weight_prepacked", 0):
        raise call.refuse(f"weights packed for a device are not supported. Got {call.attrs['weight_prepacked']}")
    n, k, size = (call.positive(name) for name in ("N", "K", "block_size"))
    bits = int(call.attrs.get("bits", 4))
    if not 2 <= bits <= 8 or size * bits % 8:
        msg = f"[{call.op}] bits must be 2 to 8 and fill the bytes of a block. Got {bits} and blocks of {size}"
        raise ModelError(msg)
    blocks = -(-k // size)
    if any(call.input(i) is not None and call.constant(i) is None for i in (1, 2, 3, 4)):
        return _matmul_nbits_at_run_time(call, n, k, size, bits)
    packed = call.need_constant(1, "the weights")
    scales = call.need_constant(2, "the scales")
    _check_size(call, "the weights", packed, n * blocks * (size * bits // 8))
    _check_size(call, "the scales", scales, n * blocks)
    codes = _unpack(packed.reshape(n, blocks, -1), bits, size).reshape(n, -1)[:, :k]
    zeros = _zero_points(call, 3, n, blocks, bits)
    factors = scales.reshape(n, blocks).astype(np.float32)
    x = call.need(0)
    y = call.add("MatMul", [x, _block_weights(call, codes, factors, zeros, size)])
    if call.input(5) is not None:
        y = call.add("Add", [y, call.need(5)])
    return [y]


@register("MatMulBnb4", domain=_DOMAIN)
def _matmul_bnb4(call: Call) -> Results:
    """Codes of four bits, the earlier in the higher half of its byte, in blocks of the flat [N, K]."""
    n, k, size = (call.positive(name) for name in ("N", "K", "block_size"))
    kind = int(call.attrs.get("quant_type", -1))
    if kind not in (0, 1):
        msg = f"[{call.op}] quant_type must be 0 or 1. Got {kind}"
        raise ModelError(msg)
    levels = np.array(_NF4 if kind else (*_FP4_MAGNITUDES, *(-m for m in _FP4_MAGNITUDES)), np.float32)
    packed, most = call.constant(1), call.constant(2)
    x = call.need(0)
    block_of = np.arange(n * k) // size
    if packed is None or most is None:
        parts = call.add("Reshape", [call.need(1), call.array([-1, 1])])
        parts = call.add("BitShift", [parts, call.array([4, 0], "uint8")], {"direction": "RIGHT"})
        codes = call.add("BitwiseAnd", [parts, call.array(15, "uint8")])
        codes = call.add("Cast", [call.add("Reshape", [codes, call.array([-1])])], {"to": "int32"})
        codes = call.add("Slice", [codes, call.array([0]), call.array([n * k]), call.array([0])])
        factors = call.add("Reshape", [call.need(2), call.array([-1])])
        factors = call.add(
            "Gather", [call.add("Cast", [factors], {"to": "float32"}), call.array(block_of)], {"axis": 0}
        )
        value = call.add("Mul", [call.add("Gather", [call.array(levels, "float32"), codes], {"axis": 0}), factors])
        value = call.add("Cast", [call.add("Reshape", [value, call.array([n, k])])], {"to": x.dtype})
        if call.attrs.get("transB", 1):
            value = call.add("Transpose", [value], {"perm": [1, 0]})
        return call.finish("MatMul", [x, value])
    _check_size(call, "the weights", packed, (n * k + 1) // 2)
    _check_size(call, "the largest magnitudes", most, -(-n * k // size))
    pairs = np.stack([packed.reshape(-1) >> 4, packed.reshape(-1) & 15], axis=-1).reshape(-1)[: n * k]
    weights = (levels[pairs] * most.reshape(-1).astype(np.float32)[block_of]).reshape(n, k)
    return call.finish("MatMul", [x, call.array(weights.T if call.attrs.get("transB", 1) else weights, x.dtype)])


@register("GatherBlockQuantized", domain=_DOMAIN)
def _gather_block_quantized(call: Call) -> Results:
    """Rows of codes with the scales and zero points of their blocks; only what is gathered becomes float."""
    data, points, kind = call.need(0), call.input(3), call.need(0).dtype
    if kind not in ("uint8", "int4", "uint4"):
        raise call.refuse(f"the data must be uint8, int4 or uint4. Got {kind}")
    shape = [call.size(0, axis, "the size of the data") for axis in range(call.rank(0))]
    blocks = [call.size(2, axis, "the number of scales") for axis in range(call.rank(2))]
    size, rank = int(call.attrs.get("block_size", 128)), len(shape)
    gather, along = (int(call.attrs.get(name, default)) for name, default in (("gather_axis", 0), ("quantize_axis", 1)))
    if not (-rank <= gather < rank and -rank <= along < rank):
        msg = f"[{call.op}] gather_axis and quantize_axis must be axes of the data. Got {gather} and {along}"
        raise ModelError(msg)
    gather, along = gather % rank, along % rank
    dtype, middle = "int8" if kind == "int4" else "uint8", 0
    codes = data if kind == dtype else call.add("Cast", [data], {"to": dtype})
    if points is not None and kind != dtype:
        points = call.add("Cast", [points], {"to": dtype})
    if kind == "uint8":
        bits = int(call.attrs.get("bits", 4))
        if bits not in (2, 4, 8):
            msg = f"[{call.op}] bits must be 2, 4 or 8. Got {bits}"
            raise ModelError(msg)
        middle = 1 << (bits - 1)
        rows, shape[-1] = math.prod(shape[:-1]), shape[-1] * 8 // bits
        codes = _codes_at_run_time(call, codes, bits, (rows, shape[-1] * bits // 8), shape[-1])
        codes = call.add("Reshape", [codes, call.array(shape)])
        if points is not None:
            rows = math.prod(blocks[:-1])
            points = _codes_at_run_time(call, points, bits, (rows, -(-blocks[-1] * bits // 8)), blocks[-1])
            points = call.add("Reshape", [points, call.array(blocks)])
    if points is None:
        points = call.array(np.full(blocks, middle, dtype), dtype)
    expected = [-(-n // max(size, 1)) if axis == along else n for axis, n in enumerate(shape)]
    if size < 1 or list(points.shape or ()) != blocks or blocks != expected:
        msg = (
            f"[{call.op}] scales and zero points must have one element for each block of {size}. "
            f"Got {blocks} and {list(points.shape or ())} for {shape}"
        )
        raise ModelError(msg)
    if gather == along:
        raise call.refuse("gathering along the axis of the blocks is not supported")
    parts = [call.add("Gather", [value, call.need(1)], {"axis": gather}) for value in (codes, call.need(2), points)]
    axis = along + call.rank(1) - 1 if along > gather else along
    return call.finish("DequantizeLinear", parts, {"axis": axis, "block_size": size})
