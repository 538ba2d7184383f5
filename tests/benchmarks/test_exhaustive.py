"""The exhaustive search: resumable, and no worse than tuning by its own times."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from neo.tune import Database

from benchmarks import exhaustive, results
from tests.tune import killed


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small convolution."""
    path = tmp_path_factory.mktemp("exhaustive") / "small.onnx"
    path.write_bytes(killed.model(3))
    return path


def told(points: list[tuple[int, bool]]):
    """Collects what a run tells."""
    return lambda count, _seconds, is_new: points.append((count, is_new))


def test_a_run_that_was_stopped_goes_on_and_ends_with_every_point(path: Path, tmp_path: Path) -> None:
    with Database(tmp_path / "all.db") as database:
        counter = itertools.count()
        first: list[tuple[int, bool]] = []
        network = exhaustive.Network(path, 1, database)
        assert network.points > 2 * 32
        assert not network.measure(lambda: next(counter) < 2, told(first))
        measured = sum(count for count, is_new in first if is_new)
        assert 0 < measured < network.points
        second: list[tuple[int, bool]] = []
        again = exhaustive.Network(path, 1, database)
        assert again.measure(lambda: True, told(second))
        assert sum(count for count, _ in second) == network.points
        # Candidates, which were timed in full as yardsticks, are known besides.
        assert measured <= sum(count for count, is_new in second if not is_new) < network.points
        assert again.finish(lambda: True)
        assert again.finish(lambda: False), "nothing is left to time"
        best = again.best()
        compared = exhaustive.compare(path, 1, best, tmp_path / "tuned.db", rounds=7)
    assert best.proven
    row = exhaustive.row_of("small", network, best, compared)
    page = tmp_path / "RESULTS.md"
    for name in ("small", "another", "small"):
        exhaustive.record("exhaustive-1", [name, *row[1:]], 1, page)
    (section,) = results.read_sections(results.json_beside(page)).values()
    assert [r[0] for r in section.rows] == ["another", "small"]
    assert len(row) == len(exhaustive.HEAD)
    assert "Exhaustive search: 1 thread" in page.read_text()


def test_the_time_left_is_told_in_minutes_and_hours() -> None:
    assert [exhaustive._hours(s) for s in (0, 61, 3600, 3661)] == ["0 min", "2 min", "1 h 00 min", "1 h 02 min"]
