"""Select by measured times, and never worse than by estimates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from neo import _native
from neo.errors import ResourceError
from neo.select import Problem, solve
from neo.tune.alone import alone
from neo.tune.compare import compare_modules
from neo.tune.database import Database, Verdict
from neo.tune.machine import Context
from neo.tune.measure import Bench, Tuning, problem_digest

__all__ = ["Chosen", "choose"]

# Stored where both selections are one.
_SAME = Verdict(0.0, 0.0)

Lower = Callable[[Sequence[int], float], _native.Module]


@dataclass(frozen=True)
class Chosen:
    """A lowered selection."""

    native: _native.Module
    choice: Sequence[int]
    tuning: Tuning | None = None


def choose(
    estimated: Problem,
    priced: Problem,
    tuning: Tuning,
    *,
    bench: Bench,
    limits: object,
    lower: Lower,
    inputs: Sequence[Any],
    database: Database,
    context: Context,
) -> Chosen:
    """The selection by measured times, or the default one where that runs faster.

    Parameters
    ----------
    estimated, priced : Problem
        The problem with estimates, which gives the default selection, and with measured times.
    tuning : Tuning
        What is known so far.
    bench, limits
        What the problem is, for the database.
    lower : callable
        From choices and their total to a module.
    inputs : sequence of Tensor
        The model's inputs.
    database, context
        Where earlier comparisons are kept; where it is read only, nothing is timed.
    """
    tuned = list(solve(priced).choice)
    digest = problem_digest(bench, tuned, limits)

    def lowered(choice: Sequence[int]) -> _native.Module:
        return lower(choice, float(priced.evaluate(choice)))

    def keep(verdict: Verdict) -> None:
        # Where it cannot be kept, they are compared again next time.
        with contextlib.suppress(ResourceError):
            database.store_verdict(context, digest, verdict)

    verdict = database.verdict(context, digest)
    if verdict is None:
        if database.read_only:
            return Chosen(lowered(tuned), tuned, tuning)
        default = list(solve(estimated).choice)
        if default == tuned:
            keep(_SAME)
            return Chosen(lowered(tuned), tuned, replace(tuning, chosen="same"))
        modules = (lowered(default), lowered(tuned))
        with alone():
            found = compare_modules(*modules, inputs)
        if isinstance(found, str):
            return Chosen(modules[0], default, replace(tuning, chosen="default", reason=found))
        keep(found)
        if found.tuned_us <= found.default_us:
            return Chosen(modules[1], tuned, replace(tuning, chosen="tuned", verdict=found))
        return Chosen(modules[0], default, replace(tuning, chosen="default", verdict=found))
    if verdict == _SAME:
        return Chosen(lowered(tuned), tuned, replace(tuning, chosen="same"))
    if verdict.tuned_us <= verdict.default_us:
        return Chosen(lowered(tuned), tuned, replace(tuning, chosen="tuned", verdict=verdict))
    default = list(solve(estimated).choice)
    return Chosen(lowered(default), default, replace(tuning, chosen="default", verdict=verdict))
