"""Tune many models over many machines."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from neo import _native
from neo.budget import Budget, parse_budget
from neo.candidates import selection_arrays
from neo.errors import DTypeError, ModelError, ResourceError
from neo.frontend.onnx import read_model
from neo.frontend.source import Model
from neo.limits import checked_threads
from neo.report.progress import LateProgress
from neo.select import solve
from neo.tune.database import Database, Row, default_path
from neo.tune.machine import Context
from neo.tune.measure import tune_problem
from neo.tune.worker import Result, Rows, Task, close_child, graph_text, measure_task

__all__ = ["Sweep", "tune"]

# A first pass is so many tasks at most for each model: fewer lose more with a worker, more send the graph more often.
_TASKS = 64
# As the search expects: a first batch of so many points gains so much, each more half of it, until it is not worth it.
_BATCH = 8
_PRIOR = 0.1
_WORTHWHILE = 0.0015
# Selections change by what the search finds; then what is new in them is searched.
_PASSES = 3
_POLL_SECONDS = 0.25
_CACHE_LEVELS = ("private", "shared", "memory")


@dataclass(frozen=True)
class Sweep:
    """What a sweep did. Printing it says so in a sentence or two.

    Attributes
    ----------
    models : int
    workloads : int
        Distinct ones, over all models.
    measured : int
        Times measured, over all machines; searched points among them.
    stored : int
        Times that were in the database.
    failed : int
        Candidates that could not be measured: they are kept with the reason.
    failures : mapping of (str, str) to int
        How many candidates of which routine failed for which reason.
    lost : tuple of str
        Why tasks have no result: a worker that died, mostly. What they would have measured is missing.
    seconds : float
    out_of_time, is_cancelled : bool
        Whether the budget, or the caller, ended it.
    contexts : mapping of Context to int
        Where how many times were measured.
    notes : tuple of str
        Of disturbed machines, and of what could not be kept.
    """

    models: int
    workloads: int
    measured: int
    stored: int
    failed: int
    lost: tuple[str, ...]
    seconds: float
    out_of_time: bool
    is_cancelled: bool
    contexts: Mapping[Context, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failures: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.models} models, {self.workloads} distinct workloads: {self.measured} times measured in "
        text += f"{self.seconds:.1f} s, {self.stored} from the database"
        text += f", {self.failed} failed" if self.failed else ""
        text += " (the budget was spent)" if self.out_of_time else " (cancelled)" if self.is_cancelled else ""
        lines = [text, *(f"  {count} on {context}" for context, count in self.contexts.items())]
        lines += [f"  failed: {routine}, {count} times: {why}" for (routine, why), count in self.failures.items()]
        lines += [f"  lost: {reason}, {count} tasks" for reason, count in Counter(self.lost).items()]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True)
class _Work:
    """A model on its way."""

    problem: _native.Problem
    bench: _native.Bench
    text: bytes
    importance: Mapping[str, float]
    candidates: Mapping[str, set[str]]


def tune(
    models: Sequence[Model],
    *,
    target: str = "cpu",
    threads: int | None = None,
    tune: bool | int | str = True,
    executor: Executor | None = None,
    database: str | PathLike[str] | None = None,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
    cancel: threading.Event | None = None,
) -> Sweep:
    """Measure what models are made of, on this machine or on others, and keep the times in a database.

    Each distinct workload of all the models is measured once; then the schedules of what the models would select are
    searched. ``neo.compile(model, database=...)`` selects by the times (docs/tuning.md).

    Parameters
    ----------
    models : sequence of path, bytes or onnx.ModelProto
    target : str
        As in :func:`neo.compile`.
    threads : int, optional
        Threads of a call on every machine. The default is the cores this process may use.
    tune : bool, int or str
        Until more would not pay (``True``), for at most a time (``"10m"``) or so many trials, of all models together.
    executor : concurrent.futures.Executor, optional
        Where tasks run: a pool of threads or processes, Dask's ``client.get_executor()``, or any other. The default is
        this process. Two measurements never run at once on one machine. Each machine's times are kept as its own.
    database : path, optional
        The default is ``neo/tuning.db`` in the user's cache folder.
    shapes : mapping of str to int or (int, int), optional
        As in :func:`neo.compile`.
    cancel : threading.Event, optional
        Once it is set, no more tasks begin; what was measured is kept.

    Returns
    -------
    Sweep

    Raises
    ------
    neo.UnsupportedError, neo.ModelError
        As from :func:`neo.compile`.
    neo.ResourceError
        The database cannot be used.
    """
    if isinstance(models, str | bytes | PathLike) or not isinstance(models, Iterable):
        msg = f"[tune] models must be a list of models. Got {type(models).__name__}, expected a list of paths or bytes"
        raise DTypeError(msg)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        msg = f"[tune] executor must be a concurrent.futures.Executor. Got {type(executor).__name__}"
        raise DTypeError(msg)
    budget = parse_budget(tune)
    if budget is None:
        msg = f"[tune] tune must allow measuring. Got {tune!r}, expected True, a time or a number of trials"
        raise ModelError(msg)
    if tune is True:
        budget = Budget()
    _native.check_target(target)
    threads = checked_threads(_native.default_threads() if threads is None else threads, "tune")
    works = [_work(model, target, threads, shapes) for model in models]
    with Database(default_path() if database is None else Path(database)) as stored:
        run = _Sweeping(works, target, threads, budget, executor, stored, cancel)
        try:
            return run.all()
        finally:
            run.close()


def _work(model: Model, target: str, threads: int, shapes: Mapping[str, int | tuple[int, int]] | None) -> _Work:
    graph = _native.run_passes(read_model(model, shapes=shapes)[0], target=target)
    problem = _native.build_problem(graph, target, threads)
    bench = _native.make_bench(problem, threads)
    importance: dict[str, float] = {}
    candidates: dict[str, set[str]] = {}
    for t in bench.trials:
        candidates.setdefault(t["workload"], set()).add(t["candidate"])
        if t["unmeasurable"] is None:
            known = importance.get(t["workload"], math.inf)
            importance[t["workload"]] = min(known, t["estimate_us"] * max(t["weight"], 1.0))
    return _Work(problem, bench, graph_text(graph), importance, candidates)


class _Sweeping:
    """A sweep under way."""

    def __init__(
        self,
        works: Sequence[_Work],
        target: str,
        threads: int,
        budget: Budget,
        executor: Executor | None,
        database: Database,
        cancel: threading.Event | None,
    ) -> None:
        self._works = works
        self._target = target
        self._threads = threads
        self._budget = budget
        self._executor = executor
        self._database = database
        self._cancel = cancel
        self._start = time.monotonic()
        self._measured = self._stored = 0
        self._failures: Counter[tuple[str, str]] = Counter()
        self._lost: list[str] = []
        self._notes: list[str] = []
        self._out_of_time = False
        self._contexts: Counter[Context] = Counter()
        self._unkept: list[tuple[Context, Rows]] = []

    def all(self) -> Sweep:
        """Every pass."""
        distinct = {workload for work in self._works for workload in work.importance}
        context = self._probe()
        if context is not None:
            self._run(self._first_tasks(context), "tuning")
            searched: set[str] = set()
            for _ in range(_PASSES):
                tasks = self._searches(context, searched)
                if not tasks or not self._goes_on():
                    break
                self._run(tasks, "searching")
        self._keep_rest()
        return Sweep(
            len(self._works),
            len(distinct),
            self._measured,
            self._stored,
            self._failures.total(),
            tuple(self._lost),
            time.monotonic() - self._start,
            self._out_of_time,
            self._is_cancelled(),
            dict(self._contexts),
            tuple(self._notes),
            dict(self._failures),
        )

    def close(self) -> None:
        """End what this process started."""
        close_child()

    def _is_cancelled(self) -> bool:
        return self._cancel is not None and self._cancel.is_set()

    def _seconds_left(self) -> float:
        return self._start + self._budget.seconds - time.monotonic()

    def _goes_on(self) -> bool:
        self._out_of_time = self._out_of_time or self._seconds_left() <= 0
        tried = self._measured + self._failures.total()
        self._out_of_time = self._out_of_time or tried >= self._budget.trials
        return not self._out_of_time and not self._is_cancelled()

    def _task(self, work: _Work, workloads: Sequence[str], context: Context | None) -> Task:
        known: tuple[tuple[Context, Rows], ...] = ()
        if context is not None:
            keys = [(workload, cache_level) for workload in workloads for cache_level in _CACHE_LEVELS]
            found = self._database.lookup(context, keys)
            known = tuple((context, (*key, tuple(rows.values()))) for key, rows in found.items() if rows)
            hints = self._database.hints(context, keys)
            known += tuple(
                (hint.context, (*key, (Row(candidate, "", hint.time_us, 0.0, 0),)))
                for key, candidates in hints.items()
                for candidate, hint in candidates.items()
            )
        return Task(work.text, tuple(workloads), self._target, self._threads, known=known)

    def _probe(self) -> Context | None:
        """What a worker is: what is stored for it need not be measured."""
        if not self._works:
            return None
        found: list[Context] = []
        self._run([self._task(self._works[0], (), None)], "", found)
        return found[0] if found else None

    def _first_tasks(self, context: Context) -> list[Task]:
        """Every candidate of every workload once, in the model where the workload weighs most of those that have it."""
        owners: dict[tuple[str, str], int] = {}
        weigh = sorted(
            (
                (weight, k, workload)
                for k, work in enumerate(self._works)
                for workload, weight in work.importance.items()
            ),
            key=lambda entry: -entry[0],
        )
        for _, k, workload in weigh:
            for candidate in self._works[k].candidates[workload]:
                owners.setdefault((workload, candidate), k)
        tasks: list[tuple[float, int, Task]] = []
        for k, work in enumerate(self._works):
            mine = {workload for (workload, _), owner in owners.items() if owner == k and workload in work.importance}
            own = sorted(mine, key=lambda w: (-work.importance[w], w))
            size = max(1, math.ceil(len(own) / _TASKS))
            for first in range(0, len(own), size):
                part = own[first : first + size]
                others = frozenset((w, c) for w in part for c in work.candidates[w] if owners[w, c] != k)
                count = sum(len(work.candidates[w]) for w in part) - len(others)
                task = replace(self._task(work, part, context), others=others, most=count)
                tasks.append((work.importance[part[0]], len(tasks), task))
        return [task for _, _, task in sorted(tasks, key=lambda entry: (-entry[0], entry[1]))]

    def _searches(self, context: Context, searched: set[str]) -> list[Task]:
        """A task for each workload that models would select and that has a share of their time worth searching."""
        shares: dict[str, tuple[float, int, _Work]] = {}
        for work in self._works:
            tune_problem(work.bench, context, self._database, budget=None, selected=lambda: [])
            arrays = selection_arrays(work.problem)
            choice, costs = list(solve(arrays).choice), arrays.costs
            total = sum(float(costs[v][c]) for v, c in enumerate(choice)) or 1.0
            times: dict[str, float] = {}
            points: dict[str, int] = {}
            trials = [work.bench.trial(i) for i in work.bench.chosen(choice)]
            rows = self._database.lookup(context, [(t["workload"], r) for t in trials for r in _CACHE_LEVELS])
            for t in trials:
                known = [rows[t["workload"], r].get(t["candidate"]) for r in _CACHE_LEVELS]
                us = next((row.time_us for row in known if row and row.time_us), t["estimate_us"])
                times[t["workload"]] = times.get(t["workload"], 0.0) + us
                stored = {candidate for r in _CACHE_LEVELS for candidate in rows[t["workload"], r]}
                points[t["workload"]] = len(stored - work.candidates[t["workload"]])
            for workload, us in times.items():
                if workload in work.importance and us / total > shares.get(workload, (0.0,))[0]:
                    shares[workload] = us / total, points[workload], work
        tasks = []
        for workload, (share, known_points, work) in sorted(shares.items(), key=lambda item: -item[1][0]):
            batches = math.ceil(math.log2(max(1.0, _PRIOR * share / _WORTHWHILE)) - known_points / _BATCH)
            if workload not in searched and batches > 0:
                searched.add(workload)
                most = batches * _BATCH
                tasks.append(replace(self._task(work, (workload,), context), trials=most, most=most))
        return tasks

    def _run(self, tasks: Sequence[Task], text: str, contexts: list[Context] | None = None) -> None:
        """Do tasks, and keep what comes back."""
        with LateProgress(text, len(tasks)) as progress:
            waiting = self._allot(tasks)
            if self._executor is not None:
                waiting = self._submit(waiting, progress, contexts)
            for task in waiting:
                if self._seconds_left() <= 0 or self._is_cancelled():
                    self._goes_on()
                    return
                self._take(self._local(task), contexts)
                progress.advance(1)

    def _local(self, task: Task) -> Result | str:
        try:
            return measure_task(self._limited(task))
        except RuntimeError as error:
            return str(error)

    def _limited(self, task: Task) -> Task:
        return replace(task, seconds=max(0.0, self._seconds_left()))

    def _allot(self, tasks: Sequence[Task]) -> list[Task]:
        """Share the trials that are left among tasks, the first ones first."""
        if math.isinf(self._budget.trials):
            return list(tasks)
        left = self._budget.trials - self._measured - self._failures.total()
        allotted = []
        for task in tasks:
            most = min(task.most, left)
            self._out_of_time = self._out_of_time or most < task.most
            if most > 0 or not task.workloads:
                allotted.append(replace(task, most=most))
                left -= most
        return allotted

    def _submit(self, tasks: Sequence[Task], progress: LateProgress, contexts: list[Context] | None) -> list[Task]:
        """Give tasks to the executor; those that are left when a pool of processes broke."""
        assert self._executor is not None
        futures: dict[Future[Result], Task] = {}
        left: list[Task] = []
        try:
            for task in tasks:
                futures[self._executor.submit(measure_task, self._limited(task))] = task
        except BrokenExecutor:
            left = list(tasks[len(futures) :])
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
                for future in done:
                    if future.cancelled():
                        continue
                    error = future.exception()
                    if isinstance(error, BrokenExecutor):
                        left.append(futures[future])
                        continue
                    self._take(future.result() if error is None else _reason(error), contexts)
                    progress.advance(1)
                if self._seconds_left() <= 0 or self._is_cancelled():
                    # Tasks that have begun go on to their end, which their own limits bring.
                    pending = {future for future in pending if not future.cancel()}
        except BaseException:
            for future in pending:
                future.cancel()
            raise
        if left:
            self._executor = None
            self._notes.append(f"the pool of processes broke: {len(left)} tasks were measured by this process")
        return left

    def _take(self, result: Result | str, contexts: list[Context] | None) -> None:
        if isinstance(result, str):
            self._lost.append(result)
            return
        if contexts is not None:
            contexts.append(result.context)
        self._measured += result.measured
        self._stored += result.stored
        self._out_of_time = self._out_of_time or result.out_of_time
        self._notes += [note for note in result.notes if note not in self._notes]
        if result.measured:
            self._contexts[result.context] += result.measured
        for rows in result.rows:
            failed = (row for row in rows[2] if row.time_us is None)
            self._failures.update((row.routine, row.failure.partition("\n")[0]) for row in failed)
            self._keep(result.context, rows)

    def _keep(self, context: Context, rows: Rows) -> None:
        if self._unkept:
            self._unkept.append((context, rows))
            return
        try:
            self._database.store(context, *rows)
        except ResourceError:
            self._unkept.append((context, rows))

    def _keep_rest(self) -> None:
        """Try again to keep what could not be kept."""
        while self._unkept:
            context, rows = self._unkept[0]
            self._database.store(context, *rows)
            self._unkept.pop(0)


def _reason(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
