"""neo with target "opencl" on models of the zoo, beside onnxruntime."""

from __future__ import annotations

import neo

from tests.routines.gpu.programs import need_device

from . import zoo
from .conftest import each_model, require_answers
from .engines import assert_agrees, expected_of, source_of


@each_model(lambda model: model.name == "micro-kws")
def test_agrees_with_onnxruntime_on_opencl(model: zoo.Model) -> None:
    need_device("opencl")
    cases = expected_of(require_answers(model))
    module = neo.compile(source_of(model), target="opencl")
    for _, feeds, expected in cases:
        assert_agrees(model, feeds, module.run(feeds), expected)
