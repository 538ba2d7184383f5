"""Small models for the tests of the frontend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

__all__ = ["close", "model_of", "node_model", "value_info"]


def value_info(name: str, array: Any) -> onnx.ValueInfoProto:
    """Type and shape of an array, as those of a model's input."""
    array = np.asarray(array)
    kind = onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    *,
    opset: int = 21,
    domains: Mapping[str, int] | None = None,
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model whose outputs have no declared types."""
    graph = helper.make_graph(
        list(nodes), "test", list(inputs), [onnx.ValueInfoProto(name=name) for name in outputs], list(initializers)
    )
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def node_model(
    op: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    *,
    opset: int,
    domain: str = "",
    outputs: int = 1,
    constants: Sequence[int] = (),
) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """A model of one node, and its inputs by name; None where an input is left out, `constants` become initializers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attrs)
    arrays = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True) if x is not None}
    fixed = {f"x{i}" for i in constants}
    model = model_of(
        [node],
        [value_info(name, x) for name, x in arrays.items() if name not in fixed],
        list(node.output),
        opset=opset,
        domains={domain: 1} if domain else None,
        initializers=[onnx.numpy_helper.from_array(x, name) for name, x in arrays.items() if name in fixed],
    )
    return model, {name: x for name, x in arrays.items() if name not in fixed}


def close(got: Any, want: Any) -> None:
    """Compare a result, its dtype and its shape."""
    want = np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
