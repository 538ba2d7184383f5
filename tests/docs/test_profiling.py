"""docs/profiling.md: its examples run, and its tables name what the data holds."""

import re
from pathlib import Path

import neo
import pytest
from neo import demo

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data():
    module = neo.compile(demo.model_bytes())
    return module.profile({"image": demo.images()[0][:2]}, repeat=1).data


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(example, "docs/profiling.md", "exec"), names)
    written = ["comparison.html", "explain.html", "profile.html", "profile.json"]
    assert sorted(p.name for p in tmp_path.iterdir()) == written
    assert "GFLOP/s" in capsys.readouterr().out


def test_the_commands_take_these_options():
    from neo.cli import make_parser

    for line in re.findall(r"^neo (.*)$", TEXT, re.MULTILINE):
        make_parser().parse_args(line.split())


def test_every_key_of_the_data_is_documented(data):
    table = set(re.findall(r"`(\w+)`", TEXT.partition("| key |")[2].partition("**steps**")[0]))
    assert set(data) <= table
    described = TEXT.partition("**steps**")[2].partition("## The trace")[0]
    named = set(re.findall(r"`(\w+)`", described))
    for entries in (
        data["steps"],
        data["graph"]["nodes"],
        data["graph"]["edges"],
        [data["memory"]],
        data["memory"]["buffers"],
        data["memory"]["arenas"],
        data["memory"]["outputs"],
        data["choices"],
        data["choices"][0]["options"],
    ):
        for entry in entries:
            assert set(entry) <= named
