"""``neo tune`` and ``neo db``."""

import re

import pytest
from neo import cli


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
