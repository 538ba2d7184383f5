"""Float networks with random weights that :mod:`benchmarks.models.quantized` writes in codes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from benchmarks.models.builder import Builder

__all__ = ["NETWORKS", "Feeds", "Network"]

Feeds = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Network:
    """A float network: its model, and the shape of its only input."""

    model: Callable[[], onnx.ModelProto]
    shape: tuple[int, ...]

    def feeds(self, seed: int = 0) -> Feeds:
        return {"x": np.random.default_rng(seed).standard_normal(self.shape).astype(np.float32)}


@dataclass
class _Net:
    """The parts of the networks, for values of one to three spatial axes."""

    seed: int
    axes: int = 2
    b: Builder = field(init=False)

    def __post_init__(self) -> None:
        self.b = Builder(self.seed)

    def conv(
        self,
        x: str,
        ic: int,
        oc: int,
        kernel: int | tuple[int, ...] = 3,
        stride: int = 1,
        group: int = 1,
        dilation: int = 1,
    ) -> str:
        n = self.axes
        sizes = [kernel] * n if isinstance(kernel, int) else list(kernel)
        weight = self.b.weight(oc, ic // group, *sizes)
        return self.b.add(
            "Conv",
            *(x, weight, self.b.weight(oc)),
            kernel_shape=sizes,
            strides=[stride] * n,
            dilations=[dilation] * n,
            group=group,
            pads=[dilation * (k - 1) // 2 for k in sizes] * 2,
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


def _gated(n: _Net, x: str, channels: int, inner: int, gate: str) -> str:
    """Squeeze and excitation: each channel by a function of all channels' means."""
    scale = n.relu(n.conv(n.b.add("GlobalAveragePool", x), channels, inner, 1))
    return n.b.add("Mul", x, n.b.add(gate, n.conv(scale, inner, channels, 1)))


