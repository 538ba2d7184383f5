"""A quantized model cut at every quantized tensor: steps small enough that nothing grows from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .engines import OnnxRuntime
from .inputs import Feeds

_OPERANDS = {"Conv": 2, "MatMul": 2, "Add": 2, "AveragePool": 1, "Softmax": 1}


@dataclass(frozen=True)
class QuantizedStep:
    """The nodes from some quantized tensors to the next one.

    Attributes
    ----------
    name : str
        The quantized tensor that comes out.
    model : bytes
        The nodes as a model, with that tensor as its output.
    feeds : mapping of str to array
        The tensors that go in.
    expected : array
        What onnxruntime makes of them.
    exact : array
        What onnxruntime rounds to that, in steps from zero.
    """

    name: str
    model: bytes
    feeds: Feeds
    expected: np.ndarray
    exact: np.ndarray


def _is_quantized(node: onnx.NodeProto) -> bool:
    return node.op_type == "QuantizeLinear" or node.op_type.startswith("QLinear")


def _plain_twin(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Return ``QuantizeLinear(op(DequantizeLinear(...)))``, which is what a QLinear operator means."""
    op = node.op_type.removeprefix("QLinear")
    operands = _OPERANDS[op]
    nodes, names = [], []
    for index in range(operands):
        names.append(f"{node.output[0]}/real{index}")
        nodes.append(helper.make_node("DequantizeLinear", node.input[3 * index : 3 * index + 3], [names[-1]]))
    rest = list(node.input[3 * operands :])
    if op == "Conv" and len(rest) == 3:
        scale = f"{node.output[0]}/scale"
        nodes.append(helper.make_node("Mul", [node.input[1], node.input[4]], [scale]))
        names.append(f"{node.output[0]}/bias")
        nodes.append(helper.make_node("Cast", [rest[2]], [names[-1] + "32"], to=onnx.TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [names[-1] + "32", scale], [names[-1]]))
    taken = [item for item in node.attribute if item.name not in ("channels_last", "opset")]
    real = f"{node.output[0]}/real"
    plain = helper.make_node(op, names, [real])
    plain.attribute.extend(taken)
    return [*nodes, plain, helper.make_node("QuantizeLinear", [real, *rest[:2]], [node.output[0]])]


def tapped(path: str | Path) -> bytes:
    """Return the model with every quantized tensor as an output as well."""
    model = onnx.load(path)
    present = {value.name for value in model.graph.output}
    for node in model.graph.node:
        if _is_quantized(node) and node.output[0] not in present:
            model.graph.output.append(helper.make_empty_tensor_value_info(node.output[0]))
    return bytes(model.SerializeToString())


def quantized_steps(path: str | Path, tensors: Mapping[str, np.ndarray]) -> Iterator[QuantizedStep]:
    """Cut a model at every quantized tensor and yield the steps with what onnxruntime computes for them.

    onnxruntime runs each step as its text says, without any rewriting.

    Parameters
    ----------
    path : path
        The model.
    tensors : mapping of arrays
        The inputs of the model and every quantized tensor, which is what the steps are fed.
    """
    model = onnx.load(path)
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    weights = {tensor.name: tensor for tensor in graph.initializer}

    def behind(end: onnx.NodeProto) -> tuple[list[onnx.NodeProto], list[str]]:
        """Return the nodes from the nearest tensors to ``end``, in order, and these tensors."""
        wanted, stack, sources = set[int](), [end], list[str]()
        while stack:
            node = stack.pop()
            wanted.add(id(node))
            sources += [name for name in node.input if name in tensors]
            stack += [makers[name] for name in node.input if name in makers and name not in tensors]
        return [node for node in graph.node if id(node) in wanted], list(dict.fromkeys(sources))

    def extract(nodes: Sequence[onnx.NodeProto], sources: Sequence[str], outputs: Sequence[str]) -> bytes:
        used = {name for node in nodes for name in node.input}
        types = {name: helper.np_dtype_to_tensor_dtype(tensors[name].dtype) for name in sources}
        part = helper.make_graph(
            nodes,
            "step",
            [helper.make_tensor_value_info(name, types[name], tensors[name].shape) for name in sources],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [weights[name] for name in sorted(used & set(weights))],
        )
        whole = helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
        return bytes(whole.SerializeToString())

    for end in filter(_is_quantized, graph.node):
        nodes, sources = behind(end)
        feeds = {name: tensors[name] for name in sources}
        twin = [] if end.op_type == "QuantizeLinear" else _plain_twin(end)
        quantize = twin[-1] if twin else end
        name, real = end.output[0], quantize.input[0]
        runtime = OnnxRuntime(extract([*nodes, *twin[:-1]], sources, [name, real]), plain=True)
        found = runtime.run(feeds)
        exact = found[real].astype(np.float64) / numpy_helper.to_array(weights[quantize.input[1]])
        yield QuantizedStep(name, extract(nodes, sources, [name]), feeds, found[name], exact)
