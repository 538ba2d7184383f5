"""ONNX Runtime beside neo: every value of a model, and every node on the values of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neo.errors import ResourceError, UnsupportedError
from neo.frontend.onnx.attributes import tensor_array
from neo.frontend.onnx.load import load_model

__all__ = ["run_onnxruntime", "run_onnxruntime_apart"]


def _load(model: Any) -> Any:
    import onnx

    proto, folders, _ = load_model(model, whole=True)
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in copy.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            array = tensor_array(tensor, folders, f"initializer {tensor.name!r}")
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    if folders:
        onnx.external_data_helper.load_external_data_for_model(copy, str(folders[0]))
    return copy


def _run(proto: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    try:
        import onnxruntime
    except ImportError as error:
        msg = "[check] onnxruntime must be installed to compare with it. Got none\nHint: pip install onnxruntime"
        raise ResourceError(msg) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        wanted = {i.name for i in session.get_inputs()}
        found = session.run(names, {name: x for name, x in feeds.items() if name in wanted})
    except Exception as error:  # onnxruntime raises bare exceptions of its own
        reason = str(error).partition("\n")[0]
        msg = f"[check] onnxruntime must run the model to compare with it. Got {reason}"
        raise UnsupportedError(msg) from error
    return dict(zip(names, found, strict=True))


def run_onnxruntime(model: Any, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Run a model as its text says, without rewriting, and return these values of it by name."""
    from onnx import helper

    proto = _load(model)
    present = {o.name for o in proto.graph.output}
    made = {name for node in proto.graph.node for name in node.output}
    for name in names:
        if name in made and name not in present:
            proto.graph.output.append(helper.make_empty_tensor_value_info(name))
    return _run(proto, feeds)


def run_onnxruntime_apart(model: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model cut at every value that is given, so that no error grows from one part to the next.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    values : mapping of arrays
        Its inputs and values of a run, all of which are fed.

    Returns
    -------
    dict
        What the nodes behind each value make of the values before it.
    """
    from onnx import helper

    proto = _load(model)
    graph = proto.graph
    inputs = {i.name for i in graph.input}
    cut = {}
    for node in graph.node:
        for i, name in enumerate(node.output):
            value = values.get(name)
            if name and isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
                cut[name] = f"{name}/apart"
                node.output[i] = cut[name]
    del graph.output[:]
    del graph.value_info[:]
    for name, apart in cut.items():
        value = values[name]
        if name not in inputs:
            graph.input.append(
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            )
        graph.output.append(helper.make_empty_tensor_value_info(apart))
    found = _run(proto, values)
    return {name: found[apart] for name, apart in cut.items()}