def _inverted(seed: int, size: int, width: int, activation: str, gate: str) -> Network:
    """Inverted residuals with depthwise kernels of 3 and 5, and gates: MobileNet v3 by HardSwish, EfficientNet by SiLU."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)

        def act(x: str) -> str:
            return n.b.add("HardSwish", x) if activation == "HardSwish" else n.b.add("Mul", x, n.b.add("Sigmoid", x))

        x = act(n.conv("x", 3, width, stride=2))
        channels = width
        for kernel, stride, wider in ((3, 2, 1), (5, 2, 2), (5, 1, 2), (3, 2, 4), (5, 1, 4), (5, 2, 6), (5, 1, 6)):
            inner, out = 4 * channels, wider * width
            deep = act(n.conv(act(n.conv(x, channels, inner, 1)), inner, inner, kernel, stride, inner))
            if kernel == 5:
                deep = _gated(n, deep, inner, channels, gate)
            thin = n.conv(deep, inner, out, 1)
            x = n.b.add("Add", x, thin) if stride == 1 and out == channels else thin
            channels = out
        x = act(n.conv(x, channels, 4 * channels, 1))
        return n.b.model({"x": shape}, [n.gemm(n.flat(x), 4 * channels, 100)])

    return Network(model, shape)


def _shuffle(seed: int, size: int, width: int) -> Network:
    """Halves of the channels of which one is computed with, joined and shuffled."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b

        def side(x: str, ic: int, oc: int, stride: int) -> str:
            deep = n.conv(n.relu(n.conv(x, ic, oc, 1)), oc, oc, 3, stride, oc)
            return n.relu(n.conv(deep, oc, oc, 1))

        def shuffled(parts: list[str], channels: int, pixels: int) -> str:
            split = b.constant([1, 2, channels // 2, pixels, pixels], np.int64)
            x = b.add("Transpose", b.add("Reshape", b.add("Concat", *parts, axis=1), split), perm=[0, 2, 1, 3, 4])
            return b.add("Reshape", x, b.constant([1, channels, pixels, pixels], np.int64))

        x = b.add("MaxPool", n.relu(n.conv("x", 3, width, stride=2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        channels, pixels = width, size // 4
        for wide in (2 * width, 4 * width, 8 * width):
            pixels //= 2
            left = n.relu(n.conv(n.conv(x, channels, channels, 3, 2, channels), channels, wide // 2, 1))
            x = shuffled([left, side(x, channels, wide // 2, 2)], wide, pixels)
            for _ in range(2):
                left, right = b.add_all("Split", [x], 2, axis=1)
                x = shuffled([left, side(right, wide // 2, wide // 2, 1)], wide, pixels)
            channels = wide
        return b.model({"x": shape}, [n.gemm(n.flat(x), channels, 100)])

    return Network(model, shape)


def _unet(seed: int, size: int, width: int) -> Network:
    """Pairs of convolutions, pools on the way down, transposed convolutions on the way up."""
    shape = (1, 1, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b

        def pair(x: str, ic: int, oc: int) -> str:
            return n.relu(n.conv(n.relu(n.conv(x, ic, oc)), oc, oc))

        x, ways, channels = pair("x", 1, width), [], width
        for _ in range(2):
            ways.append(x)
            x = pair(b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), channels, 2 * channels)
            channels *= 2
        for way in reversed(ways):
            half = channels // 2
            x = b.add("ConvTranspose", x, b.weight(channels, half, 2, 2), b.weight(half), strides=[2, 2])
            x = pair(b.add("Concat", way, x, axis=1), channels, half)
            channels = half
        return b.model({"x": shape}, [b.add("Sigmoid", n.conv(x, channels, 1, 1))])

    return Network(model, shape)


def _keyword(seed: int, width: int) -> Network:
    """Depthwise separable convolutions over the spectrum of a second of speech."""
    shape = (1, 1, 49, 10)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        x = n.relu(n.conv("x", 1, width, (9, 3), 2))
        for _ in range(4):
            x = n.relu(n.conv(n.relu(n.conv(x, width, width, 3, 1, width)), width, width, 1))
        return n.b.model({"x": shape}, [n.b.add("Softmax", n.gemm(n.flat(x), width, 12), axis=-1)])

    return Network(model, shape)


def _plain(seed: int, size: int, width: int) -> Network:
    """Convolutions of 3x3 and pools, then dense layers: VGG."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        x, channels = "x", 3
        for wide, layers in ((width, 1), (2 * width, 1), (4 * width, 2), (8 * width, 2)):
            for _ in range(layers):
                x = n.relu(n.conv(x, channels, wide))
                channels = wide
            x = n.b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        rows = channels * (size // 16) ** 2
        x = n.relu(n.gemm(n.b.add("Flatten", x), rows, 4 * width))
        return n.b.model({"x": shape}, [n.gemm(x, 4 * width, 100)])

    return Network(model, shape)


def _branches(seed: int, size: int, width: int) -> Network:
    """Branches of kernels of all forms and of a mean, joined: Inception."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        b = n.b

        def conv(x: str, ic: int, oc: int, kernel: int | tuple[int, ...] = 1, stride: int = 1) -> str:
            return n.relu(n.conv(x, ic, oc, kernel, stride))

        x = conv(conv("x", 3, width, 3, 2), width, 2 * width, 3)
        x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        channels = 2 * width
        for _ in range(2):
            wide = conv(conv(x, channels, width), width, width, 5)
            deep = conv(conv(conv(x, channels, width), width, width, 3), width, width, 3)
            line = conv(conv(conv(x, channels, width), width, width, (1, 7)), width, width, (7, 1))
            mean = conv(b.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4), channels, width)
            x = b.add("Concat", conv(x, channels, width), wide, deep, line, mean, axis=1)
            channels = 5 * width
        less = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        x = b.add("Concat", less, conv(x, channels, width, 3, 2), axis=1)
        return b.model({"x": shape}, [n.gemm(n.flat(x), channels + width, 100)])

    return Network(model, shape)


def _grouped(seed: int, size: int, width: int, groups: int) -> Network:
    """Bottlenecks whose middle convolution has groups: ResNeXt."""
    shape = (1, 3, size, size)

    def model() -> onnx.ModelProto:
        n = _Net(seed)
        x = n.relu(n.conv("x", 3, width, stride=2))
        channels = width
        for out, stride in ((2 * width, 1), (2 * width, 1), (4 * width, 2), (4 * width, 1)):
            inner = n.relu(n.conv(x, channels, out // 2, 1))
            inner = n.conv(n.relu(n.conv(inner, out // 2, out // 2, 3, stride, groups)), out // 2, out, 1)
            short = x if channels == out else n.conv(x, channels, out, 1, stride)
            x = n.relu(n.b.add("Add", inner, short))
            channels = out
        return n.b.model({"x": shape}, [n.gemm(n.flat(x), channels, 100)])

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
    "mobile-v3": _inverted(30, 64, 8, "HardSwish", "HardSigmoid"),
    "efficient": _inverted(31, 48, 8, "SiLU", "Sigmoid"),
    "shuffle": _shuffle(32, 64, 16),
    "unet": _unet(33, 24, 8),
    "keyword": _keyword(34, 64),
    "plain": _plain(35, 32, 12),
    "branches": _branches(36, 32, 12),
    "grouped": _grouped(37, 32, 32, 8),
    "mlp-b1": _mlp(8, 1, (64, 130, 77, 10)),
    "mlp-b8": _mlp(9, 8, (33, 128, 65, 31, 10)),
    "encoder": _encoder(10, 1, 19, 64, 4, 2),
    "encoder-b8": _encoder(11, 8, 16, 48, 3, 1),
    "lstm": _recurrent(12, "LSTM", 9, 32),
    "cnn-wide": _cnn(20, 1, 224, 128),
    "mobile-wide": _mobile(21, 1, 224, 32),
    "detector-320": _detector(22, 320, 32),
    "segmenter-256": _segmenter(27, 256, 32),
    "mobile-v3-wide": _inverted(40, 192, 20, "HardSwish", "HardSigmoid"),
    "efficient-wide": _inverted(41, 192, 20, "SiLU", "Sigmoid"),
    "shuffle-wide": _shuffle(42, 192, 32),
    "unet-wide": _unet(43, 128, 24),
    "keyword-wide": _keyword(44, 200),
    "plain-wide": _plain(45, 128, 32),
    "branches-wide": _branches(46, 128, 48),
    "grouped-wide": _grouped(47, 128, 128, 32),
    "mlp-wide": _mlp(23, 1, (1024, 2048, 2048, 1000)),
    "encoder-minilm": _encoder(24, 1, 128, 384, 12, 6),
    "encoder-bert": _encoder(25, 1, 128, 768, 12, 4),
    "lstm-wide": _recurrent(26, "LSTM", 50, 512),
}
