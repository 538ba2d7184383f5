"""Which times are measured, kept and put where the estimates were."""

import math

import pytest
from neo.tune import Budget, Database, tune_problem

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
        def measure(self, indices, residence, seconds=None):
            if self.calls:
                raise KeyboardInterrupt
            return super().measure(indices, residence, seconds)

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
    for residence, expected in (
        ("memory", {"a": "memory", "b": "shared"}),
        ("private", {"a": "private", "b": "private"}),
    ):
        bench = FakeBench(trials, {"a": 1.0, "b": 1.0}, residence)
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
