"""Executors as a user has them: what is chosen, what is refused, what is saved, shown and stopped."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from neo.cli import main
from neo.executors import Executors, expected_times
from onnx import TensorProto, helper, numpy_helper

Choose = Callable[[_native.Module, int], Executors]

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def arms(count: int = 4, channels: int = 16, size: int = 12, *, length: int = 2) -> onnx.ModelProto:
    """Convolutions in arms that share nothing but their input, and a sum."""
    rng = np.random.default_rng(2)
    nodes, weights, ends = [], [], []
    for arm in range(count):
        x = "x"
        for layer in range(length):
            name = f"a{arm}_{layer}"
            array = rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) * 0.1
            weights.append(numpy_helper.from_array(array, f"w{name}"))
            nodes.append(helper.make_node("Conv", [x, f"w{name}"], [name], name, pads=[1] * 4))
            x = name
        ends.append(x)
    nodes.append(helper.make_node("Sum", ends, ["y"], "sum"))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "arms",
        [value("x", TensorProto.FLOAT, [1, channels, size, size])],
        [value("y", TensorProto.FLOAT, [1, channels, size, size])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def given(module: neo.Module) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(4)
    return {t.name: rng.standard_normal(t.shape).astype(np.float32) for t in module.inputs}


@pytest.mark.parametrize(
    ("executors", "threads", "found"),
    [
        ((2, 3), None, (2, 3)),
        ((2, 3), 6, (2, 3)),
        (2, 4, (2, 2)),
        (3, 4, (3, 1)),
        (1, 3, (1, 3)),
        ([2, 1], None, (2, 1)),
    ],
)
def test_executors_that_are_asked_for(executors: Any, threads: int | None, found: tuple[int, int]) -> None:
    module = neo.compile(arms(), threads=threads, executors=executors)
    assert module.executors == found
    assert module.threads == found[0] * found[1]
    assert module.with_threads(2).executors == (1, 2)


def test_results_are_the_same_bits_for_all_executors() -> None:
    module = neo.compile(arms(), threads=2)
    feeds = given(module)
    right = module.run(feeds)["y"]
    for executors in ((1, 1), (2, 1), (1, 4), (3, 2), (4, 1)):
        other = module.with_executors(*executors)
        for _ in range(5):
            np.testing.assert_array_equal(other.run(feeds)["y"], right)


@pytest.mark.usefixtures("chosen_executors")
def test_a_model_of_tiny_steps_keeps_to_one_thread() -> None:
    assert neo.compile(arms(2, channels=4, size=4), threads=8).executors == (1, 1)
    assert neo.compile(arms(1, channels=64, size=64), threads=8).executors == (1, 8)


@pytest.mark.usefixtures("chosen_executors")
def test_a_batch_that_a_call_tells_keeps_all_threads() -> None:
    model = arms(2, channels=4, size=4)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    assert neo.compile(model, threads=8).executors == (1, 8)
    assert neo.compile(model, threads=8, shapes={"N": 1}).executors == (1, 1)


def test_long_arms_are_expected_to_gain() -> None:
    native = neo.compile(arms(4, channels=64, size=16, length=6), threads=4)._native.with_threads(4)
    expected = {e.executors: e for e in expected_times(native, 4, 4)}
    assert {(1, 1), (1, 4), (2, 2), (4, 1)} <= set(expected)
    for e in expected.values():
        assert e.bound_us <= e.time_us * 1.0001
    assert expected[4, 1].time_us < expected[1, 1].time_us / 2


class Expecting:
    """A module of which estimates expect certain times."""

    def __init__(self, times: dict[Executors, float]) -> None:
        self.times = times

    def expected_makespan(self, executors: int, threads: int, _: int) -> tuple[float, float]:
        return self.times.get((executors, threads), 1e9), 0.0


@pytest.mark.parametrize(
    ("times", "chosen"),
    [
        ({(1, 1): 1000.0, (1, 4): 400.0}, (1, 4)),
        ({(1, 1): 1000.0, (1, 4): 970.0}, (1, 1)),
        ({(1, 1): 5000.0, (1, 4): 2000.0, (2, 2): 1500.0, (4, 1): 1400.0}, (4, 1)),
        ({(1, 1): 5000.0, (1, 4): 2000.0, (2, 2): 1900.0}, (1, 4)),
        ({(1, 1): 50.0, (1, 4): 40.0, (4, 1): 15.0}, (1, 4)),
        ({(1, 1): 50.0, (1, 4): 52.0, (4, 1): 15.0}, (1, 1)),
    ],
)
def test_only_clear_gains_are_taken(times: dict[Executors, float], chosen: Executors, chosen_executors: Choose) -> None:
    native: Any = Expecting(times)
    assert chosen_executors(native, 4) == chosen
    assert chosen_executors(native, 1) == (1, 1)


def test_auto_takes_what_estimates_put_first() -> None:
    module = neo.compile(arms(4, channels=64, size=16, length=6), threads=4, executors="auto")
    best = expected_times(module._native, 4, 4)[0]
    assert module.executors == best.executors


def test_tuning_measures_executors_and_the_database_keeps_them(tmp_path: Path) -> None:
    database = tmp_path / "times.db"
    first = neo.compile(arms(), threads=2, tune=20, database=database)
    again = neo.compile(arms(), threads=2, database=database)
    assert again.executors == first.executors
    assert first.executors in {(1, 1), (1, 2), (2, 1)}


def test_saved_modules_keep_what_was_chosen(tmp_path: Path) -> None:
    module = neo.compile(arms(), executors=(2, 1))
    module.save(tmp_path / "two.neo")
    fits = _native.default_threads() >= 2
    loaded = neo.load(tmp_path / "two.neo")
    assert loaded.executors == ((2, 1) if fits else (1, _native.default_threads()))
    assert neo.load(tmp_path / "two.neo", threads=3).executors == (1, 3)
    feeds = given(module)
    np.testing.assert_array_equal(loaded.run(feeds)["y"], module.run(feeds)["y"])
    # Others than the chosen ones are not a property of the model.
    module.with_executors(4, 1).save(tmp_path / "four.neo")
    assert neo.load(tmp_path / "four.neo").executors == (1, _native.default_threads())


def test_a_trace_has_a_lane_for_each_executor(tmp_path: Path) -> None:
    module = neo.compile(arms(), executors=(2, 1)).with_executors(2, 1)
    profile = module.profile(given(module), repeat=3)
    assert profile.executors == (2, 1)
    assert len(profile.busy) == 2
    assert all(0 <= share <= 1.0001 for share in profile.busy)
    assert profile.data["executors"] == [2, 1]
    for executor in (0, 1):
        steps = sorted((e.start_us, e.end_us) for e in profile.events if e.executor == executor)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(steps))
    for span in profile.spans:
        assert any(e.step == span.step and e.executor == span.thread for e in profile.events)
    profile.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {"executor 0", "executor 1", "thread 0 of executor 0", "thread 1 of executor 1"}
    assert "2 executors of 1 thread, busy" in str(profile)
    profile.html(tmp_path / "page.html")


def test_explain_says_what_the_executors_should_take() -> None:
    module = neo.compile(arms(), threads=2)
    assert "2 executors of 1 thread: " in str(module.with_executors(2, 1).explain())
    assert "no schedule of these steps is below" in str(module.with_executors(2, 1).explain())
    assert "executor" not in str(module.with_threads(2).explain())


def test_the_command_line_times_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "arms.onnx"
    onnx.save(arms(2, channels=4, size=4), path)
    assert main(["bench", str(path), "--threads", "2", "--executors", "all", "--seconds", "0.05"]) == 0
    printed = capsys.readouterr().out
    for name in ("1 x 1", "1 x 2", "2 x 1", "chosen"):
        assert name in printed
    assert main(["bench", str(path), "--executors", "2x1", "--seconds", "0.05"]) == 0
    assert "2 executors of 1 thread" in capsys.readouterr().out
    assert main(["compile", str(path), "--executors", "2", "--threads", "2", "-o", str(tmp_path / "a.neo")]) == 0
    assert main(["bench", str(tmp_path / "a.neo"), "--executors", "auto", "--seconds", "0.05"]) == 0
    assert main(["bench", str(path), "--executors", "2by2"]) == 1
    assert "--executors must be auto, a number, or that and the threads of each" in capsys.readouterr().err


LOOPS = (
    HEAD
    + """loops (float[4] x, int64 trips) => (y) <bool go = {1}> {
  a = Sin (x)
  b = Loop (trips, go, a) <body = one (int64 i, bool more, float[4] p) => (bool more_out, float[4] q) {
    more_out = Identity (more)  q = Cos (p) }>
  c = Loop (trips, go, x) <body = two (int64 i, bool more, float[4] p) => (bool more_out, float[4] q) {
    more_out = Identity (more)  q = Tanh (p) }>
  y = Add (b, c)
}"""
)


def test_calls_on_executors_are_cancelled() -> None:
    module = neo.compile(onnx.parser.parse_model(LOOPS)).with_executors(3, 1)
    future = module.run_async({"x": np.ones(4, np.float32), "trips": np.array(1 << 62, np.int64)})
    while not future.running():
        threading.Event().wait(0.001)
    assert future.cancel()
    with pytest.raises(neo.CancelledError):
        future.result(timeout=60)
    assert np.isfinite(module.run({"x": np.ones(4, np.float32), "trips": np.array(3, np.int64)})["y"]).all()


def test_limits_of_time_end_calls_on_executors() -> None:
    limits = neo.Limits(seconds=1.0)
    module = neo.compile(onnx.parser.parse_model(LOOPS), executors=(3, 1), limits=limits)
    with pytest.raises(neo.TimeLimitError):
        module.run({"x": np.ones(4, np.float32), "trips": np.array(1 << 62, np.int64)})


def test_errors_of_steps_come_out_of_calls_on_executors() -> None:
    text = """gather (float[64] x, int64[2] places) => (y) {
      a = Sin (x)  b = Cos (x)  c = Exp (x)
      d = Add (a, b)
      e = Gather <axis = 0> (c, places)
      f = ReduceSum <keepdims = 0> (d)
      y = Add (e, f)
    }"""
    module = neo.compile(onnx.parser.parse_model(HEAD + text)).with_executors(3, 1)
    x = np.ones(64, np.float32)
    for _ in range(20):
        with pytest.raises(neo.Error):
            module.run({"x": x, "places": np.array([0, 64], np.int64)})
        assert module.run({"x": x, "places": np.array([0, 63], np.int64)})["y"].shape == (2,)


def test_many_calls_at_once_on_executors() -> None:
    module = neo.compile(arms(), threads=2, executors=(2, 1))
    feeds = given(module)
    right = module.run(feeds)["y"]
    futures = [module.run_async(feeds) for _ in range(32)]
    for future in futures:
        np.testing.assert_array_equal(future.result()["y"], right)


def test_variants_have_executors_too() -> None:
    text = """rows (float[n, 8] x) => (y) { a = Sin (x)  b = Cos (x)  y = Add (a, b) }"""
    module = neo.compile(onnx.parser.parse_model(HEAD + text), shapes={"n": [1, 4]}, executors=(2, 1))
    assert {m.executors for m in module.variants} == {(2, 1)}
    assert {m.executors for m in module.with_executors(3, 1).variants} == {(3, 1)}
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(module.run({"x": x})["y"], module.with_executors(3, 1).run({"x": x})["y"])
