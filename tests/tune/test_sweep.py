"""Many models over many workers."""

import concurrent.futures as cf
import dataclasses
import importlib
import os
import pickle
import signal
import sys
import threading

import neo
import pytest
from neo import _native, demo
from neo.frontend.onnx import read_model
from neo.tune import Context, Database
from neo.tune.worker import Result, Task, close_child, graph_text, measure_task, read_graph

from . import killed

sweep = importlib.import_module("neo.tune.sweep")
worker = importlib.import_module("neo.tune.worker")


@pytest.fixture(autouse=True)
def no_child():
    yield
    close_child()


@pytest.fixture
def models():
    """Two that share nothing, and one of them again."""
    return [killed.model(3), killed.model(4), killed.model(3)]


def task_of(model, **more):
    graph = _native.run_passes(read_model(model)[0])
    problem = _native.build_problem(graph, "cpu", 1)
    bench = _native.make_bench(problem, 1)
    workloads = sorted({t["workload"] for t in bench.trials if t["unmeasurable"] is None})
    return Task(graph_text(graph), tuple(workloads), "cpu", 1, **more), bench


def sent(task):
    """The task as another process sees it."""
    return pickle.loads(pickle.dumps(task))


def keys(database):
    return {(workload, cache_level, row.candidate) for _, workload, cache_level, row in database.rows()}


def test_a_graph_that_was_sent_has_the_trials_of_the_model():
    task, bench = task_of(demo.model_bytes())
    assert len(pickle.dumps(task)) < 20_000, "no weights"
    _, other = read_graph(sent(task).graph, "cpu", 1)
    assert [(t["workload"], t["candidate"], t["weight"]) for t in other.trials] == [
        (t["workload"], t["candidate"], t["weight"]) for t in bench.trials
    ]


@pytest.mark.parametrize("make", [lambda: None, lambda: cf.ThreadPoolExecutor(2), lambda: cf.ProcessPoolExecutor(2)])
def test_every_distinct_workload_is_measured_once_and_compiling_finds_it(make, models, path):
    executor = make()
    try:
        done = neo.tune(models, threads=1, executor=executor, database=path)
    finally:
        if executor is not None:
            executor.shutdown()
    assert (done.models, done.lost, done.out_of_time) == (3, (), False)
    assert done.measured > 0
    assert sum(done.contexts.values()) == done.measured
    with Database(path) as database:
        assert len(keys(database)) == done.measured + done.failed, "none of them twice"
        assert {c for c, _, _ in database.contexts()} == {Context.here("cpu", 1)} == set(done.contexts)
        assert killed.tune(3, database).measured == killed.tune(4, database).measured == 0
    assert neo.compile(models[0], database=path, threads=1).tuning.stored > 0


def test_what_is_stored_is_not_measured_again(models, path):
    neo.tune(models, threads=1, database=path)
    with Database(path) as database:
        before = list(database.rows())
    again = neo.tune(models, threads=1, database=path)
    assert again.stored > 0
    with Database(path) as database:
        assert set(before) <= set(database.rows())


@pytest.mark.parametrize("make", [lambda: None, lambda: cf.ThreadPoolExecutor(2)])
def test_a_number_of_trials_is_for_all_models_together(make, models, path):
    done = neo.tune(models, threads=1, tune=5, executor=make(), database=path)
    assert done.out_of_time
    assert 1 <= done.measured <= 5
    assert "the budget was spent" in str(done)


def test_a_sweep_that_is_cancelled_keeps_what_was_measured(models, path):
    cancel = threading.Event()

    class Cancelling(cf.ThreadPoolExecutor):
        def submit(self, *arguments):
            future = super().submit(*arguments)
            future.add_done_callback(lambda _: done.append(1) or (len(done) == 3 and cancel.set()))
            return future

    done = []
    with Cancelling(1) as executor:
        swept = neo.tune(models, threads=1, executor=executor, database=path, cancel=cancel)
    assert swept.is_cancelled
    assert "(cancelled)" in str(swept)
    with Database(path) as database:
        assert len(keys(database)) == swept.measured + swept.failed > 0


def end_process(_task):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_costs_its_task(models, path, monkeypatch):
    calls = []

    class Deadly(cf.ProcessPoolExecutor):
        def submit(self, function, task):
            calls.append(task)
            return super().submit(end_process if len(calls) == 3 else function, task)

    with Deadly(1) as executor:
        done = neo.tune(models, threads=1, executor=executor, database=path)
    assert any("pool of processes broke" in note for note in done.notes)
    assert done.lost == ()
    with Database(path) as database:
        assert killed.tune(3, database).measured == killed.tune(4, database).measured == 0


