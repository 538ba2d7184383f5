"""Real weights for models whose weights were replaced by ``ConstantOfShape``.

The onnx-light files keep the graph of a network and make every weight a constant, so every output is a constant: a
wrong convolution passes, and a folding pass can compute the whole model. ``reweighted`` puts seeded values in their
place.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

# Uniform(0.5, 1.5) has a mean square of 13/12 and a mean reciprocal of ln 3: these factors keep the variance of what a
# scale, and a batch norm's scale over its variance, multiply.
_SCALE = (12 / 13) ** 0.5
_NORM_SCALE = (12 / 13 / np.log(3)) ** 0.5
# A branch that ends in a residual sum is damped, or sixteen sums in a row would double the variance sixteen times.
_BRANCH_SCALE = 0.3
# Factors on the last convolution or product that bring the logits to a standard deviation of about two: a softmax that
# saturates, or that is all but uniform, hides errors.
_LAST_GAIN = {
    "light_densenet121.onnx": 4.0,
    "light_inception_v1.onnx": 8.0,
    "light_inception_v2.onnx": 1.0,
    "light_resnet50.onnx": 2.0,
    "light_bvlc_alexnet.onnx": 0.5,
    "light_vgg19.onnx": 0.5,
    "light_shufflenet.onnx": 1 / 64,
    "light_squeezenet.onnx": 0.5,
}


def _roles(graph: onnx.GraphProto) -> dict[str, tuple[str, int]]:
    """Return, per value name, the op and input position that consume it, seen through Unsqueeze and Reshape.

    A batch norm whose output goes into a sum is named ``BatchNormalization+Sum``.
    """
    roles: dict[str, tuple[str, int]] = {}
    for node in reversed(graph.node):
        consumer = roles[node.output[0]][0] if node.output[0] in roles else ""
        for position, name in enumerate(node.input):
            role = (node.op_type, position)
            if position == 0 and node.op_type in ("Unsqueeze", "Reshape"):
                role = roles.get(node.output[0], role)
            elif node.op_type == "BatchNormalization" and consumer == "Sum":
                role = ("BatchNormalization+Sum", position)
            roles[name] = role
    return roles


def _values(role: tuple[str, int], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw one weight tensor that keeps activations of the order of one."""
    op, position = role
    draw: np.ndarray
    if op in ("BatchNormalization", "BatchNormalization+Sum") and position in (1, 4):
        draw = rng.uniform(0.5, 1.5, shape)
        if position == 1:
            draw *= _NORM_SCALE if op == "BatchNormalization" else _NORM_SCALE * _BRANCH_SCALE
    elif op == "Mul":
        draw = _SCALE * rng.uniform(0.5, 1.5, shape)
    elif (op in ("Conv", "Gemm") and position == 1) or op == "Reshape":
        fan_in = int(np.prod(shape[1:]))
        draw = rng.standard_normal(shape, dtype=np.float32) * np.sqrt(2.0 / fan_in)
    else:
        draw = 0.1 * rng.standard_normal(shape)
    return np.asarray(draw, dtype=np.float32)


def _shrink(graph: onnx.GraphProto, divisor: int) -> None:
    """Divide the channels of every weight, and what a Reshape makes of them; those of the image and the classes stay."""
    targets = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    weights = {node.input[0] for node in graph.node if node.op_type == "ConstantOfShape"}

    def smaller(dims: np.ndarray) -> np.ndarray:
        return np.where((dims >= 48) & (dims != 1000), dims // divisor, dims)

    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.name in targets | weights:
            tensor.CopyFrom(numpy_helper.from_array(smaller(values), tensor.name))
        elif values.ndim:
            kept = tuple(slice(n) for n in smaller(np.array(values.shape)))
            tensor.CopyFrom(numpy_helper.from_array(values[kept], tensor.name))


def reweighted(path: Path, divisor: int = 1) -> onnx.ModelProto:
    """Load ``path`` with every ``ConstantOfShape`` of a known shape replaced by seeded He-normal values.

    Scales and variances of batch norms are positive. The seed is the file's name, so that a model has the same weights
    in every run. A ``divisor`` above 1 makes a smaller network of the same graph: so many times fewer channels.
    """
    model = onnx.load(path)
    graph = model.graph
    if divisor > 1:
        _shrink(graph, divisor)
    rng = np.random.default_rng(zlib.crc32(path.name.encode()))
    shapes = {tensor.name: tensor for tensor in graph.initializer}
    roles = _roles(graph)
    kept = []
    last = [node.input[1] for node in graph.node if node.op_type in ("Conv", "Gemm")][-1]
    last = next((node.input[0] for node in graph.node if node.op_type == "Reshape" and last in node.output), last)
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = tuple(int(dim) for dim in numpy_helper.to_array(shapes[node.input[0]]))
        values = _values(roles[node.output[0]], shape, rng)
        if node.output[0] == last:
            values *= np.float32(_LAST_GAIN.get(path.name, 1.0))
        graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    # Before version 4 of the format every initializer is an input as well, which keeps it from being a constant.
    model.ir_version = 8
    constants = {tensor.name for tensor in graph.initializer}
    varying = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(varying)
    return model
