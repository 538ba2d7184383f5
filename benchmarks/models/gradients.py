"""Training iterations as plain ONNX: reverse-mode differentiation over the nodes of a builder's graph.

The gradients are plain ONNX, as exporters write them: that of a convolution's input is a transposed convolution with the
same weights, that of its weights a convolution whose weights are the gradient of its results (Dumoulin and Visin, "A guide
to convolution arithmetic for deep learning", 2016); a maximum's goes where ``MaxPool`` says that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper, shape_inference

from benchmarks.models.builder import Builder, Shape

__all__ = ["Iteration"]

Dims = tuple[int, ...]


class Iteration(Builder):
    """A training iteration in the making: its weights are inputs, its outputs a loss and the gradients of the weights.

    Parameters
    ----------
    seed : int
        Seeds the values that weights and inputs have in ``feeds``.
    dtype : type
        Of all floating-point values: ``np.float32`` or ``np.float64``.
    """

    def __init__(self, seed: int, dtype: type = np.float32) -> None:
        super().__init__(seed)
        self.dtype = dtype
        self.feeds: dict[str, np.ndarray] = {}
        self._trained: list[str] = []
        self._constants: dict[tuple[bytes, str, Dims], str] = {}

    def constant(self, value: ArrayLike, dtype: type = np.float32) -> str:
        array = np.asarray(value, self.dtype if dtype is np.float32 else dtype)
        key = (array.tobytes(), array.dtype.str, array.shape)
        if key not in self._constants:
            self._constants[key] = super().constant(array, array.dtype.type)
        return self._constants[key]

    def input(self, name: str, value: ArrayLike) -> str:
        """Add an input, floats as ``dtype``, and return its name."""
        array = np.asarray(value)
        self.feeds[name] = array.astype(self.dtype) if array.dtype.kind == "f" else array
        return name

    def normal(self, name: str, *shape: int) -> str:
        """Add an input of standard normal values."""
        return self.input(name, self._rng.standard_normal(shape))

    def labels(self, name: str, rows: int, classes: int) -> str:
        """Add an input of random classes, int64 of shape ``(rows,)``."""
        return self.input(name, self._rng.integers(classes, size=rows))

    def weight(self, *shape: int) -> str:
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        values = self._rng.standard_normal(shape) * (2 / max(1, fan_in)) ** 0.5
        return self.trained(values)

    def trained(self, value: ArrayLike) -> str:
        """Add a weight of these values, and return its name."""
        self._trained.append(self.input(f"w{len(self._trained)}", value))
        return self._trained[-1]

    def model(self, inputs: dict[str, Shape], outputs: Sequence[str]) -> onnx.ModelProto:
        """Return the graph with other ``inputs`` beside those of ``feeds``."""
        model = super().model(inputs, outputs)
        for name, value in self.feeds.items():
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            model.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        float_kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        for output in model.graph.output:
            output.type.tensor_type.elem_type = float_kind
        return model

    def iteration(self, loss: str) -> onnx.ModelProto:
        """Return the graph that computes a loss, a value of shape ``()``, and its gradient by every weight.

        The outputs are the loss, and ``w0_gradient``, ``w1_gradient``, ... of the weights' shapes and dtype.

        Raises
        ------
        ValueError
            An operator on the way has no rule, or the loss does not depend on a weight.
        """
        for name, gradient in zip(self._trained, _add_gradients(self, loss, self._trained), strict=True):
            self.nodes.append(helper.make_node("Identity", [gradient], [f"{name}_gradient"]))
        outputs = [loss, *(f"{name}_gradient" for name in self._trained)]
        _drop_unused(self, set(outputs))
        return self.model({}, outputs)


@dataclass
class _Node:
    """A node of the forward graph, with what rules ask of it."""

    node: onnx.NodeProto
    shapes: dict[str, Dims]
    gradients: list[str | None]  # of the outputs
    attributes: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.attributes = {a.name: helper.get_attribute_value(a) for a in self.node.attribute}

    @property
    def inputs(self) -> Sequence[str]:
        return list(self.node.input)

    @property
    def result(self) -> str:
        return str(self.node.output[0])

    @property
    def gradient(self) -> str:
        """The gradient of the first output."""
        assert self.gradients[0] is not None
        return self.gradients[0]

    def shape(self, name: str) -> Dims:
        return self.shapes[name]

    def get(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)


_Rule = Callable[[Iteration, _Node], Sequence[str | None]]
_RULES: dict[str, _Rule] = {}


def _rule(*ops: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def _sizes(b: Iteration, *sizes: int) -> str:
    return b.constant(list(sizes), np.int64)


def _reduce_to(b: Iteration, gradient: str, found: Dims, wanted: Dims) -> str:
    """Sum a gradient over the axes along which an operand was repeated."""
    if found == wanted:
        return gradient
    extra = len(found) - len(wanted)
    axes = [i for i, size in enumerate(found) if i < extra or (wanted[i - extra] == 1 and size != 1)]
    if axes:
        gradient = b.add("ReduceSum", gradient, _sizes(b, *axes), keepdims=0)
    left = tuple(size for i, size in enumerate(found) if i not in axes)
    return gradient if left == wanted else b.add("Reshape", gradient, _sizes(b, *wanted))


def _of_operands(b: Iteration, n: _Node, gradients: Sequence[str | None]) -> list[str | None]:
    """Gradients of elementwise operands in the shape of the result, summed to the operands' own."""
    out = n.shape(n.result)
    return [None if g is None else _reduce_to(b, g, out, n.shape(x)) for g, x in zip(gradients, n.inputs, strict=True)]


