"""Models of tables as exporters write them, beside ONNX Runtime: equal classes, and scores that float32 allows."""

from __future__ import annotations

from typing import Any

import neo
import numpy as np
import pytest

from benchmarks.models import tables

ort = pytest.importorskip("onnxruntime")

LARGE = {"lgbm-2000x31", "lgbm-500x127", "xgb-500x8", "rf-100x1000-3class", "rf-regressor-50x2000", "rf-100x500-binary"}
TABLES = [
    pytest.param(table, id=table.name, marks=[pytest.mark.slow] if table.name in LARGE else [])
    for table in (*tables.FORESTS, *tables.PIPELINES)
]


def as_arrays(values: Any) -> list[np.ndarray[Any, Any]]:
    """Arrays of a result; maps as one array of their values in the order of their keys."""
    if isinstance(values, list):
        assert all(list(row) == list(values[0]) for row in values)
        return [
            np.array([list(row.values()) for row in values], np.float32),
            np.array(list(values[0]) if values else []),
        ]
    return [np.asarray(values)]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_beside_onnxruntime(table: tables.Table) -> None:
    model = table.model().SerializeToString()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    module = neo.compile(model, threads=2)
    by_reference = {step.op for step in module.steps if step.routine == "cpu/reference"}
    assert by_reference <= {"ai.onnx.ml.ZipMap", "ai.onnx.ml.Scaler", "Gather"}  # a Scaler of integers, words
    for rows in (1, 3, 33, 70):
        feeds = table.feeds(rows)
        for actual, wanted in zip(module.run(feeds).values(), session.run(None, feeds), strict=True):
            for a, w in zip(as_arrays(actual), as_arrays(wanted), strict=True):
                assert a.shape == w.shape
                if w.dtype.kind == "f":
                    np.testing.assert_allclose(a, w, rtol=1e-4, atol=2e-5)
                else:
                    np.testing.assert_array_equal(a.astype(w.dtype), w)
    none = module.run(table.feeds(0))
    assert all(len(value) == 0 for value in none.values())
