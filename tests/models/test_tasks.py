"""What a user of the models sees: the names of photographs, the notes of a song."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from . import tasks, zoo
from .conftest import each_model, require
from .engines import OnnxRuntime, Spread, assert_agrees, steps_of

CROPS = 12


@pytest.mark.parametrize("photograph", tasks.PHOTOGRAPHS, ids=lambda photograph: photograph.file)
@each_model(lambda model: model.name.startswith("mobilenet"))
def test_photographs_are_recognised(tier: str, model: zoo.Model, photograph: tasks.Photograph) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    module = neo.compile(str(require(model).path), target=f"cpu:{tier}")
    (logits,) = module.run(tasks.photograph_feeds(model, photograph)).values()
    assert int(logits.argmax()) == photograph.label(model)


@each_model(lambda model: model.name.startswith("mobilenet"))
def test_crops_and_mirrors_of_all_photographs_agree_with_onnxruntime(model: zoo.Model) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    runtime = OnnxRuntime(str(require(model).path), plain=model.quantized)
    module = neo.compile(str(model.path))
    feeds = [
        {name: np.ascontiguousarray(values)}
        for file in [*(photograph.file for photograph in tasks.PHOTOGRAPHS), *tasks.OTHER_PHOTOGRAPHS]
        for box in tasks.crops(file, CROPS)
        for name, pixels in tasks.photograph_feeds(model, file, box).items()
        for values in (pixels, pixels[..., ::-1])
    ]
    expected = [runtime.run(item) for item in feeds]
    spread = None
    if model.quantized:
        fused = OnnxRuntime(str(model.path))
        spread = Spread.between([fused.run(item) for item in feeds], expected, steps_of(model))
    for item, right in zip(feeds, expected, strict=True):
        assert_agrees(model, item, module.run(item), right, spread)


def test_notes_are_found_where_the_author_found_them() -> None:
    module = neo.compile(str(require(zoo.BY_NAME["basic-pitch"]).path))
    for found, stored in tasks.transcribe(module.run).values():
        assert found.shape == stored.shape
        assert np.corrcoef(found.ravel(), stored.ravel())[0, 1] > 0.9999
        assert np.abs(found - stored).max() < 0.01
