"""Which times are measured, kept and put where the estimates were."""

import dataclasses
import math

import neo
import pytest
from neo.tune import Budget, Database, Row, tune_problem
from neo.tune.database import Hint
from neo.tune.measure import Group, _with_hints

from .conftest import HERE, FakeBench, trial


def tune(bench, database=None, seconds=math.inf, trials=math.inf):
    budget = None if seconds is None else Budget(seconds, trials)
    return tune_problem(bench, HERE, database, budget=budget, clock=bench.clock)


def test_every_time_is_measured_by_workload_and_put_into_the_problem():
    bench = FakeBench(
        [trial("v", "fast{a=1}", 10), trial("w", "slow{}", 20), trial("v", "fast{a=2}", 12)],
        {"fast{a=1}": 30.0, "fast{a=2}": 11.0, "slow{}": 21.0},
    )
    done = tune(bench)
    assert sorted(c[0] for c in bench.calls) == [["fast{a=1}", "fast{a=2}"], ["slow{}"]]
    assert bench.priced == {"fast{a=1}": (30.0, True), "fast{a=2}": (11.0, True), "slow{}": (21.0, True)}
    assert (done.measured, done.stored, done.estimated) == (3, 0, 0)


def test_what_weighs_most_is_measured_first():
    bench = FakeBench([trial("v", "a", 10), trial("w", "b", 5, weight=9)], {"a": 1.0, "b": 1.0})
    tune(bench)
    assert [c[0] for c in bench.calls] == [["b"], ["a"]]


def test_the_hopeless_are_not_measured_but_scaled_like_their_routine():
    trials = [trial("v", "a{x=1}", 10), trial("v", "a{x=2}", 1000), trial("v", "b", 500)]
    bench = FakeBench(trials, {"a{x=1}": 15.0})
    done = tune(bench)
    assert bench.calls == [(["a{x=1}"], "shared", None)]
    assert bench.priced["a{x=2}"] == (1500.0, False)
    assert bench.priced["b"] == (750.0, False), "no time of its routine: the median of all"
    assert done.estimated == 2


def test_what_has_no_step_is_not_measured():
    bench = FakeBench([trial("v", "view", 0, unmeasurable="it has no step of its own"), trial("w", "a", 4)], {"a": 2.0})
    tune(bench)
    assert [c[0] for c in bench.calls] == [["a"]]
    assert bench.priced["view"] == (0, False)


def test_a_second_time_everything_comes_from_the_database(database):
    trials = [trial("v", "a", 10), trial("v", "b", 12), trial("w", "fails", 1)]
    times = {"a": 5.0, "b": 6.0, "fails": None}
    first = FakeBench(trials, times)
    assert tune(first, database).measured == 2
    second = FakeBench(trials, {})
    done = tune(second, database)
    assert second.calls == []
    assert second.priced == first.priced
    assert (done.measured, done.stored, done.seconds) == (0, 2, 0.0)


def test_only_what_is_missing_is_measured(database):
    trials = [trial("v", "a", 10), trial("v", "b", 12)]
    tune(FakeBench(trials[:1], {"a": 5.0}), database)
    bench = FakeBench(trials, {"b": 6.0})
    tune(bench, database)
    assert bench.calls == [(["b"], "shared", None)]
    assert bench.priced == {"a": (5.0, True), "b": (6.0, True)}


def test_a_run_that_was_interrupted_goes_on_where_it_was(path):
    trials = [trial("v", "a", 10), trial("w", "b", 5)]

    class Interrupted(FakeBench):
        def measure(self, indices, cache_level, seconds=None):
            if self.calls:
                raise KeyboardInterrupt
            return super().measure(indices, cache_level, seconds)

    with pytest.raises(KeyboardInterrupt), Database(path) as database:
        tune(Interrupted(trials, {"a": 5.0}), database)
    bench = FakeBench(trials, {"b": 6.0})
    with Database(path) as database:
        tune(bench, database)
    assert [c[0] for c in bench.calls] == [["b"]]


def test_a_spent_budget_leaves_scaled_estimates_and_keeps_nothing_cut_short(database):
    trials = [trial(w, f"a{{w={w}}}", 100 - i, routine="a") for i, w in enumerate("uvwx")]
    bench = FakeBench(trials, {t["candidate"]: 2.0 * t["estimate_us"] for t in trials})
    done = tune(bench, database, seconds=2.0)
    assert [c[2] for c in bench.calls] == [2.0, 1.0]
    assert done.out_of_time
    assert bench.priced["a{w=v}"] == (198.0, True), "measured, though the time was up by then"
    assert bench.priced["a{w=x}"] == (194.0, False)
    assert [workload for _, workload, _, _ in database.rows()] == ["u"]


