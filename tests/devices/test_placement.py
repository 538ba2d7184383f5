"""Where nodes go: by the target's name without measured times, by cost with them, never slower than one device alone."""

import importlib
import sqlite3

import neo
import numpy as np
import onnx
import pytest
from neo import _native, demo
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import solve
from neo.tune import Verdict

from .test_devices import in_a_process

choose = importlib.import_module("neo.tune.choose")

NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[4, 32] x) => (float[4, 32] y) <float[32, 32] a, float[32, 32] b> {
  p = MatMul (x, a)
  s = Softmax <axis = 0> (p)
  q = MatMul (s, b)
  y = Sqrt (q)
}
"""


@pytest.fixture(scope="module")
def model():
    made = onnx.parser.parse_model(NETWORK)
    rng = np.random.default_rng(3)
    del made.graph.initializer[:]
    for name in "ab":
        values = rng.random((32, 32)).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made


@pytest.fixture(autouse=True)
def no_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Priced:
    """A problem of a device that need not be there, with times that a test gives."""

    def __init__(self, model, target="mali"):
        graph, _ = read_model(model.SerializeToString())
        self.problem = _native.build_problem(_native.run_passes(graph), target, 1)
        self.bench = _native.make_bench(self.problem, 1)

    def price(self, time_us, is_measured=lambda _: True):
        trials = self.bench.trials
        self.bench.price([time_us(t) for t in trials], [is_measured(t) for t in trials])

    def places(self):
        choice = solve(selection_arrays(self.problem)).choice
        return [
            next(o for o in (node["choices"][i]["outputs"]))[: len("opencl")]
            for node, i in zip(self.problem.nodes, choice, strict=False)
        ]


def at(costs, conversion_us):
    """Microseconds by device and by whether it is a product."""

    def time_us(trial):
        if trial["workload"].startswith("neo.Adapt"):
            return conversion_us
        return costs[trial["device"], "MatMul" in trial["workload"]]

    return time_us


COSTS = {("cpu", True): 1.0, ("cpu", False): 50.0, ("opencl", True): 50.0, ("opencl", False): 1.0}


def test_measured_nodes_go_where_they_are_cheaper(model):
    priced = Priced(model)
    assert set(priced.places()) == {"opencl"}
    priced.price(at(COSTS, 0.1))
    products = ["MatMul" in node["op"] for node in priced.problem.nodes]
    assert [place.startswith("cpu") for place in priced.places()] == products
    assert priced.problem.cpu_penalty_us == 0


def test_copies_are_paid(model):
    priced = Priced(model)
    priced.price(at(COSTS, 1000.0))
    assert len({place[:3] for place in priced.places()}) == 1
    priced.price(at(COSTS | {("opencl", False): 49.0}, 30.0))
    assert {place[:3] for place in priced.places()} == {"cpu"}


def test_without_times_of_both_the_name_of_the_target_decides(model):
    priced = Priced(model)
    priced.price(at(COSTS, 0.1), lambda t: t["device"] == "cpu")
    assert priced.problem.cpu_penalty_us > 0
    assert set(priced.places()) == {"opencl"}


def test_why_a_node_is_where_it_is(model):
    module = neo.compile(model, target="null")
    text = str(module.explain())
    assert "null: the target names it, and not both devices were measured" in text
    assert "two-pass" in text
    assert "\nestimates: plans and prints, computes nothing" in text
    alone = str(neo.compile(model).explain())
    assert "estimates:" not in alone
    assert "where, and why" not in alone
    assert "two-pass" not in alone


def test_what_takes_less_on_the_cpu_is_not_called_slower():
    explanation = neo.compile(demo.model_bytes(), target="mali").explain("separable.depthwise")
    chosen, *others = (line for line in str(explanation).splitlines() if " gpu:" in line or " cpu:" in line)
    assert chosen.startswith("chosen")
    assert any(line.startswith("other ") and "cpu:float32/depthwise_nchwc" in line for line in others)
    assert "the figures of a T860" in str(explanation)


def test_steps_of_devices_are_measured_searched_and_kept(model, tmp_path):
    database = tmp_path / "times.db"
    module = neo.compile(model, target="opencl", tune=24, database=database, threads=1)
    assert module.tuning.measured >= 10
    assert module.tuning.chosen in {"same", "tuned", "default", "cpu", "device"}
    x = np.random.default_rng(0).random((4, 32)).astype(np.float32)
    np.testing.assert_allclose(module(x), neo.compile(model)(x), rtol=1e-4, atol=1e-6)
    assert ": on " in str(module.explain())
    (where,) = {row[0] for row in sqlite3.connect(database).execute("SELECT target FROM contexts")}
    assert _native.device_fingerprint("opencl") in where
    rows = sqlite3.connect(database).execute("SELECT candidate FROM measurements WHERE time_us > 0").fetchall()
    for start in ("gpu:float32/gemm{", "copy:adapt/cpu:", "copy:adapt/opencl:", "cpu:float32/gemm"):
        assert any(candidate.startswith(start) for (candidate,) in rows), start
    again = neo.compile(model, target="opencl", database=database, threads=1)
    assert again.tuning.measured == 0
    assert again.tuning.stored > 0
    assert again.tuning.chosen == module.tuning.chosen


@pytest.mark.slow
def test_spaces_of_devices_are_searched(model, tmp_path):
    database = tmp_path / "times.db"
    settings = {"target": "opencl", "threads": 1, "routines": {"*": "gpu*"}}
    module = neo.compile(model, tune=40, database=database, **settings)
    text = "SELECT count(*) FROM measurements WHERE candidate LIKE 'gpu:float32/gemm{%' AND time_us > 0"
    ((schedules,),) = sqlite3.connect(database).execute(text)
    # A compile without tuning offers one for each of two products. Whose space is searched first hangs on times: another
    # one takes at most half of the trials.
    assert schedules > 2
    assert module.explain().devices.get("cpu", 0) == 0
    x = np.random.default_rng(0).random((4, 32)).astype(np.float32)
    np.testing.assert_allclose(module(x), neo.compile(model)(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("wins", ["tuned", "default", "cpu", "device"])
def test_the_fastest_of_whole_modules_is_kept(model, tmp_path, monkeypatch, wins):
    def compare(default, tuned, inputs, *others):
        assert len(others) == 2
        times = dict.fromkeys(("default", "tuned", "cpu", "device"), 2.0) | {wins: 1.0}
        return Verdict(times["default"], times["tuned"], (times["cpu"], times["device"]))

    def on_one_device(priced, tuned, default):
        return {"cpu": default, "device": tuned}

    monkeypatch.setattr(choose, "compare_modules", compare)
    monkeypatch.setattr(choose, "_on_one_device", on_one_device)
    told = [
        neo.compile(model, target="opencl", tune=1, database=tmp_path / "times.db", threads=1).tuning for _ in range(2)
    ]
    assert [t.chosen for t in told[:1]] == [wins]
    assert told[0].others_us == {"cpu": 2.0, "device": 2.0} | ({wins: 1.0} if wins in ("cpu", "device") else {})
    assert f"{'all on the CPU' if wins == 'cpu' else 'tuned'}" in str(told[0])


def test_the_modules_on_one_device_keep_to_it(model):
    priced = Priced(model)
    priced.price(at(COSTS, 0.1))
    arrays = selection_arrays(priced.problem)
    found = choose._on_one_device(arrays, list(solve(arrays).choice))
    for name, bit in (("cpu", 1), ("device", 2)):
        for places, i in zip(priced.problem.places, found[name], strict=False):
            assert places[i] & bit


def test_tuning_needs_the_device(model, tmp_path):
    with pytest.raises(neo.UnsupportedError, match="must compute to be measured") as caught:
        neo.compile(model, target="null", tune=True, database=tmp_path / "t.db")
    assert "\n" not in str(caught.value)
    code = f"""
import neo
from tests.devices.test_placement import NETWORK
import onnx
model = onnx.parser.parse_model(NETWORK.replace("<float[32, 32] a, float[32, 32] b>", "").replace("MatMul (x, a)", "Relu (x)").replace("MatMul (s, b)", "Relu (s)"))
try:
    neo.compile(model, target="opencl", tune="1s", database={str(tmp_path / "u.db")!r})
except neo.ResourceError as error:
    print(error)
print(neo.compile(model, target="opencl", database={str(tmp_path / "u.db")!r}).target)
"""
    said = in_a_process(code, OCL_ICD_VENDORS=str(tmp_path), OPENCL_VENDOR_PATH=str(tmp_path))
    assert "there must be an OpenCL driver" in said
    assert said.strip().endswith("opencl")
