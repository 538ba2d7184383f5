"""Train the network of ``neo demo`` on scikit-learn's digits, in NumPy, and write it as ONNX.

Usage: ``python tools/train_digits.py [--epochs 40] [--seed 7] [--output python/neo/demo]``

Needs numpy, onnx and scikit-learn. Writes ``digits.onnx`` (convolution, depthwise separable convolution, pooling and a
residual addition; batch normalisation is left unfolded) and ``digits.npz`` with 64 test images, chosen evenly by label
and never by what the network makes of them, and their labels. The same seed gives the same files on one machine;
another BLAS rounds differently and may move the weights' last bits.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

Array = NDArray[Any]

TEST_IMAGES = 400
SHIPPED_IMAGES = 64


class Layer(Protocol):
    """A step of the network that knows its own gradient and its ONNX nodes."""

    params: dict[str, Array]
    grads: dict[str, Array]

    def forward(self, x: Array, training: bool) -> Array:
        """Compute the output and remember what backward needs."""
        ...

    def backward(self, dy: Array) -> Array:
        """Set the gradients of the parameters and return that of the input."""
        ...

    def export(self, graph: Exporter, x: str) -> str:
        """Add the layer's nodes after value x and return its output's name."""
        ...


class Exporter:
    """Collects nodes and constants of an ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: Array) -> str:
        """Add an initializer."""
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node named after its only output."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output


def windows(x: Array) -> Array:
    """Return the 3x3 neighbourhoods of a zero-padded NCHW array as N, C, 9, H, W."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty((n, c, 9, h, w), x.dtype)
    for tap in range(9):
        dy, dx = divmod(tap, 3)
        out[:, :, tap] = padded[:, :, dy : dy + h, dx : dx + w]
    return out


def scatter_windows(dcol: Array) -> Array:
    """Return the gradient of ``windows``."""
    n, c, _, h, w = dcol.shape
    padded = np.zeros((n, c, h + 2, w + 2), dcol.dtype)
    for tap in range(9):
        dy, dx = divmod(tap, 3)
        padded[:, :, dy : dy + h, dx : dx + w] += dcol[:, :, tap]
    return padded[:, :, 1:-1, 1:-1]


class Conv:
    """A convolution without bias, 3x3 (padding 1) or 1x1."""

    def __init__(self, name: str, rng: np.random.Generator, inputs: int, outputs: int, kernel: int) -> None:
        self.name = name
        self.kernel = kernel
        depth = inputs * kernel * kernel
        weight = rng.normal(0, np.sqrt(2 / depth), (outputs, depth)).astype(np.float32)
        self.params = {"weight": weight}
        self.grads: dict[str, Array] = {}
        self.shape = (outputs, inputs, kernel, kernel)

    def forward(self, x: Array, training: bool) -> Array:
        n, _, h, w = x.shape
        self.col = (windows(x) if self.kernel == 3 else x).reshape(n, -1, h * w)
        return (self.params["weight"] @ self.col).reshape(n, -1, h, w)

    def backward(self, dy: Array) -> Array:
        n, k, h, w = dy.shape
        flat = dy.reshape(n, k, h * w)
        self.grads["weight"] = np.tensordot(flat, self.col, axes=((0, 2), (0, 2)))
        dcol = self.params["weight"].T @ flat
        if self.kernel == 3:
            return scatter_windows(dcol.reshape(n, -1, 9, h, w))
        return dcol.reshape(n, -1, h, w)

    def export(self, graph: Exporter, x: str) -> str:
        weight = graph.constant(f"{self.name}.weight", self.params["weight"].reshape(self.shape))
        pad = self.kernel // 2
        return graph.node("Conv", [x, weight], self.name, kernel_shape=[self.kernel] * 2, pads=[pad] * 4)


class DepthwiseConv:
    """A 3x3 convolution of every channel with a filter of its own, without bias."""

    def __init__(self, name: str, rng: np.random.Generator, channels: int) -> None:
        self.name = name
        self.params = {"weight": rng.normal(0, np.sqrt(2 / 9), (channels, 9)).astype(np.float32)}
        self.grads: dict[str, Array] = {}

    def forward(self, x: Array, training: bool) -> Array:
        self.col = windows(x)
        return np.einsum("nctyx,ct->ncyx", self.col, self.params["weight"], optimize=True)

    def backward(self, dy: Array) -> Array:
        self.grads["weight"] = np.einsum("nctyx,ncyx->ct", self.col, dy, optimize=True)
        return scatter_windows(dy[:, :, None] * self.params["weight"][:, :, None, None])

    def export(self, graph: Exporter, x: str) -> str:
        channels = len(self.params["weight"])
        weight = graph.constant(f"{self.name}.weight", self.params["weight"].reshape(channels, 1, 3, 3))
        return graph.node("Conv", [x, weight], self.name, kernel_shape=[3, 3], pads=[1] * 4, group=channels)


class BatchNormRelu:
    """Batch normalisation over N, H, W followed by a ReLU."""

    EPSILON = 1e-5
    MOMENTUM = 0.9

    def __init__(self, name: str, channels: int) -> None:
        self.name = name
        self.params = {"scale": np.ones(channels, np.float32), "bias": np.zeros(channels, np.float32)}
        self.grads: dict[str, Array] = {}
        self.mean = np.zeros(channels, np.float32)
        self.var = np.ones(channels, np.float32)

    def forward(self, x: Array, training: bool) -> Array:
        mean, var = self.mean, self.var
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = self.MOMENTUM * self.mean + (1 - self.MOMENTUM) * mean
            self.var = self.MOMENTUM * self.var + (1 - self.MOMENTUM) * var
        self.inverse = 1 / np.sqrt(var + np.float32(self.EPSILON))
        self.normal = (x - mean[:, None, None]) * self.inverse[:, None, None]
        y = self.normal * self.params["scale"][:, None, None] + self.params["bias"][:, None, None]
        self.positive = y > 0
        return np.maximum(y, 0)

    def backward(self, dy: Array) -> Array:
        dy = dy * self.positive
        self.grads["bias"] = dy.sum((0, 2, 3))
        self.grads["scale"] = (dy * self.normal).sum((0, 2, 3))
        count = dy.shape[0] * dy.shape[2] * dy.shape[3]
        centred = dy - (self.grads["bias"][:, None, None] + self.normal * self.grads["scale"][:, None, None]) / count
        return centred * (self.params["scale"] * self.inverse)[:, None, None]

    def export(self, graph: Exporter, x: str) -> str:
        parts = {**self.params, "mean": self.mean, "var": self.var}
        names = [graph.constant(f"{self.name}.{part}", value.astype(np.float32)) for part, value in parts.items()]
        normal = graph.node("BatchNormalization", [x, *names], f"{self.name}.norm", epsilon=self.EPSILON)
        return graph.node("Relu", [normal], self.name)


class MaxPool:
    """The maximum of 2x2 pixels."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: dict[str, Array] = {}
        self.grads: dict[str, Array] = {}

    def forward(self, x: Array, training: bool) -> Array:
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y: Array = blocks.max((3, 5))
        mask = blocks == y[:, :, :, None, :, None]
        self.share = mask / mask.sum((3, 5), keepdims=True)
        return y

    def backward(self, dy: Array) -> Array:
        n, c, h, w = dy.shape
        spread = self.share * dy[:, :, :, None, :, None]
        return spread.reshape(n, c, 2 * h, 2 * w).astype(np.float32)

    def export(self, graph: Exporter, x: str) -> str:
        return graph.node("MaxPool", [x], self.name, kernel_shape=[2, 2], strides=[2, 2])


