"""Quantized models as onnxruntime.quantization and its graph optimizer write them, of float networks with random weights.

A float network (:data:`NETWORKS`) and a way to write it (:class:`Static`, :class:`Dynamic`, :class:`WeightsOnly`) make a
model; operators that no tool writes alone are single ones. Needs onnxruntime for the first two ways.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models.builder import Builder

__all__ = ["NETWORKS", "QUANTIZED", "SMALL", "Dynamic", "Network", "Quantized", "Static", "WeightsOnly"]

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Network:
    """A float network: its model, and the shape of its only input."""

    model: Callable[[], onnx.ModelProto]
    shape: tuple[int, ...]

    def feeds(self, seed: int = 0) -> Feeds:
        return {"x": np.random.default_rng(seed).standard_normal(self.shape).astype(np.float32)}


# Float networks.


@dataclass
class _Net:
    """The parts of the networks, for values of one to three spatial axes."""

    seed: int
    axes: int = 2
    b: Builder = field(init=False)

    def __post_init__(self) -> None:
        self.b = Builder(self.seed)

    def conv(
        self, x: str, ic: int, oc: int, kernel: int = 3, stride: int = 1, group: int = 1, dilation: int = 1
    ) -> str:
        n = self.axes
        weight = self.b.weight(oc, ic // group, *[kernel] * n)
        pads = [dilation * (kernel - 1) // 2] * (2 * n)
        return self.b.add(
            "Conv",
            *(x, weight, self.b.weight(oc)),
            kernel_shape=[kernel] * n,
            strides=[stride] * n,
            dilations=[dilation] * n,
            group=group,
            pads=pads,
        )

    def relu(self, x: str) -> str:
        return self.b.add("Relu", x)

    def dense(self, x: str, rows: int, columns: int) -> str:
        return self.b.add("Add", self.b.add("MatMul", x, self.b.weight(rows, columns)), self.b.weight(columns))

    def gemm(self, x: str, rows: int, columns: int) -> str:
        return self.b.add("Gemm", x, self.b.weight(columns, rows), self.b.weight(columns), transB=1)

    def flat(self, x: str) -> str:
        return self.b.add("Flatten", self.b.add("GlobalAveragePool", x))

    def norm(self, x: str, width: int) -> str:
        gain = self.b.constant(np.ones(width))
        return self.b.add("LayerNormalization", x, gain, self.b.weight(width), axis=-1)


def _cnn(seed: int, batch: int, size: int, width: int, *, axes: int = 2) -> Network:
    """Residual blocks, a depthwise and a grouped convolution, a dilated one, pools."""
    shape = (batch, 3, *[size] * axes)

    def model() -> onnx.ModelProto:
        n = _Net(seed, axes)
        x = n.relu(n.conv("x", 3, width, stride=2))
        x = n.b.add("MaxPool", x, kernel_shape=[3] * axes, strides=[2] * axes, pads=[1] * (2 * axes))
        for stride in (1, 2):
            inner = n.conv(n.relu(n.conv(x, width, width, stride=stride)), width, width)
            short = x if stride == 1 else n.conv(x, width, width, 1, stride)
            x = n.relu(n.b.add("Add", inner, short))
        deep = n.relu(n.conv(x, width, width, 5 if axes < 3 else 3, group=width))
        grouped = n.conv(n.conv(deep, width, 2 * width, 1), 2 * width, 2 * width, group=2)
        x = n.b.add("LeakyRelu", n.conv(grouped, 2 * width, width, dilation=2), alpha=0.1)
        pooled = n.b.add("AveragePool", x, kernel_shape=[3] * axes, pads=[1] * (2 * axes))
        x = n.b.add("Concat", x, pooled, axis=1)
        return n.b.model({"x": shape}, [n.gemm(n.flat(x), 2 * width, 10)])

    return Network(model, shape)


def _mobile(seed: int, batch: int, size: int, width: int) -> Network:
    """Inverted residuals with Clip, HardSwish, squeeze and excitation."""
    shape = (batch, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        bounds = [n.b.constant(0.0), n.b.constant(6.0)]
        x = n.b.add("HardSwish", n.conv("x", 3, width, stride=2))
        for i in range(3):
            wide = n.b.add("Clip", n.conv(x, width, 4 * width, 1), *bounds)
            deep = n.conv(wide, 4 * width, 4 * width, 3, 1, 4 * width)
            deep = n.b.add("HardSwish", deep) if i else n.b.add("Clip", deep, *bounds)
            if i == 1:
                scale = n.relu(n.conv(n.b.add("GlobalAveragePool", deep), 4 * width, width, 1))
                deep = n.b.add("Mul", deep, n.b.add("HardSigmoid", n.conv(scale, width, 4 * width, 1)))
            x = n.b.add("Add", x, n.conv(deep, 4 * width, width, 1))
        return n.b.model({"x": shape}, [n.gemm(n.flat(x), width, 10)])

    return Network(model, shape)


def _detector(seed: int, size: int, width: int) -> Network:
    """SiLU, splits, a pyramid by Resize and Concat, a transposed convolution, heads that are transposed and joined."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b

        def silu(x: str) -> str:
            return b.add("Mul", x, b.add("Sigmoid", x))

        def split_block(x: str, channels: int) -> str:
            left, right = b.add_all("Split", [silu(n.conv(x, channels, channels, 1))], 2, axis=1)
            inner = silu(n.conv(silu(n.conv(right, channels // 2, channels // 2)), channels // 2, channels // 2))
            joined = b.add("Concat", left, right, b.add("Add", right, inner), axis=1)
            return silu(n.conv(joined, channels // 2 * 3, channels, 1))

        def larger(x: str, mode: str) -> str:
            ways = {"mode": mode, "coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel"}
            if mode == "nearest":
                ways["nearest_mode"] = "floor"
            return b.add("Resize", x, "", b.constant([1, 1, 2, 2]), **ways)

        x = silu(n.conv("x", 3, width, stride=2))
        small = split_block(silu(n.conv(x, width, 2 * width, stride=2)), 2 * width)
        tiny = split_block(silu(n.conv(small, 2 * width, 2 * width, stride=2)), 2 * width)
        pools = [tiny]
        for _ in range(2):
            pools.append(b.add("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4))
        tiny = silu(n.conv(b.add("Concat", *pools, axis=1), 6 * width, 2 * width, 1))
        merged = b.add("Concat", larger(tiny, "nearest"), small, axis=1)
        large = split_block(silu(n.conv(merged, 4 * width, 2 * width, 1)), 2 * width)
        mask = b.add("ConvTranspose", large, b.weight(2 * width, width, 2, 2), b.weight(width), strides=[2, 2])
        mask = n.conv(n.relu(mask), width, 4, 1)
        heads = []
        for level in (large, tiny):
            head = b.add("Transpose", n.conv(silu(n.conv(level, 2 * width, width)), width, 18, 1), perm=[0, 2, 3, 1])
            heads.append(b.add("Reshape", head, b.constant([1, -1, 6], np.int64)))
        boxes, scores = b.add_all("Split", [b.add("Concat", *heads, axis=1), b.constant([4, 2], np.int64)], 2, axis=2)
        wide = larger(n.conv(tiny, 2 * width, 4, 1), "linear")
        return b.model({"x": shape}, [boxes, b.add("Sigmoid", scores), mask, wide])

    return Network(model, shape)


def _segmenter(seed: int, size: int, width: int) -> Network:
    """Grouped convolutions on the way down, transposed ones on the way up, joined with what was there before."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b

        def block(x: str, ic: int, oc: int, stride: int = 1) -> str:
            x = n.relu(n.conv(x, ic, oc, 1))
            return n.relu(n.conv(x, oc, oc, 3, stride, group=oc // 4))

        def larger(x: str, ic: int, oc: int, kernel: int) -> str:
            weight, bias = b.weight(ic, oc, kernel, kernel), b.weight(oc)
            return n.relu(b.add("ConvTranspose", x, weight, bias, strides=[2, 2], pads=[kernel // 2 - 1] * 4))

        whole = block("x", 3, width)
        half = block(whole, width, 2 * width, 2)
        x = b.add("Concat", half, larger(block(half, 2 * width, 4 * width, 2), 4 * width, 2 * width, 4), axis=1)
        x = b.add("Concat", whole, larger(block(x, 4 * width, 2 * width), 2 * width, width, 2), axis=1)
        return b.model({"x": shape}, [n.conv(block(x, 2 * width, width), width, 3, 1)])

    return Network(model, shape)


def _mlp(seed: int, batch: int, sizes: tuple[int, ...]) -> Network:
    shape = (batch, sizes[0])

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        x = "x"
        for i, (rows, columns) in enumerate(itertools.pairwise(sizes)):
            x = n.gemm(x, rows, columns) if i % 2 == 0 else n.dense(x, rows, columns)
            x = n.relu(x) if i % 2 == 0 else n.b.add("Tanh", x)
        return n.b.model({"x": shape}, [n.b.add("Softmax", x, axis=-1)])

    return Network(model, shape)


def _encoder(seed: int, batch: int, length: int, width: int, heads: int, layers: int) -> Network:
    """Layers of attention and feed-forward behind a projection, as exporters write them."""
    shape = (batch, length, width)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b
        split = b.constant([0, 0, heads, width // heads], np.int64)
        x = "x"

        def headed(value: str, perm: list[int]) -> str:
            return b.add("Transpose", b.add("Reshape", value, split), perm=perm)

        for _ in range(layers):
            queries = headed(n.dense(x, width, width), [0, 2, 1, 3])
            keys = headed(n.dense(x, width, width), [0, 2, 3, 1])
            values = headed(n.dense(x, width, width), [0, 2, 1, 3])
            scores = b.add("Div", b.add("MatMul", queries, keys), b.constant((width // heads) ** 0.5))
            mixed = b.add("MatMul", b.add("Softmax", scores, axis=-1), values)
            merged = b.add("Transpose", mixed, perm=[0, 2, 1, 3])
            merged = b.add("Reshape", merged, b.constant([0, 0, width], np.int64))
            x = n.norm(b.add("Add", x, n.dense(merged, width, width)), width)
            wide = n.dense(x, width, 4 * width)
            half = b.add("Add", b.add("Erf", b.add("Div", wide, b.constant(2**0.5))), b.constant(1.0))
            wide = b.add("Mul", b.add("Mul", wide, half), b.constant(0.5))
            x = n.norm(b.add("Add", x, n.dense(wide, 4 * width, width)), width)
        return b.model({"x": shape}, [x])

    return Network(model, shape)


def _recurrent(seed: int, op: str, length: int, width: int) -> Network:
    shape = (length, 1, width)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        gates = {"LSTM": 4, "GRU": 3}[op]
        w, r = n.b.weight(1, gates * width, width), n.b.weight(1, gates * width, width)
        y = n.b.add(op, "x", w, r, n.b.constant(np.zeros((1, 2 * gates * width))), hidden_size=width)
        rows = n.b.add("Squeeze", y, n.b.constant([1], np.int64))
        return n.b.model({"x": shape}, [n.dense(rows, width, 20)])

    return Network(model, shape)


NETWORKS: dict[str, Network] = {
    "cnn": _cnn(1, 1, 32, 24),
    "cnn-odd-b8": _cnn(2, 8, 21, 10),
    "cnn-1d": _cnn(3, 1, 130, 32, axes=1),
    "cnn-3d": _cnn(4, 1, 17, 8, axes=3),
    "mobile": _mobile(5, 1, 40, 16),
    "mobile-odd-b8": _mobile(6, 8, 23, 9),
    "detector": _detector(7, 64, 16),
    "segmenter": _segmenter(13, 28, 16),
    "mlp-b1": _mlp(8, 1, (64, 130, 77, 10)),
    "mlp-b8": _mlp(9, 8, (33, 128, 65, 31, 10)),
    "encoder": _encoder(10, 1, 19, 64, 4, 2),
    "encoder-b8": _encoder(11, 8, 16, 48, 3, 1),
    "lstm": _recurrent(12, "LSTM", 9, 32),
    "cnn-wide": _cnn(20, 1, 224, 128),
    "mobile-wide": _mobile(21, 1, 224, 32),
    "detector-320": _detector(22, 320, 32),
    "segmenter-256": _segmenter(27, 256, 32),
    "mlp-wide": _mlp(23, 1, (1024, 2048, 2048, 1000)),
    "encoder-minilm": _encoder(24, 1, 128, 384, 12, 6),
    "encoder-bert": _encoder(25, 1, 128, 768, 12, 4),
    "lstm-wide": _recurrent(26, "LSTM", 50, 512),
}


# Ways to write them.


@contextlib.contextmanager
def _quiet() -> Iterator[Path]:
    """A folder for the tool's files, with its advice left out."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    finally:
        root.setLevel(level)


@dataclass(frozen=True)
class Static:
    """Scales of activations by calibration; the zero points of uint8 codes are anywhere, of `symmetric` ones 128.

    `microsoft`: by that domain's operators.
    """

    qdq: bool = True
    activation: str = "uint8"
    weight: str = "int8"
    per_channel: bool = False
    reduce_range: bool = False
    symmetric: bool = False
    microsoft: bool = False

    def __call__(self, network: Network) -> onnx.ModelProto:
        from onnxruntime import quantization

        kinds = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}
        samples = iter([network.feeds(seed) for seed in (100, 101)])

        class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
            def get_next(self) -> Feeds | None:
                return next(samples, None)

        with _quiet() as folder:
            onnx.save(network.model(), folder / "float.onnx")
            quantization.quantize_static(
                folder / "float.onnx",
                folder / "codes.onnx",
                Reader(),
                quant_format=quantization.QuantFormat.QDQ if self.qdq else quantization.QuantFormat.QOperator,
                activation_type=kinds[self.activation],
                weight_type=kinds[self.weight],
                per_channel=self.per_channel,
                reduce_range=self.reduce_range,
                extra_options={"ActivationSymmetric": self.symmetric, "UseQDQContribOps": self.microsoft},
            )
            return onnx.load(folder / "codes.onnx")


@dataclass(frozen=True)
class Dynamic:
    """Scales of activations at run time; `optimized`: as ONNX Runtime's optimizer fuses that."""

    weight: str = "int8"
    per_channel: bool = False
    optimized: bool = False

    def __call__(self, network: Network) -> onnx.ModelProto:
        import onnxruntime
        from onnxruntime import quantization

        kinds = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}
        with _quiet() as folder:
            onnx.save(network.model(), folder / "float.onnx")
            quantization.quantize_dynamic(
                folder / "float.onnx",
                folder / "codes.onnx",
                per_channel=self.per_channel,
                weight_type=kinds[self.weight],
            )
            if not self.optimized:
                return onnx.load(folder / "codes.onnx")
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            options.optimized_model_filepath = str(folder / "fused.onnx")
            onnxruntime.InferenceSession(str(folder / "codes.onnx"), options, providers=["CPUExecutionProvider"])
            return onnx.load(folder / "fused.onnx")


def _blocks(weight: Array, size: int, bits: int, *, symmetric: bool) -> tuple[Array, Array, Array | None]:
    """Codes [N, blocks, size], scales and zero points [N, blocks] of a weight [K, N]."""
    depth, columns = weight.shape
    blocks = -(-depth // size)
    padded = np.zeros((columns, blocks * size), np.float32)
    padded[:, :depth] = weight.T
    parts = padded.reshape(columns, blocks, size)
    levels, middle = (1 << bits) - 1, 1 << (bits - 1)
    if symmetric:
        scale = np.abs(parts).max(-1) / (middle - 1)
        zero = np.full_like(scale, middle)
    else:
        low, high = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
        scale = (high - low) / levels
        zero = np.rint(-low / np.where(scale > 0, scale, 1)).clip(0, levels)
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    codes = np.rint(parts / scale[..., None] + zero[..., None]).clip(0, levels).astype(np.uint8)
    return codes, scale, None if symmetric else zero.astype(np.uint8)


def _packed(codes: Array, bits: int) -> Array:
    """Codes of four bits, two to a byte, the first in the lower half; of eight bits as they are."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], -1)
    packed: Array = codes[..., ::2] | codes[..., 1::2] << 4
    return packed


@dataclass(frozen=True)
class WeightsOnly:
    """Products by constants with weights in blocks along the sum: MatMulNBits, or `qdq`: a DequantizeLinear."""

    bits: int = 4
    block: int = 32
    symmetric: bool = True
    qdq: bool = False
    accuracy_level: int = 0

    def __call__(self, network: Network) -> onnx.ModelProto:
        model = network.model()
        constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        nodes = []
        for node in model.graph.node:
            weight = constants.get(node.input[1]) if node.op_type == "MatMul" else None
            nodes += [node] if weight is None else self._product(model.graph, node, weight)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        del model.opset_import[:]
        model.opset_import.extend([helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)])
        model.ir_version = 10
        used = {name for node in nodes for name in node.input}
        kept = [c for c in model.graph.initializer if c.name in used]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        return model

    def _product(self, graph: onnx.GraphProto, node: onnx.NodeProto, weight: Array) -> list[onnx.NodeProto]:
        stem = node.input[1]
        codes, scale, zero = _blocks(weight, self.block, self.bits, symmetric=self.symmetric)
        columns = codes.shape[0]

        def constant(name: str, value: Array) -> str:
            graph.initializer.append(numpy_helper.from_array(value, f"{stem}_{name}"))
            return f"{stem}_{name}"

        if not self.qdq:
            inputs = [node.input[0], constant("codes", _packed(codes, self.bits)), constant("scale", scale)]
            if zero is not None:
                inputs.append(constant("zero", _packed(zero, self.bits).reshape(-1)))
            attributes = {"K": weight.shape[0], "N": columns, "bits": self.bits, "block_size": self.block}
            attributes["accuracy_level"] = self.accuracy_level
            return [helper.make_node("MatMulNBits", inputs, list(node.output), domain=MICROSOFT, **attributes)]
        kind = {4: TensorProto.UINT4, 8: TensorProto.UINT8}[self.bits]
        rows = codes.reshape(columns, -1)[:, : weight.shape[0]].T
        points = np.full(scale.shape, 1 << (self.bits - 1)) if zero is None else zero
        for name, value in (("codes", rows), ("zero", points.T)):
            data = np.ascontiguousarray(value, np.uint8)
            raw = _packed(data.reshape(-1), self.bits).tobytes()
            graph.initializer.append(helper.make_tensor(f"{stem}_{name}", kind, data.shape, raw, raw=True))
        constant("scale", np.ascontiguousarray(scale.T))
        names = [f"{stem}_{name}" for name in ("codes", "scale", "zero")]
        numbers = helper.make_node("DequantizeLinear", names, [f"{stem}_real"], axis=0, block_size=self.block)
        product = helper.make_node("MatMul", [node.input[0], f"{stem}_real"], list(node.output))
        return [numbers, product]


# What is measured and tested.


@dataclass(frozen=True)
class Quantized:
    """A model and what feeds it."""

    model: Callable[[], onnx.ModelProto]
    feeds: Callable[[], Feeds]


Way = Callable[[Network], onnx.ModelProto]


def _written(network: str, way: Way) -> Quantized:
    return Quantized(lambda: way(NETWORKS[network]), lambda: NETWORKS[network].feeds(7))


WAYS: dict[str, Way] = {
    "qdq-u8s8": Static(),
    "qdq-u8s8-channel": Static(per_channel=True),
    "qdq-s8s8": Static(activation="int8", per_channel=True),
    "qdq-s8s8-symmetric": Static(activation="int8", symmetric=True),
    "qdq-u8u8": Static(weight="uint8"),
    "qdq-u8u8-symmetric": Static(weight="uint8", symmetric=True),
    "qdq-u8s8-reduced": Static(reduce_range=True, per_channel=True),
    "qop-u8s8": Static(qdq=False),
    "qop-u8s8-channel": Static(qdq=False, per_channel=True),
    "qop-u8u8": Static(qdq=False, weight="uint8"),
    "qop-s8s8": Static(qdq=False, activation="int8", per_channel=True),
    "qdq-u8s8-microsoft": Static(microsoft=True),
}
DYNAMIC_WAYS: dict[str, Way] = {
    "dynamic-s8": Dynamic(),
    "dynamic-s8-channel": Dynamic(per_channel=True),
    "dynamic-u8": Dynamic("uint8"),
    "dynamic-s8-fused": Dynamic(optimized=True),
    "dynamic-u8-fused": Dynamic("uint8", optimized=True),
}
WEIGHTS_ONLY: dict[str, Way] = {
    "int4-32": WeightsOnly(),
    "int4-32-zeros": WeightsOnly(symmetric=False),
    "int4-128": WeightsOnly(block=128),
    "int8-32": WeightsOnly(bits=8),
    "int8-64-zeros": WeightsOnly(bits=8, block=64, symmetric=False),
    "int4-qdq-16": WeightsOnly(block=16, qdq=True),
    "int8-qdq-32-zeros": WeightsOnly(bits=8, qdq=True, symmetric=False),
}


def _all(networks: dict[str, list[str]], ways: dict[str, Way]) -> dict[str, Quantized]:
    return {f"{name}-{way}": _written(name, ways[way]) for name, chosen in networks.items() for way in chosen}


_EVERY, _DYNAMIC = list(WAYS), list(DYNAMIC_WAYS)
#: Of milliseconds each: members of the tests.
SMALL: dict[str, Quantized] = {
    **_all(dict.fromkeys(("cnn", "mobile", "mlp-b8", "encoder"), _EVERY), WAYS),
    **_all(dict.fromkeys(("cnn-odd-b8", "mobile-odd-b8", "detector", "mlp-b1"), _EVERY[:3] + _EVERY[7:9]), WAYS),
    **_all(
        {name: ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"] for name in ("cnn-1d", "cnn-3d", "encoder-b8", "segmenter")}, WAYS
    ),
    **_all(dict.fromkeys(("mlp-b1", "mlp-b8", "encoder", "encoder-b8"), _DYNAMIC), DYNAMIC_WAYS),
    **_all({name: ["dynamic-u8", "dynamic-s8"] for name in ("cnn-odd-b8", "cnn-1d", "lstm")}, DYNAMIC_WAYS),
    **_all({name: list(WEIGHTS_ONLY) for name in ("mlp-b1", "encoder")}, WEIGHTS_ONLY),
}
#: Those and larger ones, whose times say something.
QUANTIZED: dict[str, Quantized] = {
    **SMALL,
    **_all({"cnn-wide": ["qdq-u8s8-channel", "qdq-s8s8", "qop-u8s8"]}, WAYS),
    **_all({"mobile-wide": ["qdq-u8s8-channel", "qop-u8s8"]}, WAYS),
    **_all({"detector-320": ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"]}, WAYS),
    **_all({"segmenter-256": ["qdq-u8s8-channel", "qdq-s8s8"]}, WAYS),
    **_all({"mlp-wide": ["qdq-u8s8", "qop-u8s8"]}, WAYS),
    **_all({"encoder-minilm": ["qdq-u8s8", "qdq-s8s8", "qop-u8s8"], "encoder-bert": ["qdq-u8s8"]}, WAYS),
    **_all(dict.fromkeys(("encoder-minilm", "encoder-bert"), _DYNAMIC), DYNAMIC_WAYS),
    **_all({"lstm-wide": ["dynamic-s8"], "mlp-wide": _DYNAMIC}, DYNAMIC_WAYS),
    **_all({name: list(WEIGHTS_ONLY) for name in ("mlp-wide", "encoder-minilm")}, WEIGHTS_ONLY),
}
