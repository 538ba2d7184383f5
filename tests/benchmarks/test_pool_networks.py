"""Images per second over both pools."""

from __future__ import annotations

from pathlib import Path

import neo
import pytest
from neo import demo

from benchmarks import native_program, pool_networks
from tests import built


def test_a_row_has_the_best_rates_and_their_ratio() -> None:
    times = {"neo": [10.0, 10.0, 20.0], "neo, pinned": [8.0, 8.0, 8.0], "OpenMP": [12.0, 11.0, 40.0]}
    case = pool_networks.Case("net", 2, Path("net.neo"), (1, 3, 8, 8))
    assert pool_networks.row_of(case, times) == ["net", "2", "100", "125", "90.9", "1.10"]


@pytest.mark.slow
def test_both_pools_call_a_saved_network(tmp_path: Path) -> None:
    try:
        program = native_program.build(tmp_path, "pool_networks", built.libraries(), ["-fopenmp"])
    except native_program.NotBuiltError as error:
        pytest.skip(str(error))
    neo.compile(demo.model_bytes(), threads=2).save(tmp_path / "digits.neo")
    case = pool_networks.Case("digits", 2, tmp_path / "digits.neo", demo.images()[0][:1].shape)
    (times,) = pool_networks.measure(program, [case], rounds=1)
    assert list(times) == list(pool_networks.POOLS)
    assert all(len(found) == 1 and found[0] > 0 for found in times.values())
