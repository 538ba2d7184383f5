"""Transformer layers of com.microsoft by ONNX's Attention, RotaryEmbedding and LayerNormalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "com.microsoft"
_MASKED = -10000.0


@register("EmbedLayerNormalization", domain=_DOMAIN)
def _embed_layer_normalization(call: Call) -> Results:
    ids, segments = call.need(0), call.input(1)
    words = call.add("Gather", [call.need(2), ids])
    positions = call.need(3)
    if call.input(8) is not None:
        positions = call.add("Gather", [positions, call.input(8)])
    else:
        length = call.add("Shape", [ids], {"start": 1, "end": 2})
        positions = call.add("Slice", [positions, call.array([0]), length, call.array([0])])
    total = call.add("Add", [words, positions])
    if segments is not None:
        total = call.add("Add", [total, call.add("Gather", [call.need(4), segments])])
    attrs = {"axis": -1, "epsilon": float(call.attrs.get("epsilon", 1e-12))}
    results = [call.add("LayerNormalization", [total, call.need(5), call.input(6)], attrs), None, total]
    if call.wants(1):
        if call.input(7) is not None:
            count = call.add("ReduceSum", [call.input(7), call.array([1])], {"keepdims": 0})
            results[1] = call.add("Cast", [count], {"to": onnx.TensorProto.INT32})
        else:
            batch = call.add("Shape", [ids], {"end": 1})
            results[1] = call.add("Expand", [call.array([0], "int32"), batch])
    return results[: len(call.outputs)]


def _heads(call: Call, name: str = "num_heads") -> int:
    heads = int(call.attrs.get(name, 0))
    if heads < 1:
        msg = f"[{call.op}] attribute {name!r} must be positive. Got {heads}"
        raise ModelError(msg)
    return heads


def _refuse_sharing(call: Call) -> None:
    for name in ("do_rotary", "past_present_share_buffer"):
        if call.attrs.get(name, 0):
            raise call.refuse(f"attribute {name} is not supported. Got {call.attrs[name]}")


def _mask_bias(call: Call, mask: _native.Value | None, bias: _native.Value | None, dtype: str) -> Any:
    """What is added to the scores: the bias, and a large negative number where a key is masked."""
    if mask is None:
        return bias
    rank = None if mask.shape is None else len(mask.shape)
    if rank not in (2, 3, 4):
        raise call.refuse(f"the mask must be one of keys, or of queries and keys. Got rank {rank}")
    if rank < 4:
        mask = call.add("Unsqueeze", [mask, call.array([1, 2] if rank == 2 else [1])])
    unseen = call.add("Equal", [mask, call.array(0, mask.dtype)])
    value = float(call.attrs.get("mask_filter_value", _MASKED))
    masked = call.add("Where", [unseen, call.array(value, dtype), call.array(0.0, dtype)])
    return masked if bias is None else call.add("Add", [masked, bias])


def _attend(
    call: Call,
    operands: list[Any],
    attention_bias: Any,
    past: tuple[Any, Any],
    *,
    outputs: int,
) -> list[Any]:
    heads = _heads(call)
    attrs: dict[str, Any] = {
        "q_num_heads": heads,
        "kv_num_heads": heads,
        "is_causal": int(call.attrs.get("unidirectional", 0)),
    }
    if call.attrs.get("scale", 0.0):
        attrs["scale"] = float(call.attrs["scale"])
    made = call.add("Attention", [*operands, attention_bias, *past], attrs, outputs=outputs)
    return [made] if outputs == 1 else made


@register("Attention", domain=_DOMAIN)
def _attention(call: Call) -> Results:
    """One product gives queries, keys and values."""
    _refuse_sharing(call)
    if call.input(6) is not None:
        raise call.refuse("past_sequence_length is not supported")
    product = call.add("MatMul", [call.need(0), call.need(1)])
    if call.input(2) is not None:
        product = call.add("Add", [product, call.input(2)])
    sizes = call.attrs.get("qkv_hidden_sizes")
    if sizes:
        parts = call.add("Split", [product, call.array(sizes)], {"axis": -1}, outputs=3)
    else:
        parts = call.add("Split", [product], {"axis": -1, "num_outputs": 3}, outputs=3)
    past: tuple[Any, Any] = (None, None)
    if call.input(4) is not None:
        halves = call.add("Split", [call.input(4)], {"axis": 0, "num_outputs": 2}, outputs=2)
        past = tuple(call.add("Squeeze", [half, call.array([0])]) for half in halves)
    bias = _mask_bias(call, call.input(3), call.input(5), call.need(0).dtype)
    made = _attend(call, parts, bias, past, outputs=3 if call.wants(1) else 1)
    results = made[:1]
    if call.wants(1):
        halves = [call.add("Unsqueeze", [half, call.array([0])]) for half in made[1:]]
        results.append(call.add("Concat", halves, {"axis": 0}))
    return results


@register("MultiHeadAttention", domain=_DOMAIN)
def _multi_head_attention(call: Call) -> Results:
    if call.input(1) is None or call.input(2) is None:
        raise call.refuse("queries, keys and values must be given apart")
    if any(call.input(i) is not None for i in (8, 9)) or call.wants(3):
        raise call.refuse("a cache of beams is not supported")
    operands = [call.need(i) for i in range(3)]
    if any(call.rank(i) != 3 for i in range(3)):
        raise call.refuse("queries, keys and values must have rank 3")
    if call.input(3) is not None:
        sizes = [call.size(i, 2, "the hidden size") for i in range(3)]
        parts = call.add("Split", [call.input(3), call.array(sizes)], {"axis": 0}, outputs=3)
        operands = [call.add("Add", [x, part]) for x, part in zip(operands, parts, strict=True)]
    bias = _mask_bias(call, call.input(4), call.input(5), operands[0].dtype)
    present = call.wants(1) or call.wants(2)
    made = _attend(call, operands, bias, (call.input(6), call.input(7)), outputs=3 if present else 1)
    return made[: len(call.outputs)]


@register("RotaryEmbedding", domain=_DOMAIN)
def _rotary_embedding(call: Call) -> Results:
    """Position ids may be one number, the position of the first token."""
    if call.attrs.get("is_packed_batching", 0):
        raise call.refuse("a packed batch is not supported")
    if float(call.attrs.get("scale", 1.0)) != 1.0:
        raise call.refuse(f"attribute scale must be 1. Got {call.attrs['scale']}")
    x, ids = call.need(0), call.need(1)
    rank = call.rank(0)
    attrs: dict[str, Any] = {"interleaved": int(call.attrs.get("interleaved", 0))}
    rotated = int(call.attrs.get("rotary_embedding_dim", 0))
    heads = int(call.attrs.get("num_heads", 0))
    if rotated:
        attrs["rotary_embedding_dim"] = rotated
    if rank == 3:
        if not heads:
            heads = call.size(0, 2, "the hidden size") // (2 * call.size(2, 1, "the size of the cache"))
        attrs["num_heads"] = heads
    if call.rank(1) == 1:
        axis = 1 if rank == 3 else 2
        batch = call.add("Shape", [x], {"end": 1})
        length = call.add("Shape", [x], {"start": axis, "end": axis + 1})
        count = call.add("Squeeze", [length, call.array([0])])
        steps = call.add("Range", [call.array(0), count, call.array(1)])
        ids = call.add("Expand", [call.add("Add", [steps, ids]), call.add("Concat", [batch, length], {"axis": 0})])
    return call.finish("RotaryEmbedding", [x, call.need(2), call.need(3), ids], attrs)
