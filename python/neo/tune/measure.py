"""Measure what a selection problem is made of, and put the times where the estimates were."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from neo.budget import Budget
from neo.errors import Error, ResourceError
from neo.report.progress import LateProgress
from neo.tune.alone import alone
from neo.tune.cost_model import CostModel
from neo.tune.database import Database, Hint, Row, Verdict
from neo.tune.end_to_end import Plans, Settling, end_to_end_times, plan_key
from neo.tune.hints import Hints, by_hint, hinted_trials
from neo.tune.machine import Context
from neo.tune.noise import Noise
from neo.tune.search import Benchmark, Search, SearchBench
from neo.tune.timing import Timing

__all__ = ["Group", "Tuning", "list_groups", "routine_ratios", "tune_problem"]

# A candidate that is expected to take so many times the best of its workload, and this much longer, is left alone.
_HOPELESS = 10.0
_HOPELESS_US = 5.0
# Candidates of one workload are timed together as far as their packed constants fit in this.
_BENCHMARK_BYTES = 512 << 20
# Fetching constants from memory at this rate, in bytes per microsecond, must make this share of a step's time to count.
_MEMORY_RATE = 2e4
_COUNTS = 0.03
# The selections that a tuned one is timed against.
_NAMES = {"default": "the default", "cpu": "all on the CPU", "device": "all on the device"}


class Bench(SearchBench, Protocol):
    """What tuning needs of ``_native.Bench``."""

    @property
    def threads(self) -> int: ...
    @property
    def cache_level(self) -> str: ...
    @property
    def trials(self) -> Sequence[Mapping[str, Any]]: ...
    def measure(
        self, indices: Sequence[int], cache_level: str, seconds: float | None = None
    ) -> Sequence[tuple[float | None, int, str, float]]: ...
    def chosen(self, choices: Sequence[int]) -> list[int]: ...
    def offer(self, indices: Sequence[int]) -> None: ...
    def price(self, times_us: Sequence[float], measured: Sequence[bool]) -> None: ...


@dataclass(frozen=True)
class Tuning:
    """What tuning a module did. Printing it says so in a sentence or two.

    Attributes
    ----------
    measured : int
        Times measured for this module.
    stored : int
        Times that were in the database.
    estimated : int
        Candidates and conversions that kept an estimate: hopeless ones, those without a time of their own, and those
        for which the budget was too short.
    seconds : float
        Spent on measuring.
    out_of_time : bool
        Whether the budget ended the measuring.
    verdict : Verdict or None
        What the default and the tuned selection took, timed against each other; None where they were not.
    chosen : {"same", "tuned", "default", "cpu", "device", "unchecked"}
        Which selection the module runs; ``same``: they do not differ; ``cpu``, ``device``: everything there, of a
        target with a device; ``unchecked``: that of the stored times, not timed against the default's.
    others_us : mapping of str to float
        What everything on the CPU and everything on the device took in the same benchmark, where there is a device.
    reason : str
        Why they were not timed against each other, where they should have been.
    note : str
        What the cost model could not do, whether other programs disturbed the measuring, and what could not be kept;
        empty where there is nothing to say.
    hints : mapping
        By (workload, candidate): what other machines or builds measured of what has no time here.
    """

    measured: int
    stored: int
    estimated: int
    seconds: float
    out_of_time: bool
    ratios: Mapping[str, tuple[int, float]] = field(default_factory=dict, repr=False)
    verdict: Verdict | None = None
    chosen: str = "unchecked"
    reason: str = ""
    note: str = ""
    hints: Mapping[tuple[str, str], Hint] = field(default_factory=dict, repr=False)
    others_us: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return self._text() + (f"; {self.note}" if self.note else "")

    def _text(self) -> str:
        text = f"{self.measured} times measured in {self.seconds:.1f} s, {self.stored} from the database"
        text += f", {self.estimated} estimated" + (" (the budget was spent)" if self.out_of_time else "")
        if self.chosen == "same":
            return text + "; the default selection is the tuned one"
        if self.verdict is None:
            what = "the default selection is kept" if self.chosen == "default" else "not timed against the default"
            return f"{text}; {what}" + (f": {self.reason}" if self.reason else "")
        v = self.verdict
        kept = "" if self.chosen == "tuned" else f", so {_NAMES[self.chosen]} is kept"
        others = "".join(f", {_NAMES[name]} {us / 1e3:.3f} ms" for name, us in self.others_us.items())
        return f"{text}; tuned {v.tuned_us / 1e3:.3f} ms, default {v.default_us / 1e3:.3f} ms{others}{kept}"


@dataclass(frozen=True)
class Group:
    """The trials of one workload, and where their constants lie when a model calls them."""

    workload: str
    cache_level: str
    indices: tuple[int, ...]
    importance: float


def tune_problem(
    bench: Bench,
    context: Context,
    database: Database | None,
    *,
    budget: Budget | None,
    selected: Callable[[], Sequence[int]] | None = None,
    plans: Plans | None = None,
    doubted: Sequence[int] | None = None,
    model: CostModel | None = None,
    name: str = "",
    only: Container[str] | None = None,
    is_shown: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> Tuning:
    """Put measured times into a problem: those stored, and for the rest those measured now.

    Parameters
    ----------
    bench : Bench
        The problem's trials.
    context : Context
        What stored times must have been measured in.
    database : Database or None
        Where times are kept; read only where nothing is measured.
    budget : Budget or None
        How long to measure; None: nothing is measured.
    selected : callable, optional
        The trials that would be chosen by the times that the problem has now, one per use. With it the schedules of
        what is chosen are searched, and the best of them offered to the problem.
    plans : Plans, optional
        With it the times of what is selected are those in the running module, and the other times are put in
        proportion.
    doubted : sequence of int, optional
        A selection whose times, and those of what is selected, are taken in the running module once more, for the
        least to count.
    model : CostModel, optional
        Which schedules to try first; the default is the one that comes with neo.
    name : str
        For the progress bar.
    only : container of str, optional
        The workloads that are measured; the default is all.
    is_shown : bool
        Whether there is a progress bar.
    clock : callable
        Seconds; a test gives its own.
    """
    trials = list(bench.trials)
    groups = [g for g in list_groups(trials, bench.cache_level) if only is None or g.workload in only]
    cache_levels = {g.workload: g.cache_level for g in groups}
    declared = len(trials)
    times: list[float | None] = [None] * len(trials)
    rows = _lookup(groups, context, database)
    stored = _take_stored(groups, trials, rows, times)
    hints = _hints(groups, context, database)
    search = None
    if selected is not None:
        # The same draws each time: what was found does not depend on luck.
        search = Search(bench, cache_levels, model or CostModel(), np.random.default_rng(0))
        stored += search.take_stored(rows, times)
    run = _Run(bench, context, database, budget, clock)
    missing = [g for g in groups if g.indices] if budget is not None else []
    if missing and hints:
        missing = _with_hints(bench, missing, hints, rows, trials, times, is_searched=search is not None)
    with LateProgress(
        f"tuning {name}".rstrip(), sum(len(g.indices) for g in missing), clock, is_shown=is_shown
    ) as progress:
        run.candidates(missing, trials, times, progress)
        if search is not None:
            if made := _synthetic_rows(missing, declared, trials, times):
                search.take_stored(made, times)
            if budget is not None and selected is not None and not run.out_of_time:

                def chosen() -> Sequence[int]:
                    search.offer(times)
                    _price(bench, times)
                    return selected()

                search.run(chosen, run.benchmark(progress), run.store, times, go_on=run.go_on, most=run.trials_left)
                run.notes.append(search.note)
            search.offer(times)
        end_to_end: dict[int, float] = {}
        if plans is not None:
            end_to_end = _settle(
                bench,
                plans,
                groups,
                context,
                database,
                run,
                times,
                is_measured=budget is not None,
                doubted=doubted,
            )
    ratios = _price(bench, end_to_end_times(bench.trials, times, end_to_end) if end_to_end else times)
    run.finish()
    estimated = sum(us is None for us in times[:declared])
    seconds = clock() - run.start if run.measured else 0.0
    note = "; ".join(note for note in (*run.notes, run.noise.note) if note)
    elsewhere = {(workload, c): hint for (workload, _), found in hints.items() for c, hint in found.items()}
    return Tuning(run.measured, stored, estimated, seconds, run.out_of_time, ratios, note=note, hints=elsewhere)


class _Run:
    """What is measured now, within a budget."""

    def __init__(
        self,
        bench: Bench,
        context: Context,
        database: Database | None,
        budget: Budget | None,
        clock: Callable[[], float],
    ) -> None:
        self._bench = bench
        self._context = context
        self._database = database
        self._budget = budget or Budget(0.0, 0.0)
        self._clock = clock
        self.start = clock()
        self.measured = 0
        self._tried = 0
        self.out_of_time = False
        self.notes: list[str] = []
        self.noise = Noise()
        self._cut = False
        self._unkept: list[tuple[str, str, Sequence[Row]]] = []

    def seconds_left(self) -> float:
        """Until the budget is spent."""
        return self.start + self._budget.seconds - self._clock()

    def trials_left(self) -> float:
        """That may still be measured."""
        left = self._budget.trials - self._tried
        self.out_of_time = self.out_of_time or left < 1
        return left

    def go_on(self) -> bool:
        """Whether there is time left."""
        self.out_of_time = self.out_of_time or self.seconds_left() <= 0
        return not self.out_of_time

    def candidates(
        self,
        groups: Sequence[Group],
        trials: Sequence[Mapping[str, Any]],
        times: list[float | None],
        progress: LateProgress,
    ) -> None:
        """Measure the problem's own candidates, those that weigh most first."""
        groups = sorted(groups, key=lambda g: -g.importance)
        for group in [part for phase in _phases(groups, trials) for part in phase]:
            for batch in _batches(group.indices, trials):
                left = self.trials_left()
                if not self.go_on() or left < 1:
                    return
                part = batch[: int(min(left, len(batch)))]
                self.out_of_time = len(part) < len(batch)
                found = self.benchmark(progress)(part, group.cache_level)
                for i, timing in zip(part, found, strict=True):
                    times[i] = timing.time_us
                self.store(group.workload, group.cache_level, list(_rows(part, found, trials)))

    def benchmark(self, progress: LateProgress) -> Benchmark:
        """Measures trials of one workload against each other."""

        def measure(indices: Sequence[int], cache_level: str, known: int = 0) -> list[Timing]:
            with alone():
                left = self.seconds_left()
                limit = None if math.isinf(left) else max(left, 0.0)
                found = [Timing(*one) for one in self._bench.measure(indices, cache_level, limit)]
            # Times that the deadline cut short are good enough for now, not for later.
            self._cut = self.seconds_left() <= 0
            self.out_of_time = self.out_of_time or self._cut
            self.measured += sum(timing.time_us is not None for timing in found[known:])
            self._tried += len(found) - known
            self.noise.add(found)
            progress.advance(len(found) - known)
            return found

        return measure

    def store(self, workload: str, cache_level: str, rows: Sequence[Row]) -> None:
        """Keep what was measured last; where that fails, until the end."""
        if self._database is None or self._cut:
            return
        if self._unkept:
            self._unkept.append((workload, cache_level, rows))
            return
        try:
            self._database.store(self._context, workload, cache_level, rows)
        except ResourceError:
            self._unkept.append((workload, cache_level, rows))

    def finish(self) -> None:
        """Try again to keep what could not be kept, and say so where it still cannot."""
        if self._database is None or not self._unkept:
            return
        try:
            while self._unkept:
                self._database.store(self._context, *self._unkept[0])
                self._unkept.pop(0)
        except ResourceError as error:
            count = sum(len(rows) for _, _, rows in self._unkept)
            self.notes.append(f"{count} times could not be kept: {str(error).partition(chr(10))[0]}")


