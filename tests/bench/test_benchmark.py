"""Engines beside each other: what they compute is compared, failures are told, nothing is run on the same arrays twice."""

import sys

import numpy as np
import onnx
import pytest
from neo.bench import ENGINES, Benchmark, Engine, Job, measure
from neo.bench.benchmark import difference
from neo.bench.worker import VARIANTS, vary
from onnx import TensorProto, helper, numpy_helper

ADAPTER = """
import numpy as np

seen = []

def version():
    return "echo 1"

def load(task):
    assert task.outputs == ["y"]
    def run(feeds):
        seen.append(float(feeds["x"][0]))
        assert len(seen) < 2 or seen[-1] != seen[-2] or len(seen) < 4
        return [np.maximum(feeds["x"], 0) * {scale}]
    return (lambda feeds: feeds), run
"""


@pytest.fixture
def job(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    inputs = {"x": np.array([-1, 2, -3, 4], np.float32)}
    return Job("m", tmp_path / "m.onnx", inputs, 1, tmp_path, rounds=3, slice_s=0.01)


@pytest.fixture
def echo(tmp_path):
    def make(scale):
        path = tmp_path / f"echo{scale}.py"
        path.write_text(ADAPTER.format(scale=scale))
        return Engine(path)

    return make


def test_each_engine_is_measured_in_every_round(job, echo):
    said = []
    found = measure({"neo": ENGINES["neo"], "echo": echo(1)}, job, reference="neo", progress=said.append)
    for item in found.values():
        assert item.error is None
        assert len(item.rounds_ms) == 3
        assert item.difference == 0
        assert item.first_answer_ms > item.load_ms > 0
        assert item.best_ms <= item.median_ms
    assert said == ["neo loads", "echo loads", "round 1 of 3", "round 2 of 3", "round 3 of 3"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_counts_from_the_import_of_the_engine(job, tmp_path):
    path = tmp_path / "greedy.py"
    kept = "np.ones(8 << 20, np.float32)"
    path.write_text(ADAPTER.format(scale=1).replace("assert task", f"seen.clear(); kept = {kept}; assert task"))
    big = path.read_text().replace('return "echo 1"', f'{kept}; return "greedy"')
    path.write_text(big)
    peak = measure({"greedy": Engine(path)}, job)["greedy"].peak_bytes
    # The system counts pages in batches, so a little may be missing.
    assert 31 << 20 <= peak < 48 << 20


def test_an_engine_that_computes_something_else_is_out(job, echo):
    found = measure({"neo": ENGINES["neo"], "echo": echo(2)}, job, reference="neo")
    assert found["echo"].error == "outputs differ from neo's: off by 1"
    assert found["echo"].median_ms is None
    assert found["neo"].median_ms is not None


@pytest.mark.parametrize(
    ("outer", "near", "far", "worst"),
    [
        # The output is a function of codes: 10 % of root mean square.
        ("Relu", 1.05, 1.2, 0.2),
        # It is codes: one is 1.0, and 4 becomes 4.8, then 6.
        ("DequantizeLinear", 1.2, 1.5, 0.2236),
    ],
)
def test_a_model_with_codes_may_differ_by_codes(job, echo, outer, near, far, worst):
    inner = ["r", "c", "y"] if outer == "DequantizeLinear" else ["x", "c", "d"]
    nodes = [
        helper.make_node("QuantizeLinear", [inner[0], "s"], [inner[1]]),
        helper.make_node("DequantizeLinear", [inner[1], "s"], [inner[2]]),
    ]
    relu = helper.make_node("Relu", ["x"], ["r"]) if inner[0] == "r" else helper.make_node("Relu", ["d"], ["y"])
    graph = helper.make_graph(
        [relu, *nodes] if inner[0] == "r" else [*nodes, relu],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.array(1.0, np.float32), "s")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), job.path)
    found = measure({"neo": ENGINES["neo"], "near": echo(near), "far": echo(far)}, job, reference="neo")
    assert found["near"].error is None
    assert found["far"].difference == pytest.approx(worst, rel=1e-3)
    assert found["far"].error == f"outputs differ from neo's: off by {worst:.2g}"


