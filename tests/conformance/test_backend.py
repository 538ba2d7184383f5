"""ONNX's own backend suite, one test per case: compiled and run as a user would."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import neo
import numpy as np
import pytest

from .backend_cases import Case, all_cases, run_case
from .exceptions import RANDOM, REFUSED, TOLERANCES

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@cache
def cases() -> dict[str, Case]:
    """Load every case; ONNX computes those of the kind node when it is asked for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in all_cases()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", list(cases()))


def is_listed(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def test_case(name: str) -> None:
    case = cases()[name]
    if is_listed(name, REFUSED):
        with pytest.raises(neo.UnsupportedError, match=r"every node must be supported|not supported"):
            run_case(case, neo.compile)
    elif is_listed(name, RANDOM):
        run_case(case, neo.compile, compare_random)
    else:
        rtol, atol, _ = TOLERANCES.get(name, (case.rtol, case.atol, ""))
        run_case(case, neo.compile, rtol=rtol, atol=atol)


def compare_random(got: Any, want: Any, rtol: float, atol: float, name: str) -> None:
    assert got.dtype == want.dtype, name
    assert got.shape == want.shape, name
    assert np.isin(got, [0, 1]).all(), name


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
