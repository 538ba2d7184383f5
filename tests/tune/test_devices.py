"""What is measured first where there is a device, and what is left alone."""

from neo.tune import Budget, tune_problem

from .conftest import HERE, FakeBench, trial


def on(device, workload, candidate, estimate_us, **more):
    return trial(workload, candidate, estimate_us, **more) | {"device": device}


def tuned(trials, count):
    times = {t["candidate"]: t["estimate_us"] for t in trials}
    bench = FakeBench(trials, times)
    tune_problem(bench, HERE, None, budget=Budget(trials=count, seconds=1e9), is_shown=False)
    return bench


def test_first_the_best_of_each_workload_on_each_device():
    trials = [
        on("cpu", "heavy", "a{1}", 100.0),
        on("cpu", "heavy", "a{2}", 90.0),
        on("opencl", "heavy", "g{1}", 80.0),
        on("opencl", "heavy", "g{2}", 70.0),
        on("cpu", "light", "b{1}", 9.0),
        on("cpu", "light", "b{2}", 8.0),
        on("opencl", "light", "h{1}", 7.0),
    ]
    bench = tuned(trials, 4)
    assert [set(names) for names, _, _ in bench.calls] == [{"a{2}", "g{2}"}, {"b{2}", "h{1}"}]
    bench = tuned(trials, 100)
    assert sum(len(names) for names, _, _ in bench.calls) == 7


def test_estimates_of_two_devices_do_not_compare():
    trials = [on("cpu", "w", "a{1}", 1e4), on("opencl", "w", "g{1}", 1.0), on("opencl", "w", "g{2}", 1e3)]
    bench = tuned(trials, 100)
    assert {name for names, _, _ in bench.calls for name in names} == {"a{1}", "g{1}"}
