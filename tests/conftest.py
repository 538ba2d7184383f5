"""For all tests: models run on the threads that a test asks for, however small they are; OpenCL need not be installed."""

from __future__ import annotations

from collections.abc import Callable, Generator

import neo
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test that runs something on OpenCL where there is no device for it."""
    try:
        return (yield)
    except neo.ResourceError as error:
        if "[opencl]" in str(error) and not any(k["kind"] == "opencl" and k["devices"] for k in _native.devices()):
            pytest.skip("a device of kind opencl is needed")
        raise