def test_a_number_of_trials_is_a_budget(database):
    trials = [trial("u", "a", 100), trial("v", "b", 50), trial("v", "c", 51)]
    bench = FakeBench(trials, {"a": 1.0, "b": 2.0, "c": 3.0})
    done = tune(bench, database, trials=2)
    assert [c[0] for c in bench.calls] == [["a"], ["b"]]
    assert (done.measured, done.out_of_time) == (2, True)
    assert [row.candidate for _, _, _, row in database.rows()] == ["a", "b"], "what was measured is kept"
    assert tune(FakeBench(trials, {"c": 3.0}), database, trials=2).measured == 1


def test_without_measuring_stored_times_are_used_and_nothing_is_written(path):
    trials = [trial("v", "a{x=1}", 10), trial("v", "a{x=2}", 20)]
    with Database(path) as database:
        tune(FakeBench(trials[:1], {"a{x=1}": 30.0}), database)
    before = path.read_bytes()
    bench = FakeBench(trials, {})
    with Database(path, read_only=True) as database:
        done = tune(bench, database, seconds=None)
    assert bench.calls == []
    assert bench.priced == {"a{x=1}": (30.0, True), "a{x=2}": (60.0, False)}
    assert (done.measured, done.stored, done.estimated) == (0, 1, 1)
    assert path.read_bytes() == before


def test_where_nothing_is_known_the_estimates_stay(path):
    bench = FakeBench([trial("v", "a", 10)], {})
    with Database(path, read_only=True) as database:
        tune(bench, database, seconds=None)
    assert bench.priced is None


def test_weights_come_from_memory_only_where_that_takes_time():
    trials = [trial("v", "a", 100, packed_bytes=1 << 20), trial("w", "b", 100, packed_bytes=1 << 10)]
    for cache_level, expected in (
        ("memory", {"a": "memory", "b": "shared"}),
        ("private", {"a": "private", "b": "private"}),
    ):
        bench = FakeBench(trials, {"a": 1.0, "b": 1.0}, cache_level)
        tune(bench)
        assert {c[0][0]: c[1] for c in bench.calls} == expected


def test_candidates_race_together_as_far_as_their_weights_fit():
    trials = [trial("v", f"a{i}", 1e6, packed_bytes=300 << 20) for i in range(3)]
    bench = FakeBench(trials, {"a0": 1.0, "a1": 1.0, "a2": 1.0})
    tune(bench)
    assert [c[0] for c in bench.calls] == [["a0"], ["a1"], ["a2"]]


def test_a_long_run_shows_its_progress_between_measurements(monkeypatch, capsys):
    import rich.console

    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    trials = [trial(w, w, 10) for w in "uvw"]
    tune_problem(
        bench := FakeBench(trials, dict.fromkeys("uvw", 1.0), seconds_each=1.5),
        HERE,
        None,
        budget=Budget(),
        name="net",
        clock=bench.clock,
    )
    shown = capsys.readouterr()
    assert "tuning net" in shown.err
    assert "3/3" in shown.err
    assert shown.out == ""


def test_nothing_is_shown_where_that_is_not_wanted_or_seen(monkeypatch, capsys):
    import rich.console

    for is_terminal, is_shown in ((True, False), (False, True)):
        monkeypatch.setattr(rich.console.Console, "is_terminal", is_terminal)
        bench = FakeBench([trial(w, w, 10) for w in "uvw"], dict.fromkeys("uvw", 1.0), seconds_each=1.5)
        tune_problem(bench, HERE, None, budget=Budget(), is_shown=is_shown, clock=bench.clock)
        assert capsys.readouterr() == ("", "")


class Restless(FakeBench):
    """Every benchmark of `disturbed` spreads by half."""

    disturbed = ()

    def measure(self, indices, cache_level, seconds=None):
        found = super().measure(indices, cache_level, seconds)
        spread = 0.5 if self.trials[indices[0]]["workload"] in self.disturbed else 0.02
        return [(us, rounds, why, spread * us) for us, rounds, why, _ in found]


@pytest.mark.parametrize(("disturbed", "told"), [("", False), ("uv", False), ("uvw", True), ("uvwx", True)])
def test_a_disturbed_machine_is_told(disturbed, told):
    trials = [trial(w, f"{c}{w}", 10) for w in "stuvwx" for c in "ab"]
    bench = Restless(trials, {t["candidate"]: 1.0 for t in trials})
    bench.disturbed = disturbed
    note = tune(bench).note
    assert (f"disturbed in {len(disturbed)} of 6 benchmarks" in note) == told
    assert told or note == ""


