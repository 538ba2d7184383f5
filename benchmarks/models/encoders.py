"""Transformers of the usual sizes as exporters write them: encoders, a decoder's step, a Conformer; random weights, seeded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.models.builder import Builder

__all__ = ["ENCODERS"]


class _Layers:
    """The parts of transformers, written as torch's exporters write them."""

    def __init__(self, seed: int, width: int, heads: int) -> None:
        self.b = Builder(seed)
        self.width, self.heads = width, heads
        self.split = self.b.constant([0, 0, heads, width // heads], np.int64)
        self.merge = self.b.constant([0, 0, width], np.int64)

    def dense(self, x: str, rows: int, columns: int, *, bias: bool = True) -> str:
        product = self.b.add("MatMul", x, self.b.weight(rows, columns))
        return self.b.add("Add", self.b.weight(columns), product) if bias else product

    def norm(self, x: str) -> str:
        return self.b.add("LayerNormalization", x, self.b.weight(self.width), self.b.weight(self.width), axis=-1)

    def gelu(self, x: str) -> str:
        b = self.b
        scaled = b.add("Add", b.add("Erf", b.add("Div", x, b.constant(2**0.5))), b.constant(1.0))
        return b.add("Mul", b.add("Mul", x, scaled), b.constant(0.5))

    def headed(self, x: str, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
        return self.b.add("Transpose", self.b.add("Reshape", x, self.split), perm=list(perm))

    def attention(self, x: str, memory: str | None = None, mask: str | None = None) -> str:
        width = self.width
        source = memory or x
        queries = self.headed(self.dense(x, width, width))
        keys = self.headed(self.dense(source, width, width), (0, 2, 3, 1))
        values = self.headed(self.dense(source, width, width))
        return self.mixed(queries, keys, values, mask)

    def mixed(self, queries: str, keys: str, values: str, mask: str | None) -> str:
        b, width = self.b, self.width
        scores = b.add("Div", b.add("MatMul", queries, keys), b.constant((width // self.heads) ** 0.5))
        if mask:
            scores = b.add("Add", scores, mask)
        mixed = b.add("MatMul", b.add("Softmax", scores, axis=-1), values)
        merged = b.add("Reshape", b.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.merge)
        return self.dense(merged, width, width)

    def feed(self, x: str, inner: int) -> str:
        return self.dense(self.gelu(self.dense(x, self.width, inner)), inner, self.width)

    def post_norm(self, x: str, inner: int, mask: str | None = None) -> str:
        x = self.norm(self.b.add("Add", x, self.attention(x, mask=mask)))
        return self.norm(self.b.add("Add", x, self.feed(x, inner)))

    def pre_norm(self, x: str, inner: int, mask: str | None = None) -> str:
        x = self.b.add("Add", x, self.attention(self.norm(x), mask=mask))
        return self.b.add("Add", x, self.feed(self.norm(x), inner))


def _info(name: str, shape: list[int | str], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(b: Builder, inputs: list[onnx.ValueInfoProto], outputs: list[str]) -> onnx.ModelProto:
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(b.nodes, "encoder", inputs, results, b.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def bert(seed: int, layers: int, width: int, heads: int, length: int | str, vocabulary: int = 30522) -> onnx.ModelProto:
    """Token and position embeddings, layers with a mask of padding, norms behind the sums."""
    m = _Layers(seed, width, heads)
    b = m.b
    tokens = b.add("Gather", b.weight(vocabulary, width), "input_ids")
    ones = b.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = b.add("Unsqueeze", ones, b.constant([1, 2], np.int64))
    mask = b.add("Mul", b.add("Sub", b.constant(1.0), mask), b.constant(-3.4028234663852886e38))
    last = b.add("Gather", b.add("Shape", "input_ids"), b.constant(1, np.int64), axis=0)
    sizes = b.add("Unsqueeze", last, b.constant([0], np.int64))
    places = b.add("Slice", b.weight(1, 512, width), b.constant([0], np.int64), sizes, b.constant([1], np.int64))
    x = m.norm(b.add("Add", tokens, places))
    for _ in range(layers):
        x = m.post_norm(x, 4 * width, mask)
    shape: list[int | str] = [1, length]
    return _model(b, [_info(n, shape, TensorProto.INT64) for n in ("input_ids", "attention_mask")], [x])


def vit(seed: int, layers: int, width: int, heads: int, image: int, patch: int) -> onnx.ModelProto:
    """Patches by a convolution, a class token, layers with norms before, the class token's logits."""
    m = _Layers(seed, width, heads)
    b = m.b
    patches = b.add("Conv", "image", b.weight(width, 3, patch, patch), b.weight(width), strides=[patch, patch])
    count = (image // patch) ** 2
    rows = b.add("Reshape", patches, b.constant([0, width, count], np.int64))
    x = b.add("Concat", b.weight(1, 1, width), b.add("Transpose", rows, perm=[0, 2, 1]), axis=1)
    x = b.add("Add", x, b.weight(1, count + 1, width))
    for _ in range(layers):
        x = m.pre_norm(x, 4 * width)
    x = b.add("Gather", m.norm(x), b.constant(0, np.int64), axis=1)
    return _model(b, [_info("image", [1, 3, image, image])], [m.dense(x, width, 1000)])


def whisper(seed: int, layers: int, width: int, heads: int, frames: int = 3000) -> onnx.ModelProto:
    """Two convolutions over a spectrogram, the second of stride 2, and layers with norms before."""
    m = _Layers(seed, width, heads)
    b = m.b
    x = m.gelu(b.add("Conv", "mel", b.weight(width, 80, 3), b.weight(width), pads=[1, 1]))
    x = m.gelu(b.add("Conv", x, b.weight(width, width, 3), b.weight(width), pads=[1, 1], strides=[2]))
    x = b.add("Add", b.add("Transpose", x, perm=[0, 2, 1]), b.weight(1, frames // 2, width))
    for _ in range(layers):
        x = m.pre_norm(x, 4 * width)
    return _model(b, [_info("mel", [1, 80, frames])], [m.norm(x)])


def decoder_step(seed: int, layers: int, width: int, heads: int, past: int, vocabulary: int) -> onnx.ModelProto:
    """One token with keys and values of `past` tokens before it, and the new ones as results (GPT-2)."""
    m = _Layers(seed, width, heads)
    b = m.b
    x = b.add("Add", b.add("Gather", b.weight(vocabulary, width), "token"), b.weight(1, 1, width))
    inputs, outputs = [_info("token", [1, 1], TensorProto.INT64)], []
    for layer in range(layers):
        normed = m.norm(x)
        parts = b.add_all("Split", [m.dense(normed, width, 3 * width)], 3, axis=2)
        queries, keys, values = map(m.headed, parts)
        cache = []
        for kind, fresh in (("key", keys), ("value", values)):
            name = f"past_{kind}_{layer}"
            inputs.append(_info(name, [1, heads, past, width // heads]))
            cache.append(b.add("Concat", name, fresh, axis=2))
        outputs += cache
        turned = b.add("Transpose", cache[0], perm=[0, 1, 3, 2])
        x = b.add("Add", x, m.mixed(queries, turned, cache[1], None))
        x = b.add("Add", x, m.feed(m.norm(x), 4 * width))
    logits = b.add("MatMul", m.norm(x), b.weight(width, vocabulary))
    return _model(b, inputs, [logits, *outputs])


def cross_decoder(seed: int, layers: int, width: int, heads: int, length: int, memory: int) -> onnx.ModelProto:
    """A decoder that looks at itself and at an encoder's states (T5, without its relative positions)."""
    m = _Layers(seed, width, heads)
    b = m.b
    causal = b.constant(np.triu(np.full((1, 1, length, length), -1e9, np.float32), 1))
    x = "x"
    for _ in range(layers):
        x = b.add("Add", x, m.attention(m.norm(x), mask=causal))
        x = b.add("Add", x, m.attention(m.norm(x), memory="states"))
        x = b.add("Add", x, m.feed(m.norm(x), 4 * width))
    return _model(b, [_info("x", [1, length, width]), _info("states", [1, memory, width])], [m.norm(x)])


def conformer(seed: int, layers: int, width: int, heads: int, length: int | str) -> onnx.ModelProto:
    """Half feed-forwards around attention and a gated depthwise convolution over time."""
    m = _Layers(seed, width, heads)
    b = m.b
    half = b.constant(0.5)

    def swish(x: str) -> str:
        return b.add("Mul", x, b.add("Sigmoid", x))

    def feed(x: str) -> str:
        return b.add("Mul", m.dense(swish(m.dense(m.norm(x), width, 4 * width)), 4 * width, width), half)

    x = "x"
    for _ in range(layers):
        x = b.add("Add", x, feed(x))
        x = b.add("Add", x, m.attention(m.norm(x)))
        turned = b.add("Transpose", m.norm(x), perm=[0, 2, 1])
        wide = b.add("Conv", turned, b.weight(2 * width, width, 1), b.weight(2 * width))
        left, right = b.add_all("Split", [wide], 2, axis=1)
        gated = b.add("Mul", left, b.add("Sigmoid", right))
        deep = b.add("Conv", gated, b.weight(width, 1, 31), b.weight(width), pads=[15, 15], group=width)
        mixed = b.add("Conv", swish(deep), b.weight(width, width, 1), b.weight(width))
        x = b.add("Add", x, b.add("Transpose", mixed, perm=[0, 2, 1]))
        x = m.norm(b.add("Add", x, feed(x)))
    return _model(b, [_info("x", [1, length, width])], [x])


#: Each model's maker.
ENCODERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "minilm-128": lambda: bert(1, 6, 384, 12, 128),
    "distilbert-128": lambda: bert(2, 6, 768, 12, 128),
    "bert-base-128": lambda: bert(3, 12, 768, 12, 128),
    "minilm-dynamic": lambda: bert(4, 6, 384, 12, "T"),
    "vit-b16": lambda: vit(5, 12, 768, 12, 224, 16),
    "vit-tiny": lambda: vit(6, 12, 192, 3, 224, 16),
    "whisper-tiny": lambda: whisper(7, 4, 384, 6),
    "gpt2-step-256": lambda: decoder_step(8, 12, 768, 12, 256, 50257),
    "t5-like-decoder": lambda: cross_decoder(9, 6, 512, 8, 64, 128),
    "conformer": lambda: conformer(10, 4, 256, 4, 200),
}
