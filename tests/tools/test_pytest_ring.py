"""The sample of ./test: the same for the same seed, another for another one, and nothing is left out for good."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import pytest_ring  # noqa: E402

TIERS, SEEDS = 3, 24
CASES = [{"tier": tier, "seed": seed} for seed in range(SEEDS) for tier in range(TIERS)]


def test_a_share_of_the_cases_is_drawn_and_every_tier_is_there():
    share = len(CASES) / pytest_ring.PERIOD
    for seed in range(100):
        drawn = pytest_ring.draw(CASES, str(seed))
        assert share <= len(drawn) <= share + TIERS - 1
        assert {CASES[i]["tier"] for i in drawn} == set(range(TIERS))
        assert drawn == pytest_ring.draw(CASES, str(seed))


@pytest.mark.parametrize("count", [2, 5, 6, 7, 200])
def test_twenty_seeds_reach_nearly_all(count):
    axes = [{"name": i} for i in range(count)]
    reached = [set().union(*(pytest_ring.draw(axes, f"{run}.{k}") for k in range(20))) for run in range(200)]
    assert sum(map(len, reached)) / (200 * count) > 0.91


def test_values_of_several_axes_are_all_there():
    axes = [{"op": op, "dtype": dtype, "tier": tier} for op in range(7) for dtype in range(3) for tier in range(3)]
    for seed in range(50):
        drawn = [axes[i] for i in pytest_ring.draw(axes, str(seed))]
        for name, count in (("op", 7), ("dtype", 3), ("tier", 3)):
            assert {case[name] for case in drawn} == set(range(count))


def test_what_is_cheap_or_not_known_runs_whole():
    functions = {"new": CASES, "cheap": CASES, "dear": CASES, "alone": [{}], "slow": [{}], "mixed": [{}, {}]}
    slow = mixed = 0
    marked = {"slow": {0}, "mixed": {1}}
    for seed in range(120):
        chosen = pytest_ring.ring(
            functions, marked, {"cheap": 0.2, "dear": 60.0, "alone": 60.0, "mixed": 60.0}, str(seed)
        )
        assert len(chosen["new"]) == len(chosen["cheap"]) == len(CASES)
        assert len(chosen["dear"]) < len(CASES) / 4
        assert chosen["alone"] == [0]
        slow += len(chosen["slow"])
        assert chosen["mixed"][0] == 0
        mixed += len(chosen["mixed"]) - 1
    assert 5 < slow < 40
    assert 5 < mixed < 40


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_ring", "-p", "no:cacheprovider", "-q", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(TOOLS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_two.py").write_text(
        "import time, pytest\n"
        "@pytest.mark.parametrize('case', range(30))\ndef test_dear(case): time.sleep(0.035)\n"
        "def test_alone(): pass\n"
    )
    return tmp_path


@pytest.mark.slow
def test_a_run_is_sampled_by_its_record_and_repeated_by_its_seed(suite, monkeypatch):
    record = suite / "seconds.json"
    assert "31 passed" in run(suite, "--all", "--record-seconds", str(record))
    assert list(json.loads(record.read_text())) == ["tests/test_two.py::test_dear"]
    plugin = suite / "tools"
    plugin.mkdir()
    (plugin / "pytest_ring.py").write_text((TOOLS / "pytest_ring.py").read_text())
    record.rename(suite / "tests" / "seconds.json")
    monkeypatch.setitem(globals(), "TOOLS", plugin)
    whole = run(suite, "--seed", "7")
    assert "5 passed, 26 deselected" in whole
    assert "5 of 31 tests, drawn by --seed 7; --all runs all" in whole
    assert "5 of 31 tests, drawn by --seed 0;" in run(suite), "a folder without a commit has the seed 0"
    assert "31 passed" in run(suite, "tests/test_two.py"), "a file that was named runs whole"
    assert "30 passed" in run(suite, "-k", "dear")


def test_about_so_many_are_drawn_and_more_of_what_is_named(suite):
    (suite / "tests" / "more").mkdir()
    many = "import pytest\n@pytest.mark.parametrize('case', range(400))\ndef test_{}(case): pass\n"
    (suite / "tests" / "test_many.py").write_text(many.format("many"))
    (suite / "tests" / "more" / "test_more.py").write_text(many.format("more"))
    text = run(suite, "--seed", "7", "--about", "100", "--fuller", "tests/more", "-vv")
    more, many = text.count("::test_more["), text.count("::test_many[")
    assert 70 < more + many < 130
    assert more > 2.5 * many
    assert "of 831 tests, drawn by --seed 7 --about 100; --all runs all" in text
    assert "831 passed" in run(suite, "--seed", "7", "--about", "9000")


def test_processes_that_collect_for_another_one_draw_as_it_says(suite):
    text = run(suite, "--seed", "7", "-p", "xdist", "-n", "2")
    assert "31 passed" in text, "what the record does not know runs whole"
    assert "neo: a sample of the tests, drawn by --seed 7; --all runs all" in text
