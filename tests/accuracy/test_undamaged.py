"""Models that are right: the check names no node of them as a cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neo
import onnx
import pytest

from tests.accuracy.networks import NETWORKS
from tests.conformance.backend_cases import all_cases
from tests.models.inputs import models_folder
from tests.models.zoo import MODELS, Model, load

# Left out here: what takes plain loops in double precision more than about two seconds, or cannot be compiled.
LEFT_OUT = {
    "basic-pitch": "10 s: many long one-dimensional convolutions",
    "magika": "5 s a row of its batch",
    "starry-night": "neo refuses it, as onnxruntime does",
    "super-resolution": "7 s: convolutions of 224 x 224 pixels",
    "super-resolution-torch": "7 s",
    "tbefn": "8 s",
    "yolox-nano": "3 s",
    "deeplab-v3": "3 s",
    "ppocr-det": "3 s",
    "mobilenet-v2-qdq": "3 s",
}
QUICK = [m for m in MODELS if m.name not in LEFT_OUT and m.kind != "light"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_no_node_of_a_network_is_named_as_a_cause(network: Callable[[int], onnx.ModelProto], seed: int) -> None:
    report = neo.check_accuracy(network(seed), samples=2)
    assert report.passed, report.summary()
    assert len(report.nodes) > 5
    assert max(row.share or 0.0 for row in report.nodes) > 0.0


@pytest.mark.skipif(not models_folder().is_dir(), reason="the folder of models is missing")
@pytest.mark.parametrize("model", QUICK, ids=lambda model: model.name)
def test_no_node_of_a_model_is_named_as_a_cause(model: Model) -> None:
    if not model.path.exists():
        pytest.skip(f"{model.file} is missing")
    feeds: dict[str, Any] = model.cases()[0].feeds
    report = neo.check_accuracy(load(model), inputs=feeds)
    assert report.passed, report.summary()


@pytest.mark.slow
def test_no_node_of_a_conformance_case_is_named_as_a_cause() -> None:
    checked = 0
    for case in all_cases():
        model, folder, sets = case.load()
        source = model if folder is None else folder / "model.onnx"
        try:
            module = neo.compile(source, threads=1)
            feeds = dict(zip([t.name for t in module.inputs], sets[0][0], strict=True))
            module.run(feeds)
        except (neo.Error, ValueError):
            continue  # tests/conformance lists what does not run, and why
        report = neo.check_accuracy(source, module=module, inputs=feeds)
        assert report.passed, f"{case.name}: {report.summary()}"
        checked += 1
    assert checked > 1500
