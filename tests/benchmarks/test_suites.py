"""The suites of the benchmarks: small transformers of their makers against onnxruntime, files that are written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import neo
import numpy as np
import onnx
import pytest

from benchmarks import suites
from benchmarks.models import encoders

_SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert": lambda: encoders.bert(1, 2, 48, 4, 9, 1000),
    "bert-dynamic": lambda: encoders.bert(2, 1, 24, 3, "T", 1000),
    "vit": lambda: encoders.vit(3, 1, 40, 5, 28, 7),
    "whisper": lambda: encoders.whisper(4, 1, 24, 3, 30),
    "step": lambda: encoders.decoder_step(5, 2, 24, 3, 7, 1000),
    "cross": lambda: encoders.cross_decoder(6, 1, 24, 3, 5, 11),
    "conformer": lambda: encoders.conformer(7, 1, 32, 4, 13),
}


@pytest.mark.parametrize("name", _SMALL)
def test_a_transformer_agrees_with_onnxruntime(name: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path, feeds = suites.made(name, _SMALL[name], suites.random_feeds).prepare(tmp_path)
    expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    found = neo.compile(path, threads=2).run(feeds)
    for mine, theirs in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())


def test_a_file_is_written_once(tmp_path: Path) -> None:
    entry = suites.made("bert", _SMALL["bert"], suites.random_feeds)
    path, feeds = entry.prepare(tmp_path)
    before = path.stat().st_mtime_ns
    again, same = entry.prepare(tmp_path)
    assert (again, again.stat().st_mtime_ns) == (path, before)
    assert set(same) == {"input_ids", "attention_mask"}
    assert all((same[name] == feeds[name]).all() for name in feeds)
    assert [file.name for file in tmp_path.iterdir()] == ["bert.onnx"]


def test_every_suite_names_its_models_once() -> None:
    for name, (title, entries) in suites.SUITES.items():
        names = [entry.name for entry in entries()]
        assert title
        assert len(names) == len(set(names)), name
