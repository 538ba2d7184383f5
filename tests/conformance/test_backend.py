"""ONNX's own backend suite, one test per case: compiled and run as a user would."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import neo
import numpy as np
import pytest

from .exceptions import RANDOM, REFUSED, TOLERANCES
from .on_device import cases, check_case, is_listed

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", list(cases()))


def test_case(name: str) -> None:
    check_case(cases()[name], neo.compile)


def test_every_case_is_there() -> None:
    kinds = {case.kind for case in cases().values()}
    assert kinds == set(KINDS)
    assert len(cases()) >= 2024


@pytest.mark.parametrize("pattern", [*REFUSED, *RANDOM, *TOLERANCES])
def test_every_exception_is_needed(pattern: str) -> None:
    assert fnmatch.filter(cases(), pattern)


def test_exceptions_are_few() -> None:
    listed = [name for name in cases() if is_listed(name, [*REFUSED, *RANDOM, *TOLERANCES])]
    assert len(listed) < 40


def test_file_and_bytes_give_the_same(tmp_path: Path) -> None:
    case = next(c for c in cases().values() if c.kind == "node" and c.name == "test_conv_with_strides_padding")
    model, _, [(inputs, _)] = case.load()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    results = []
    for form in (model, str(path), path, path.read_bytes()):
        module = neo.compile(form)
        results.append(module(*inputs))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
