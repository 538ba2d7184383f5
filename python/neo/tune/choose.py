"""Select by measured times, and never worse than by estimates, or than one device alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neo import _native
from neo.candidates import Candidates, Selection
from neo.errors import ResourceError
from neo.select import InfeasibleError, Problem, solve
from neo.signature import Tensor
from neo.tune.alone import alone
from neo.tune.compare import compare_modules, time_module
from neo.tune.database import Database, Verdict, default_path
from neo.tune.end_to_end import ModulePlans
from neo.tune.executors import tune_executors
from neo.tune.machine import Context
from neo.tune.measure import Bench, Tuning, problem_digest, tune_problem

__all__ = ["Chosen", "choose", "is_doubtful", "tune_selection"]

# Steps that take together so many times what the whole module takes, and so many microseconds more, which reading clocks
# does not take, were disturbed when they were timed.
_DOUBTFUL = 1.08
_DOUBTFUL_US = 20.0
# Stored where both selections are one.
_SAME = Verdict(0.0, 0.0)


@dataclass(frozen=True)
class Chosen:
    """A lowered selection; `timed_us`: what a call of it took just now, 0 where it was not timed."""

    native: _native.Module
    choice: Sequence[int]
    tuning: Tuning | None = None
    timed_us: float = 0.0


def tune_selection(
    candidates: Candidates, default: Selection, inputs: Sequence[Tensor], *, target: str, name: str
) -> tuple[Selection, _native.Module, Tuning]:
    """Put measured times where the estimates are, and select by them; gives the module too, which was timed.

    Parameters
    ----------
    candidates : Candidates
        What may be selected; gets the measured times.
    default : Selection
        The one by estimates. What is returned is never slower.
    inputs : sequence of Tensor
        The model's.
    target : str
    name : str
        The model's, for the progress bar.
    """
    options, budget = candidates.options, candidates.options.budget
    path = default_path() if options.database is None else options.database
    with Database(path, read_only=budget is None) as stored:
        bench = _native.make_bench(candidates.problem, options.threads)
        context = Context.here(target, bench.threads, measures=budget is not None)
        # The steps of a device run while the host goes on: their times in a plan are not known.
        has_device = candidates.arrays().places is not None
        plans = None if has_device else ModulePlans(bench, candidates, inputs)

        def selected() -> list[int]:
            return bench.chosen(list(candidates.select().choice))

        def measure(doubted: Sequence[int] | None = None) -> Tuning:
            return tune_problem(
                *(bench, context, stored),
                budget=budget,
                selected=None if candidates.names_schedules else selected,
                plans=plans,
                doubted=doubted,
                name=name,
            )

        def best(tuning: Tuning) -> Chosen:
            return choose(candidates, default, tuning, bench=bench, inputs=inputs, database=stored, context=context)

        first = measure()
        chosen = best(first)
        if budget is not None and plans is not None and is_doubtful(chosen):
            again = measure(chosen.choice)
            chosen = best(replace(first, seconds=first.seconds + again.seconds, ratios=again.ratios))
        limits = [options.accuracy]
        native = tune_executors(
            chosen.native,
            options,
            inputs,
            database=stored,
            context=context,
            digest=problem_digest(bench, chosen.choice, limits),
        )
    assert chosen.tuning is not None
    return candidates.selection(chosen.choice, float(native.estimate_us)), native, chosen.tuning


def choose(
    candidates: Candidates,
    default: Selection,
    tuning: Tuning,
    *,
    bench: Bench,
    inputs: Sequence[Tensor],
    database: Database,
    context: Context,
) -> Chosen:
    """The selection by measured times, or another one that runs faster.

    The others are the default one and, for a target with a device, everything on the CPU and everything on the device,
    both by measured times.

    Parameters
    ----------
    candidates : Candidates
        With measured times.
    default : Selection
        The one by estimates.
    tuning : Tuning
        What is known so far.
    bench : Bench
        The problem's trials.
    inputs : sequence of Tensor
        The model's.
    database, context
        Where earlier comparisons are kept; where it is read only, nothing is timed.
    """
    priced = candidates.arrays()
    tuned = list(solve(priced).choice)
    untuned = list(default.choice)
    digest = problem_digest(bench, tuned, [candidates.options.accuracy])

    def lowered(choice: Sequence[int]) -> _native.Module:
        return candidates.lower(candidates.selection(choice, float(priced.evaluate(choice))))

    def keep(found: Verdict, names: Sequence[str]) -> None:
        # Where it cannot be kept, they are compared again next time.
        with contextlib.suppress(ResourceError):
            for name, us in zip(names, found.others_us, strict=True):
                database.store_verdict(context, f"{digest} {name}", Verdict(us, found.tuned_us))
            database.store_verdict(context, digest, Verdict(found.default_us, found.tuned_us))

    verdict = database.verdict(context, digest)
    if verdict is None and database.read_only:
        return Chosen(lowered(tuned), tuned, tuning)
    if verdict == _SAME:
        return Chosen(lowered(tuned), tuned, replace(tuning, chosen="same"))
    others = _on_one_device(priced, tuned, untuned)
    if verdict is not None and others:
        verdict = _with_others(verdict, [database.verdict(context, f"{digest} {name}") for name in others])
        if verdict is None and database.read_only:
            return Chosen(lowered(tuned), tuned, tuning)
    modules: dict[str, _native.Module] = {}
    if verdict is None:
        if untuned == tuned and not others:
            keep(_SAME, ())
            native = lowered(tuned)
            with alone():
                timed_us = time_module(native, inputs)
            return Chosen(native, tuned, replace(tuning, chosen="same"), timed_us)
        choices = {"default": untuned, "tuned": tuned, **others}
        modules = {name: lowered(choice) for name, choice in choices.items()}
        with alone():
            found = compare_modules(modules["default"], modules["tuned"], inputs, *(modules[name] for name in others))
        if isinstance(found, str):
            return Chosen(modules["default"], untuned, replace(tuning, chosen="default", reason=found))
        keep(found, list(others))
        verdict = found
    times = dict(zip(others, verdict.others_us, strict=True))
    # The default one wins where another one is not surely faster (compare_modules).
    every = {"default": verdict.default_us, "tuned": verdict.tuned_us, **times}
    best = min(every, key=lambda name: every[name])
    choice = {"tuned": tuned, "default": untuned, **others}[best]
    native = modules[best] if modules else lowered(choice)
    told = replace(tuning, chosen=best, verdict=Verdict(verdict.default_us, verdict.tuned_us), others_us=times)
    return Chosen(native, choice, told, every[best] if modules else 0.0)


def is_doubtful(chosen: Chosen) -> bool:
    """Whether the module's total is more than what it took as a whole just now."""
    total_us = float(chosen.native.estimate_us)
    return chosen.timed_us > 0 and total_us > _DOUBTFUL * chosen.timed_us + _DOUBTFUL_US