@_rule("Add", "Sum")
def _add(b: Iteration, n: _Node) -> Sequence[str | None]:
    return _of_operands(b, n, [n.gradient] * len(n.inputs))


@_rule("Sub")
def _sub(b: Iteration, n: _Node) -> Sequence[str | None]:
    return _of_operands(b, n, [n.gradient, b.add("Neg", n.gradient)])


@_rule("Mul")
def _mul(b: Iteration, n: _Node) -> Sequence[str | None]:
    left, right = n.inputs
    return _of_operands(b, n, [b.add("Mul", n.gradient, right), b.add("Mul", n.gradient, left)])


@_rule("Div")
def _div(b: Iteration, n: _Node) -> Sequence[str | None]:
    quotient = b.add("Div", n.gradient, n.inputs[1])
    return _of_operands(b, n, [quotient, b.add("Neg", b.add("Mul", quotient, n.result))])


@_rule("Neg")
def _neg(b: Iteration, n: _Node) -> Sequence[str | None]:
    return [b.add("Neg", n.gradient)]


@_rule("Floor")
def _floor(_: Iteration, __: _Node) -> Sequence[str | None]:
    return [None]


@_rule("Where")
def _where(b: Iteration, n: _Node) -> Sequence[str | None]:
    zero = b.constant(0)
    condition = n.inputs[0]
    gradients = [b.add("Where", condition, n.gradient, zero), b.add("Where", condition, zero, n.gradient)]
    return _of_operands(b, n, [None, *gradients])


@_rule("Exp")
def _exp(b: Iteration, n: _Node) -> Sequence[str | None]:
    return [b.add("Mul", n.gradient, n.result)]


@_rule("Sigmoid")
def _sigmoid(b: Iteration, n: _Node) -> Sequence[str | None]:
    slope = b.add("Mul", n.result, b.add("Sub", b.constant(1), n.result))
    return [b.add("Mul", n.gradient, slope)]


@_rule("Tanh")
def _tanh(b: Iteration, n: _Node) -> Sequence[str | None]:
    slope = b.add("Sub", b.constant(1), b.add("Mul", n.result, n.result))
    return [b.add("Mul", n.gradient, slope)]


@_rule("Relu")
def _relu(b: Iteration, n: _Node) -> Sequence[str | None]:
    zero = b.constant(0)
    return [b.add("Where", b.add("Greater", n.result, zero), n.gradient, zero)]


