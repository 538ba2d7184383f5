"""The search over spaces, on synthetic costs whose minimum is known."""

import dataclasses
import math

import numpy as np
import pytest
from neo.tune import Budget, Database, Row, tune_problem
from neo.tune.features import ROUTINES

from .conftest import HERE, FakeBench, trial

SIZE = 600
ROUTINE = ROUTINES[0]


class SpaceBench(FakeBench):
    """Workloads of one space each, whose points cost what `cost(workload, point)` says; point 0 is the candidate."""

    def __init__(self, costs, *, weights=None, seconds_each=0.01):
        self.costs = costs
        self.workloads = list(costs)
        weights = weights or {}
        trials = [trial(w, self.text(0), 10.0, weight=weights.get(w, 1.0), routine=ROUTINE) for w in self.workloads]
        super().__init__(trials, {}, seconds_each=seconds_each)
        self.offered = set()
        self.index = {(i, 0): i for i in range(len(trials))}
        self.weights = weights

    @staticmethod
    def text(point):
        return f"{ROUTINE}{{p={point}}} a -> b"

    @property
    def spaces(self):
        return [{"workload": w, "routine": ROUTINE, "trials": [i]} for i, w in enumerate(self.workloads)]

    def trial(self, index):
        return self.trials[index]

    def space_size(self, space):
        return SIZE

    def find(self, space, candidate):
        inside = candidate.partition("{p=")[2].partition("}")[0]
        return int(inside) if inside.isdigit() and int(inside) < SIZE else None

    def mutate(self, space, points, seed):
        random = np.random.default_rng(seed)
        return [int(np.clip(p + random.integers(-20, 21), 0, SIZE - 1)) for p in points]

    def features(self, space, points, cache_level):
        """The truth where the model looks for the estimate, all else 0."""
        from neo import _native

        names = _native.loop_feature_names()
        rows = np.zeros((len(points), len(names)), np.float32)
        rows[:, names.index("estimate")] = [math.log2(self.predicted(self.workloads[space], p)) for p in points]
        return rows

    def predicted(self, workload, point):
        return self.costs[workload](point)

    def extend(self, space, points):
        indices = []
        for p in points:
            if (space, p) not in self.index:
                self.index[space, p] = len(self.trials)
                entry = trial(self.workloads[space], self.text(p), 10.0, routine=ROUTINE)
                self.trials.append({**entry, "made": True})
            indices.append(self.index[space, p])
        return indices

    def offer(self, indices):
        self.offered |= set(indices)

    def measure(self, indices, cache_level, seconds=None):
        self.calls.append((list(indices), cache_level, seconds))
        self.now += self.seconds_each * len(indices)
        where = {i: (self.workloads[s], p) for (s, p), i in self.index.items()}
        return [(self.costs[where[i][0]](where[i][1]), 9, "", 0.0) for i in indices]

    def price(self, times_us, measured):
        self.priced = list(times_us)

    def selected(self):
        """Per workload the fastest that the problem has, once."""
        found = []
        for space, _ in enumerate(self.workloads):
            mine = [i for (s, p), i in self.index.items() if s == space and (p == 0 or i in self.offered)]
            found += [min(mine, key=lambda i: self.priced[i])] * int(self.weights.get(self.workloads[space], 1))
        return found

    def best(self, workload):
        space = self.workloads.index(workload)
        known = {p: i for (s, p), i in self.index.items() if s == space}
        return min(self.priced[i] for i in known.values())


class ByEstimate:
    """A model that believes the feature called estimate."""

    note = ""

    def __init__(self):
        from neo.tune.features import feature_names

        self.column = feature_names().index("estimate")
        self.added = []

    def predict(self, rows):
        return -rows[:, self.column]

    def add(self, group, rows, times_us):
        self.added.append((group, len(rows), len(times_us)))
        return False


def tune(bench, database=None, *, seconds=math.inf, trials=math.inf, model=None):
    return tune_problem(
        bench,
        HERE,
        database,
        budget=Budget(seconds, trials),
        selected=bench.selected,
        model=model or ByEstimate(),
        clock=bench.clock,
    )


def valley(bottom, depth=0.4):
    return lambda p: 100 * (1 - depth * math.exp(-(((p - bottom) / 60) ** 2)))


def test_a_good_model_leads_to_the_best_of_the_space_within_few_trials():
    bench = SpaceBench({"v": valley(431)})
    done = tune(bench)
    exhaustive = min(bench.costs["v"](p) for p in range(SIZE))
    assert bench.best("v") <= exhaustive * 1.01
    assert done.measured < SIZE // 4
    assert not done.out_of_time


def test_a_wrong_model_still_improves_and_ends():
    class Wrong(SpaceBench):
        def predicted(self, workload, point):
            return 200 - self.costs[workload](point)

    bench = Wrong({"v": valley(300)})
    done = tune(bench)
    assert bench.best("v") <= bench.costs["v"](0)
    assert done.measured < SIZE // 2


def test_a_flat_space_is_left_after_a_few_batches():
    bench = SpaceBench({"v": lambda p: 100.0})
    assert tune(bench).measured <= 8 * 8


