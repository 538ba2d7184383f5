"""Times in the running plan, in place of those of steps alone."""

import importlib
import sqlite3

import neo
import pytest
from neo.tune import Budget, Database, tune_problem
from neo.tune.end_to_end import Settling, end_to_end_times, plan_key

from .conftest import HERE, FakeBench, trial

end_to_end = importlib.import_module("neo.tune.end_to_end")
SCHEMAS = " cpu:float32:NCHW -> cpu:float32:NCHW"


class PlanBench(FakeBench):
    """Each workload is a node whose choices are its trials, in their order."""

    def __init__(self, trials, times):
        super().__init__(trials, times)
        self.nodes = list(dict.fromkeys(t["workload"] for t in trials))
        self.offered = set()
        for t in trials:
            mine = [u["candidate"] for u in trials if u["workload"] == t["workload"]]
            t["uses"] = [(self.nodes.index(t["workload"]), mine.index(t["candidate"]))]

    def of(self, node):
        return [i for i, t in enumerate(self.trials) if t["workload"] == self.nodes[node]]

    def chosen(self, choices):
        return [self.of(v)[c] for v, c in enumerate(choices)]

    def offer(self, indices):
        self.offered.update(indices)


class FakePlans:
    """Chooses what the bench was last told is fastest; `end_to_end` says what a trial takes there (None: has no step)."""

    def __init__(self, bench, end_to_end):
        self.bench = bench
        self.end_to_end = end_to_end
        self.profiled = []

    def choice(self):
        priced = self.bench.priced
        costs = [[priced[self.bench.trials[i]["candidate"]][0] for i in self.bench.of(v)] for v in range(self.nodes)]
        return [min(range(len(c)), key=c.__getitem__) for c in costs]

    @property
    def nodes(self):
        return len(self.bench.nodes)

    def is_feasible(self, choice):
        return True

    def profile(self, choices, rounds, seconds):
        self.profiled.append([list(c) for c in choices])
        names = [{i: self.bench.trials[i]["candidate"] for i in self.bench.chosen(c)} for c in choices]
        return [
            {i: (self.end_to_end[n], 5) for i, n in told.items() if self.end_to_end[n] is not None} for told in names
        ]


def bench_of(times):
    """Trials named by workload, routine and schedule: "v fast{a=1}"."""
    trials = [trial(name.split(" ")[0], name.split(" ", 1)[1] + SCHEMAS, 1.0) for name in times]
    return PlanBench(trials, {t["candidate"]: us for t, us in zip(trials, times.values(), strict=True)})


def tune(bench, plans, database=None, budget=Budget()):  # noqa: B008
    return tune_problem(bench, HERE, database, budget=budget, plans=plans, clock=bench.clock, is_shown=False)


def named(times):
    return {name + SCHEMAS: us for name, us in times.items()}


def test_times_alone_are_put_in_proportion():
    trials = [trial("v", "a", 1.0, weight=3), trial("v", "b", 1.0), trial("w", "c", 1.0), trial("w", "d", 1.0)]
    assert end_to_end_times(trials, [10.0, 20.0, 30.0, None], {0: 11.0}) == pytest.approx([11.0, 22.0, 33.0, None])
    # Each workload has a ratio of its own; one that never ran in the plan has that of all.
    trials.append(trial("x", "e", 1.0))
    found = end_to_end_times(trials, [10.0, 20.0, 30.0, 40.0, 50.0], {0: 20.0, 2: 30.0})
    assert found == pytest.approx([20.0, 40.0, 30.0, 40.0, 50.0 * (3 * 20 + 30) / (3 * 10 + 30)])


def test_proportions_do_not_depend_on_the_order_of_trials():
    trials = [trial(f"v{i}", "a", 1.0, weight=3) for i in range(40)] + [trial("w", "b", 1.0)]
    times = [0.1 + i / 7 for i in range(41)]
    found = {i: times[i] * (1 + i / 31) for i in range(40)}
    last = len(trials) - 1
    turned = end_to_end_times(trials[::-1], times[::-1], {last - i: us for i, us in reversed(found.items())})
    assert turned[::-1] == end_to_end_times(trials, times, found)


def test_the_time_alone_tells_between_equal_ones_of_a_plan():
    trials = [trial("v", "a", 1.0), trial("v", "b", 1.0), trial("v", "c", 1.0)]
    a, b, c = end_to_end_times(trials, [10.0, 9.0, 8.0], {0: 11.0, 1: 11.0, 2: 11.001})
    assert b < a < c


def test_what_is_faster_between_its_neighbours_wins():
    bench = bench_of({"v a{x=1 y=2}": 10.0, "v b{x=1}": 10.2, "v c": 12.0, "w d": 5.0})
    plans = FakePlans(bench, named({"a{x=1 y=2}": 14.0, "b{x=1}": 11.0, "c": 12.0, "d": 6.0}))
    tune(bench, plans)
    assert plans.choice() == [1, 0]
    # The first selection, and beside it one with what is nearly as fast; nothing that is further behind.
    assert plans.profiled[0] == [[0, 0], [1, 0]]
    assert bench.offered == {1}
    assert bench.priced["b{x=1}" + SCHEMAS] == (pytest.approx(11.0), True)
    assert bench.priced["d" + SCHEMAS] == (pytest.approx(6.0), True)
    assert bench.priced["c" + SCHEMAS][0] == pytest.approx(12.0 * (1.4 + 11 / 10.2) / 2)


