"""Look for faster points of the spaces of what a module would run, where most is to gain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from neo.tune.anneal import Point, anneal, pick_batch
from neo.tune.cost_model import CostModel
from neo.tune.database import Row
from neo.tune.features import DEVICE_FEATURES
from neo.tune.hints import HintBench
from neo.tune.points import PointsBench, PointSpaces
from neo.tune.timing import Timing

__all__ = ["Search", "SearchBench"]

# Points that are timed at once, beside the best so far; and the share of them that is drawn at random.
_BATCH = 8
# Points that are timed again where the fastest was found by a single benchmark.
_FINALISTS = 3
# Races after the one that found a point that make it sure.
_SURE = 2
_EPSILON = 0.1
# Chains of the annealing from the best points and from random ones, and their steps.
_BEST_STARTS = 8
_RANDOM_STARTS = 24
_STEPS = 16
# The expected gain of a workload from a first batch, and from each that found nothing relative to the one before.
_PRIOR = 0.1
_DECAY = 0.5
# A batch that is expected to make the module faster by less is not worth its time.
_WORTHWHILE = 0.0015
# A routine whose best is slower than the selected one's by more is not searched; one on another device, for whose
# schedules estimates are further off, is given more.
_COMPETES = 1.25
_COMPETES_ELSEWHERE = 2.0


class SearchBench(PointsBench, HintBench, Protocol):
    """What searching needs of ``_native.Bench``."""

    def offer(self, indices: Sequence[int]) -> None:
        """Make trials choices of the problem."""
        ...


class Ranker(Protocol):
    """What searching needs of a cost model."""

    note: str

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def add(self, group: str, rows: NDArray[np.float32], times_us: NDArray[np.float64]) -> bool: ...


class Benchmark(Protocol):
    """Measures trials of one workload.

    The first `known` have a time already, and are there as a yardstick.
    """

    def __call__(self, indices: Sequence[int], cache_level: str, known: int = 0) -> Sequence[Timing]: ...


Store = Callable[[str, str, Sequence[Row]], None]


@dataclass
class _Subject:
    """A workload under search, on the CPU or on a device: what is learned of the one says nothing of the other."""

    workload: str
    cache_level: str
    on_device: bool = False
    known: dict[Point, float | None] = field(default_factory=dict)
    trial: dict[Point, int] = field(default_factory=dict)
    # For each point, the number of benchmarks that it was in after the one that found it. The least of many times was lucky; the benchmarks
    # after it tell.
    confirmed: dict[Point, int] = field(default_factory=dict)
    # The problem's own candidates.
    declared: set[Point] = field(default_factory=set)
    predicted: dict[Point, float] = field(default_factory=dict)
    spaces: tuple[int, ...] = ()
    gain: float = _PRIOR
    is_spent: bool = False

    def best(self, spaces: Sequence[int] | None = None) -> tuple[Point, float] | None:
        """The fastest point known, and its time."""
        timed = [(us, p) for p, us in self.known.items() if us is not None and (spaces is None or p[0] in spaces)]
        if not timed:
            return None
        us, point = min(timed)
        return point, us

    def anchor(self) -> tuple[Point, float] | None:
        """The fastest of the problem's own candidates, beside which all others run, and its time."""
        timed = [(us, p) for p in self.declared if (us := self.known[p]) is not None]
        if not timed:
            return self.best()
        us, point = min(timed)
        return point, us

    def unconfirmed(self, count: int) -> list[Point]:
        """The fastest points of the spaces that are not sure, at most so many; none where the first one is sure."""
        anchor = self.anchor()
        timed = sorted((us, p) for p, us in self.known.items() if us is not None and p[0] in self.spaces)
        sure = {*self.declared, *([anchor[0]] if anchor else [])}
        found = [p for _, p in timed if p not in sure and self.confirmed.get(p, 0) < _SURE]
        return found[:count] if timed and timed[0][1] in found else []

    def confirm(self, point: Point, time_us: float) -> None:
        """Another time of a point: the one that found it no longer counts, the mean of the others does."""
        count = self.confirmed.get(point, 0)
        self.known[point] = ((self.known[point] or 0.0) * count + time_us) / (count + 1) if count else time_us
        self.confirmed[point] = count + 1


