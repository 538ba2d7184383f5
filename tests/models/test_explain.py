"""What selection expects of a model beside what a call takes."""

from __future__ import annotations

import re

import neo

from .conftest import each_model, require
from .engines import source_of
from .zoo import Model

SLICE = ("silero-vad", "yunet-dynamic", "ultraface-nms", "light-densenet121", "mobilenet-v2-qdq")


@each_model(lambda model: model.name in SLICE)
def test_the_selections_total_and_the_measured_time_stand_side_by_side(model: Model) -> None:
    module = neo.compile(source_of(require(model)))
    explanation = module.explain(inputs=model.cases()[0].feeds)
    assert explanation.measured_us is not None
    assert explanation.measured_us > 0
    assert explanation.estimate_us > 0
    assert all(node.node for node in explanation.nodes)
    lines = [line for line in str(explanation).splitlines() if not line.startswith("far from their estimates: ")]
    *table, bound, total = lines
    # A search ends within a tenth of its bound where nothing more is asked for.
    assert re.match(r"(optimal for these costs|within \d\.\d+% of optimal): no choice is below ", bound)
    assert len(table) == 2 + len(explanation.nodes)
    assert re.match(r"selection's total [\d.]+ us.*; measured [\d.]+ us", total)
    assert explanation.measured_sizes.keys() == explanation.estimate_sizes.keys()
    if explanation.measured_sizes == explanation.estimate_sizes:
        assert re.search(r"us \([\d.]+x\)", total)
