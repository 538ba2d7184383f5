"""The zoo written back: checked, no more nodes, the same answers from ONNX Runtime and from neo."""

from __future__ import annotations

from pathlib import Path

import neo
import onnx
import pytest

from tests.models import zoo
from tests.models.conftest import require
from tests.models.engines import OnnxRuntime, assert_agrees, expected_of, source_of

# One of each kind: convolutions, quantized of both kinds, control flow, dynamic sizes, suppression, activations.
_QUICK = frozenset(
    {"resnet8", "micro-kws-qoperator", "kws-dscnn-qdq", "silero-vad-16k", "yunet-dynamic", "ultraface-nms", "magika"}
)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(m, id=m.name, marks=[] if m.name in _QUICK else [pytest.mark.slow])
        for m in zoo.MODELS
        if m.onnxruntime
    ],
)
def test_written_model_gives_the_same_answers(model: zoo.Model, tmp_path: Path) -> None:
    cases = expected_of(require(model))
    written = neo.optimize(source_of(model), tmp_path / "o.onnx")
    assert written.nodes <= written.nodes_before
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    runtime = OnnxRuntime(str(tmp_path / "o.onnx"), plain=model.quantized)
    module = neo.compile(tmp_path / "o.onnx", threads=2)
    for _, feeds, expected in cases:
        assert_agrees(model, feeds, runtime.run(feeds), expected)
        assert_agrees(model, feeds, module.run(feeds), expected)
