"""neo.Limits: each limit holds, and says how to change it."""

from __future__ import annotations

import time
from typing import Any

import neo
import numpy as np
import pytest

from tests.untrusted.test_attacks import ints, laughs, loop, model, node


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"bytes": -1}, neo.ModelError),
        ({"nodes": 1.5}, neo.DTypeError),
        ({"seconds": float("nan")}, neo.ModelError),
        ({"memory": "1 GB"}, neo.DTypeError),
        ({"memory": True}, neo.DTypeError),
        ({"seconds": float("inf")}, neo.ModelError),
    ],
)
def test_what_is_no_limit(given: dict[str, Any], kind: type[neo.Error]) -> None:
    with pytest.raises(kind, match=r"^\[limits\] "):
        neo.Limits(**given)


def test_limits_are_limits() -> None:
    with pytest.raises(neo.DTypeError, match=r"limits must be neo.Limits. Got dict"):
        neo.compile(laughs(1, 1), limits={"nodes": 3})  # type: ignore[arg-type]


def test_bytes(tmp_path: Any) -> None:
    raw = laughs(1, 1).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(raw)
    for source in (raw, tmp_path / "m.onnx"):
        neo.compile(source, limits=neo.Limits(bytes=len(raw)))
        with pytest.raises(neo.ModelError, match=r"must have at most \d+ bytes. Got \d+.*\nHint: neo.Limits\(bytes"):
            neo.compile(source, limits=neo.Limits(bytes=len(raw) - 1))


def test_nodes() -> None:
    neo.compile(laughs(4, 2), limits=neo.Limits(nodes=50))
    with pytest.raises(neo.ModelError, match=r"may have 50 nodes .*\nHint: neo.Limits\(nodes"):
        neo.compile(laughs(5, 2), limits=neo.Limits(nodes=50))


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_seconds_end_an_import(seconds: float) -> None:
    start = time.monotonic()
    with pytest.raises(neo.TimeLimitError, match=r"must end in time. Got longer, expected at most [0-9.]+ s"):
        neo.compile(laughs(40, 2), limits=neo.Limits(seconds=seconds))
    assert time.monotonic() - start < 60
    assert issubclass(neo.TimeLimitError, TimeoutError)


def test_memory_while_compiling() -> None:
    """40 constants of 15 MB: folding has a limit of its own, packing has the user's."""
    product = model([node("ConstantOfShape", "t", "c"), node("MatMul", "x c")], x=["N", 512], t=ints(512, 512))
    neo.compile(product)
    with pytest.raises(neo.OutOfMemoryError, match=r"within its limit. Got .*, expected at most 100000 in all"):
        neo.compile(product, limits=neo.Limits(memory=100_000))


def test_memory_of_a_call() -> None:
    grows = neo.compile(loop(30, grows=True), limits=neo.Limits(memory=1 << 20))
    with pytest.raises(neo.OutOfMemoryError, match="expected at most 1048576 in all"):
        grows(np.ones(4, np.float32))
    few = neo.compile(loop(3, grows=True), limits=neo.Limits(memory=1 << 20))
    kept = [few(np.ones(4, np.float32)) for _ in range(10_000)]
    assert sum(y.nbytes for y in kept) > 1 << 20  # results that the caller keeps are the caller's
    with pytest.raises(neo.OutOfMemoryError):
        grows.with_threads(1)(np.ones(4, np.float32))
