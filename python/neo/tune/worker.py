"""What a sweep asks of a machine: to measure workloads of a graph, in a process that may end while it does."""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import re
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from neo import _native
from neo.budget import Budget
from neo.tune.alone import alone
from neo.tune.database import Hint, Row
from neo.tune.machine import Context
from neo.tune.measure import tune_problem

__all__ = ["Result", "Task", "close_child", "graph_text", "measure_task", "read_graph", "serve"]

# Constants up to so many elements travel with a graph: shapes, axes, scales. Larger ones are synthetic when measured.
_INLINE = 1024
# The benchmark of a child that says nothing for longer hangs.
_SILENT_SECONDS = 120.0
# One that has not begun yet imports what it needs, and writes down the problem.
_STARTING_SECONDS = 600.0
# A child whose connection closed ends by itself in less, unless it is in the middle of a benchmark.
_ENDING_SECONDS = 0.5

#: (workload, cache_level, rows)
Rows = tuple[str, str, tuple[Row, ...]]


def graph_text(graph: _native.Graph) -> bytes:
    """A graph without its weights, to be sent."""
    return zlib.compress(re.sub(r" #[0-9a-f]{16}(?=\s)", " absent", graph.print(_INLINE)).encode())


@functools.lru_cache(maxsize=2)
def read_graph(text: bytes, target: str, threads: int) -> tuple[_native.Problem, _native.Bench]:
    """The selection problem of a graph that was sent, and its bench."""
    problem = _native.build_problem(_native.parse_graph(zlib.decompress(text).decode()), target, threads)
    return problem, _native.make_bench(problem, threads)


@dataclass(frozen=True)
class Task:
    """Workloads of one graph to be measured; pickled, it is some kilobytes.

    Attributes
    ----------
    graph : bytes
        As `graph_text` gives it.
    workloads : tuple of str
    target : str
    threads : int
        Of the team that measures.
    trials : int
        Points of each workload's spaces to measure at most; 0: only its candidates.
    most : float
        Times that may be measured, of all workloads together.
    seconds : float
        For all of it.
    known : tuple of (Context, Rows)
        What was measured of the workloads, and in which context; elsewhere it is a hint.
    others : frozenset of (str, str)
        Workloads and candidates that another task measures.
    suspects : frozenset of (str, str)
        Workloads and candidates that are timed alone: the process ended while they were measured.
    """

    graph: bytes
    workloads: tuple[str, ...]
    target: str
    threads: int
    trials: int = 0
    most: float = math.inf
    seconds: float = math.inf
    known: tuple[tuple[Context, Rows], ...] = ()
    others: frozenset[tuple[str, str]] = frozenset()
    suspects: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Result:
    """What a worker measured, and where."""

    context: Context
    rows: tuple[Rows, ...] = ()
    measured: int = 0
    stored: int = 0
    notes: tuple[str, ...] = ()
    out_of_time: bool = False


Send = Callable[[tuple[Any, ...]], None]


class _Kept:
    """Stands for a database: gives what a task knows, and sends on what is measured."""

    def __init__(self, task: Task, send: Send) -> None:
        self._task = task
        self._send = send
        self.count = 0

    def lookup(self, context: Context, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Row]]:
        found: dict[tuple[str, str], dict[str, Row]] = {key: {} for key in keys}
        for where, (workload, cache_level, rows) in self._task.known:
            if where == context and (workload, cache_level) in found:
                found[workload, cache_level].update({row.candidate: row for row in rows})
        for (workload, _), known in found.items():
            for candidate in (c for w, c in self._task.others if w == workload):
                known.setdefault(candidate, Row(candidate, "", None, 0.0, 0, "another task measures it"))
        return found

    def hints(self, context: Context, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Hint]]:
        found: dict[tuple[str, str], dict[str, Hint]] = {key: {} for key in keys}
        for where, (workload, cache_level, rows) in self._task.known:
            if where != context and (workload, cache_level) in found:
                timed = {row.candidate: row.time_us for row in rows if row.time_us is not None}
                found[workload, cache_level].update({c: Hint(us, where) for c, us in timed.items()})
        return found

    def store(self, _context: Context, workload: str, cache_level: str, rows: Sequence[Row]) -> None:
        self.count += len(rows)
        self._send(("rows", workload, cache_level, tuple(rows)))


class _Watched:
    """A bench that says what it is about to run, and remembers the times that it is given."""

    def __init__(self, bench: _native.Bench, task: Task, send: Send) -> None:
        self._bench = bench
        self._suspects = task.suspects
        self._send = send
        self._times: Sequence[float] = ()
        self._is_measured: Sequence[bool] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def measure(self, indices: Sequence[int], cache_level: str, seconds: float | None = None) -> list[Any]:
        entries = {i: self._bench.trial(i) for i in indices}
        alone = [i for i in indices if (entries[i]["workload"], entries[i]["candidate"]) in self._suspects]
        end = math.inf if seconds is None else time.monotonic() + seconds
        found: dict[int, Any] = {}
        for batch in [*([i] for i in alone), [i for i in indices if i not in alone]]:
            if not batch:
                continue
            told = [
                (t["workload"], t["candidate"], t["routine"], t["estimate_us"]) for t in map(entries.get, batch) if t
            ]
            self._send(("begin", cache_level, told))
            left = None if math.isinf(end) else max(0.0, end - time.monotonic())
            found.update(zip(batch, self._bench.measure(batch, cache_level, left), strict=True))
        return [found[i] for i in indices]

    def price(self, times_us: Sequence[float], measured: Sequence[bool]) -> None:
        self._times, self._is_measured = times_us, measured

    def fastest(self, workload: str) -> list[int]:
        """The trial of a workload with the least measured time."""
        timed = [
            (self._times[i], i)
            for i, t in enumerate(self._bench.trials)
            if t["workload"] == workload and i < len(self._times) and self._is_measured[i]
        ]
        return [min(timed)[1]] if timed else []


