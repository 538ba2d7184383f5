"""The zoo itself: onnxruntime must give what the stored tensors say, or a wrong catalogue would judge neo."""

from __future__ import annotations

import numpy as np
import pytest
from neo import testing

from . import detectors, media, tasks, zoo
from .conftest import each_model, require, saturates_quantized_sums
from .engines import OnnxRuntime, assert_agrees, assert_meets_reference, expected_of, source_of

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def test_names_every_model_of_the_folder() -> None:
    folder = zoo.models_folder()
    if not folder.exists():
        pytest.skip("the folder of the shared models is absent (set NEO_TEST_MODELS)")
    present = {str(path.relative_to(folder)) for path in folder.glob("*/*.onnx")}
    assert present == {model.file for model in zoo.MODELS}


@each_model(lambda model: model.onnxruntime)
def test_outputs_say_something(model: zoo.Model) -> None:
    """No output that is compared may be all zeros or not a number: any wrong result is as good as that one."""
    for name, _, outputs in expected_of(require(model)):
        for output, values in outputs.items():
            if values.dtype.kind == "f":
                assert np.isfinite(values).all(), (name, output)
                assert np.abs(values).max() > 1e-6, (name, output)


@each_model(lambda model: model.onnxruntime and bool(model.references))
def test_onnxruntime_meets_the_stored_tensors(model: zoo.Model) -> None:
    if model.quantized and saturates_quantized_sums():
        pytest.skip("not on this processor: without VNNI onnxruntime's products of uint8 and int8 saturate")
    runtime = OnnxRuntime(source_of(require(model)))
    for reference in model.references:
        for feeds, expected in zoo.load_reference(model, reference):
            assert_meets_reference(model, reference, feeds, runtime.run(feeds), expected)


@each_model(lambda model: not model.onnxruntime)
def test_onnxruntime_refuses(model: zoo.Model) -> None:
    with pytest.raises(Exception, match="Add"):
        OnnxRuntime(str(require(model).path))


@each_model(lambda model: model.kind == "light")
def test_constant_weights_give_the_stored_output(model: zoo.Model) -> None:
    feeds, expected = zoo.constant_weights_reference(require(model))
    (actual,) = OnnxRuntime(str(model.path)).run(feeds).values()
    testing.assert_arrays_close(actual, expected, depth=testing.longest_reduction(model.path))


@each_model(lambda model: model.kind == "light")
def test_reweighted_outputs_depend_on_the_input(model: zoo.Model) -> None:
    runtime = OnnxRuntime(source_of(require(model)))
    (case,) = model.cases()
    ((name, values),) = case.feeds.items()
    (first,), (second,) = (tuple(runtime.run({name: item}).values()) for item in (values, -values))
    assert np.abs(first - second).max() > 1e-4 * np.abs(first).max()


@each_model(lambda model: model.name in ("silero-vad", "silero-vad-16k", "silero-vad-ifless"))
def test_speech_is_heard_where_it_is(model: zoo.Model) -> None:
    runtime = OnnxRuntime(str(require(model).path))
    heard = [float(out["output"][0, 0]) for _, out in zoo.stream_steps(model, runtime.run, 400)]
    np.testing.assert_allclose(heard[:5], tasks.SPEECH_FIRST, atol=6e-5)
    assert sum(value > 0.5 for value in heard) == tasks.SPEECH_WINDOWS


def test_speech_at_half_the_rate_is_heard() -> None:
    model = require(zoo.BY_NAME["silero-vad-8k"])
    runtime = OnnxRuntime(str(model.path))
    heard = [float(out["output"][0, 0]) for _, out in zoo.stream_steps(model, runtime.run, 400)]
    assert 260 < sum(value > 0.5 for value in heard) < 310


def test_speech_is_missed_without_context() -> None:
    model = require(zoo.BY_NAME["silero-vad-16k"])
    runtime = OnnxRuntime(str(model.path))
    steps = zoo.stream_steps(model, lambda feeds: runtime.run({**feeds, "input": feeds["input"][:, 64:]}), 40)
    assert max(float(out["output"][0, 0]) for _, out in steps) < 0.01


@pytest.mark.parametrize("photograph", tasks.PHOTOGRAPHS, ids=lambda photograph: photograph.file)
@each_model(lambda model: model.name.startswith("mobilenet"))
def test_photographs_are_recognised(model: zoo.Model, photograph: tasks.Photograph) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    (logits,) = OnnxRuntime(str(require(model).path)).run(tasks.photograph_feeds(model, photograph)).values()
    assert int(logits.argmax()) == photograph.label(model)


def test_appended_nms_meets_the_stored_boxes() -> None:
    pytest.importorskip("onnx")
    plain, derived = require(zoo.BY_NAME["ultraface"]), require(zoo.BY_NAME["ultraface-nms"])
    runtime = OnnxRuntime(detectors.ultraface_with_nms(plain.path).SerializeToString())
    for feeds, expected in zoo.load_reference(derived, derived.references[0]):
        assert_agrees(derived, feeds, runtime.run(feeds), expected)


def test_notes_are_found_where_the_author_found_them() -> None:
    model = require(zoo.BY_NAME["basic-pitch"])
    runtime = OnnxRuntime(str(model.path))
    for found, stored in tasks.transcribe(runtime.run).values():
        assert found.shape == stored.shape
        assert np.corrcoef(found.ravel(), stored.ravel())[0, 1] > 0.9999
        assert np.abs(found - stored).max() < 0.01


def test_spectra_invert_to_the_samples() -> None:
    samples = np.random.default_rng(0).standard_normal(2048).astype(np.float32)
    window = np.sqrt(np.hanning(513)[:-1])
    frames = np.fft.irfft(media.spectra(samples), axis=1) * window
    whole = np.zeros(2048)
    for index, frame in enumerate(frames):
        whole[index * 256 : index * 256 + 512] += frame
    np.testing.assert_allclose(whole[256:-256], samples[256:-256], atol=1e-6)
