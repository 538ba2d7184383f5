"""What compiling takes: which limits a line exceeds, and one measurement in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import neo
import onnx
import pytest
from onnx import parser

from benchmarks.compile_means import Line, Means, least, model_bytes
from benchmarks.models.generated import write

MB = 1 << 20


@pytest.mark.parametrize(
    ("ours", "misses"),
    [
        (Means(0.39, 9.0, 59 * MB, 119), []),
        (Means(0.41, 0.0, 59 * MB, 119), ["time"]),
        (Means(0.39, 0.0, 61 * MB, 119), ["memory"]),
        (Means(0.39, 0.0, 59 * MB, 121), ["file"]),
        (Means(0, 0, 0, error="died"), ["died"]),
    ],
)
def test_a_line_says_which_limits_it_exceeds(ours: Means, misses: list[str]) -> None:
    assert Line("model", 100, ours, Means(0.2, 0.2, 40 * MB)).misses() == misses


def test_the_least_of_several_rounds_stands() -> None:
    rounds = [Means(2.0, 1.0, 30, 7), Means(1.0, 2.0, 20, 7)]
    assert least(rounds) == Means(1.0, 1.0, 20, 7)
    assert least([*rounds, Means(0, 0, 0, error="died")]).error == "died"


def test_one_model_is_measured_in_its_process(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(
        parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (y) { y = Relu (x) }'), path
    )
    command = [sys.executable, "-m", "benchmarks.compile_means", "--one", "neo", str(path)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert '"saved_bytes"' in done.stdout
    assert model_bytes(path) == path.stat().st_size


@pytest.mark.parametrize("name", ["scans_60", "small_nodes_3000"])
def test_generated_models_compile(name: str, tmp_path: Path) -> None:
    module = neo.compile(write(name, tmp_path), threads=1)
    assert len(module.steps) > 300