def _settle(
    bench: Bench,
    plans: Plans,
    groups: Sequence[Group],
    context: Context,
    database: Database | None,
    run: _Run,
    times: list[float | None],
    *,
    is_measured: bool,
    doubted: Sequence[int] | None,
) -> dict[int, float]:
    """What trials take in the running plan, by trial: stored, or profiled now."""
    trials = bench.trials
    key = plan_key(trials)
    stored = _lookup([replace(g, cache_level=key) for g in groups], context, database)
    known = {
        i: row.time_us
        for i, t in enumerate(trials)
        if times[i] and (row := stored.get((t["workload"], key), {}).get(t["candidate"]))
    }
    found = {i: us for i, us in known.items() if us}
    bench.offer(sorted(known))
    if is_measured and run.go_on():
        try:
            Settling(bench, plans, times, found, known).run(
                lambda: _price(bench, end_to_end_times(bench.trials, times, found)),
                lambda workload, rows: run.store(workload, key, rows),
                run.go_on,
                doubted=doubted,
            )
        except Error as error:
            run.notes.append(f"the module was not profiled: {str(error).partition(chr(10))[0]}")
    return found


def _price(bench: Bench, times: Sequence[float | None]) -> dict[str, tuple[int, float]]:
    """Put times into the problem, and in place of those that are missing scaled estimates."""
    trials = bench.trials
    ratios = routine_ratios((t["routine"], t["estimate_us"], us) for t, us in zip(trials, times, strict=True))
    if ratios:
        every = statistics.median(ratio for _, ratio in ratios.values())
        filled = [
            us if us is not None else t["estimate_us"] * ratios.get(t["routine"], (0, every))[1]
            for t, us in zip(trials, times, strict=True)
        ]
        bench.price(filled, [us is not None for us in times])
    return ratios


