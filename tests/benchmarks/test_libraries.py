"""The suite of models that torch has exported, and what writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from neo import demo

from benchmarks import suites
from benchmarks.models import libraries


def test_the_suite_has_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "CACHE", tmp_path)
    assert suites.find_entries("libraries", None) == []
    (tmp_path / libraries.FOLDER).mkdir()
    for name in ("timm-b", "timm-a"):
        (tmp_path / libraries.FOLDER / f"{name}.onnx").write_bytes(demo.model_bytes())
    (tmp_path / libraries.FOLDER / "timm-c.partial").write_bytes(b"half of it")
    entries = suites.find_entries("libraries", None)
    assert [entry.name for entry in entries] == ["timm-a", "timm-b"]
    path, feeds = entries[0].prepare(tmp_path)
    assert path.read_bytes() == demo.model_bytes()
    assert len(feeds) == 1


def test_without_torch_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit) as ended:
        libraries.main(["--cache", str(tmp_path / "none")])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("torch must be installed to export models. Got ")
    assert not (tmp_path / "none").exists()
