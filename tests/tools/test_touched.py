"""Which tests a change reaches."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import touched  # noqa: E402

FOLDERS = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}


@pytest.mark.parametrize(
    ("path", "reached", "apart"),
    [
        ("csrc/passes/pipeline.cpp", {"passes"}, {"ops", "routines", "frontend"}),
        ("csrc/routines/cpu/pool/pool.cpp", {"routines", "saved", "models"}, {"ops", "ir", "frontend"}),
        ("csrc/ir/dim.cpp", {"ir", "ops", "passes", "routines", "saved", "tune"}, {"frontend"}),
        ("python/neo/tune/search.py", {"tune"}, {"routines"}),
        ("python/neo/compile.py", {"api"}, {"routines"}),
        ("tests/select/test_greedy.py", {"select"}, {"routines"}),
        ("docs/index.md", set(), FOLDERS),
    ],
)
def test_a_change_reaches_what_may_include_it(path, reached, apart):
    found = {Path(name).name for name in touched.touched([path], FOLDERS)}
    assert reached <= found
    assert not apart & found


def test_every_folder_of_the_core_has_tests():
    for folder in touched.read_arrows(ROOT):
        assert touched.touched([f"csrc/{folder}/x.cpp"], FOLDERS), folder


def test_prints_folders_that_are_there():
    if not (ROOT / ".git").exists():
        pytest.skip("the folder has no history")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "touched.py"], capture_output=True, text=True, check=True
    ).stdout
    assert all((ROOT / line).is_dir() for line in done.splitlines())
