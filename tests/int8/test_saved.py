"""Modules of codes come back from a file as they were."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import pytest

from tests.int8.networks import random_network
from tests.int8.test_networks import input_of


@pytest.mark.parametrize("seed", range(4))
def test_a_saved_module_gives_the_same_codes(seed: int, tmp_path: Path) -> None:
    model = random_network(seed, signed=seed % 2 == 1)
    feed = input_of(model, seed)
    module = neo.compile(model, threads=1)
    assert any(step.routine.startswith("cpu:int8/") for step in module.steps)
    module.save(tmp_path / "m.neo")
    for result, expected in zip(neo.load(tmp_path / "m.neo")(feed), module(feed), strict=True):
        np.testing.assert_array_equal(result, expected)
