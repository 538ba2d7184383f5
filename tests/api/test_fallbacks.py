"""Operators without a fast routine: compiling warns, the commands and the module name them."""

from __future__ import annotations

import logging
from pathlib import Path

import neo
import onnx
import pytest
from neo.cli import main

SLOW = """
<ir_version: 8, opset_import: ["" : 18]>
slow (float[64, 8, 8] x) => (y) { d = Det (x)  y = Relu (d) }"""
SIZES = """
<ir_version: 8, opset_import: ["" : 18]>
sizes (float[1, 3, 64, 64] x, int64[8] pads) => (y, sizes) { p = Pad (x, pads)  y = Relu (p)  sizes = Shape (p) }"""
EMPTY = """
<ir_version: 8, opset_import: ["" : 18]>
empty (float[0, 64, 64] x, int64[3] repeats, int64[3] sizes) => (y, z) { y = Tile (x, repeats)  z = Expand (x, sizes) }"""
UNKNOWN_RANK = """
<ir_version: 8, opset_import: ["" : 18]>
unknown (bool c, float[1, 4, 8] x, float[2048, 512] a, float[512, 512] w) => (y, z) {
    u = If (c) <then_branch = t () => (p) { p = Identity (x) }, else_branch = e () => (q) { q = Flatten (x) }>
    y = Concat <axis = 1> (u, x)
    z = MatMul (a, w)
}"""
FAST = """
<ir_version: 8, opset_import: ["" : 18]>
fast (float[64, 64] x) => (y) { d = Relu (x)  y = Softmax (d) }"""


def warnings_of(text: str, caplog: pytest.LogCaptureFixture) -> tuple[neo.Module, list[str]]:
    with caplog.at_level(logging.WARNING, logger="neo"):
        module = neo.compile(onnx.parser.parse_model(text))
    return module, [record.getMessage() for record in caplog.records if record.name == "neo"]


def test_a_slow_fallback_speaks(caplog: pytest.LogCaptureFixture) -> None:
    module, messages = warnings_of(SLOW, caplog)
    assert list(module.fallbacks) == ["Det"]
    assert 0.1 < module.fallbacks["Det"] <= 1
    (message,) = messages
    assert message.startswith("[compile] operators without a fast routine take ")
    assert "% of the estimated time: Det " in message


def test_a_fast_model_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    module, messages = warnings_of(FAST, caplog)
    assert module.fallbacks == {}
    assert messages == []


def test_what_has_no_elements_is_no_slow_fallback(caplog: pytest.LogCaptureFixture) -> None:
    module, messages = warnings_of(EMPTY, caplog)
    assert module.fallbacks == {}
    assert messages == []


def test_what_has_no_known_size_is_not_taken_for_huge(caplog: pytest.LogCaptureFixture) -> None:
    module, messages = warnings_of(UNKNOWN_RANK, caplog)
    (concat,) = [step for step in module.steps if step.op == "Concat"]
    assert concat.routine == "cpu/reference"
    assert messages == []


def test_who_reads_no_element_takes_no_time() -> None:
    module = neo.compile(onnx.parser.parse_model(SIZES))
    (shape,) = [step for step in module.steps if step.op == "Shape"]
    assert shape.routine == "cpu/reference"
    assert "Shape" not in module.fallbacks


@pytest.mark.parametrize("dtype", ["float", "float16", "uint8", "bool", "int64"])
@pytest.mark.parametrize(
    "node",
    [
        "Transpose <perm = [0, 2, 3, 1]> (x)",
        "SpaceToDepth <blocksize = 2> (x)",
        "DepthToSpace <blocksize = 2> (x)",
        "GatherElements <axis = 3> (x, places)",
        "Gather <axis = 3> (x, columns)",
    ],
)
def test_movement_of_elements_has_fast_routines(node: str, dtype: str) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["" : 18]>
        moves ({dtype}[1, 16, 40, 40] x, int64[1, 16, 40, 40] places, int64[7] columns) => (y) {{ y = {node} }}"""
    module = neo.compile(onnx.parser.parse_model(text))
    assert module.fallbacks == {}


@pytest.mark.parametrize("command", ["check", "run", "bench"])
def test_the_commands_name_them(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    more = ["--seconds", "0.01"] if command == "bench" else []
    for text, expected in ((SLOW, "note: operators without a fast routine take "), (FAST, "")):
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        assert main([command, str(path), *more]) == 0
        err = capsys.readouterr().err
        assert err.startswith(expected)
        assert bool(err) == bool(expected)
        assert err.count("Det") == bool(expected)


def test_a_saved_module_knows_them(tmp_path: Path) -> None:
    module = neo.compile(onnx.parser.parse_model(SLOW))
    module.save(tmp_path / "m.neo")
    assert neo.load(tmp_path / "m.neo").fallbacks == module.fallbacks
