"""The cells of the benchmarks against onnxruntime: in a Scan of any length, and written out."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from benchmarks.models.cells import CELLS, cell_model, feeds_of_cells

onnxruntime = pytest.importorskip("onnxruntime")


def check(model, sizes, threads):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    module = neo.compile(model, threads=threads)
    for steps, batch in sizes:
        feeds = feeds_of_cells(model, steps, batch)
        for found, expected in zip(module.run(feeds).values(), session.run(None, feeds), strict=True):
            assert found.shape == expected.shape
            # What a memory of sums holds grows with the steps.
            assert np.abs(found - expected).max() <= 2e-5 * max(1.0, np.abs(expected).max())
    return module


@pytest.mark.parametrize("name", CELLS)
def test_a_scan_of_any_length_and_batch(name):
    check(cell_model(name, 16), [(1, 1), (2, 3), (7, 1), (16, 2), (100, 1)], 2)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_cell(seed):
    check(cell_model(f"random-{seed}", 16), [(1, 1), (2, 3), (16, 5), (40, 1)], 2)


@pytest.mark.parametrize("name", [*CELLS, "random-0"])
def test_written_out(name):
    check(cell_model(name, 16, unrolled=4), [(4, 1), (4, 3)], 1)


def test_plain_cells_are_recognised():
    for name, op in (("lstm", "LSTM"), ("gru", "GRU"), ("peephole-lstm", "LSTM"), ("coupled-lstm", "LSTM")):
        for unrolled in (0, 4):
            assert op in [step.op for step in neo.compile(cell_model(name, 16, unrolled=unrolled)).steps]
