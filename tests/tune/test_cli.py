"""``neo tune`` and ``neo db``."""

import json
import re

import neo
import pytest
from neo import cli
from neo.tune import Database, Row

from .conftest import HERE


@pytest.fixture
def file(tmp_path, model):
    path = tmp_path / "digits.onnx"
    path.write_bytes(model)
    return path


def test_tune_says_what_it_did_and_a_second_time_finds_it_done(file, path, capsys):
    arguments = ["tune", str(file), "--database", str(path), "--threads", "1"]
    assert cli.main(arguments) == 0
    first = capsys.readouterr().out
    assert re.match(r"digits\.onnx: [1-9]\d* times measured in [\d.]+ s, \d+ from the database", first)
    assert cli.main([*arguments, "--report"]) == 0
    second = capsys.readouterr().out
    assert second.startswith("digits.onnx: 0 times measured")
    assert "measured / estimated" in second
    assert "cpu:float32/direct" in second


def test_tune_without_models_is_an_error(capsys):
    assert cli.main(["tune"]) == 1
    assert capsys.readouterr().err.startswith("[cli] tune must be given models.")


def test_db_shows_and_clears(file, path, capsys):
    database = ["--database", str(path)]
    cli.main(["tune", str(file), *database, "--threads", "1"])
    capsys.readouterr()
    assert cli.main(["db", "summary", *database]) == 0
    summary = capsys.readouterr().out
    count = int(re.search(r"(\d+) measurements of", summary)[1])
    assert "regime" in summary
    assert cli.main(["db", "list", *database]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count + 2
    assert cli.main(["db", "clear", "--stale", *database]) == 0
    assert capsys.readouterr().out.endswith(": 0 measurements deleted\n")
    assert cli.main(["db", "clear", *database]) == 0
    assert capsys.readouterr().out.endswith(f": {count} measurements deleted\n")


def test_db_of_a_missing_file_is_empty(path, capsys):
    for action in ("summary", "list", "clear"):
        assert cli.main(["db", action, "--database", str(path)]) == 0
    assert not path.exists()


def test_every_command_on_a_model_can_use_a_database(file, path, capsys):
    cli.main(["tune", str(file), "--database", str(path), "--threads", "1"])
    assert cli.main(["explain", str(file), "--database", str(path), "--threads", "1", "--no-measure"]) == 0
    assert "* a measured time" in capsys.readouterr().out


def test_databases_are_exported_imported_and_merged(file, path, tmp_path, capsys):
    database = ["--database", str(path)]
    cli.main(["tune", str(file), *database, "--threads", "1"])
    with Database(path, read_only=True) as opened:
        records = list(opened.records())
    for name in ("all.jsonl", "all.csv"):
        assert cli.main(["db", "export", str(tmp_path / name), *database]) == 0
        other = tmp_path / f"{name}.db"
        for new in (len(records), 0):
            assert cli.main(["db", "import", str(tmp_path / name), "--database", str(other)]) == 0
            assert f"{new} of {len(records)} measurements were new" in capsys.readouterr().out
        with Database(other, read_only=True) as opened:
            assert [r.row for r in opened.records()] == [r.row for r in records]
            assert [r.context for r in opened.records()] == [r.context for r in records]
    merged = str(tmp_path / "merged.db")
    assert cli.main(["db", "merge", str(path), str(tmp_path / "all.csv.db"), "-o", merged]) == 0
    assert cli.main(["db", "export", "--database", merged]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(told) == len(records)
    assert {entry["version"] for entry in told} == {neo.__version__}


GOOD = {
    "workload": "w", "cache_level": "shared", "candidate": "c", "routine": "r", "time_us": 1.5, "spread_us": None,
    "estimate_us": 1.0, "rounds": 9, "failure": "", "made": "2026-01-31T12:00:00+00:00", "version": "0.1.0",
    "machine": "m", "kernels": "k", "target": "avx2", "threads": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"time_us": -1.0},
        {"time_us": float("nan")},
        {"time_us": "fast"},
        {"rounds": 1.5},
        {"threads": 0},
        {"threads": True},
        {"made": "yesterday"},
        {"workload": None},
        {"more": 1},
    ],
    ids=str,
)
def test_a_line_that_is_no_measurement_is_refused_with_all_of_its_file(change, tmp_path, path, capsys):
    file = tmp_path / "some.jsonl"
    file.write_text(f"{json.dumps(GOOD)}\n{json.dumps(GOOD | change)}\n")
    assert cli.main(["db", "import", str(file), "--database", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("[database] a line must be a measurement.")
    assert f"{file}:2" in told
    assert not path.exists()


def test_a_file_without_a_known_form_is_refused(tmp_path, path, capsys):
    (tmp_path / "some.txt").write_text("neither")
    (tmp_path / "some.csv").write_text("a,b\n1,2\n")
    (tmp_path / "some.jsonl").write_text("{")
    for name, words in (("some.txt", "JSON lines or a table"), ("some.csv", "columns a, b"), ("some.jsonl", ":1")):
        assert cli.main(["db", "import", str(tmp_path / name), "--database", str(path)]) == 1
        assert words in capsys.readouterr().err


def test_pruning_wants_to_know_what(path, capsys):
    database = ["--database", str(path)]
    for arguments, words in (
        ([], "told what to delete"),
        (["--older", "soon"], "must be a time"),
        (["--best", "0"], "must be positive"),
    ):
        assert cli.main(["db", "prune", *arguments, *database]) == 1
        assert words in capsys.readouterr().err
    with Database(path) as opened:
        opened.store(HERE, "w", "shared", [Row("a", "a", 1.0, 1.0, 9), Row("b", "b", 2.0, 1.0, 9)])
    assert cli.main(["db", "prune", "--best", "1", "--older", "1d", *database]) == 0
    assert capsys.readouterr().out.endswith(": 1 measurements deleted\n")


def test_merging_a_missing_database_makes_none(path, tmp_path, capsys):
    assert cli.main(["db", "merge", str(path), "-o", str(tmp_path / "out.db")]) == 1
    assert "a database must exist" in capsys.readouterr().err
    assert not (tmp_path / "out.db").exists()