def test_a_selection_that_new_times_lead_to_is_profiled_too():
    # By the ratio of the others, b would be faster than a.
    bench = bench_of({"v a": 10.0, "v b": 11.0})
    bench.trials[1]["candidate"] = "b cpu:float32:NCHW -> cpu:float32:NCHW16c"
    bench.times = {t["candidate"]: us for t, us in zip(bench.trials, (10.0, 11.0), strict=True)}
    times = {bench.trials[0]["candidate"]: 20.0, bench.trials[1]["candidate"]: 30.0}
    plans = FakePlans(bench, times)
    found = {}

    def price():
        bench.price([found.get(i, 10.0 + i) for i in range(2)], [True, True])

    stored = []
    Settling(bench, plans, [10.0, 11.0], found).run(price, lambda w, rows: stored.append((w, rows)), lambda: True)
    assert [p for p in plans.profiled if p == [[1]]]
    assert found == {0: 20.0, 1: 30.0}
    assert plans.choice() == [0]
    assert {r.candidate: r.time_us for _, rows in stored for r in rows} == times


def test_a_plan_that_is_suspiciously_slow_runs_again_and_the_least_time_counts():
    class Disturbed(FakePlans):
        def profile(self, choices, rounds, seconds):
            found = super().profile(choices, rounds, seconds)
            factor = 2.0 if len(self.profiled) == 1 else 1.0
            return [{i: (us * factor, calls) for i, (us, calls) in p.items()} for p in found]

    bench = bench_of({"v a": 10.0, "w d": 5.0})
    plans = Disturbed(bench, named({"a": 10.5, "d": 5.0}))
    tune(bench, plans)
    assert len(plans.profiled) == 2
    assert bench.priced["a" + SCHEMAS] == (pytest.approx(10.5), True)


def test_what_was_profiled_is_stored_and_not_profiled_again(path):
    times = {"v a": 10.0, "v b": 10.2, "w d": 5.0, "w e": 9.0}
    end_to_end_us = named({"a": 14.0, "b": 11.0, "d": None, "e": 9.0})
    with Database(path) as database:
        first = bench_of(times)
        tune(first, FakePlans(first, end_to_end_us), database)
        rows = {
            row.candidate: row for _, _, cache_level, row in database.rows() if cache_level == plan_key(first.trials)
        }
        assert {c: row.time_us for c, row in rows.items()} == named({"a": 14.0, "b": 11.0, "d": None})
        assert rows["d" + SCHEMAS].failure == "it has no time in the plan"
        again = bench_of(times)
        plans = FakePlans(again, end_to_end_us)
        done = tune(again, plans, database)
    assert plans.profiled == []
    assert done.measured == 0
    assert again.priced == first.priced
    assert again.offered == {0, 1, 2}


def test_without_time_nothing_is_profiled_and_what_is_stored_counts(path):
    times = {"v a": 10.0, "v b": 10.2}
    with Database(path) as database:
        first = bench_of(times)
        tune(first, FakePlans(first, named({"a": 14.0, "b": 11.0})), database)
        read = bench_of(times)
        plans = FakePlans(read, {})
        tune(read, plans, database, budget=None)
    assert plans.profiled == []
    assert read.priced == first.priced


def test_where_the_module_cannot_be_called_times_alone_stand_and_the_note_says_why():
    class Uncallable(FakePlans):
        def profile(self, choices, rounds, seconds):
            raise neo.UnsupportedError("[tune] an input must be a tensor of numbers")

    bench = bench_of({"v a": 10.0, "w d": 5.0})
    done = tune(bench, Uncallable(bench, {}))
    assert bench.priced["a" + SCHEMAS] == (10.0, True)
    assert "the module was not profiled: [tune] an input must be a tensor of numbers" in str(done)


def test_the_steps_of_a_real_module_are_profiled(model, path, monkeypatch):
    seen = []
    original = end_to_end.ModulePlans.profile

    def profile(self, choices, rounds, seconds):
        found = original(self, choices, rounds, seconds)
        seen.append((self._bench, choices, found))
        return found

    monkeypatch.setattr(end_to_end.ModulePlans, "profile", profile)
    module = neo.compile(model, tune=True, database=path, threads=1)
    bench, choices, found = seen[0]
    for choice, profile in zip(choices, found, strict=True):
        measurable = {i for i in bench.chosen(choice) if bench.trial(i)["unmeasurable"] is None}
        assert measurable <= set(profile)
        assert all(us > 0 and calls >= 3 for us, calls in profile.values())
    adapts = [s for s in module.steps if s.op == "neo.Adapt"]
    names = {bench.trial(i)["candidate"] for _, _, profiles in seen for p in profiles for i in p}
    if module.tuning.chosen != "default":
        assert {s.routine for s in adapts} <= names
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM measurements WHERE cache_level LIKE 'plan %'").fetchone()
    connection.close()
    assert count > 0
    # The total is the sum of what steps took in the plan.
    again = neo.compile(model, tune=True, database=path, threads=1)
    assert len(seen) == len([s for s in seen if s[0] is bench])
    assert again._native.estimate_us == module._native.estimate_us
