"""Operators of com.microsoft in neo and in ONNX Runtime, with fixed and with open sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import neo
import numpy as np
import onnx
import onnxruntime

from .models import node_model

__all__ = ["DOMAIN", "Random", "answers", "check", "check_model", "declared", "open_sizes"]

DOMAIN = "com.microsoft"


class Random:
    """Arrays that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, *dims: int, scale: float = 1.0) -> np.ndarray:
        return (self.generator.standard_normal(dims) * scale).astype(np.float32)

    def integers(self, low: int, high: int, *dims: int, dtype: type = np.int32) -> np.ndarray:
        """Numbers from `low` to `high`, the latter left out."""
        return self.generator.integers(low, high, dims).astype(dtype)


def declared(model: onnx.ModelProto, dtypes: Sequence[int]) -> onnx.ModelProto:
    """The model with the element types of its outputs, which ONNX Runtime wants where it cannot infer them."""
    for output, dtype in zip(model.graph.output, dtypes, strict=True):
        output.type.tensor_type.elem_type = dtype
    return model


def answers(model: onnx.ModelProto, arrays: Mapping[str, np.ndarray], *, optimized: bool = False) -> list[np.ndarray]:
    """What ONNX Runtime gives."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[np.ndarray] = session.run(None, dict(arrays))
    return results


def open_sizes(model: onnx.ModelProto, symbols: Mapping[int, Sequence[str | int]]) -> onnx.ModelProto:
    """A copy whose inputs have names for sizes: by the input's number, one entry per axis."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        names = symbols.get(int(value.name[1:]))
        if names is None:
            continue
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            if isinstance(name, str):
                dim.dim_param = name
    return copy


def check_model(
    model: onnx.ModelProto,
    arrays: Mapping[str, np.ndarray],
    want: Sequence[np.ndarray | None],
    *,
    tolerance: float = 1e-4,
    steps: int = 0,
    seen: Mapping[int, Any] | None = None,
) -> None:
    """Run a model in neo and compare its outputs; `seen` picks what an operator defines of an output."""
    got = list(neo.compile(model).run(dict(arrays)).values())
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if w is None:
            continue
        assert g.dtype == w.dtype, f"output {i}"
        assert g.shape == w.shape, f"output {i}"
        at = (seen or {}).get(i, ...)
        g, w = g[at], w[at]
        if w.dtype.kind in "iu":
            assert np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0) <= steps, f"output {i}"
        elif w.dtype.kind == "b":
            np.testing.assert_array_equal(g, w, err_msg=f"output {i}")
        else:
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=f"output {i}")


def check(
    op: str,
    inputs: Sequence[Any],
    *,
    outputs: int = 1,
    constants: Sequence[int] = (),
    dtypes: Sequence[int] | None = None,
    symbols: Mapping[int, Sequence[str | int]] | None = None,
    want: Sequence[np.ndarray] | None = None,
    opset: int = 21,
    tolerance: float = 1e-4,
    steps: int = 0,
    seen: Mapping[int, Any] | None = None,
    **attrs: Any,
) -> None:
    """One operator with the sizes of its inputs, and with names for some of them; right is what ONNX Runtime says.

    `want` stands for operators that ONNX Runtime runs on other devices only.
    """
    model, arrays = node_model(op, inputs, attrs, opset=opset, domain=DOMAIN, outputs=outputs, constants=constants)
    if want is None:
        want = answers(declared(model, dtypes or [1] * outputs), arrays)
    check_model(model, arrays, want, tolerance=tolerance, steps=steps, seen=seen)
    if symbols is not None:
        check_model(open_sizes(model, symbols), arrays, want, tolerance=tolerance, steps=steps, seen=seen)