def test_time_goes_first_to_what_weighs_most():
    bench = SpaceBench({"light": valley(300), "heavy": valley(300)}, weights={"heavy": 9.0})
    tune(bench, trials=2 + 16)
    spaces = {i: s for (s, _), i in bench.index.items()}
    searched = [spaces[indices[-1]] for indices, _, _ in bench.calls[2:]]
    assert searched
    assert set(searched) == {1}


def test_what_is_found_is_offered_to_the_problem():
    bench = SpaceBench({"v": valley(431), "w": valley(5)})
    tune(bench)
    assert [bench.priced[i] for i in bench.selected()] == [bench.best("v"), bench.best("w")]


def test_stored_times_offer_no_more_than_the_search_that_stored_them(path):
    # The problem's own candidate is the fastest, so nothing that was found is offered, then or later.
    costs = {"v": lambda p: 10.0 + p}
    with Database(path) as database:
        bench = SpaceBench(costs)
        assert tune(bench, database, trials=9).measured == 9
    with Database(path) as database:
        again = SpaceBench(costs)
        done = tune_problem(again, HERE, database, budget=None, selected=again.selected, clock=again.clock)
    assert done.stored == 9
    assert bench.offered == again.offered == {0}


def test_more_trials_are_never_worse():
    found = []
    for trials in (1, 9, 20, 40, 80, 160):
        bench = SpaceBench({"v": valley(500, 0.6), "w": valley(250)})
        done = tune(bench, trials=trials)
        assert done.measured <= trials
        found.append(sum(bench.priced[i] for i in bench.selected()))
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0] * 0.7


def test_a_run_goes_on_where_another_was_stopped(path):
    whole = SpaceBench({"v": valley(431), "w": valley(100)})
    with Database(path) as database:
        first = tune(SpaceBench(whole.costs), database, trials=20)
    assert first.out_of_time
    with Database(path) as database:
        bench = SpaceBench(whole.costs)
        second = tune(bench, database)
    assert second.stored == first.measured
    assert second.measured > 0
    with Database(path) as database:
        again = SpaceBench(whole.costs)
        third = tune(again, database)
    assert (third.measured, again.calls) == (0, [])
    assert [again.priced[i] for i in again.selected()] == [bench.priced[i] for i in bench.selected()]


def test_a_budget_of_time_ends_the_search():
    bench = SpaceBench({"v": valley(431)}, seconds_each=1.0)
    done = tune(bench, seconds=5.0)
    assert done.out_of_time
    assert bench.now <= 5.0 + 9


def test_a_disturbed_race_is_set_right_by_the_best_so_far():
    class Disturbed(SpaceBench):
        def measure(self, indices, cache_level, seconds=None):
            slow = 1.0 if len(self.calls) == 0 else 3.0
            return [
                (us * slow, n, why, spread) for us, n, why, spread in super().measure(indices, cache_level, seconds)
            ]

    bench = Disturbed({"v": valley(431)})
    tune(bench)
    assert bench.best("v") == pytest.approx(60, rel=0.01)


def test_luck_does_not_add_up():
    class Noisy(SpaceBench):
        random = np.random.default_rng(3)

        def measure(self, indices, cache_level, seconds=None):
            found = super().measure(indices, cache_level, seconds)
            return [(us * math.exp(self.random.normal(0, 0.1)), n, why, spread) for us, n, why, spread in found]

    for depth in (0.0, 0.4):
        costs = {f"v{i}": valley(431, depth) for i in range(10)}
        bench = Noisy(costs)
        tune(bench)
        where = {i: (bench.workloads[s], p) for (s, p), i in bench.index.items()}
        ratios = [bench.priced[i] / costs[where[i][0]](where[i][1]) for i in bench.selected()]
        assert np.mean(ratios) > 0.8


def test_the_model_learns_from_every_batch():
    model = ByEstimate()
    bench = SpaceBench({"v": valley(431)})
    done = tune(bench, model=model)
    assert sum(n for _, n, _ in model.added) == done.measured - 1
    assert {g for g, _, _ in model.added} == {"v shared"}


def test_the_best_points_of_another_machine_are_measured_with_the_candidates(tmp_path):
    elsewhere = dataclasses.replace(HERE, machine="elsewhere")
    with Database(tmp_path / "tuning.db") as database:
        for point, us in ((3, 50.0), (431, 2.0), (7, 40.0)):
            database.store(elsewhere, "v", "shared", [Row(SpaceBench.text(point), ROUTINE, us, 10.0, 9)])
        bench = SpaceBench({"v": valley(431)})
        done = tune(bench, database, trials=3)
        (first, _, _), *_ = bench.calls
        assert {bench.trials[i]["candidate"] for i in first} == {SpaceBench.text(p) for p in (0, 431, 7)}
        assert bench.trials[first[0]]["candidate"] == SpaceBench.text(431), "the fastest there comes first"
        assert done.measured == 3
        assert bench.best("v") == pytest.approx(60)
        kept = {row.candidate for c, _, _, row in database.rows() if c == HERE}
        assert len(kept) == 3
        again = tune(SpaceBench({"v": valley(431)}), database, trials=1)
        assert again.stored == 3