def test_one_restless_contender_is_no_disturbance():
    trials = [trial(w, f"{c}{w}", 10) for w in "uvwx" for c in "abc"]

    class OneRestless(FakeBench):
        def measure(self, indices, cache_level, seconds=None):
            found = super().measure(indices, cache_level, seconds)
            return [(us, n, why, 0.5 if k == 0 else 0.0) for k, (us, n, why, _) in enumerate(found)]

    assert tune(OneRestless(trials, {t["candidate"]: 1.0 for t in trials})).note == ""


def test_the_spread_is_kept(database):
    bench = Restless([trial("u", "a", 10)], {"a": 2.0})
    tune(bench, database)
    assert [row.spread_us for _, _, _, row in database.rows()] == [pytest.approx(0.04)]


def test_what_was_fast_elsewhere_is_tried_first_and_is_no_measurement(database):
    elsewhere = dataclasses.replace(HERE, machine="elsewhere")
    trials = [trial("u", c, 10) for c in "abc"]
    times = {"a": 30.0, "b": 20.0, "c": 10.0}
    database.store(elsewhere, "u", "shared", [Row("c", "c", 5.0, 10, 9), Row("b", "b", 7.0, 10, 9)])
    bench = FakeBench(trials, times)
    done = tune(bench, database, trials=1)
    assert [c[0] for c in bench.calls] == [["c"]]
    assert (done.measured, done.stored) == (1, 0)
    assert {key: hint.time_us for key, hint in done.hints.items()} == {("u", "c"): 5.0, ("u", "b"): 7.0}
    bench = FakeBench(trials, times)
    tune(bench, database, seconds=None)
    assert bench.priced == {"a": (10.0, False), "b": (10.0, False), "c": (10.0, True)}


def test_a_hint_for_both_cache_levels_of_a_workload_makes_one_trial():
    class Spaces(FakeBench):
        spaces = ({"workload": "u", "routine": "a"},)

        def trial(self, index):
            return self.trials[index]

        def space_size(self, space):
            return 9

        def find(self, space, candidate):
            return int(candidate.removeprefix("a{x=").removesuffix("}"))

        def extend(self, space, points):
            (candidate,) = [f"a{{x={point}}}" for point in points]
            known = [t["candidate"] for t in self.trials]
            if candidate not in known:
                self.trials.append(trial("u", candidate, 9))
                known.append(candidate)
            return [known.index(candidate)]

    bench = Spaces([trial("u", "a{x=1}", 10), trial("v", "b", 5)], {})
    trials, times = list(bench.trials), [None, None]
    groups = [Group("u", "shared", (0,), 1.0), Group("u", "memory", (0,), 1.0), Group("v", "shared", (1,), 1.0)]
    elsewhere = {"a{x=3}": Hint(4.0, HERE), "a{x=1}": Hint(6.0, HERE)}
    hints = {("u", "shared"): elsewhere, ("u", "memory"): elsewhere}
    found = _with_hints(bench, groups, hints, {}, trials, times, is_searched=True)
    assert [group.indices for group in found] == [(2, 0), (2, 0), (1,)]
    assert [t["candidate"] for t in trials] == ["a{x=1}", "b", "a{x=3}"]
    assert times == [None] * 3


@pytest.mark.parametrize("is_well_again", [False, True])
def test_a_database_that_fails_loses_nothing_that_can_be_kept_later(database, monkeypatch, is_well_again):
    trials = [trial(w, w, 10 - k) for k, w in enumerate("uvw")]
    bench = FakeBench(trials, dict.fromkeys("uvw", 1.0))
    store = database.store
    calls = []

    def failing(*arguments):
        calls.append(arguments[1])
        if len(calls) == 1 or not is_well_again:
            raise neo.ResourceError("[database] the disk is full\nHint: free some")
        store(*arguments)

    monkeypatch.setattr(database, "store", failing)
    done = tune(bench, database)
    assert (done.measured, bench.priced["w"]) == (3, (1.0, True)), "the times are used all the same"
    assert ("3 times could not be kept: [database] the disk is full" in done.note) == (not is_well_again)
    assert len(list(database.rows())) == (3 if is_well_again else 0)
    assert len(calls) == (4 if is_well_again else 2), (
        "a database that waits for a lock is not waited for again and again"
    )


def test_only_the_wanted_workloads_are_measured():
    bench = FakeBench([trial("u", "a", 10), trial("v", "b", 10)], {"b": 10.0})
    tune_problem(bench, HERE, None, budget=Budget(), only=("v",), clock=bench.clock)
    assert [c[0] for c in bench.calls] == [["b"]]
    assert bench.priced == {"a": (10.0, False), "b": (10.0, True)}