def test_a_task_that_fails_is_told_and_the_others_are_done(models, path):
    class Failing(cf.ThreadPoolExecutor):
        def submit(self, function, task):
            if len(task.workloads) == 1 and "Conv" in task.workloads[0] and not lost:
                lost.append(task.workloads[0])
                return super().submit(lambda _: (_ for _ in ()).throw(OSError("the network is down")), task)
            return super().submit(function, task)

    lost = []
    with Failing(1) as executor:
        done = neo.tune(models, threads=1, executor=executor, database=path)
    assert done.lost == ("OSError: the network is down",)
    assert "lost: OSError: the network is down, 1 tasks" in str(done)
    assert done.measured > 0


def test_workers_measure_routines_that_read_weights_as_they_are():
    task, _ = task_of(killed.model(3))
    rows = [row for _, _, found in measure_task(sent(task)).rows for row in found]
    assert [row.failure for row in rows if row.failure] == []
    assert any(row.routine == "cpu:float32/im2col" for row in rows)


def test_a_sweep_says_which_routines_failed_and_why():
    failures = {("cpu:float32/gemm", "ended by signal 11"): 2, ("cpu:float32/im2col", "hung for 60 s"): 1}
    told = str(sweep.Sweep(1, 4, 20, 0, 3, (), 1.0, False, False, failures=failures))
    assert "3 failed" in told
    assert "failed: cpu:float32/gemm, 2 times: ended by signal 11" in told
    assert "failed: cpu:float32/im2col, 1 times: hung for 60 s" in told


CRASHING = """
import os, signal, sys
sys.path[:] = {path!r}
from neo.tune import worker
class Bench:
    def __init__(self, bench): self.bench = bench
    def __getattr__(self, name): return getattr(self.bench, name)
    def measure(self, indices, cache_level, seconds=None):
        if any({bad!r} in self.bench.trial(i)["candidate"] for i in indices):
            {crash}
        return self.bench.measure(indices, cache_level, seconds)
read = worker.read_graph
worker.read_graph = lambda *a: (None, Bench(read(*a)[1]))
worker.serve({descriptor})
"""

# A sanitizer would catch the signal.
CRASH = "signal.signal(signal.SIGSEGV, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.parametrize(
    ("crash", "reason"),
    [(CRASH, "ended by signal 11"), ("import time; time.sleep(60)", "hung for")],
    ids=["crash", "hang"],
)
def test_a_routine_that_ends_its_process_costs_only_itself(monkeypatch, crash, reason):
    task, bench = task_of(killed.model(3))
    bad = next(t["candidate"] for t in bench.trials if t["routine"] == "cpu:float32/direct_nchw")

    def command(descriptor):
        code = CRASHING.format(path=sys.path, bad=bad, crash=crash, descriptor=descriptor)
        return [sys.executable, "-c", code]

    monkeypatch.setattr(worker, "_command", command)
    monkeypatch.setattr(worker, "_SILENT_SECONDS", 0.7)
    result = measure_task(task)
    rows = {row.candidate: row for _, _, found in result.rows for row in found}
    assert reason in rows[bad].failure
    assert len(rows) > 3
    assert all(row.time_us is not None for candidate, row in rows.items() if candidate != bad)


def test_times_of_another_machine_are_its_own(models, path):
    """A worker elsewhere, as far as its context goes."""

    class Elsewhere(cf.ThreadPoolExecutor):
        def submit(self, function, task):
            def there(task):
                result = function(task)
                return dataclasses.replace(result, context=dataclasses.replace(result.context, machine="elsewhere"))

            return super().submit(there, task)

    with Elsewhere(1) as executor:
        done = neo.tune(models, threads=1, executor=executor, database=path)
    assert {c.machine for c in done.contexts} == {"elsewhere"}
    module = neo.compile(models[0], database=path, threads=1)
    assert module.tuning.stored == 0, "a hint is no measurement"
    (node,) = module.explain("conv").nodes
    sources = {o.source for o in node.options}
    assert "hinted" in sources
    assert "measured" not in sources
    assert "elsewhere" in str(module.explain("conv"))
    text = str(module.explain())
    assert "~ an estimate; another machine or build measured the same" in text
    assert "1 measured elsewhere only" in text


def test_arguments_are_checked(path):
    with pytest.raises(neo.DTypeError, match=r"^\[tune\] models must be a list"):
        neo.tune("a.onnx")
    with pytest.raises(neo.DTypeError, match=r"^\[tune\] executor must be"):
        neo.tune([], executor=3)
    with pytest.raises(neo.ModelError, match=r"^\[tune\] tune must allow measuring"):
        neo.tune([], tune=False)
    with pytest.raises(neo.ModelError, match=r"^\[tune\] threads must be"):
        neo.tune([], threads=0)
    done = neo.tune([], database=path)
    assert (done.models, done.measured) == (0, 0)


def test_dask_spreads_a_sweep_over_processes(models, path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        done = neo.tune(models, threads=1, executor=client.get_executor(), database=path)
    assert done.lost == ()
    with Database(path) as database:
        assert killed.tune(3, database).measured == killed.tune(4, database).measured == 0


def test_a_result_is_sent_whole():
    result = Result(Context("m", "k", "t", 1), (), 0, 0, ("note",))
    assert sent(result) == result
