"""How near tuning comes to the best there is: ``python -m benchmarks.exhaustive resnet50 mobilenet_v2 inception_v3``.

Every point of every space of every distinct workload is run once for warming and once for its time, those of a space
beside one of its candidates; the fastest of each space and all candidates are then timed in full; the exact solver chooses among
them. What ``tune=True`` reaches from an empty database is timed against that, module against module, in turn.

That takes hours. Times lie in a database of their own: a run that was stopped, or that ``--seconds`` ended, goes on
where it was, as long as neo is the same build (``--build`` goes on with the times of another).
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import neo
from neo import _native
from neo.bench import ratio_interval
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import solve
from neo.tune import Context, Database, Row, Tuning, tune_problem
from neo.tune.alone import alone
from neo.tune.compare import synthetic_inputs
from neo.tune.measure import list_groups
from neo.tune.timing import Timing
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import environment, page, results
from benchmarks.results import Section
from benchmarks.suites import find_entries

NETWORKS = ("resnet50", "mobilenet_v2", "inception_v3")
# Points that run beside the yardstick.
_CHUNK = 32
# Of a space, those that are timed in full: the fastest of one run, so many at a time and so often, until none of those that ran
# once took less than the best of those that ran in full.
_FINALISTS = 16
_PASSES = 12
# Of full benchmarks; what was run once has fewer.
_FULL_ROUNDS = 3
# What a run takes beside itself: caches are set, memory is placed.
_BESIDE_US = 2000.0
_ROUNDS = 15


@dataclass(frozen=True)
class Subspace:
    """A space of a network: its number in the bench, how many points it has, and what running all of them may take."""

    number: int
    workload: str
    cache_level: str
    routine: str
    size: int
    seconds: float


@dataclass(frozen=True)
class Best:
    """The exact solution over everything that was measured."""

    module: _native.Module
    total_us: float
    proven: bool


class Network:
    """A network whose spaces are measured point by point.

    Parameters
    ----------
    path : Path
        An ONNX file.
    threads : int
        Threads of a call.
    database : Database
        Where times are kept.
    build : str, optional
        Whose times go on; the default is this build.
    """

    def __init__(self, path: Path, threads: int, database: Database, build: str | None = None) -> None:
        self._path = path
        self._threads = threads
        self._database = database
        self._graph = _native.run_passes(read_model(path)[0])
        self._problem = _native.build_problem(self._graph, "cpu", threads)
        self._bench = self._new_bench()
        context = Context.here("cpu", self._bench.threads)
        self._context = context if build is None else replace(context, kernels=build)
        trials = self._bench.trials
        self._groups = {g.workload: g for g in list_groups(trials, self._bench.cache_level)}
        self.spaces = []
        for number, entry in enumerate(self._bench.spaces):
            group = self._groups.get(entry["workload"])
            if group is None:
                continue
            size = self._bench.space_size(number)
            # The only point of a space is a candidate.
            if size < 2:
                continue
            expected_us = min((trials[t]["estimate_us"] for t in entry["trials"]), default=0.0)
            seconds = size * 2 * (2 * expected_us + _BESIDE_US) * 1e-6
            self.spaces.append(Subspace(number, entry["workload"], group.cache_level, entry["routine"], size, seconds))

    def _new_bench(self) -> _native.Bench:
        return _native.make_bench(self._problem, self._threads)

    @property
    def points(self) -> int:
        """All of them."""
        return sum(space.size for space in self.spaces)

    @property
    def workloads(self) -> int:
        """Distinct ones that have spaces."""
        return len({space.workload for space in self.spaces})

    def _rows(self, space: Subspace) -> dict[str, Row]:
        """What is stored of a space, by candidate."""
        key = (space.workload, space.cache_level)
        found = self._database.lookup(self._context, [key])[key]
        return {candidate: row for candidate, row in found.items() if row.routine == space.routine}

    def measure(self, goes_on: Callable[[], bool], advance: Callable[[int, float, bool], None]) -> bool:
        """Run every point that was not yet; False where `goes_on` ended it.

        Parameters
        ----------
        goes_on : callable
            Asked before every benchmark.
        advance : callable
            Told how many points were done, what was expected of them, in seconds, and whether they were done now.
        """
        for space in self.spaces:
            # Each has its own: trials of hundreds of thousands of points would fill the memory.
            bench = self._new_bench()
            stored = self._rows(space)
            done = set()
            for candidate in stored:
                point = bench.find(space.number, candidate)
                if point is not None:
                    done.add(point)
            advance(len(done), space.seconds * len(done) / max(1, space.size), False)
            left = [point for point in range(space.size) if point not in done]
            if not left:
                continue
            yardstick, yardstick_us = self._yardstick(bench, space)
            for chunk in _chunks(left, _CHUNK):
                if not goes_on():
                    return False
                indices = bench.extend(space.number, chunk)
                beside = [yardstick, *indices[: _CHUNK // 2], yardstick, *indices[_CHUNK // 2 :], yardstick]
                with alone():
                    found = [Timing(*t) for t in bench.measure(beside, space.cache_level, None, 1)]
                # What disturbed the machine disturbed the yardstick as well. It is the same one for all: the best so far
                # had luck, and each chunk would begin where the luck of the last one ended.
                again = [t.time_us for i, t in zip(beside, found, strict=True) if i == yardstick and t.time_us]
                scale = yardstick_us / statistics.median(again) if again else 1.0
                rows = []
                for index, timing in zip(beside, found, strict=True):
                    if index == yardstick:
                        continue
                    us = None if timing.time_us is None else timing.time_us * scale
                    rows.append(_row(bench.trial(index), timing._replace(time_us=us)))
                self._database.store(self._context, space.workload, space.cache_level, rows)
                advance(len(chunk), space.seconds * len(chunk) / space.size, True)
        return True

    def finish(self, goes_on: Callable[[], bool]) -> bool:
        """Benchmark the candidates of each workload, and the fastest points of its spaces; False where `goes_on` ended it."""
        for workload, group in self._groups.items():
            bench = self._new_bench()
            key = (workload, group.cache_level)
            for _ in range(1 + _PASSES):
                stored = self._database.lookup(self._context, [key])[key]
                entered = [i for i in group.indices if not _is_final(stored.get(bench.trial(i)["candidate"]))]
                for space in (s for s in self.spaces if s.workload == workload):
                    entered += [i for i in self._finalists(bench, space) if i not in entered]
                if not entered:
                    break
                if not goes_on():
                    return False
                self._benchmark_in_full(bench, key, stored, entered)
        return True

    def _yardstick(self, bench: _native.Bench, space: Subspace) -> tuple[int, float]:
        """The fastest candidate of a space, or of its workload, and its time in a full benchmark."""
        group = self._groups[space.workload]
        key = (space.workload, space.cache_level)
        stored = self._database.lookup(self._context, [key])[key]
        if not self._declared_us(bench, group.indices, stored):
            self._benchmark_in_full(bench, key, stored, group.indices)
            stored = self._database.lookup(self._context, [key])[key]
        own = self._declared_us(bench, bench.spaces[space.number]["trials"], stored)
        us, index = min(own or self._declared_us(bench, group.indices, stored))
        return index, us

    @staticmethod
    def _declared_us(
        bench: _native.Bench, indices: Sequence[int], stored: Mapping[str, Row]
    ) -> list[tuple[float, int]]:
        """Candidates that ran in full, with their times."""
        timed = [(_final_us(stored.get(bench.trial(i)["candidate"])), i) for i in indices]
        return [(us, i) for us, i in timed if us is not None]

    def _benchmark_in_full(
        self, bench: _native.Bench, key: tuple[str, str], stored: Mapping[str, Row], indices: Sequence[int]
    ) -> None:
        """Trials beside the fastest of the workload's candidates that already ran in full."""
        timed = [
            (us, i) for us, i in self._declared_us(bench, self._groups[key[0]].indices, stored) if i not in indices
        ]
        yardstick = [min(timed)[1]] if timed else []
        with alone():
            found = [Timing(*t) for t in bench.measure([*yardstick, *indices], key[1])]
        again = found[0].time_us if yardstick else None
        scale = min(timed)[0] / again if again else 1.0
        rows = []
        for index, timing in zip(indices, found[len(yardstick) :], strict=True):
            us = None if timing.time_us is None else timing.time_us * scale
            # One that dropped out early has few rounds, and is as final as the others.
            final = timing._replace(time_us=us, rounds=max(timing.rounds, _FULL_ROUNDS))
            rows.append(_row(bench.trial(index), final))
        self._database.store(self._context, *key, rows)

    def _finalists(self, bench: _native.Bench, space: Subspace) -> list[int]:
        """The points that took the least time of one run, and less than any that ran in full."""
        rows = self._rows(space)
        best_us = min((us for row in rows.values() if (us := _final_us(row)) is not None), default=math.inf)
        once = sorted((row.time_us, c) for c, row in rows.items() if row.time_us is not None and not _is_final(row))
        found: list[int] = []
        for us, candidate in once[:_FINALISTS]:
            point = bench.find(space.number, candidate)
            if point is not None and us < best_us:
                found += bench.extend(space.number, [point])
        return found

    def _best_of(self, bench: _native.Bench, space: Subspace) -> Iterator[tuple[float, int]]:
        """The time and the trial of every point that ran in full."""
        for candidate, row in self._rows(space).items():
            us = _final_us(row)
            point = bench.find(space.number, candidate) if us is not None else None
            if us is not None and point is not None:
                yield us, bench.extend(space.number, [point])[0]

    def best(self) -> Best:
        """Solve with what was measured in full."""
        bench = self._bench
        offered: dict[tuple[int, float], tuple[float, int]] = {}
        for space in self.spaces:
            for us, index in self._best_of(bench, space):
                slot = (space.number, bench.trial(index)["error"])
                offered[slot] = min(offered.get(slot, (math.inf, -1)), (us, index))
        bench.offer(sorted(index for _, index in offered.values()))
        tune_problem(bench, self._context, self._database, budget=None)
        solution = solve(selection_arrays(self._problem))
        module = self._problem.lower(list(solution.choice), float(solution.total), self._threads)
        return Best(module, float(solution.total), bool(solution.proven))


