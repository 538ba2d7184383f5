"""Measure points of generated workloads: ``python -m benchmarks.cost_model.record``.

Rows are added to the file of this kind of machine after every workload, so that a run may be stopped and another go on.
Those of ``--held-out`` are of other workloads, more points each, and are never trained on.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from neo import _native
from neo.tune.anneal import Point as SpacePoint
from neo.tune.anneal import anneal, pick_batch
from neo.tune.cost_model import CostModel
from neo.tune.old_names import current_candidate, current_routine
from neo.tune.points import PointSpaces

from benchmarks import environment
from benchmarks.cost_model.workloads import Bench, Workload, generate

#: A file per kind of machine.
RECORDS = Path(__file__).parent / "records"
#: Seeds of the generator: held-out workloads that training has too are left out when training.
SEEDS = {False: 1, True: 2}
FIRST, AROUND = 28, 28
#: That the shipped model ranks first among all points: where it promises too much, it must learn so.
PROMISED = 24
HELD_OUT_POINTS = 200
#: Of a benchmark; held-out points take as many as tuning does.
ROUNDS = 4


@dataclass(frozen=True)
class Machine:
    """A kind of machine that was measured: a CPU and the bytes of a core's caches of the first and second level."""

    cpu: str
    caches: tuple[int, int]

    @classmethod
    def here(cls) -> Machine:
        """The one that this runs on."""
        host = _native.machine()
        return cls(environment.cpu_name(), (host["l1d_bytes"], host["l2_bytes"]))

    def file(self, *, held_out: bool) -> Path:
        """Where its times are."""
        name = "-".join(re.findall(r"[a-z]+|\d+", self.cpu.lower().replace("family/model/stepping", "")))
        return RECORDS / ("held_out" if held_out else "training") / f"{name}.csv.gz"


@dataclass(frozen=True)
class Point:
    """One measured time."""

    machine: Machine
    workload: str
    threads: int
    cache_level: str
    routine: str
    candidate: str
    time_us: float
    rounds: int


def read(paths: Iterable[Path]) -> list[Point]:
    """What files hold, by the names that routines and their parameters have now."""
    points = []
    for path in paths:
        with gzip.open(path, "rt", newline="") as file:
            rows = csv.reader(file)
            cpu, l1, l2 = next(rows)
            machine = Machine(cpu, (int(l1), int(l2)))
            for workload, threads, cache_level, routine, candidate, time_us, rounds in rows:
                names = current_routine(routine), current_candidate(candidate)
                points.append(Point(machine, workload, int(threads), cache_level, *names, float(time_us), int(rounds)))
    return points


def files(*, held_out: bool) -> list[Path]:
    """Those of all machines that were measured."""
    return sorted((RECORDS / ("held_out" if held_out else "training")).glob("*.csv.gz"))


def append(path: Path, points: list[Point]) -> None:
    """Add to a machine's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with gzip.open(path, "at", newline="") as file:
        writer = csv.writer(file)
        if is_new and points:
            writer.writerow((points[0].machine.cpu, *points[0].machine.caches))
        for p in points:
            writer.writerow(
                (p.workload, p.threads, p.cache_level, p.routine, p.candidate, f"{p.time_us:.2f}", p.rounds)
            )


def measure(
    bench: Bench, workload: Workload, threads: int, cache_level: str, random: np.random.Generator, *, held_out: bool
) -> Iterator[Point]:
    """Points of all spaces of a workload: of the estimates, at random, around the best, and what the model promises."""
    native = bench.native
    spaces = list(bench.spaces)
    # Half of the points in the blocked layouts, where the time of networks is.
    weights = np.array([2.0 if "nchwc" in bench.spaces[s] or "winograd" in bench.spaces[s] else 1.0 for s in spaces])
    done: dict[int, tuple[int, int]] = {}

    def draw(count: int) -> list[tuple[int, int]]:
        drawn = [spaces[i] for i in random.choice(len(spaces), count, p=weights / weights.sum())]
        return [(s, int(random.integers(native.space_size(s)))) for s in drawn]

    def benchmark(points: list[tuple[int, int]]) -> Iterator[tuple[int, float, int]]:
        indices = []
        for space, point in points:
            (index,) = native.extend(space, [point])
            if index not in done:
                done[index] = (space, point)
                indices.append(index)
        for index, (time_us, rounds, _, _) in zip(
            indices, native.measure(indices, cache_level, None, 9 if held_out else ROUNDS), strict=True
        ):
            if time_us is not None:
                yield index, time_us, rounds

    start = []
    for space in spaces:
        for trial in bench.trials[space]:
            point = native.find(space, native.trial(trial)["candidate"])
            assert point is not None
            start.append((space, point))
    found = list(benchmark([*start, *draw(HELD_OUT_POINTS if held_out else FIRST)]))
    # Good points are where the model must tell them apart; known ones are timed again as a yardstick.
    best = [done[index] for index, _, _ in sorted(found, key=lambda f: f[1])[:6]]
    around = [
        (space, native.mutate(space, [point], int(random.integers(1 << 32)))[0])
        for space, point in (best[int(i)] for i in random.integers(len(best), size=AROUND))
    ]
    found += benchmark(around)
    if not held_out:
        found += benchmark(promised(bench, cache_level, best, random))
    machine = Machine.here()
    for index, time_us, rounds in found:
        routine, candidate = bench.spaces[done[index][0]], native.trial(index)["candidate"]
        yield Point(machine, workload.text, threads, cache_level, routine, candidate, time_us, rounds)


def promised(
    bench: Bench, cache_level: str, best: list[tuple[int, int]], random: np.random.Generator
) -> list[SpacePoint]:
    """The points that the shipped model ranks first."""
    points, model = PointSpaces(bench.native, bench.spaces, cache_level), CostModel()
    starts = [*best, *(points.sample(random) for _ in range(PROMISED))]
    seen = anneal(
        starts,
        lambda moved: model.predict(points.features(moved)),
        lambda moved: points.mutate(moved, random),
        random,
        steps=16,
    )
    return pick_batch(seen, PROMISED, 0.0, lambda: points.sample(random), random, known=best)


def main() -> None:
    """Record for so many seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    path = Machine.here().file(held_out=options.held_out)
    known = {(p.workload, p.threads, p.cache_level) for p in read([path] if path.exists() else [])}
    end = time.monotonic() + options.seconds
    count = 0
    random = np.random.default_rng(len(known) + 1000 * SEEDS[options.held_out])
    for number, workload in enumerate(generate(np.random.default_rng(SEEDS[options.held_out]))):
        # Constants come from memory in large models, from the shared cache in small ones.
        threads = options.threads[number % len(options.threads)]
        cache_level = ("memory", "shared")[number // len(options.threads) % 2]
        if (workload.text, threads, cache_level) in known:
            continue
        bench = workload.bench(threads)
        points = list(measure(bench, workload, threads, cache_level, random, held_out=options.held_out))
        append(path, points)
        count += len(points)
        if time.monotonic() > end:
            break
    print(f"{count} times, {len(read([path]))} in {path.name}")


if __name__ == "__main__":
    main()