def _with_others(verdict: Verdict, others: Sequence[Verdict | None]) -> Verdict | None:
    """What is stored of all modules of one benchmark; None where that is not all of them."""
    known = [other.default_us for other in others if other is not None]
    return replace(verdict, others_us=tuple(known)) if len(known) == len(others) else None


def _on_one_device(priced: Problem, *known: Sequence[int]) -> Mapping[str, list[int]]:
    """The selections that keep to the CPU, and to the device where they can, that are not `known`."""
    if priced.places is None:
        return {}
    found: dict[str, list[int]] = {}
    on_cpu = [np.array([bits == 0 or bits & 1 == 1 for bits in places]) for places in priced.places]
    on_cpu += [np.ones(n, dtype=bool) for n in priced.sizes[len(on_cpu) :]]
    restricted = Problem.from_flat(priced.restricted(on_cpu).flat, priced.resources)
    unlimited = Problem.from_flat(priced.flat, places=priced.places)
    for name, problem, method in (("cpu", restricted, None), ("device", unlimited, "two-pass")):
        with contextlib.suppress(InfeasibleError):
            choice = list(solve(problem, method=method).choice)
            is_new = all(choice != list(other) for other in (*known, *found.values()))
            if is_new and priced.is_feasible(choice):
                found[name] = choice
    return found
