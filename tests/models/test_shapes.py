"""Dynamic models of the zoo: many shapes through one module, from several threads, in bounded memory."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path

import neo
import numpy as np
import pytest

from . import zoo
from .conftest import each_model, require
from .engines import source_of


@each_model(lambda model: model.onnxruntime and model.dynamic)
def test_concurrent_calls_of_different_shapes_do_not_disturb_each_other(model: zoo.Model) -> None:
    module = neo.compile(source_of(require(model)), threads=2)
    cases = model.cases()
    alone = [module.run(case.feeds) for case in cases]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda turn: module.run(cases[turn % len(cases)].feeds), range(6 * len(cases))))
    for turn, answer in enumerate(answers):
        for name, values in alone[turn % len(cases)].items():
            np.testing.assert_array_equal(answer[name], values, err_msg=f"{name}, call {turn}", strict=True)


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc is absent")
def test_memory_stays_flat_over_ten_thousand_shapes() -> None:
    model = require(zoo.BY_NAME["ppocr-cls"])
    module = neo.compile(str(model.path), threads=1)
    rng = np.random.default_rng(0)

    def call() -> None:
        batch, height, width = int(rng.integers(1, 3)), int(rng.integers(8, 48)), int(rng.integers(8, 96))
        (answer,) = module.run({"x": rng.random((batch, 3, height, width), dtype=np.float32)}).values()
        assert answer.shape == (batch, 2)

    for _ in range(1500):
        call()
    settled = _resident_bytes()
    for _ in range(8500):
        call()
    assert _resident_bytes() - settled < 16 << 20