def test_codes_are_compared_by_their_root_mean_square():
    expected = [np.array([3, 0, 4, 0], np.float32)]
    assert difference([expected[0] + [0, 0, 0, 1]], expected) == pytest.approx(0.25)
    assert difference([expected[0] + [0, 0, 0, 1]], expected, steps=[0.0]) == pytest.approx(0.2)
    assert difference([expected[0] + [0, 0, 0, 1]], expected, steps=[1.0]) == 0
    codes = [expected[0].astype(np.uint8)]
    assert difference([codes[0] + np.uint8(3)], codes) == 0
    assert difference([codes[0] + np.uint8(3)], codes, steps=[1.0]) == pytest.approx(0.8, rel=1e-3)


def test_an_engine_that_answers_from_memory_is_out(job, tmp_path):
    stale = ADAPTER.format(scale=1).replace("return [np.maximum(feeds", "feeds = task.inputs; return [np.maximum(feeds")
    (tmp_path / "stale.py").write_text(stale)
    engines = {"neo": ENGINES["neo"], "stale": Engine(tmp_path / "stale.py")}
    assert measure(engines, job, reference="neo")["stale"].error == "other inputs give the same outputs"


def test_an_engine_that_is_missing_dies_or_is_silent_says_so(job, tmp_path):
    engines = {}
    for name, text in {
        "missing": "def version():\n    import no_such_engine\n",
        "dead": "import os\ndef version():\n    os.abort()\n",
        "silent": "import time\ndef version():\n    time.sleep(60)\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        engines[name] = Engine(tmp_path / f"{name}.py")
    impatient = Job("m", job.path, job.inputs, 1, tmp_path, rounds=1, slice_s=0.01, timeout_s=5)
    errors = {name: item.error for name, item in measure(engines, impatient).items()}
    assert errors["missing"] == "ModuleNotFoundError: No module named 'no_such_engine'"
    assert errors["dead"].startswith("died of SIGABRT")
    assert errors["silent"] == "no answer to 'version' within 5 s"


def test_threads_that_burn_when_nothing_runs_are_seen(job, tmp_path):
    quiet = ADAPTER.format(scale=1)
    burn = "\nimport threading\n\ndef burn():\n    while True:\n        pass\n"
    start = "    threading.Thread(target=burn, daemon=True).start()\n    assert task"
    (tmp_path / "quiet.py").write_text(quiet)
    (tmp_path / "busy.py").write_text(quiet.replace("    assert task", start) + burn)
    with Benchmark({name: Engine(tmp_path / f"{name}.py") for name in ("quiet", "busy")}, job) as benchmark:
        benchmark.load()
        found = benchmark.idle_percent()
    assert found["quiet"] < found["busy"]


def test_inputs_vary_where_their_kind_permits():
    feeds = {
        "image": np.arange(12, dtype=np.float32).reshape(3, 4),
        "ids": np.arange(8, dtype=np.int64).reshape(1, 8),
        "sizes": np.array([1, 3, 224, 224]),
        "flag": np.array(True),
    }
    variants = [vary(feeds, variant) for variant in range(VARIANTS)]
    for name in ("image", "ids"):
        assert len({item[name].tobytes() for item in variants}) == VARIANTS
        assert all(sorted(item[name].ravel()) == sorted(feeds[name].ravel()) for item in variants)
    for name in ("sizes", "flag"):
        assert len({item[name].tobytes() for item in variants}) == 1
    for item in variants:
        assert {name: array.shape for name, array in item.items()} == {
            name: array.shape for name, array in feeds.items()
        }
        assert all(array.flags.c_contiguous and array.flags.writeable for array in item.values())
    np.testing.assert_array_equal(variants[0]["image"], feeds["image"])