class Search:
    """The spaces of a bench, and what is known of their points.

    Parameters
    ----------
    bench : SearchBench
        Its spaces are searched.
    cache_levels : mapping of str to str
        Of every workload that is measured: where its constants lie.
    model : Ranker
        Predicts and learns for the CPU; the one for a device knows its estimates only.
    random : Generator
        Everything that is drawn.
    """

    def __init__(
        self, bench: SearchBench, cache_levels: Mapping[str, str], model: Ranker, random: np.random.Generator
    ) -> None:
        self._bench = bench
        self._models = {False: model, True: CostModel(names=DEVICE_FEATURES)}
        self._random = random
        self._routines: dict[int, str] = {}
        self._subjects: dict[tuple[str, bool], _Subject] = {}
        self._trials: dict[int, list[int]] = {}
        self._spaces: dict[tuple[str, bool], list[int]] = {}
        for i, space in enumerate(bench.spaces):
            workload = space["workload"]
            if workload not in cache_levels:
                continue
            key = (workload, space.get("device", "cpu") != "cpu")
            self._routines[i] = space["routine"]
            self._trials[i] = list(space["trials"])
            self._spaces.setdefault(key, []).append(i)
            self._subjects.setdefault(key, _Subject(workload, cache_levels[workload], key[1]))
        self.measured = 0

    @property
    def note(self) -> str:
        """What the cost model could not do."""
        return self._models[False].note if self.measured else ""

    def take_stored(self, rows: Mapping[tuple[str, str], Mapping[str, Row]], times: list[float | None]) -> int:
        """Make trials of the stored points that no trial is; how many have a time. Their times are appended."""
        count = 0
        for key, subject in self._subjects.items():
            trials = {self._bench.trial(t)["candidate"] for i in self._spaces[key] for t in self._trials[i]}
            for text, row in rows.get((subject.workload, subject.cache_level), {}).items():
                if text in trials:
                    continue
                for space in self._spaces[key]:
                    if self._routines[space] != row.routine:
                        continue
                    point = self._bench.find(space, text)
                    if point is not None:
                        self._know(subject, (space, point), row.time_us, times)
                        subject.confirmed[space, point] = _SURE
                        count += row.time_us is not None
        for subject in self._subjects.values():
            # As though none of them had found anything: a run that was stopped goes on where it was.
            subject.gain = _PRIOR * _DECAY ** (len(subject.known) / _BATCH)
        return count

    def _know(self, subject: _Subject, point: Point, time_us: float | None, times: list[float | None]) -> int:
        """Give a point a trial and its time."""
        (index,) = self._bench.extend(point[0], [point[1]])
        times += [None] * (index + 1 - len(times))
        times[index] = time_us
        subject.known[point] = time_us
        subject.trial[point] = index
        return index

    def run(
        self,
        selected: Callable[[], Sequence[int]],
        benchmark: Benchmark,
        store: Store,
        times: list[float | None],
        *,
        go_on: Callable[[], bool],
        most: Callable[[], float],
    ) -> bool:
        """Measure until nothing is worth a batch; False where `go_on` ended it.

        Parameters
        ----------
        selected : callable
            The trials that the module would run by the times so far, one per use.
        benchmark, store : callable
            Measures trials; keeps what they took.
        times : list
            Of every trial, extended by those that are made.
        go_on : callable
            Whether there is time left.
        most : callable
            How many trials may still be measured.
        """
        worked = True
        while worked:
            worked = False
            uses = Counter(i for i in selected() if i < len(times) and times[i] is not None)
            total = sum((times[i] or 0.0) * n for i, n in uses.items())
            subjects = []
            for index, n in uses.items():
                entry = self._bench.trial(index)
                for on_device in (False, True):
                    subject = self._subjects.get((entry["workload"], on_device))
                    if subject is None:
                        continue
                    is_here = on_device == (entry.get("device", "cpu") != "cpu")
                    self._begin(subject, times, index, _COMPETES if is_here else _COMPETES_ELSEWHERE)
                    if subject.spaces:
                        subjects.append((subject, n))
            while total > 0:
                left = [(self._worth(s, n) / total, k) for k, (s, n) in enumerate(subjects) if not s.is_spent]
                if not left or max(left)[0] < _WORTHWHILE:
                    break
                if not go_on() or most() < 1:
                    return False
                self._batch(subjects[max(left)[1]][0], benchmark, store, times, int(min(_BATCH, most())))
                worked = True
            for subject, _ in subjects:
                while points := subject.unconfirmed(_FINALISTS):
                    if not go_on():
                        return False
                    self._benchmark(subject, points, [], benchmark, store, times)
                    worked = True
        return True

    def _worth(self, subject: _Subject, uses: int) -> float:
        best = subject.best(subject.spaces)
        return 0.0 if best is None else subject.gain * best[1] * uses

    def _begin(self, subject: _Subject, times: Sequence[float | None], selected: int, competes: float) -> None:
        """Take what is known of the workload's candidates, and decide which routines compete with the selected one."""
        limit = times[selected]
        assert limit is not None
        spaces = []
        for space in self._spaces[subject.workload, subject.on_device]:
            known = [t for t in self._trials[space] if times[t] is not None]
            own = [times[t] for t in known] + [us for p, us in subject.known.items() if p[0] == space]
            if min((us for us in own if us is not None), default=math.inf) > limit * competes:
                continue
            if self._bench.space_size(space) < 2:
                continue
            for t in known:
                point = self._bench.find(space, self._bench.trial(t)["candidate"])
                if point is not None:
                    subject.known[space, point] = times[t]
                    subject.trial[space, point] = t
                    subject.declared.add((space, point))
            spaces.append(space)
        if tuple(spaces) != subject.spaces:
            subject.spaces = tuple(spaces)
            subject.predicted.clear()

    def _batch(
        self, subject: _Subject, benchmark: Benchmark, store: Store, times: list[float | None], count: int
    ) -> None:
        """Measure the points that promise most, beside the best so far."""
        best = subject.best(subject.spaces)
        assert best is not None
        if not subject.predicted:
            points, model = self._points(subject), self._models[subject.on_device]
            subject.predicted = anneal(
                self._starts(subject),
                lambda moved: model.predict(points.features(moved)),
                lambda moved: points.mutate(moved, self._random),
                self._random,
                steps=_STEPS,
            )
        picked = pick_batch(
            subject.predicted,
            count,
            _EPSILON,
            lambda: self._sample(subject),
            self._random,
            known=subject.known,
        )
        if not picked:
            subject.is_spent = True
            return
        again = [] if best[0] in subject.declared else [best[0]]
        self._benchmark(subject, again, picked, benchmark, store, times)
        self.measured += len(picked)
        now = subject.best(subject.spaces)
        assert now is not None
        subject.gain = max(1 - now[1] / best[1], subject.gain * _DECAY)
        self._learn(subject, picked)

    def _benchmark(
        self,
        subject: _Subject,
        known: Sequence[Point],
        found: Sequence[Point],
        benchmark: Benchmark,
        store: Store,
        times: list[float | None],
    ) -> None:
        """Measure known points again and others for the first time, all in proportion to the anchor.

        It is the same one in every benchmark: were it the best so far, whose time was lucky, each benchmark would begin where the
        last one's luck ended.
        """
        anchor = subject.anchor()
        assert anchor is not None
        known = [p for p in known if p != anchor[0]]
        indices = [self._bench.extend(space, [point])[0] for space, point in found]
        beside = [subject.trial[p] for p in (anchor[0], *known)]
        results = benchmark([*beside, *indices], subject.cache_level, len(beside))
        # Noise on the machine disturbed the anchor as well.
        scale = anchor[1] / results[0].time_us if results[0].time_us else 1.0
        rows = []
        for point, timing in zip([*known, *found], results[1:], strict=True):
            scaled = None if timing.time_us is None else timing.time_us * scale
            if point not in subject.known:
                self._know(subject, point, scaled, times)
            elif scaled is not None:
                subject.confirm(point, scaled)
            else:
                subject.confirmed[point] = _SURE
            time_us = times[subject.trial[point]] = subject.known[point]
            entry = self._bench.trial(subject.trial[point])
            told = (time_us, entry["estimate_us"], timing.rounds, timing.failure)
            rows.append(Row(entry["candidate"], entry["routine"], *told, timing.spread_us * scale))
        store(subject.workload, subject.cache_level, rows)

    def _learn(self, subject: _Subject, points: Sequence[Point]) -> None:
        timed = [p for p in points if subject.known[p] is not None]
        if not timed:
            return
        rows = self._points(subject).features(timed)
        changed = self._models[subject.on_device].add(
            f"{subject.workload} {subject.cache_level}", rows, np.array([subject.known[p] for p in timed], np.float64)
        )
        if changed:
            for other in self._subjects.values():
                if other.on_device == subject.on_device:
                    other.predicted.clear()

    def _points(self, subject: _Subject) -> PointSpaces:
        routines = {space: self._routines[space] for space in self._spaces[subject.workload, subject.on_device]}
        return PointSpaces(self._bench, routines, subject.cache_level, on_device=subject.on_device)

    def _sample(self, subject: _Subject) -> Point:
        routines = {space: self._routines[space] for space in subject.spaces}
        return PointSpaces(self._bench, routines, subject.cache_level).sample(self._random)

    def _starts(self, subject: _Subject) -> list[Point]:
        timed = sorted((us, p) for p, us in subject.known.items() if us is not None and p[0] in subject.spaces)
        return [p for _, p in timed[:_BEST_STARTS]] + [self._sample(subject) for _ in range(_RANDOM_STARTS)]

    def offer(self, times: Sequence[float | None]) -> None:
        """Make the fastest point of every space a choice of the problem: of each that differ in error, one."""
        # Those that the problem has are among them whether they were searched around or not: stored times give the same.
        known = [(space, t) for space, listed in self._trials.items() for t in listed]
        known += [(space, t) for s in self._subjects.values() for (space, _), t in s.trial.items()]
        best: dict[tuple[int, float], int] = {}
        for space, index in known:
            if times[index] is None:
                continue
            slot = (space, self._bench.trial(index)["error"])
            other = best.get(slot)
            if other is None or times[index] < times[other]:  # type: ignore[operator]
                best[slot] = index
        self._bench.offer(sorted(best.values()))
