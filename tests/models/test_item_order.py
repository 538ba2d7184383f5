"""The items of every model's plan in other orders that their dependencies allow, and on several executors."""

from __future__ import annotations

import neo
import numpy as np

from . import zoo
from .conftest import each_model, require
from .engines import source_of


@each_model(lambda model: model.onnxruntime)
def test_gives_the_same_bits_in_any_order_and_on_any_executors(model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)), threads=1)
    several = [module.with_executors(*executors) for executors in ((2, 1), (3, 2))]
    for case in model.cases()[:2]:
        right = module.run(case.feeds)
        arranged = module._arrange(case.feeds)
        found = [module._name(module._native.call_shuffled(arranged, seed)) for seed in (1, 2)]
        found += [other.run(case.feeds) for other in several]
        for answers in found:
            for name, values in right.items():
                np.testing.assert_array_equal(answers[name], values, err_msg=f"{name}, {case.name}", strict=True)
