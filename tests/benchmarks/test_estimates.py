"""The networks that estimates are held to, and the table and the constants that are made of their times."""

import re

import neo
import numpy as np
import pytest
from neo import _native

from benchmarks.estimates import fit
from benchmarks.estimates.__main__ import holds, table
from benchmarks.estimates.networks import KINDS, draw
from benchmarks.estimates.record import RECORDS, Step, family_of, read, record, write


def _step(routine="cpu:float32/eltwise", op="Add", load=(1, 100.0, 1.0, 1.0, 64.0, 64.0), expected=1.0, measured=1.0):
    return Step("mlp 0", 1, routine, op, load, expected, expected, measured)


@pytest.mark.parametrize("kind", KINDS)
def test_networks_compile_and_the_same_for_the_same_seed(kind):
    for seed in range(3):
        data = draw(kind, seed)
        assert neo.compile(data, threads=1).steps
        assert draw(kind, seed) == data
    assert draw(kind, 0) != draw(kind, 1)


@pytest.mark.parametrize("kind", ["classifier", "masks", "quantized"])
def test_steps_have_times_and_what_their_estimates_were_made_of(kind):
    (steps,) = record(1, 3, [kind], threads=1, seconds=0)
    assert all(s.time_us > 0 and s.estimate_us >= 0 for s in steps)
    for s in steps:
        if s.load is None:
            continue
        row = dict(_native.step_families())[_native.step_families()[s.load[0]][0]]
        (expected,) = _native.step_times([s.load], "cpu", 1, row)
        assert expected == pytest.approx(s.estimate_us)
    assert any(s.load for s in steps)


def test_products_have_what_was_expected_without_their_start():
    (steps,) = record(1, 0, ["classifier"], threads=1, seconds=0)
    products = [s for s in steps if s.load is None and s.routine.startswith("cpu:float32/")]
    assert products
    for s in products:
        start_us = _native.product_start_us(s.routine.partition("{")[0])
        assert s.alone_us + start_us == pytest.approx(s.estimate_us)


def test_records_read_back_the_same(tmp_path):
    steps = [_step(), _step("cpu:float32/winograd{tile=4}", "Conv", None, 12.5, 13.0)]
    write(tmp_path / "r.csv.gz", steps)
    assert list(read(tmp_path / "r.csv.gz")) == steps


def test_records_name_routines_that_there_are():
    names = {s.routine.partition("{")[0] for path in RECORDS.glob("*.csv.gz") for s in read(path)}
    assert {name for name in names if not name.startswith("cpu:adapt/")} <= set(_native.routine_names())


def test_families_are_routines_and_the_operators_of_copies():
    assert family_of("cpu:float32/winograd{tile=4}", "Conv") == "cpu:float32/winograd"
    assert family_of("cpu/copy", "Concat") == "cpu/copy Concat"
    assert family_of("cpu:adapt/cpu:float32:NCHW->cpu:float32:NCHW16c", "neo.Adapt") == "conversions"


def test_a_family_is_held_to_its_median_and_to_nine_steps_of_ten():
    assert holds([1.0] * 10)
    assert not holds([0.7] * 10)
    assert not holds([1.3] * 10)
    assert holds([1.0] * 9 + [5.0])
    assert not holds([1.0] * 8 + [5.0, 0.1])
    text = table([_step(measured=1.3)] * 20 + [_step(op="Add", routine="cpu/pad")])
    assert re.search(r"cpu:float32/eltwise +20 +1\.30 .*DOES NOT HOLD", text)
    assert re.search(r"cpu/pad +1 +1\.00[^a-z]*$", text, re.MULTILINE)


def test_a_fit_finds_the_constants_that_times_were_made_with():
    rng = np.random.default_rng(0)
    family = [name for name, _ in _native.step_families()].index("Pool")
    loads = [
        (family, float(c), float(r), 1.0, float(b), float(b))
        for c, r, b in np.exp(rng.uniform(np.log(10), np.log(1e6), (60, 3)))
    ]
    truth = (2.0, 20.0, 1.5, 0.3)
    times = _native.step_times(loads, "cpu", 1, truth)
    steps = [_step(load=load, measured=t) for load, t in zip(loads, times, strict=True)]
    left, row = fit.fit_family(steps, "cpu")
    assert left < 0.05
    assert np.allclose(_native.step_times(loads, "cpu", 1, row), times, rtol=0.15)


def test_a_product_is_fitted_to_its_start():
    alone = np.exp(np.random.default_rng(0).uniform(0, 6, 40))
    steps = [_step("cpu:float32/im2col", "Conv", None, float(a), float(a + 0.4)) for a in alone]
    left, (start_us,) = fit.fit_product(steps)
    assert left < 0.02
    assert start_us == pytest.approx(0.4, abs=0.05)


def test_constants_that_are_shipped_can_be_read_and_written(tmp_path):
    for path, macro, quoted in ((fit.STEPS, "NEO_STEP_CONSTANTS", False), (fit.PRODUCTS, "NEO_PRODUCT_ROW", True)):
        copy = tmp_path / path.name
        copy.write_text(path.read_text())
        rows = fit._rows(copy)
        fit._write(copy, macro, rows, quoted=quoted)
        assert copy.read_text() == path.read_text()
    names = [name for name, _ in _native.step_families()]
    assert list(fit._rows(fit.STEPS)) == names
