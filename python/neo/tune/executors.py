"""Measure which executors run a module fastest."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from neo import _native
from neo.errors import Error, ResourceError
from neo.executors import Executors, expected_times, with_executors
from neo.options import Options
from neo.signature import Tensor
from neo.tune.alone import alone
from neo.tune.compare import synthetic_inputs
from neo.tune.database import Database, Verdict
from neo.tune.machine import Context

__all__ = ["tune_executors"]

# Configurations that are measured beside one executor of all threads and of one thread: those that estimates put first.
_BEST = 3
# Others must be this much faster than one executor of all threads.
_FASTER = 0.98
_ROUNDS = 15
_SECONDS = 1.0


def tune_executors(
    native: _native.Module,
    options: Options,
    inputs: Sequence[Tensor],
    *,
    database: Database,
    context: Context,
    digest: str,
) -> _native.Module:
    """The same plan on the executors that ran it fastest, or those that a user asks for.

    Graphi (section 4.2) measures symmetric configurations; estimates say which are worth it.

    Parameters
    ----------
    native : _native.Module
        On one executor.
    options : Options
    inputs : sequence of Tensor
        The model's.
    database, context
        Where earlier measurements are kept; where it is read only, nothing is timed.
    digest : str
        Of the problem and the selection.
    """
    threads = options.threads
    if any(step["device"] != "cpu" for step in native.steps):
        return native  # the steps of a device wait for each other
    if isinstance(options.executors, tuple) or threads == 1:
        return with_executors(native, options.executors, threads)
    expected = [e.executors for e in expected_times(native, threads, threads)]
    tried: list[Executors] = [(1, threads), (1, 1)]
    tried += [e for e in expected[:_BEST] if e not in tried]

    def key(executors: Executors) -> str:
        return f"{digest} executors {executors[0]}x{executors[1]}"

    known = {e: verdict.tuned_us for e in tried if (verdict := database.verdict(context, key(e))) is not None}
    if len(known) < len(tried) and not database.read_only:
        try:
            arrays = synthetic_inputs(inputs)
            modules = [native.with_executors(*e, oversubscribe=False) for e in tried]
            with alone():
                times = _native.benchmark_modules(modules, arrays, _ROUNDS, _SECONDS)
        except Error:
            times = []
        known = {e: us for e, (us, rounds) in zip(tried, times, strict=False) if rounds > 0}
        with contextlib.suppress(ResourceError):
            for e, us in known.items():
                database.store_verdict(context, key(e), Verdict(known.get((1, threads), us), us))
    if (1, threads) not in known:
        return with_executors(native, options.executors, threads)
    best = min(known, key=lambda e: known[e])
    if known[best] > _FASTER * known[1, threads]:
        best = 1, threads
    return with_executors(native, best, threads)
