"""Integrated profiling: what the chosen steps, and those nearly as fast, take while the whole model runs.

A step alone, between caches that were set up for it, takes a little less than between its neighbours. SoftNeuro
(Hilton et al., section IV) profiles whole networks for that reason; here only those that the selection chooses.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from neo.candidates import Candidates
from neo.signature import Tensor
from neo.tune.alone import alone
from neo.tune.compare import synthetic_inputs
from neo.tune.database import Row

__all__ = ["ModulePlans", "Plans", "PlansBench", "Settling", "end_to_end_times", "plan_key"]

# Candidates with the chosen one's schemas that are slower by no more run in the plan too: of each workload so many.
_NEAR = 1.05
_OTHERS = 2
# The selection that new times lead to is profiled again so often.
_PASSES = 3
# Calls of a plan: at most so many, and after three no more are begun once so many seconds went by.
_ROUNDS = 64
_SECONDS = 0.6
# Where steps take so many times as long as alone, other programs are suspected, and the plan is profiled again, so
# often at most.
_SUSPICIOUS = 1.1
_AGAIN = 2
# Times in a plan are whole nanoseconds, and so are often equal: this share of the time alone, which is finer, tells which
# of two is selected, whatever their order.
_FINER = 1e-7
# A candidate's text without its schemas.
_ROUTINE = re.compile(r"[^\s{]+(\{[^}]*\})? ")


class PlansBench(Protocol):
    """What profiling in a plan needs of ``_native.Bench``."""

    @property
    def trials(self) -> Sequence[Mapping[str, Any]]:
        """All of them, in the order of their indices."""
        ...

    def chosen(self, choices: Sequence[int]) -> list[int]:
        """The trials that choices mean, one per use."""
        ...

    def offer(self, indices: Sequence[int]) -> None:
        """Make trials choices of the problem."""
        ...


class Plans(Protocol):
    """The selections of a problem."""

    def choice(self) -> list[int]:
        """The one by the times that the problem has now."""
        ...

    def is_feasible(self, choice: Sequence[int]) -> bool:
        """Whether a selection can run."""
        ...

    def profile(
        self, choices: Sequence[Sequence[int]], rounds: int, seconds: float
    ) -> list[dict[int, tuple[float, int]]]:
        """Call the modules of selections in turn.

        Returns
        -------
        list of dict of int to (float, int)
            Of each selection, by trial: microseconds of one execution, and how many calls tell so.

        Raises
        ------
        neo.Error
            They cannot be called on synthetic inputs.
        """
        ...


class ModulePlans:
    """The selections of a problem as modules, called on synthetic inputs.

    Parameters
    ----------
    bench : _native.Bench
    candidates : Candidates
        With the times that the problem has now.
    inputs : sequence of Tensor
        The model's.
    """

    def __init__(self, bench: Any, candidates: Candidates, inputs: Sequence[Tensor]) -> None:
        self._bench = bench
        self._candidates = candidates
        self._inputs = inputs

    def choice(self) -> list[int]:
        """As :class:`Plans` has it."""
        return list(self._candidates.select().choice)

    def is_feasible(self, choice: Sequence[int]) -> bool:
        """As :class:`Plans` has it."""
        return bool(self._candidates.arrays().is_feasible(choice))

    def profile(
        self, choices: Sequence[Sequence[int]], rounds: int, seconds: float
    ) -> list[dict[int, tuple[float, int]]]:
        """As :class:`Plans` has it."""
        arrays = synthetic_inputs(self._inputs)
        modules = [self._candidates.lower(self._candidates.selection(choice, 0.0)) for choice in choices]
        with alone():
            found: list[dict[int, tuple[float, int]]] = self._bench.profile(modules, arrays, rounds, seconds)
        return found


def plan_key(trials: Iterable[Mapping[str, Any]]) -> str:
    """Names a problem: the cache level under which what its steps take in a plan is kept."""
    text = json.dumps([(t["workload"], t["candidate"], t["weight"]) for t in trials if not t["made"]])
    return f"plan {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def end_to_end_times(
    trials: Sequence[Mapping[str, Any]], times: Sequence[float | None], found: Mapping[int, float]
) -> list[float | None]:
    """What trials take in the plan: found there, or alone and as much more as others of their workload do.

    Parameters
    ----------
    trials : sequence of mapping
    times : sequence of float or None
        Microseconds alone.
    found : mapping of int to float
        Microseconds in the plan, by trial.
    """
    ratios: dict[str, list[float]] = {}
    sums: list[tuple[float, float]] = []
    for i, us in found.items():
        if own := times[i]:
            ratios.setdefault(trials[i]["workload"], []).append(us / own)
            sums.append((own * trials[i]["weight"], us * trials[i]["weight"]))
    # Exact sums do not depend on who was found first.
    alone_us, found_us = (math.fsum(part) for part in zip(*sums, strict=True)) if sums else (0.0, 0.0)
    every = found_us / alone_us if alone_us else 1.0
    typical = {workload: statistics.median(values) for workload, values in ratios.items()}
    made = [us and us * typical.get(t["workload"], every) for t, us in zip(trials, times, strict=True)]
    for i, us in found.items():
        made[i] = us + _FINER * (times[i] or 0.0)
    return made


class Settling:
    """Profiles what is selected until that is known.

    Parameters
    ----------
    bench : PlansBench
    plans : Plans
    times : sequence of float or None
        Of every trial, alone.
    found : dict of int to float
        What is known already, by trial; what is found is added.
    known : set of int
        Trials that have run in a plan before, those of which it had no step among them.
    """

    def __init__(
        self,
        bench: PlansBench,
        plans: Plans,
        times: Sequence[float | None],
        found: dict[int, float],
        known: Iterable[int] = (),
    ) -> None:
        self._bench = bench
        self._plans = plans
        self._times = times
        self._found = found
        self._tried = {*found, *known}
        self._calls: dict[int, int] = {}

    def run(
        self,
        price: Callable[[], object],
        store: Callable[[str, Sequence[Row]], None],
        go_on: Callable[[], bool],
        *,
        doubted: Sequence[int] | None = None,
    ) -> None:
        """Profile.

        Parameters
        ----------
        price : callable
            Puts what was found into the problem.
        store : callable
            Keeps what was found of a workload.
        go_on : callable
            Whether there is time left.
        doubted : sequence of int, optional
            A selection that as a whole took less than its steps: it, and what is selected, are profiled once more.
        """
        is_first = not self._tried
        if doubted is not None:
            self._tried.clear()
        for _ in range(_PASSES):
            price()
            choice = self._plans.choice()
            chosen = {i for i in self._bench.chosen(choice) if self._times[i] is not None}
            if chosen <= self._tried or not go_on():
                break
            others = self._others(chosen) if is_first else []
            is_first = False
            if others:
                # Choices of the problem from here on, so that a plan can have them.
                self._bench.offer(sorted({i for other in others for i in other.values()}))
                price()
            plans = [changed for other in others if (changed := self._changed(choice, other)) is not None]
            if doubted is not None and list(doubted) != choice:
                plans.append(list(doubted))
            doubted = None
            # Two at a time: each holds all of its weights.
            for beside in [[plan] for plan in plans] or [[]]:
                if not go_on():
                    break
                self._take(self._plans.profile([choice, *beside], _ROUNDS, _SECONDS))
            for _ in range(_AGAIN):
                if self._slowdown(chosen) <= _SUSPICIOUS or not go_on():
                    break
                self._take(self._plans.profile([choice], _ROUNDS, _SECONDS))
            absent = chosen - self._tried - self._found.keys()
            self._tried |= chosen | self._found.keys()
            self._store(store, absent)
        # The last selection is a choice of the problem the next time, too.
        price()
        self._store(store, set(self._bench.chosen(self._plans.choice())) - self._tried)

    def _take(self, profiles: Sequence[Mapping[int, tuple[float, int]]]) -> None:
        """Keep the least time of each: what others disturb takes longer."""
        for profile in profiles:
            for i, (us, calls) in profile.items():
                # A trial without a time of its own keeps its estimate.
                if not self._times[i]:
                    continue
                self._found[i] = min(us, self._found.get(i, math.inf))
                self._calls[i] = self._calls.get(i, 0) + calls

    def _store(self, store: Callable[[str, Sequence[Row]], None], absent: Iterable[int]) -> None:
        rows: dict[str, list[Row]] = {}
        trials = self._bench.trials
        for i, calls in self._calls.items():
            t = trials[i]
            row = Row(t["candidate"], t["routine"], self._found[i], t["estimate_us"], calls)
            rows.setdefault(t["workload"], []).append(row)
        for i in sorted(absent):
            t = trials[i]
            if not self._times[i]:
                continue
            row = Row(t["candidate"], t["routine"], None, t["estimate_us"], 0, "it has no time in the plan")
            rows.setdefault(t["workload"], []).append(row)
        self._calls.clear()
        for workload, told in rows.items():
            store(workload, told)

    def _slowdown(self, chosen: Iterable[int]) -> float:
        """How many times as long as alone trials take in the plan."""
        known = [(self._found[i], self._times[i] or 0.0) for i in chosen if i in self._found]
        alone_us = sum(us for _, us in known)
        return sum(us for us, _ in known) / alone_us if alone_us else 1.0

    def _others(self, chosen: Iterable[int]) -> list[dict[int, int]]:
        """By chosen trial another that is nearly as fast, at most so many times."""
        trials, times = self._bench.trials, self._times
        alike: dict[tuple[Any, ...], list[int]] = {}
        for i, t in enumerate(trials):
            if times[i] is not None:
                alike.setdefault(_kind(t), []).append(i)
        found: list[dict[int, int]] = [{} for _ in range(_OTHERS)]
        for i in chosen:
            limit = (times[i] or 0.0) * _NEAR
            near = sorted((times[k], k) for k in alike[_kind(trials[i])] if k != i and (times[k] or limit) < limit)
            for other, (_, k) in zip(found, near, strict=False):
                other[i] = k
        return [other for other in found if other]

    def _changed(self, choice: Sequence[int], other: Mapping[int, int]) -> list[int] | None:
        """The selection with trials in the place of others; None where it cannot run."""
        trials = self._bench.trials
        changed = list(choice)
        for i, k in other.items():
            instead = dict(trials[k]["uses"])
            for variable, c in trials[i]["uses"]:
                if choice[variable] == c and variable in instead:
                    changed[variable] = instead[variable]
        return changed if self._plans.is_feasible(changed) else None


def _kind(trial: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two trials have in common of which one may stand in the other's place."""
    return trial["workload"], _ROUTINE.sub("", trial["candidate"], count=1), trial["error"], trial.get("device", "cpu")