def _is_final(row: Row | None) -> bool:
    return row is not None and (row.rounds >= _FULL_ROUNDS or row.time_us is None)


def _final_us(row: Row | None) -> float | None:
    return row.time_us if row is not None and row.rounds >= _FULL_ROUNDS else None


def _row(entry: Any, timing: Timing) -> Row:
    known = (timing.time_us, entry["estimate_us"], timing.rounds, timing.failure)
    return Row(entry["candidate"], entry["routine"], *known, timing.spread_us)


def _chunks(points: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for first in range(0, len(points), size):
        yield points[first : first + size]


@dataclass(frozen=True)
class Compared:
    """Round by round, milliseconds of the default, the tuned and the exhaustive module; and what tuning did."""

    default_ms: list[float]
    tuned_ms: list[float]
    best_ms: list[float]
    tuning: Tuning


def compare(network: Path, threads: int, best: Best, tuned_path: Path, rounds: int = _ROUNDS) -> Compared:
    """Tune from an empty database, unless that is done, and time the modules in turn.

    Parameters
    ----------
    network : Path
        The model.
    threads : int
        Threads of a call.
    best : Best
        Of the exhaustive search.
    tuned_path : Path
        The database of the tuned module.
    rounds : int
        How many.
    """
    tuned = neo.compile(network, tune=True, database=tuned_path, threads=threads)
    default = neo.compile(network, threads=threads)
    arrays = synthetic_inputs(tuned.inputs)
    times: list[list[float]] = [[], [], []]
    assert tuned.tuning is not None
    with alone():
        for _ in range(rounds):
            timed = _native.benchmark_modules([default._native, tuned._native, best.module], arrays, 5, 1.0)
            for k, (us, _) in enumerate(timed):
                times[k].append(us * 1e-3)
    return Compared(*times, tuned.tuning)


def row_of(name: str, network: Network, best: Best, compared: Compared) -> list[str]:
    """A network's row of the table."""
    ratio = ratio_interval(compared.tuned_ms, compared.best_ms)
    untuned = ratio_interval(compared.default_ms, compared.best_ms)
    t = compared.tuning
    return [
        name,
        f"{network.workloads}",
        f"{network.points}",
        page.number(statistics.median(compared.default_ms)),
        page.number(statistics.median(compared.tuned_ms)),
        page.number(statistics.median(compared.best_ms)),
        f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        f"{untuned.median:.3f} [{untuned.low:.3f}, {untuned.high:.3f}]",
        f"{t.measured + t.stored}",
        f"{best.total_us * 1e-3:.3f}{'' if best.proven else ' (not proven)'}",
    ]


HEAD = [
    *("network", "workloads", "points", "untuned, ms", "tuned, ms", "exhaustive, ms", "tuned / exhaustive [95 %]"),
    *("untuned / exhaustive [95 %]", "times that tuning measured", "total of the exact solution, ms"),
]


def record(key: str, row: list[str], threads: int, page_path: Path) -> None:
    """Put a network's row into the page, in place of its last one."""
    json_path = results.json_beside(page_path)
    old = results.read_sections(json_path).get(key)
    rows = {r[0]: r for r in (old.rows if old is not None and old.head == HEAD else [])} | {row[0]: row}
    text = (
        "What `tune=True` reaches from an empty database, against every point of every space of every distinct workload "
        "(one run for warming, one for its time; then the fastest in full) and the exact solver. Modules were timed in turn."
    )
    notes = [environment.measured()]
    title = f"Exhaustive search: {threads} thread" + ("s" if threads > 1 else "")
    results.record_section(
        key, Section(title, text, HEAD, [rows[name] for name in sorted(rows)], notes), json_path, page_path
    )


def main(words: list[str] | None = None) -> int:
    """Go on measuring; when a network is done, write its row. Returns 3 where there is more to measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exhaustive", description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help="default: " + " ".join(NETWORKS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop measuring after so long")
    parser.add_argument("--count", action="store_true", help="only say how much there is to measure")
    parser.add_argument("--build", help="go on with the times of another build, by its hash (neo db summary)")
    cache = Path(__file__).parent / "models" / "cache"
    parser.add_argument("--cache", type=Path, default=cache, help="exported files, and the databases")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    folder = arguments.cache.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def goes_on() -> bool:
        return time.monotonic() - start < arguments.seconds

    with Database(folder / f"exhaustive-{arguments.threads}.db") as database:
        for entry in find_entries("networks", arguments.networks):
            path, _ = entry.prepare(folder)
            network = Network(path, arguments.threads, database, arguments.build)
            expected = sum(space.seconds for space in network.spaces)
            text = f"{entry.name}: {network.points} points of {network.workloads} workloads"
            console.print(f"{text}, {_hours(expected)} expected", highlight=False)
            if arguments.count:
                continue
            if not _measure(network, entry.name, expected, goes_on, console) or not network.finish(goes_on):
                console.print("stopped; the same command goes on from here")
                return 3
            best = network.best()
            compared = compare(
                path, arguments.threads, best, folder / f"exhaustive-tuned-{entry.name}-{arguments.threads}.db"
            )
            row = row_of(entry.name, network, best, compared)
            record(f"exhaustive-{arguments.threads}", row, arguments.threads, arguments.results)
            told = ", ".join(f"{name} {value}" for name, value in zip(HEAD[3:], row[3:], strict=True))
            console.print(f"{entry.name}: {told}", highlight=False)
    return 0


def _measure(network: Network, name: str, expected: float, goes_on: Callable[[], bool], console: Console) -> bool:
    """Measure with a bar, and an estimate of the time left by how fast it went so far."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # No thread of its own: it would run beside what is measured.
    with Progress(*columns, TextColumn("{task.fields[left]} left"), console=console, auto_refresh=False) as bar:
        task = bar.add_task(name, total=network.points, left="?")
        start = time.monotonic()
        left, made = expected, 0.0

        def advance(points: int, seconds: float, is_new: bool) -> None:
            nonlocal left, made
            left -= seconds
            made += seconds if is_new else 0.0
            pace = (time.monotonic() - start) / made if made > 0 else 1.0
            bar.update(task, advance=points, left=_hours(left * pace), refresh=True)

        return network.measure(goes_on, advance)


def _hours(seconds: float) -> str:
    minutes = math.ceil(max(0.0, seconds) / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


if __name__ == "__main__":
    sys.exit(main())
