"""neo on every model of the zoo, beside onnxruntime and the stored tensors, on every tier of this machine."""

from __future__ import annotations

import neo
import numpy as np
import pytest
from neo import testing

from . import detectors, zoo
from .conftest import each_model, require, require_answers
from .engines import assert_agrees, assert_meets_reference, expected_of, source_of


@each_model(lambda model: model.onnxruntime)
def test_agrees_with_onnxruntime_at_every_size(tier: str, model: zoo.Model) -> None:
    cases = expected_of(require_answers(model))
    module = neo.compile(source_of(model), target=f"cpu:{tier}", threads=2)
    for _, feeds, expected in cases:
        assert_agrees(model, feeds, module.run(feeds), expected)


@each_model(lambda model: model.onnxruntime and bool(model.references))
def test_meets_the_stored_tensors(tier: str, model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)), target=f"cpu:{tier}")
    for reference in model.references:
        for feeds, expected in zoo.load_reference(model, reference):
            assert_meets_reference(model, reference, feeds, module.run(feeds), expected)


@each_model(lambda model: model.kind == "light")
def test_constant_weights_give_the_stored_output(model: zoo.Model) -> None:
    feeds, expected = zoo.constant_weights_reference(require(model))
    (actual,) = neo.compile(str(model.path)).run(feeds).values()
    testing.assert_arrays_close(actual, expected, depth=testing.longest_reduction(model.path))


@each_model(lambda model: model.onnxruntime)
def test_gives_the_same_bits_on_any_number_of_threads_and_again(model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)))
    teams = [module.with_threads(count) for count in (1, 2, 5)]
    for case in model.cases():
        first = module.run(case.feeds)
        for other in [*teams, module]:
            again = other.run(case.feeds)
            for name, values in first.items():
                np.testing.assert_array_equal(again[name], values, err_msg=f"{name}, {case.name}", strict=True)


@each_model(lambda model: model.name in ("resnet8", "yunet", "silero-vad", "mobilenet-v2-qdq"))
def test_takes_arrays_by_position_as_by_name(model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)))
    feeds = model.cases()[0].feeds
    named = module.run(feeds)
    given = module(*[feeds[item.name] for item in module.inputs])
    answers = given if isinstance(given, tuple) else (given,)
    assert len(answers) == len(named) == len(module.outputs)
    for item, answer in zip(module.outputs, answers, strict=True):
        np.testing.assert_array_equal(answer, named[item.name], strict=True)


@each_model(lambda model: model.onnxruntime)
def test_tells_names_and_dtypes_of_inputs_and_outputs(model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)))
    case = model.cases()[0]
    outputs = module.run(case.feeds)
    assert {item.name: np.dtype(item.dtype) for item in module.inputs} == {k: v.dtype for k, v in case.feeds.items()}
    assert {item.name: np.dtype(item.dtype) for item in module.outputs} == {k: v.dtype for k, v in outputs.items()}
    for item in module.outputs:
        fixed = [(axis, dim) for axis, dim in enumerate(item.shape) if isinstance(dim, int)]
        assert [outputs[item.name].shape[axis] for axis, _ in fixed] == [dim for _, dim in fixed]


def test_suppression_that_finds_nothing_gives_empty_arrays() -> None:
    model = require(zoo.BY_NAME["ultraface-nms"])
    outputs = neo.compile(source_of(model)).run({"input": np.zeros((1, 3, 240, 320), dtype=np.float32)})
    assert {name: values.shape for name, values in outputs.items()} == {"det_boxes": (0, 4), "det_scores": (0,)}


def test_appended_suppression_meets_the_stored_boxes(tier: str) -> None:
    plain, derived = require(zoo.BY_NAME["ultraface"]), require(zoo.BY_NAME["ultraface-nms"])
    module = neo.compile(detectors.ultraface_with_nms(plain.path), target=f"cpu:{tier}")
    for feeds, expected in zoo.load_reference(derived, derived.references[0]):
        assert_agrees(derived, feeds, module.run(feeds), expected)


def test_a_sum_that_does_not_broadcast_is_refused_by_node() -> None:
    model = require(zoo.BY_NAME["starry-night"])
    with pytest.raises(neo.Error, match=r"(?s)\[Add\].*(32.*224|224.*32)"):
        neo.compile(str(model.path))


def test_opset_one_is_run_right_or_refused_by_name() -> None:
    model = require(zoo.BY_NAME["mnist-cntk"])
    refusal = ""
    try:
        module = neo.compile(str(model.path))
    except neo.Error as error:
        refusal = str(error)
    if refusal:
        assert "opset" in refusal
        return
    for feeds, expected in zoo.load_reference(model, model.references[0]):
        assert_meets_reference(model, model.references[0], feeds, module.run(feeds), expected)
