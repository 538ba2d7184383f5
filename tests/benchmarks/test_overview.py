"""The table over all records, and what the first page says of it."""

from benchmarks import overview


def test_every_record_is_in_the_table():
    recorded = {path.parent.name for path in overview.FOLDER.glob("*/results.json")} - {"local"}
    assert recorded == set(overview.MACHINES)


def test_the_table_is_that_of_the_records():
    assert overview.PAGE_PATH.read_text(encoding="utf-8") == overview.text(), "run python -m benchmarks.overview"


def test_the_first_page_has_the_table_of_the_records():
    assert overview.FIRST_PAGE_PATH.read_text(encoding="utf-8") == overview.first_page(), (
        "run python -m benchmarks.overview"
    )


def test_the_first_page_leaves_no_machine_and_no_kind_of_model_out():
    shown, known = set(overview.FIRST_PAGE), overview.rows()
    assert shown <= set(known)
    assert {folder for folder, _ in shown} == set(overview.MACHINES)
    # Three networks of microseconds are timed as whole calls from Python.
    suites = {key.rpartition("-")[0] for _, key in known} - {"microseconds"}
    assert {key.rpartition("-")[0] for _, key in shown} == suites


def test_a_first_page_names_no_engine_that_no_record_has():
    text = "".join(row[7] for row in overview.rows().values())
    readme = overview.FIRST_PAGE_PATH.read_text(encoding="utf-8").partition("## Install")[0]
    for name in overview._NAMES.values():
        assert name in text or name not in readme, name
