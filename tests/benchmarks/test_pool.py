"""The pool's program and its table."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from benchmarks import pool
from benchmarks.peers import ENGINES

OUTPUT = """2 threads asked, 2 in the team
us per run (best round)                   neo     OpenMP
empty tasks                             0.017      0.979
16 tasks, 17 us on one thread          10.000     20.000
% of a core, 50 to 250 ms after         0.018     51.300
"""


def _program(folder: Path) -> Path:
    """Write a program that prints fixed figures."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{OUTPUT}END\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_figures_are_read_from_the_program_and_put_in_rows(tmp_path: Path) -> None:
    found = pool.run(_program(tmp_path), 2)
    assert found == {
        "empty tasks": (0.017, 0.979),
        "16 tasks, 17 us on one thread": (10.0, 20.0),
        "% of a core, 50 to 250 ms after": (0.018, 51.3),
    }
    section = pool.section([{"OpenMP": found, "OpenMP, active": found}], 2)
    assert section.head == ["", "neo", "OpenMP", "OpenMP, active"]
    assert section.rows[1] == ["16 tasks, 17 us on one thread, us", "10.0", "20.0", "20.0"]
    assert section.rows[2] == ["% of a core, 50 to 250 ms after", "0.0180", "51.3", "51.3"]


def test_idle_engines_have_a_row_each_with_a_share_or_a_reason() -> None:
    section = pool.idle_section({name: ENGINES[name] for name in ("neo", "litert")}, {}, 1, 1)
    assert re.fullmatch(r"\d+\.\d\d %", section.rows[0][1])
    assert section.rows[1][1].split(":")[0] in ("ModuleNotFoundError", "NotImplementedError")


@pytest.mark.slow
def test_the_program_builds_and_prints_every_line(tmp_path: Path) -> None:
    try:
        program = pool.build(tmp_path)
    except pool.NotBuiltError as error:
        if "no g++" in str(error):
            pytest.skip(str(error))
        raise
    assert len(pool.run(program, 2, rounds=1)) == 7