def _measure(task: Task, send: Send) -> Result:
    """Do a task in this process."""
    _, native = read_graph(task.graph, task.target, task.threads)
    context = Context.here(task.target, native.threads)
    send(("context", context))
    bench = _Watched(native, task, send)
    store = _Kept(task, send)
    kept: Any = store
    end = time.monotonic() + task.seconds
    measured = stored = 0
    notes: list[str] = []
    out_of_time = False
    for workload in task.workloads:
        with alone():
            left = end - time.monotonic()
            if left <= 0 or store.count >= task.most:
                out_of_time = True
                break
            done = tune_problem(
                bench,
                context,
                kept,
                budget=Budget(seconds=left, trials=min(task.trials or math.inf, task.most - store.count)),
                selected=functools.partial(bench.fastest, workload) if task.trials else None,
                only=(workload,),
                is_shown=False,
            )
        measured += done.measured
        stored += done.stored
        out_of_time = out_of_time or (done.out_of_time and not task.trials)
        notes += [done.note] if done.note and done.note not in notes else []
    return Result(context, (), measured, stored, tuple(notes), out_of_time)


def serve(descriptor: int) -> None:
    """Do the tasks that come over a connection, until it ends; what a child does."""
    connection = Connection(descriptor)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = connection.recv()
            try:
                connection.send(("done", _measure(task, connection.send)))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:
                connection.send(("failed", f"{type(error).__name__}: {error}"))


@dataclass
class _Child:
    """The process that measures for this one; made when it is first needed, and again when it ended."""

    process: subprocess.Popen[bytes] | None = None
    connection: Connection | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def started(self) -> Connection:
        if self.connection is None:
            ours, theirs = socket.socketpair()
            with theirs:
                # In a session of its own: an interrupt from the terminal reaches only the process that waits.
                self.process = subprocess.Popen(
                    _command(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self.connection = Connection(ours.detach())
        return self.connection

    def end(self) -> str:
        """End it; says how it ended."""
        if self.connection is not None:
            self.connection.close()
        status = None
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self.process.wait(_ENDING_SECONDS)
            self.process.kill()
            status = self.process.wait()
        self.process = self.connection = None
        return f"ended by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"


def _command(descriptor: int) -> list[str]:
    """What a child runs."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({descriptor})"
    return [sys.executable, "-c", code]


_child = _Child()


def _forget_child() -> None:
    """After a fork the child is the other process's."""
    global _child
    _child = _Child()


os.register_at_fork(after_in_child=_forget_child)


def close_child() -> None:
    """End the process that measures for this one, where there is one."""
    with _child.lock:
        _child.end()


atexit.register(close_child)


def measure_task(task: Task) -> Result:
    """Do a task in a child of this process: what a sweep submits to its executor.

    A routine that ends the child, or hangs, costs its own time only: it is run again with nobody beside it to be
    found, and is never run again after that.
    """
    with _child.lock:
        try:
            return _supervise(task)
        except BaseException:
            _child.end()
            raise


def _supervise(task: Task) -> Result:
    rows: list[Rows] = []
    end = time.monotonic() + task.seconds
    # A time that is confirmed comes again.
    measured: set[tuple[str, str, str]] = set()
    context: Context | None = None
    while True:
        connection = _child.started()
        running: tuple[str, list[tuple[str, str, str, float]]] | None = None
        try:
            tried = len({(workload, where, row.candidate) for workload, where, found in rows for row in found})
            connection.send(replace(task, seconds=end - time.monotonic(), most=task.most - tried))
            while True:
                if not connection.poll(_STARTING_SECONDS if running is None else _SILENT_SECONDS):
                    reason = f"hung for {_SILENT_SECONDS:.0f} s"
                    break
                kind, *message = connection.recv()
                if kind == "context":
                    context = message[0]
                elif kind == "begin":
                    running = message[0], message[1]
                elif kind == "rows":
                    rows.append((message[0], message[1], message[2]))
                    timed = [row.candidate for row in message[2] if row.time_us is not None]
                    measured.update((message[0], message[1], candidate) for candidate in timed)
                elif kind == "failed":
                    raise RuntimeError(message[0])
                else:
                    done: Result = message[0]
                    return replace(done, rows=tuple(rows), measured=len(measured))
            _child.end()
        except (EOFError, ConnectionResetError, BrokenPipeError):
            reason = _child.end()
        if running is None or context is None:
            raise RuntimeError(f"the process that measures {reason} before it measured")
        cache_level, entries = running
        if len(entries) == 1:
            workload, candidate, routine, estimate_us = entries[0]
            row = Row(candidate, routine, None, estimate_us, 0, f"the process that measured it {reason}")
            rows.append((workload, cache_level, (row,)))
        task = replace(
            task,
            known=(*task.known, *((context, found) for found in rows)),
            suspects=task.suspects | {(workload, candidate) for workload, candidate, _, _ in entries},
        )
