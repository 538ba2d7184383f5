"""For all tests: models run on the threads that a test asks for, however small they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from neo import _native, executors

_CHOOSE = executors.choose_executors


def _all_threads(_: _native.Module, threads: int) -> executors.Executors:
    return 1, threads


executors.choose_executors = _all_threads


@pytest.fixture
def chosen_executors(monkeypatch: pytest.MonkeyPatch) -> Callable[[_native.Module, int], executors.Executors]:
    """For tests of what a model is given: the choice itself."""
    monkeypatch.setattr(executors, "choose_executors", _CHOOSE)
    return _CHOOSE