def routine_ratios(times: Iterator[tuple[str, float, float | None]]) -> dict[str, tuple[int, float]]:
    """Per routine: how many times there are, and their median ratio measured to estimated."""
    ratios: dict[str, list[float]] = {}
    for routine, estimate_us, time_us in times:
        if time_us is not None and estimate_us > 0:
            ratios.setdefault(routine, []).append(time_us / estimate_us)
    return {routine: (len(values), statistics.median(values)) for routine, values in ratios.items()}


def problem_digest(bench: Bench, choices: Sequence[int], limits: object) -> str:
    """Names a problem together with a selection of it: what a verdict is about."""
    trials = [(t["workload"], t["candidate"], t["weight"]) for t in bench.trials if not t["made"]]
    chosen = [bench.trial(i)["candidate"] for i in bench.chosen(choices)]
    text = json.dumps([trials, chosen, limits])
    return hashlib.sha256(text.encode()).hexdigest()


def list_groups(trials: Sequence[Mapping[str, Any]], cache_level: str) -> list[Group]:
    """By workload, those left out for which a measurement would change nothing."""
    by_workload: dict[str, list[int]] = {}
    for i, t in enumerate(trials):
        if t["unmeasurable"] is None:
            by_workload.setdefault(t["workload"], []).append(i)
    groups = []
    for workload, indices in by_workload.items():
        best = min(trials[i]["estimate_us"] for i in indices)
        # Estimates of two machines do not compare.
        least: dict[str, float] = {}
        for i in indices:
            least[_device(trials[i])] = min(least.get(_device(trials[i]), math.inf), trials[i]["estimate_us"])
        kept = tuple(
            i for i in indices if trials[i]["estimate_us"] <= _HOPELESS * least[_device(trials[i])] + _HOPELESS_US
        )
        packed = max(trials[i]["packed_bytes"] for i in kept)
        # Where fetching constants takes no time, it does not matter from where.
        counts = packed / _MEMORY_RATE > _COUNTS * best
        where = "shared" if cache_level == "memory" and not counts else cache_level
        groups.append(Group(workload, where, kept, best * max(trials[i]["weight"] for i in kept)))
    return groups


