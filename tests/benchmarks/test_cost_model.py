"""The records that the cost model is trained on are of routines and schedules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from neo import _native

from benchmarks.cost_model.record import files, read
from benchmarks.cost_model.train import load

FILES = [*files(held_out=False), *files(held_out=True)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_records_name_routines_that_there_are(path: Path) -> None:
    assert {p.routine for p in read([path])} <= set(_native.routine_names())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_training_finds_nearly_all_points_of_the_records(path: Path) -> None:
    points = read([path])
    workloads = list(dict.fromkeys(p.workload for p in points))[::40]
    sample = [p for p in points if p.workload in workloads]
    # A space that has changed since has lost a few.
    assert sum(len(group.times_us) for group in load(sample)) > 0.9 * len(sample)
