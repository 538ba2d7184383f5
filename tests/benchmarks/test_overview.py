"""The table over all records, and what the first page says of it."""

from pathlib import Path

from benchmarks import overview

ROOT = Path(__file__).parents[2]


def test_every_record_is_in_the_table():
    recorded = {path.parent.name for path in overview.FOLDER.glob("*/results.json")} - {"local"}
    assert recorded == set(overview.MACHINES)


def test_the_table_is_that_of_the_records():
    assert overview.PAGE_PATH.read_text(encoding="utf-8") == overview.text(), "run python -m benchmarks.overview"


def test_the_figures_of_the_first_page_are_in_the_table():
    known = [[row[0], row[1], row[2], row[4], row[5], row[7]] for row in overview.rows()]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    shown = [
        line.replace("(benchmarks/results/", "(").strip("| ").split(" | ") for line in lines if line.startswith("| [")
    ]
    assert shown
    for row in shown:
        assert row in known