def _lookup(
    groups: Sequence[Group], context: Context, database: Database | None
) -> dict[tuple[str, str], dict[str, Row]]:
    """What is stored of the groups' workloads."""
    return {} if database is None else database.lookup(context, [(g.workload, g.cache_level) for g in groups])


def _hints(groups: Sequence[Group], context: Context, database: Database | None) -> Hints:
    """What other machines and builds stored of the workloads that lack times."""
    return (
        {} if database is None else database.hints(context, [(g.workload, g.cache_level) for g in groups if g.indices])
    )


def _with_hints(
    bench: Bench,
    groups: Sequence[Group],
    hints: Hints,
    rows: Mapping[tuple[str, str], Mapping[str, Row]],
    trials: list[Mapping[str, Any]],
    times: list[float | None],
    *,
    is_searched: bool,
) -> list[Group]:
    """Put first what was fast elsewhere, and beside a workload's candidates the points that were fastest there."""
    hinted = []
    spaces = bench.spaces if is_searched else []
    by_workload: dict[str, set[str]] = {}
    for trial in trials:
        by_workload.setdefault(trial["workload"], set()).add(trial["candidate"])
    for group in groups:
        found = hints.get((group.workload, group.cache_level), {})
        known = by_workload[group.workload] | set(rows.get((group.workload, group.cache_level), ()))
        made = hinted_trials(bench, spaces, group.workload, found, known) if spaces else []
        # Points that turned out to stand for other candidates than the hinted ones are trials as well.
        for index in range(len(trials), max(made, default=-1) + 1):
            trials.append(bench.trial(index))
        indices = (*group.indices, *made)
        hinted.append(replace(group, indices=by_hint(indices, trials, found)))
    trials.extend(bench.trials[len(trials) :])
    times.extend([None] * (len(trials) - len(times)))
    return hinted


