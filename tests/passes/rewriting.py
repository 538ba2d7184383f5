"""Runs passes on graphs in their printed form: what comes out, and that it computes the same."""

from __future__ import annotations

import re
import zlib

import numpy as np
from neo import _native


def parsed(text: str) -> _native.Graph:
    """Return the graph of a text; types may be left out."""
    graph = _native.parse_graph(text)
    graph.infer()
    graph.verify()
    return graph


def inputs_of(graph: _native.Graph, *, size: int = 3) -> list[np.ndarray]:
    """Return seeded inputs; every symbol is ``size``."""
    rng = np.random.default_rng(zlib.crc32(str(graph).encode()))
    arrays = []
    for value in graph.inputs:
        dims = [d if isinstance(d, int) else size for d in value.shape]
        if value.dtype.startswith("float"):
            arrays.append((rng.standard_normal(dims) * 2).astype(value.dtype))
        elif value.dtype == "bool":
            arrays.append(rng.random(dims) < 0.5)
        else:
            low = -100 if value.dtype == "int8" else 0
            arrays.append(rng.integers(low, 100, dims).astype(value.dtype))
    return arrays


def after(before: str, *passes: str, steps: int = 0, rtol: float = 1e-5, atol: float = 1e-5) -> _native.Graph:
    """Return the graph after the passes, which must verify and compute the same; integers may be ``steps`` apart."""
    graph = parsed(before)
    result = _native.run_passes(graph, list(passes))
    result.verify()
    feeds = inputs_of(graph)
    for left, right in zip(result.evaluate(feeds), graph.evaluate(feeds), strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if left.dtype.kind in "iu":
            assert np.abs(left.astype(np.int64) - right.astype(np.int64)).max(initial=0) <= steps
        else:
            np.testing.assert_allclose(left, right, rtol=rtol, atol=atol)
    return result


def lines_of(graph: _native.Graph) -> list[str]:
    """Return the nodes as printed, without their types."""
    lines = [line.strip() for line in str(graph).splitlines()]
    return [
        re.sub(r" : [a-z0-9]+\[.*$", "", line) for line in lines if " = " in line and not line.startswith("constant ")
    ]


def ops_of(graph: _native.Graph) -> list[str]:
    """Return the operators in order."""
    return [node.op for node in graph.nodes]


def assert_rewrites(before: str, expected: str, *passes: str, steps: int = 0) -> None:
    """Raise ``AssertionError`` unless the passes make of one text the other."""
    assert str(after(before, *passes, steps=steps)) == str(parsed(expected))


def assert_keeps(before: str, *passes: str) -> None:
    """Raise ``AssertionError`` unless the passes leave a graph as it is."""
    assert str(after(before, *passes)) == str(parsed(before))