class Residual:
    """The input added to what some layers make of it."""

    def __init__(self, name: str, layers: list[Layer]) -> None:
        self.name = name
        self.layers = layers
        self.params: dict[str, Array] = {}
        self.grads: dict[str, Array] = {}

    def forward(self, x: Array, training: bool) -> Array:
        y = x
        for layer in self.layers:
            y = layer.forward(y, training)
        return x + y

    def backward(self, dy: Array) -> Array:
        dx = dy
        for layer in reversed(self.layers):
            dx = layer.backward(dx)
        return dx + dy

    def export(self, graph: Exporter, x: str) -> str:
        y = x
        for layer in self.layers:
            y = layer.export(graph, y)
        return graph.node("Add", [x, y], self.name)


class Classifier:
    """The mean of every channel, a fully connected layer and, in the exported graph, a softmax."""

    def __init__(self, rng: np.random.Generator, channels: int, classes: int) -> None:
        weight = rng.normal(0, np.sqrt(1 / channels), (classes, channels)).astype(np.float32)
        self.params = {"weight": weight, "bias": np.zeros(classes, np.float32)}
        self.grads: dict[str, Array] = {}

    def forward(self, x: Array, training: bool) -> Array:
        self.shape = x.shape
        self.mean: Array = x.mean((2, 3))
        return self.mean @ self.params["weight"].T + self.params["bias"]

    def backward(self, dy: Array) -> Array:
        self.grads["weight"] = dy.T @ self.mean
        self.grads["bias"] = dy.sum(0)
        pixels = self.shape[2] * self.shape[3]
        return np.broadcast_to((dy @ self.params["weight"] / pixels)[:, :, None, None], self.shape)

    def export(self, graph: Exporter, x: str) -> str:
        mean = graph.node("GlobalAveragePool", [x], "mean")
        flat = graph.node("Flatten", [mean], "features")
        weight = graph.constant("fc.weight", self.params["weight"])
        bias = graph.constant("fc.bias", self.params["bias"])
        logits = graph.node("Gemm", [flat, weight, bias], "logits", transB=1)
        return graph.node("Softmax", [logits], "probabilities", axis=1)


