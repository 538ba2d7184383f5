"""What a user of the models sees: the names of photographs, the notes of a song."""

from __future__ import annotations

import neo
import numpy as np
import pytest

from . import tasks, zoo
from .conftest import each_model, require
from .engines import OnnxRuntime, assert_agrees

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
    """A value next to a rounding edge may tip a quantized model into other steps: allowed once in forty."""
    pytest.importorskip("PIL", reason="Pillow is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    runtime = OnnxRuntime(str(require(model).path), fused=not model.quantized)
    module = neo.compile(str(model.path))
    files = [photograph.file for photograph in tasks.PHOTOGRAPHS] + list(tasks.OTHER_PHOTOGRAPHS)
    disagreements = []
    for file in files:
        for box in tasks.crops(file, CROPS):
            ((name, pixels),) = tasks.photograph_feeds(model, file, box).items()
            for values in (pixels, np.ascontiguousarray(pixels[..., ::-1])):
                actual, expected = module.run({name: values}), runtime.run({name: values})
                try:
                    assert_agrees(model, {name: values}, actual, expected)
                except AssertionError as error:
                    disagreements.append(f"{file} {box}: {error}")
    allowed = len(files) * CROPS * 2 // 40 if model.quantized else 0
    assert len(disagreements) <= allowed, "\n".join(disagreements)


def test_notes_are_found_where_the_author_found_them() -> None:
    module = neo.compile(str(require(zoo.BY_NAME["basic-pitch"]).path))
    for found, stored in tasks.transcribe(module.run).values():
        assert found.shape == stored.shape
        assert np.corrcoef(found.ravel(), stored.ravel())[0, 1] > 0.9999
        assert np.abs(found - stored).max() < 0.01
