"""One node by its reference, and what inference says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from neo import _native

__all__ = ["infer", "run"]


def run(op: str, *inputs: Any, outputs: int = 1, **attrs: Any) -> Any:
    """The results for arrays (None: left out, a list: a sequence); checks that inference allows for them."""
    graph = _native.Graph()
    values = []
    arrays = []
    for i, x in enumerate(inputs):
        if x is None:
            values.append(None)
            continue
        if isinstance(x, list):
            element = np.asarray(x[0]).dtype.name if x else "float32"
            values.append(graph.add_input(f"x{i}", f"seq({element}[*])"))
            arrays.append(x)
            continue
        x = np.asarray(x)
        dtype = "string" if x.dtype.kind in "OU" else x.dtype.name
        values.append(graph.add_input(f"x{i}", dtype, list(x.shape)))
        arrays.append(x)
    node = graph.add_node(op, values, [f"y{i}" for i in range(outputs)], attrs)
    graph.outputs = node.outputs
    results = graph.evaluate(arrays)
    for value, result in zip(node.outputs, results, strict=True):
        if value.kind == "tensor" and value.shape is not None:
            assert len(value.shape) == result.ndim
            known = [(d, n) for d, n in zip(value.shape, result.shape, strict=True) if isinstance(d, int)]
            assert all(d == n for d, n in known)
    return results[0] if outputs == 1 else results


def infer(op: str, *inputs: Any, outputs: int = 1, **attrs: Any) -> Any:
    """The output types; an input is a type as text, an array for a constant, or a list of sizes from symbols."""
    graph = _native.Graph()
    values = []
    for i, x in enumerate(inputs):
        if isinstance(x, str):
            dtype, _, dims = x.partition("[")
            sizes = [int(d) if d.isdigit() else d for d in dims.rstrip("]").split(",") if d]
            values.append(graph.add_input(f"x{i}", dtype, sizes))
        elif isinstance(x, list):
            values.append(sizes_value(graph, x))
        else:
            values.append(None if x is None else graph.add_constant(f"x{i}", np.asarray(x)))
    node = graph.add_node(op, values, [f"y{i}" for i in range(outputs)], attrs)
    types = [value.type for value in node.outputs]
    return types[0] if outputs == 1 else types


def sizes_value(graph: Any, sizes: list[int | str]) -> Any:
    """A shape computation: an int64 vector of these sizes."""
    parts = []
    for size in sizes:
        if isinstance(size, int):
            parts.append(graph.add_constant("size", np.array([size])))
        else:
            source = graph.add_input("source", "float32", [size])
            parts.append(graph.add_node("Shape", [source], ["size"]).outputs[0])
    return graph.add_node("Concat", parts, ["sizes"], {"axis": 0}).outputs[0]


def floats(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims)