def _synthetic_rows(
    groups: Sequence[Group],
    declared: int,
    trials: Sequence[Mapping[str, Any]],
    times: Sequence[float | None],
) -> dict[tuple[str, str], dict[str, Row]]:
    """The measured times of trials that the problem did not have, for the search to know them."""
    made: dict[tuple[str, str], dict[str, Row]] = {}
    for group in groups:
        for i in group.indices:
            if i >= declared and times[i] is not None:
                t = trials[i]
                row = Row(t["candidate"], t["routine"], times[i], t["estimate_us"], 0)
                made.setdefault((group.workload, group.cache_level), {})[row.candidate] = row
    return made


def _take_stored(
    groups: list[Group],
    trials: Sequence[Mapping[str, Any]],
    found: Mapping[tuple[str, str], Mapping[str, Row]],
    times: list[float | None],
) -> int:
    """Fill in stored times, and leave in the groups what has none; how many there were."""
    count = 0
    for k, group in enumerate(groups):
        rows = found.get((group.workload, group.cache_level), {})
        for i in group.indices:
            if trials[i]["candidate"] in rows:
                times[i] = rows[trials[i]["candidate"]].time_us
                count += times[i] is not None
        groups[k] = replace(group, indices=tuple(i for i in group.indices if trials[i]["candidate"] not in rows))
    return count


def _phases(groups: Sequence[Group], trials: Sequence[Mapping[str, Any]]) -> list[list[Group]]:
    """What is measured one after the other.

    Where there is a device, first what promises most of each workload on each: a short budget then still says where
    nodes belong.
    """
    if not any(_device(trials[i]) != "cpu" for g in groups for i in g.indices):
        return [list(groups)]
    first, rest = [], []
    for group in groups:
        heads: dict[str, int] = {}
        for i in sorted(group.indices, key=lambda i: trials[i]["estimate_us"]):
            heads.setdefault(_device(trials[i]), i)
        first.append(replace(group, indices=tuple(heads.values())))
        rest.append(replace(group, indices=tuple(i for i in group.indices if i not in heads.values())))
    return [first, [group for group in rest if group.indices]]


def _device(trial: Mapping[str, Any]) -> str:
    return str(trial.get("device", "cpu"))


def _batches(indices: Sequence[int], trials: Sequence[Mapping[str, Any]]) -> Iterator[list[int]]:
    batch: list[int] = []
    packed = 0
    for i in indices:
        if batch and packed + trials[i]["packed_bytes"] > _BENCHMARK_BYTES:
            yield batch
            batch, packed = [], 0
        batch.append(i)
        packed += trials[i]["packed_bytes"]
    if batch:
        yield batch


def _rows(batch: Sequence[int], found: Sequence[Timing], trials: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    for i, timing in zip(batch, found, strict=True):
        t = trials[i]
        known = (timing.time_us, t["estimate_us"], timing.rounds, timing.failure)
        yield Row(t["candidate"], t["routine"], *known, timing.spread_us if timing.rounds else None)
