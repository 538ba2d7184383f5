"""Executors on the command line: how they are written, and all of them timed against each other."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from neo import _native
from neo.errors import ModelError
from neo.executors import Executors, checked_executors, expected_times
from neo.module import Module
from neo.report.table import counted, render_table

__all__ = ["compare_executors", "executors_of", "executors_text", "with_executors_of"]

_LEAST_CALLS = 5


def executors_of(text: str | None) -> int | Executors | str | None:
    """``4x2``, ``4`` or ``auto`` as :func:`neo.compile` takes it."""
    if text is None or text == "auto":
        return text
    if not re.fullmatch(r"[0-9]+(x[0-9]+)?", text):
        msg = f"[cli] --executors must be auto, a number, or that and the threads of each, as in 4x2. Got {text!r}"
        raise ModelError(msg)
    count, _, each = text.partition("x")
    return (int(count), int(each)) if each else int(count)


def executors_text(module: Module) -> str:
    """What runs a module, for a line of results."""
    count, each = module.executors
    own = counted(each, "thread")
    return own if count == 1 else f"{count} executors of {own}"


def with_executors_of(module: Module, text: str | None, threads: int | None) -> Module:
    """A loaded module on the executors that an option asks for."""
    executors = checked_executors(executors_of(text), threads, "cli")
    if executors == "auto":
        most = threads or _native.default_threads()
        executors = expected_times(module._native, most, module._machine.threads)[0].executors
    return module if executors is None else module.with_executors(*executors)


def compare_executors(module: Module, inputs: Mapping[str, Any], threads: int | None, seconds: float) -> None:
    """Time every symmetric configuration of the threads in turn, and print a table with what was expected of each.

    Parameters
    ----------
    module : Module
    inputs : mapping of str to array
    threads : int or None
        Of all executors; None: the cores this process may use.
    seconds : float
        For all of them together.
    """
    expected = expected_times(module._native, threads or _native.default_threads(), module._machine.threads)
    modules = [module.with_executors(*e.executors) for e in expected]
    times: list[list[float]] = [[] for _ in modules]
    for other in modules:
        other.run(inputs)
    end = time.perf_counter() + seconds
    while len(times[-1]) < _LEAST_CALLS or time.perf_counter() < end:
        for other, calls in zip(modules, times, strict=True):
            start = time.perf_counter()
            other.run(inputs)
            calls.append(time.perf_counter() - start)
    medians = [float(np.median(calls)) * 1e3 for calls in times]
    rows = [
        (
            f"{e.executors[0]} x {e.executors[1]}",
            f"{ms:.3f}",
            f"{ms / min(medians):.2f}",
            f"{e.time_us / 1e3:.3f}",
            f"{e.bound_us / 1e3:.3f}",
            "chosen" if e.executors == module.executors else "",
        )
        for e, ms in sorted(zip(expected, medians, strict=True), key=lambda pair: pair[1])
    ]
    print(render_table(("executors x threads", "ms", "x best", "expected", "bound", ""), rows, right=(1, 2, 3, 4)))
    print(f"{len(times[0])} calls of each in turn, medians; {module.target}")