def build_network(rng: np.random.Generator) -> list[Layer]:
    """Return the untrained layers."""
    return [
        Conv("stem.conv", rng, 1, 32, 3),
        BatchNormRelu("stem", 32),
        DepthwiseConv("separable.depthwise", rng, 32),
        BatchNormRelu("separable.spatial", 32),
        Conv("separable.pointwise", rng, 32, 64, 1),
        BatchNormRelu("separable", 64),
        MaxPool("pool"),
        Residual("block", [Conv("block.conv", rng, 64, 64, 3), BatchNormRelu("block.act", 64)]),
        Classifier(rng, 64, 10),
    ]


def flatten(layers: list[Layer]) -> list[Layer]:
    """Return every layer, those inside residual blocks too."""
    return [inner for layer in layers for inner in (layer.layers if isinstance(layer, Residual) else [layer])]


class Adam:
    """Adam (Kingma and Ba, 2015, algorithm 1) over the parameters of some layers."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self.first = [{name: np.zeros_like(value) for name, value in layer.params.items()} for layer in layers]
        self.second = [{name: np.zeros_like(value) for name, value in layer.params.items()} for layer in layers]
        self.step_count = 0

    def step(self, rate: float) -> None:
        """Move every parameter against its gradient."""
        self.step_count += 1
        rate *= np.sqrt(1 - 0.999**self.step_count) / (1 - 0.9**self.step_count)
        for layer, first, second in zip(self.layers, self.first, self.second, strict=True):
            for name, grad in layer.grads.items():
                first[name] = (0.9 * first[name] + 0.1 * grad).astype(np.float32)
                second[name] = (0.999 * second[name] + 0.001 * grad * grad).astype(np.float32)
                update = rate * first[name] / (np.sqrt(second[name]) + 1e-8)
                layer.params[name] = (layer.params[name] - update).astype(np.float32)


def predict(layers: list[Layer], x: Array, training: bool = False) -> Array:
    """Return the logits."""
    for layer in layers:
        x = layer.forward(x, training)
    return x


def shift(x: Array, rng: np.random.Generator) -> Array:
    """Move every image by up to one pixel in each direction."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, (len(x), 2))
    return np.stack([image[:, dy : dy + 8, dx : dx + 8] for image, (dy, dx) in zip(padded, offsets, strict=True)])


def train(layers: list[Layer], x: Array, labels: Array, epochs: int, rng: np.random.Generator) -> None:
    """Minimise the cross entropy with a learning rate that falls along a cosine."""
    optimiser = Adam(flatten(layers))
    batch = 64
    steps = epochs * (len(x) // batch)
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        losses = []
        for begin in range(0, len(x) - batch + 1, batch):
            chosen = order[begin : begin + batch]
            logits = predict(layers, shift(x[chosen], rng), training=True)
            logits = logits - logits.max(1, keepdims=True)
            probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            rows = np.arange(batch)
            losses.append(-np.log(probability[rows, labels[chosen]]).mean())
            gradient = probability
            gradient[rows, labels[chosen]] -= 1
            gradient /= batch
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            optimiser.step(0.002 * (1 + np.cos(np.pi * optimiser.step_count / steps)))
        print(f"epoch {epoch + 1:3d} of {epochs}: loss {np.mean(losses):.4f}", flush=True)


def export_model(layers: list[Layer]) -> onnx.ModelProto:
    """Return the trained network as an ONNX model with a dynamic batch axis N."""
    exporter = Exporter()
    value = "image"
    for layer in layers:
        value = layer.export(exporter, value)
    graph = helper.make_graph(
        exporter.nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", 10])],
        exporter.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="neo")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def choose_evenly(labels: Array, count: int) -> Array:
    """Return the indices of the first images of every label, as evenly as count allows, in their own order."""
    rank = np.array([(labels[:i] == label).sum() for i, label in enumerate(labels)])
    return np.sort(np.argsort(rank, kind="stable")[:count])


def main() -> None:
    """Train, print the accuracy on the test images and write the two files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "python" / "neo" / "demo")
    arguments = parser.parse_args()

    rng = np.random.default_rng(arguments.seed)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    images = digits.images[order].astype(np.uint8)
    labels = digits.target[order].astype(np.uint8)
    x = (images[:, None] / 16).astype(np.float32)

    layers = build_network(rng)
    train(layers, x[TEST_IMAGES:], labels[TEST_IMAGES:], arguments.epochs, rng)
    correct = predict(layers, x[:TEST_IMAGES]).argmax(1) == labels[:TEST_IMAGES]
    parameters = sum(value.size for layer in flatten(layers) for value in layer.params.values())
    print(f"{parameters} parameters, {correct.sum()} of {TEST_IMAGES} test images right ({100 * correct.mean():.2f} %)")

    arguments.output.mkdir(parents=True, exist_ok=True)
    onnx.save(export_model(layers), arguments.output / "digits.onnx")
    shipped = choose_evenly(labels[:TEST_IMAGES], SHIPPED_IMAGES)
    print(f"{correct[shipped].sum()} of the {SHIPPED_IMAGES} shipped test images right")
    np.savez_compressed(arguments.output / "digits.npz", images=images[shipped], labels=labels[shipped])


if __name__ == "__main__":
    main()
