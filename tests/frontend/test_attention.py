"""Attention of ONNX's own domain: its caches, shared heads, windows and lengths in parts, against the operator."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from onnx import TensorProto, helper

B, L, S, H = 2, 3, 5, 4
_CODES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL,
    "int64": TensorProto.INT64,
}
NAMES = ("q", "k", "v", "mask", "past_key", "past_value", "lengths")


def operands(
    heads: int = 4, shared: int = 2, *, past: int = 0, packed: bool = False, dtype: str = "float32"
) -> dict[str, np.ndarray]:
    """Return queries, keys and values, and caches where `past` is not 0."""
    random = np.random.default_rng(heads * 7 + shared * 3 + past)

    def of(count: int, length: int) -> np.ndarray:
        dims = (B, length, count * H) if packed else (B, count, length, H)
        return random.standard_normal(dims).astype(dtype)

    fresh = L if past else S
    result = {"q": of(heads, L), "k": of(shared, fresh), "v": of(shared, fresh)}
    for name in ("past_key", "past_value") if past else ():
        result[name] = random.standard_normal((B, shared, past, H)).astype(dtype)
    return result


def model_of(feeds: dict[str, np.ndarray], attrs: dict[str, Any], *, symbols: bool, outputs: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(
            name,
            _CODES[x.dtype.name],
            [f"{name}{axis}" if symbols and axis in (0, x.ndim - 2) else d for axis, d in enumerate(x.shape)],
        )
        for name, x in feeds.items()
    ]
    names = [name if name in feeds else "" for name in NAMES]
    while not names[-1]:
        names.pop()
    results = ["y", "present_key", "present_value"][:outputs]
    node = helper.make_node("Attention", names, results, **attrs)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=r) for r in results])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def expected_of(feeds: dict[str, np.ndarray], attrs: dict[str, Any], outputs: int) -> list[np.ndarray]:
    """Return what the operator's reference gives."""
    graph = _native.Graph()
    values = {name: graph.add_input(name, x.dtype.name, list(x.shape)) for name, x in feeds.items()}
    given: list[Any] = [values.get(name) for name in NAMES]
    while given[-1] is None:
        given.pop()
    graph.outputs = graph.add_node("Attention", given, ["y", "pk", "pv"][:outputs], attrs, "node").outputs
    return list(graph.evaluate(list(feeds.values())))


def check(
    feeds: dict[str, np.ndarray],
    attrs: dict[str, Any] | None = None,
    *,
    symbols: bool = False,
    outputs: int = 1,
    tolerance: float = 2e-6,
) -> None:
    attrs = attrs or {}
    module = neo.compile(model_of(feeds, attrs, symbols=symbols, outputs=outputs), threads=1)
    assert "Attention" not in {step.op for step in module.steps}
    found = list(module.run(feeds).values())
    for left, right in zip(found, expected_of(feeds, attrs, outputs), strict=True):
        assert left.shape == right.shape
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left.astype(np.float64), right.astype(np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("heads", [(4, 2), (3, 1), (2, 2)])
@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("symbols", [False, True])
def test_shared_heads_and_caches(heads: tuple[int, int], past: int, causal: int, symbols: bool) -> None:
    feeds = operands(*heads, past=past)
    check(feeds, {"is_causal": causal, "softcap": 3.0}, symbols=symbols, outputs=3 if past else 1)


@pytest.mark.parametrize("causal", [0, 1])
def test_one_query_after_a_cache_sees_all(causal: int) -> None:
    feeds = operands(past=6)
    for name in ("q", "k", "v"):
        feeds[name] = feeds[name][:, :, :1]
    check(feeds, {"is_causal": causal, "scale": 0.3}, outputs=3)


@pytest.mark.parametrize("heads", [(4, 2), (2, 2)])
def test_operands_of_three_axes(heads: tuple[int, int]) -> None:
    attrs = {"q_num_heads": heads[0], "kv_num_heads": heads[1], "is_causal": 1}
    check(operands(*heads, past=3, packed=True), attrs, outputs=3)


MASKS = {
    "bool": np.array([[True, False, True, True, False], [False] * 5, [True] * 5]),
    "shorter": np.array([[0, 1, -2, 0.5]] * 3, np.float32),
    "heads": np.linspace(-1, 1, 4 * 3 * 5).astype(np.float32).reshape(1, 4, 3, 5),
    "hidden": np.array([[0, -np.inf, 1, 0, 0], [-np.inf] * 5, [0] * 5], np.float32),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("symbols", [False, True])
def test_masks(name: str, causal: int, symbols: bool) -> None:
    feeds = operands()
    feeds["mask"] = MASKS[name]
    check(feeds, {"is_causal": causal}, symbols=symbols)


@pytest.mark.parametrize(("left", "right"), [(-1, 0), (-1, 1), (0, -1), (2, -1), (0, 0), (2, 1)])
@pytest.mark.parametrize("past", [0, 4])
def test_windows(left: int, right: int, past: int) -> None:
    check(operands(past=past), {"left_window_size": left, "right_window_size": right})


@pytest.mark.parametrize("causal", [0, 1])
def test_lengths_without_padding(causal: int) -> None:
    feeds = operands()
    feeds["lengths"] = np.array([5, 2], np.int64)
    check(feeds, {"is_causal": causal})


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 4e-3), ("float64", 1e-12)])
@pytest.mark.parametrize("heads", [(4, 2), (2, 2)])
def test_other_dtypes(dtype: str, tolerance: float, heads: tuple[int, int]) -> None:
    feeds = operands(*heads, past=3, dtype=dtype)
    feeds["mask"] = np.linspace(-2, 2, L * 6).reshape(L, 6).astype(dtype)
    check(feeds, {"is_causal": 1}, outputs=3, tolerance=tolerance)
