"""Generators and decoders that enlarge by transposed convolutions, as exporters write them; random weights, seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import onnx

from benchmarks.models.builder import Builder

__all__ = ["DECODERS"]


class _Decoder:
    """The parts of decoders, for values of one to three spatial axes."""

    def __init__(self, seed: int, axes: int = 2) -> None:
        self.b = Builder(seed)
        self.axes = axes

    def up(
        self,
        x: str,
        ic: int,
        oc: int,
        kernel: int,
        stride: int,
        pad: int = 0,
        extra: int = 0,
        group: int = 1,
        dilation: int = 1,
        *,
        bias: bool = True,
        **attributes: object,
    ) -> str:
        b, n = self.b, self.axes
        operands = [x, b.weight(ic, oc // group, *[kernel] * n)]
        if bias:
            operands.append(b.weight(oc))
        window = {"strides": [stride] * n, "dilations": [dilation] * n, "group": group}
        if not attributes:
            attributes = {"pads": [pad] * (2 * n), "output_padding": [extra] * n}
        return b.add("ConvTranspose", *operands, **window, **attributes)

    def conv(self, x: str, ic: int, oc: int, kernel: int, stride: int = 1, dilation: int = 1) -> str:
        b, n = self.b, self.axes
        pads = [(kernel - 1) * dilation // 2] * (2 * n)
        weight, bias = b.weight(oc, ic, *[kernel] * n), b.weight(oc)
        return b.add("Conv", x, weight, bias, strides=[stride] * n, dilations=[dilation] * n, pads=pads)

    def norm(self, x: str, channels: int) -> str:
        b = self.b
        variance = b.constant(np.linspace(0.5, 1.5, channels))
        return b.add("BatchNormalization", x, b.weight(channels), b.weight(channels), b.weight(channels), variance)

    def relu(self, x: str) -> str:
        return self.b.add("Relu", x)

    def leaky(self, x: str) -> str:
        return self.b.add("LeakyRelu", x, alpha=0.1)


def dcgan(seed: int, batch: int | str, widths: Sequence[int], image: int, latent: int = 100) -> onnx.ModelProto:
    """From one pixel: kernels of 4 with a stride of 2, batch norms between."""
    d = _Decoder(seed)
    x = d.relu(d.norm(d.up("x", latent, widths[0], 4, 1, bias=False), widths[0]))
    for ic, oc in pairwise(widths):
        x = d.relu(d.norm(d.up(x, ic, oc, 4, 2, 1, bias=False), oc))
    y = d.b.add("Tanh", d.up(x, widths[-1], image, 4, 2, 1, bias=False))
    return d.b.model({"x": [batch, latent, 1, 1]}, [y])


def infogan(seed: int, batch: int) -> onnx.ModelProto:
    """A dense layer, then kernels of 5 with a stride of 2 and an odd padding."""
    d = _Decoder(seed)
    b = d.b
    x = d.relu(b.add("Gemm", "x", b.weight(64, 256 * 49), b.weight(256 * 49)))
    x = b.add("Reshape", x, b.constant([batch, 256, 7, 7], np.int64))
    x = d.leaky(d.up(x, 256, 128, 5, 1, 2))
    x = d.leaky(d.up(x, 128, 64, 5, 2, 2, 1))
    return b.model({"x": [batch, 64]}, [b.add("Sigmoid", d.up(x, 64, 1, 5, 2, 2, 1))])


def autoencoder(seed: int, batch: int, size: int, widths: Sequence[int], kernel: int, extra: int) -> onnx.ModelProto:
    """Strided convolutions down, transposed ones up."""
    d = _Decoder(seed)
    x = "x"
    for ic, oc in zip([3, *widths], widths, strict=False):
        x = d.relu(d.conv(x, ic, oc, 3, 2))
    steps = list(reversed(widths))
    for ic, oc in zip(steps, [*steps[1:], 3], strict=True):
        x = d.up(x, ic, oc, kernel, 2, (kernel - 1) // 2 if kernel > 2 else 0, extra)
        x = d.relu(x) if oc != 3 else d.b.add("Sigmoid", x)
    return d.b.model({"x": [batch, 3, size, size]}, [x])


def vae_stride_one(seed: int, size: int, widths: Sequence[int]) -> onnx.ModelProto:
    """Transposed convolutions of stride one, which only turn their weights round."""
    d = _Decoder(seed)
    x = "x"
    for ic, oc in pairwise(widths):
        x = d.relu(d.up(x, ic, oc, 3, 1, 1))
    return d.b.model({"x": [1, widths[0], size, size]}, [x])


def unet(
    seed: int, batch: int | str, size: int, width: int, depth: int, kernel: int = 2, channels: int = 1
) -> onnx.ModelProto:
    """Two convolutions a level, skips, transposed convolutions of the stride's size or a little larger."""
    d = _Decoder(seed)

    def double(x: str, ic: int, oc: int) -> str:
        return d.relu(d.norm(d.conv(d.relu(d.norm(d.conv(x, ic, oc, 3), oc)), oc, oc, 3), oc))

    x = double("x", channels, width)
    skips = []
    for level in range(depth):
        skips.append(x)
        pooled = d.b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = double(pooled, width << level, width << (level + 1))
    for level in reversed(range(depth)):
        wide, narrow = width << (level + 1), width << level
        x = d.up(x, wide, narrow, kernel, 2, (kernel - 2) // 2)
        x = double(d.b.add("Concat", skips[level], x, axis=1), wide, narrow)
    return d.b.model({"x": [batch, channels, size, size]}, [d.conv(x, width, 2, 1)])


def unet_3d(seed: int, size: int, width: int) -> onnx.ModelProto:
    """One level of a U-Net of volumes."""
    d = _Decoder(seed, 3)
    skip = d.relu(d.conv("x", 1, width, 3))
    x = d.relu(d.conv(d.b.add("MaxPool", skip, kernel_shape=[2] * 3, strides=[2] * 3), width, 2 * width, 3))
    x = d.relu(d.up(d.relu(d.conv(x, 2 * width, 2 * width, 3)), 2 * width, width, 2, 2))
    x = d.relu(d.conv(d.b.add("Concat", skip, x, axis=1), 2 * width, width, 3))
    x = d.relu(d.up(x, width, width // 2, 3, 2, 1, 1))
    return d.b.model({"x": [1, 1, size, size, size]}, [d.conv(x, width // 2, 2, 1)])


def vocoder(
    seed: int, mels: int, width: int, ratios: Sequence[tuple[int, int]], frames: int | str, dilations: Sequence[int]
) -> onnx.ModelProto:
    """Kernels of twice the ratio enlarge, residual blocks of dilated convolutions follow: HiFi-GAN and MelGAN."""
    d = _Decoder(seed, 1)
    b = d.b
    x = d.conv("x", mels, width, 7)
    for kernel, ratio in ratios:
        x = d.up(d.leaky(x), width, width // 2, kernel, ratio, (kernel - ratio) // 2, (kernel - ratio) % 2)
        width //= 2
        branches = []
        for size in (3, 7):
            y = x
            for dilation in dilations:
                inner = d.conv(d.leaky(y), width, width, size, dilation=dilation)
                y = b.add("Add", d.conv(d.leaky(inner), width, width, size), y)
            branches.append(y)
        x = b.add("Div", b.add("Add", *branches), b.constant(2.0))
    return b.model({"x": [1, mels, frames]}, [b.add("Tanh", d.conv(d.leaky(x), width, 1, 7))])


def _bilinear(channels: int, kernel: int, *, depthwise: bool) -> np.ndarray:
    factor = (kernel + 1) // 2
    centre = factor - 1 if kernel % 2 else factor - 0.5
    line = 1 - np.abs(np.arange(kernel) - centre) / factor
    filters = np.zeros((channels, 1 if depthwise else channels, kernel, kernel), np.float32)
    for channel in range(channels):
        filters[channel, 0 if depthwise else channel] = np.outer(line, line)
    return filters


def fcn(seed: int, size: int, classes: int, strides: Sequence[int], *, depthwise: bool) -> onnx.ModelProto:
    """Heads of segmentation whose transposed convolutions begin as bilinear interpolation."""
    d = _Decoder(seed)
    b = d.b
    x, width, scores = "x", 3, []
    for oc in (32, 64, 128):
        x = d.relu(d.conv(d.relu(d.conv(x, width, oc, 3, 2)), oc, oc, 3))
        width = oc
        scores.append(d.conv(x, oc, classes, 1))
    y = scores[-1]
    for i, stride in enumerate(strides):
        kernel = 2 * stride
        weight = b.constant(_bilinear(classes, kernel, depthwise=depthwise))
        group = classes if depthwise else 1
        y = b.add("ConvTranspose", y, weight, strides=[stride] * 2, pads=[stride // 2] * 4, group=group)
        if i + 2 <= len(scores) and i + 1 < len(strides):
            y = b.add("Add", y, scores[-2 - i])
    return b.model({"x": [1, 3, size, size]}, [y])


def pix2pix(seed: int, size: int, width: int, depth: int) -> onnx.ModelProto:
    """Kernels of 4 down and up to few pixels, skips, leaky activations."""
    d = _Decoder(seed)
    b = d.b
    x, skips, channels = "x", [], 3
    for level in range(depth):
        oc = min(width << level, 8 * width)
        weight = b.weight(oc, channels, 4, 4)
        x = d.leaky(b.add("Conv", x, weight, b.weight(oc), strides=[2, 2], pads=[1] * 4))
        skips.append((x, oc))
        channels = oc
    for level in reversed(range(depth)):
        oc = skips[level - 1][1] if level else 3
        x = d.up(x, channels, oc, 4, 2, 1)
        if level:
            x = b.add("Concat", d.relu(d.norm(x, oc)), skips[level - 1][0], axis=1)
            channels = 2 * oc
    return b.model({"x": [1, 3, size, size]}, [b.add("Tanh", x)])


def super_resolution(seed: int, size: int, width: int, scale: int) -> onnx.ModelProto:
    """FSRCNN: a narrow trunk and one large transposed convolution to the image."""
    d = _Decoder(seed)
    x = d.relu(d.conv("x", 1, width, 5))
    x = d.relu(d.conv(x, width, 12, 1))
    for _ in range(4):
        x = d.relu(d.conv(x, 12, 12, 3))
    x = d.relu(d.conv(x, 12, width, 1))
    return d.b.model({"x": [1, 1, size, size]}, [d.up(x, width, 1, 9, scale, 4, scale - 1)])


def grouped(seed: int, batch: int, size: tuple[int, int], width: int, groups: int) -> onnx.ModelProto:
    """Groups, dilations, odd sizes, sizes that the model gives."""
    d = _Decoder(seed)
    x = d.relu(d.up("x", width, width, 3, 2, 1, 1, groups))
    x = d.relu(d.up(x, width, width, 3, 2, 2, 0, 1, 2))
    x = d.relu(d.up(x, width, width // 2, 5, 3, group=groups, auto_pad="SAME_UPPER"))
    x = d.leaky(d.up(x, width // 2, 16, 2, 1))
    return d.b.model({"x": [batch, width, *size]}, [x])


#: Each model's maker.
DECODERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "dcgan-64": lambda: dcgan(1, 1, [512, 256, 128, 64], 3),
    "dcgan-64-batch4": lambda: dcgan(2, 4, [512, 256, 128, 64], 3),
    "dcgan-128": lambda: dcgan(3, 1, [1024, 512, 256, 128, 64], 3),
    "dcgan-28": lambda: dcgan(4, 1, [128, 64, 32], 1, 32),
    "infogan": lambda: infogan(5, 1),
    "infogan-batch4": lambda: infogan(6, 4),
    "autoencoder-k3": lambda: autoencoder(7, 1, 128, [32, 64, 128], 3, 1),
    "autoencoder-k2": lambda: autoencoder(8, 4, 64, [16, 32, 64], 2, 0),
    "autoencoder-k4": lambda: autoencoder(9, 1, 256, [24, 48, 96], 4, 0),
    "vae-stride-1": lambda: vae_stride_one(10, 40, [64, 128, 96, 64, 3]),
    "unet-256": lambda: unet(11, 1, 256, 16, 4),
    "unet-k4": lambda: unet(12, 1, 128, 32, 3, 4, 3),
    "unet-batch4": lambda: unet(13, 4, 96, 24, 3),
    "unet-3d": lambda: unet_3d(14, 32, 16),
    "hifigan": lambda: vocoder(15, 80, 256, [(16, 8), (16, 8), (4, 2), (4, 2)], 40, [1, 3, 5]),
    "hifigan-dynamic": lambda: vocoder(16, 80, 128, [(16, 8), (16, 8), (4, 2), (4, 2)], "T", [1, 3]),
    "melgan": lambda: vocoder(17, 80, 256, [(11, 5), (8, 4), (6, 3)], 61, [1, 3]),
    "fcn-8s": lambda: fcn(18, 224, 21, [2, 2, 4], depthwise=False),
    "fcn-bilinear": lambda: fcn(19, 96, 19, [2, 2, 8], depthwise=True),
    "fcn-large": lambda: fcn(20, 160, 21, [8], depthwise=False),
    "pix2pix": lambda: pix2pix(21, 128, 32, 6),
    "fsrcnn-x2": lambda: super_resolution(22, 96, 56, 2),
    "fsrcnn-x3": lambda: super_resolution(23, 75, 32, 3),
    "grouped": lambda: grouped(24, 1, (15, 21), 64, 4),
    "grouped-batch4": lambda: grouped(25, 4, (9, 7), 96, 3),
}