def _swapped(b: Iteration, x: str, rank: int) -> str:
    """The transpose of the last two axes."""
    return b.add("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@_rule("MatMul")
def _matmul(b: Iteration, n: _Node) -> Sequence[str | None]:
    left, right = n.inputs
    left_shape, right_shape, out = n.shape(left), n.shape(right), n.shape(n.result)
    if min(len(left_shape), len(right_shape)) < 2:
        raise ValueError("no rule for the gradient of a product with a vector. Got MatMul of a one-dimensional operand")
    of_left = b.add("MatMul", n.gradient, _swapped(b, right, len(right_shape)))
    of_right = b.add("MatMul", _swapped(b, left, len(left_shape)), n.gradient)
    batch = out[:-2]
    return [
        _reduce_to(b, of_left, (*batch, *left_shape[-2:]), left_shape),
        _reduce_to(b, of_right, (*batch, *right_shape[-2:]), right_shape),
    ]


@_rule("Gemm")
def _gemm(b: Iteration, n: _Node) -> Sequence[str | None]:
    left, right = n.inputs[:2]
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    trans_a, trans_b = n.get("transA", 0), n.get("transB", 0)
    of_left = (
        b.add("Gemm", right, n.gradient, alpha=alpha, transA=trans_b, transB=1)
        if trans_a
        else b.add("Gemm", n.gradient, right, alpha=alpha, transB=1 - trans_b)
    )
    of_right = (
        b.add("Gemm", n.gradient, left, alpha=alpha, transA=1, transB=trans_a)
        if trans_b
        else b.add("Gemm", left, n.gradient, alpha=alpha, transA=1 - trans_a)
    )
    gradients: list[str | None] = [of_left, of_right]
    if len(n.inputs) > 2:
        added = n.gradient if beta == 1.0 else b.add("Mul", n.gradient, b.constant(beta))
        gradients.append(_reduce_to(b, added, n.shape(n.result), n.shape(n.inputs[2])))
    return gradients


@_rule("Concat")
def _concat(b: Iteration, n: _Node) -> Sequence[str | None]:
    axis = n.attributes["axis"]
    sizes = _sizes(b, *(n.shape(x)[axis] for x in n.inputs))
    return b.add_all("Split", [n.gradient, sizes], len(n.inputs), axis=axis)


@_rule("Split")
def _split(b: Iteration, n: _Node) -> Sequence[str | None]:
    parts = [g or b.constant(np.zeros(n.shape(out))) for g, out in zip(n.gradients, n.node.output, strict=True)]
    return [b.add("Concat", *parts, axis=n.get("axis", 0)), *[None] * (len(n.inputs) - 1)]


@_rule("Squeeze", "Unsqueeze", "Reshape", "Flatten")
def _reshape(b: Iteration, n: _Node) -> Sequence[str | None]:
    return [b.add("Reshape", n.gradient, _sizes(b, *n.shape(n.inputs[0]))), *[None] * (len(n.inputs) - 1)]


@_rule("Transpose")
def _transpose(b: Iteration, n: _Node) -> Sequence[str | None]:
    rank = len(n.shape(n.result))
    perm = n.get("perm", range(rank)[::-1])
    return [b.add("Transpose", n.gradient, perm=[int(i) for i in np.argsort(perm)])]


@_rule("ReduceMean")
def _reduce_mean(b: Iteration, n: _Node) -> Sequence[str | None]:
    shape = n.shape(n.inputs[0])
    axes = [axis % len(shape) for axis in n.get("axes", range(len(shape)))]
    kept = [1 if i in axes else size for i, size in enumerate(shape)]
    share = b.constant(1 / np.prod([shape[i] for i in axes]))
    scaled = b.add("Reshape", b.add("Mul", n.gradient, share), _sizes(b, *kept))
    return [b.add("Expand", scaled, _sizes(b, *shape))]


@_rule("GlobalAveragePool")
def _global_average_pool(b: Iteration, n: _Node) -> Sequence[str | None]:
    shape = n.shape(n.inputs[0])
    share = b.constant(1 / np.prod(shape[2:]))
    return [b.add("Expand", b.add("Mul", n.gradient, share), _sizes(b, *shape))]


@_rule("Conv")
def _conv(b: Iteration, n: _Node) -> Sequence[str | None]:
    x, weight = n.inputs[:2]
    shape, kernel = n.shape(x), n.shape(weight)[2:]
    axes, groups = len(kernel), n.get("group", 1)
    strides, dilations = n.get("strides", [1] * axes), n.get("dilations", [1] * axes)
    pads = n.get("pads", [0] * 2 * axes)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    left_over = [
        (shape[i + 2] + pads[i] + pads[i + axes] - reach[i]) % strides[i] for i in range(axes)
    ]  # positions that no window reads
    of_x = b.add(
        "ConvTranspose",
        n.gradient,
        weight,
        strides=strides,
        dilations=dilations,
        pads=pads,
        output_padding=left_over,
        group=groups,
    )
    batch, channels = shape[0], shape[1] // groups
    space = range(2, 2 + axes)
    if groups == 1:
        images = b.add("Transpose", x, perm=[1, 0, *space])
    else:
        parts = b.add("Reshape", x, _sizes(b, batch, groups, channels, *shape[2:]))
        parts = b.add("Transpose", parts, perm=[2, 1, 0, *range(3, 3 + axes)])
        images = b.add("Reshape", parts, _sizes(b, channels, groups * batch, *shape[2:]))
    taps = b.add("Transpose", n.gradient, perm=[1, 0, *space])
    sums = b.add("Conv", images, taps, strides=dilations, dilations=strides, pads=pads, group=groups)
    if any(rest // d for rest, d in zip(left_over, dilations, strict=True)):
        starts, axis_list = _sizes(b, *[0] * axes), _sizes(b, *space)
        sums = b.add("Slice", sums, starts, _sizes(b, *kernel), axis_list)
    gradients: list[str | None] = [of_x, b.add("Transpose", sums, perm=[1, 0, *space])]
    if len(n.inputs) > 2:
        gradients.append(b.add("ReduceSum", n.gradient, _sizes(b, 0, *space), keepdims=0))
    return gradients


@_rule("MaxPool")
def _max_pool(b: Iteration, n: _Node) -> Sequence[str | None]:
    shape, out = n.shape(n.inputs[0]), n.shape(n.result)
    kernel = n.attributes["kernel_shape"]
    if len(n.node.output) < 2:
        n.node.output.append(f"{n.result}_indices")
    indices = n.node.output[1]
    strides = n.get("strides", [1] * len(kernel))
    tiles = all(size == count * k for size, count, k in zip(shape[2:], out[2:], kernel, strict=True))
    if strides == kernel and tiles:
        return [b.add("MaxUnpool", n.gradient, indices, _sizes(b, *shape), kernel_shape=kernel, strides=strides)]
    # Windows share elements, whose gradients are summed plane by plane.
    plane, rows = int(np.prod(shape[2:])), shape[0] * shape[1]
    places = b.add("Reshape", b.add("Mod", indices, b.constant(plane, np.int64)), _sizes(b, rows, -1))
    updates = b.add("Reshape", n.gradient, _sizes(b, rows, int(np.prod(out[2:]))))
    sums = b.add("ScatterElements", b.constant(np.zeros((rows, plane))), places, updates, axis=1, reduction="add")
    return [b.add("Reshape", sums, _sizes(b, *shape))]


@_rule("AveragePool")
def _average_pool(b: Iteration, n: _Node) -> Sequence[str | None]:
    """Every window's gradient to each of its elements: a transposed convolution of ones, channel by channel."""
    shape, out, kernel = n.shape(n.inputs[0]), n.shape(n.result), n.attributes["kernel_shape"]
    axes = len(kernel)
    strides, pads = n.get("strides", [1] * axes), n.get("pads", [0] * 2 * axes)
    counts = np.ones(out[2:])
    for i, size in enumerate(shape[2:]):
        starts = np.arange(out[i + 2]) * strides[i] - pads[i]
        inside = np.minimum(starts + kernel[i], size) - np.maximum(starts, 0)
        width = np.full(out[i + 2], kernel[i]) if n.get("count_include_pad", 0) else inside
        counts = counts * width.reshape([-1 if axis == i else 1 for axis in range(axes)])
    left_over = [(shape[i + 2] + pads[i] + pads[i + axes] - kernel[i]) % strides[i] for i in range(axes)]
    planes = b.add("Reshape", n.gradient, _sizes(b, shape[0] * shape[1], 1, *out[2:]))
    spread = b.add(
        "ConvTranspose",
        b.add("Div", planes, b.constant(counts)),
        b.constant(np.ones((1, 1, *kernel))),
        strides=strides,
        pads=pads,
        output_padding=left_over,
    )
    return [b.add("Reshape", spread, _sizes(b, *shape))]


@_rule("LRN")
def _lrn(b: Iteration, n: _Node) -> Sequence[str | None]:
    """Sums over neighbouring channels are averages of a pool along the channels."""
    x, shape, size = n.inputs[0], n.shape(n.inputs[0]), n.attributes["size"]
    alpha, beta, bias = n.get("alpha", 1e-4), n.get("beta", 0.75), n.get("bias", 1.0)

    def window_mean(values: str, before: int) -> str:
        rows = b.add("Reshape", values, _sizes(b, shape[0], 1, shape[1], int(np.prod(shape[2:]))))
        pads = [before, 0, size - 1 - before, 0]
        pooled = b.add("AveragePool", rows, kernel_shape=[size, 1], pads=pads, strides=[1, 1], count_include_pad=1)
        return b.add("Reshape", pooled, _sizes(b, *shape))

    before = (size - 1) // 2
    mean = window_mean(b.add("Mul", x, x), before)
    scale = b.add("Add", b.add("Mul", mean, b.constant(alpha)), b.constant(bias))
    power = b.add("Pow", scale, b.constant(-beta))
    direct = b.add("Mul", n.gradient, power)
    shared = window_mean(b.add("Div", b.add("Mul", direct, x), scale), size - 1 - before)
    through = b.add("Mul", b.add("Mul", shared, x), b.constant(2 * alpha * beta))
    return [b.add("Sub", direct, through)]


@_rule("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(b: Iteration, n: _Node) -> Sequence[str | None]:
    """The probabilities less one at each label, over the number of rows."""
    scores, labels = n.inputs
    rows, classes = n.shape(scores)
    if n.get("reduction", b"mean") != b"mean" or "ignore_index" in n.attributes:
        raise ValueError("SoftmaxCrossEntropyLoss must be the mean over all labels to have a gradient")
    if len(n.node.output) < 2:
        n.node.output.append(f"{n.result}_log_prob")
    hot = b.add("OneHot", labels, b.constant(classes, np.int64), b.constant([0, 1]), axis=1)
    excess = b.add("Sub", b.add("Exp", n.node.output[1]), hot)
    return [b.add("Mul", excess, b.add("Mul", n.gradient, b.constant(1 / rows))), None]


def _shapes(b: Iteration) -> dict[str, Dims]:
    model = shape_inference.infer_shapes(b.model({}, [b.nodes[-1].output[0]]), strict_mode=True, data_prop=True)
    known = {name: value.shape for name, value in b.feeds.items()}
    known |= {tensor.name: tuple(tensor.dims) for tensor in b.initializers}
    for value in [*model.graph.value_info, *model.graph.output]:
        known[value.name] = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
    return known


def _add_gradients(b: Iteration, loss: str, wanted: Sequence[str]) -> list[str]:
    """Add the nodes that compute the gradients of a loss, and return their names in the order of ``wanted``.

    ``MaxPool`` and ``SoftmaxCrossEntropyLoss`` get a second output where they had one.
    """
    forward, shapes = list(b.nodes), _shapes(b)
    needed = set(wanted)
    for node in forward:
        if needed.intersection(node.input):
            needed.update(node.output)
    parts: dict[str, list[str]] = {loss: [b.constant(1)]}
    for node in reversed(forward):
        gradients = [_summed(b, parts.pop(out, [])) for out in node.output]
        if not any(gradients):
            continue
        if node.op_type not in _RULES:
            raise ValueError(f"no rule for the gradient of {node.op_type!r}. Got node {node.name!r}")
        found = _RULES[node.op_type](b, _Node(node, shapes, gradients))
        for name, gradient in zip(node.input, found, strict=True):
            if gradient is not None and name in needed:
                parts.setdefault(name, []).append(gradient)
    found_all = [_summed(b, parts.get(name, [])) for name in wanted]
    for name, gradient in zip(wanted, found_all, strict=True):
        if gradient is None:
            raise ValueError(f"the loss must depend on every weight. Got {name!r}, which it does not depend on")
    return [gradient for gradient in found_all if gradient is not None]


def _summed(b: Iteration, parts: Sequence[str]) -> str | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return b.add("Sum", *parts)


def _drop_unused(b: Iteration, read: set[str]) -> None:
    """Drop nodes and constants that nothing in ``read`` depends on."""
    kept: list[onnx.NodeProto] = []
    for node in reversed(b.nodes):
        if read.intersection(node.output):
            kept.append(node)
            read.update(node.input)
    b.nodes = kept[::-1]
    b.initializers = [tensor for tensor in b.initializers if tensor.name in read]
