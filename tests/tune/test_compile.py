"""Modules compiled by measured times."""

import importlib
import re
import sqlite3
from types import SimpleNamespace

import neo
import numpy as np
import pytest
from neo import _native, demo
from neo.tune import Database, Verdict
from neo.tune.compare import compare_modules, is_below_one, synthetic_inputs

choose = importlib.import_module("neo.tune.choose")
end_to_end = importlib.import_module("neo.tune.end_to_end")


@pytest.fixture
def judged(monkeypatch):
    """Gives the modules that are timed against each other, and lets a test say what they took."""
    seen = []

    def judge(verdict):
        def compare(default, tuned, inputs):
            seen.append((default, tuned))
            return verdict

        monkeypatch.setattr(choose, "compare_modules", compare)
        # What a test makes up is not doubted.
        monkeypatch.setattr(choose, "is_doubtful", lambda chosen: False)
        return seen

    return judge


@pytest.fixture
def skewed(model, path):
    """A database that makes another selection than the default one best."""
    module = neo.compile(model, tune=True, database=path, threads=1)
    chosen = {s.routine for s in module.steps}
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM verdicts")
    candidates = connection.execute("SELECT DISTINCT candidate FROM measurements ORDER BY candidate").fetchall()
    for i, (candidate,) in enumerate(candidates):
        slow = candidate.split(" ")[0].split("{")[0] in {c.split("{")[0] for c in chosen if "reference" not in c}
        # No two alike: which of equals is selected is not said.
        time_us = (1000.0 if slow else 1.0) + i / 1024
        connection.execute("UPDATE measurements SET time_us = ? WHERE candidate = ?", (time_us, candidate))
    connection.commit()
    connection.close()
    return path


def routines(module):
    return [s.routine for s in module.steps]


def test_a_tuned_module_gives_the_same_answers_and_says_what_was_done(model, path):
    images = demo.images()[0]
    default = neo.compile(model, threads=2)
    tuned = neo.compile(model, tune=True, database=path, threads=2)
    assert default.tuning is None
    assert tuned.tuning.measured > 0
    assert tuned.tuning.chosen in {"same", "tuned", "default"}
    x = images[:1]
    np.testing.assert_allclose(default(x), tuned(x), rtol=1e-4, atol=1e-6)
    assert tuned.with_threads(1).tuning == tuned.tuning


def test_a_second_compile_measures_nothing_and_selects_the_same(model, path, monkeypatch):
    first = neo.compile(model, tune=True, database=path, threads=1)
    monkeypatch.setattr(choose, "compare_modules", None)
    second = neo.compile(model, tune=True, database=path, threads=1)
    assert second.tuning.measured == 0
    assert second.tuning.stored == first.tuning.measured + first.tuning.stored
    assert second.tuning.chosen == first.tuning.chosen
    assert routines(second) == routines(first)
    assert second.steps == first.steps


def test_times_are_kept_in_the_cache_folder_unless_told_otherwise(model):
    from neo.tune import default_path

    assert not default_path().exists()
    neo.compile(model, tune="1ms", threads=1)
    assert default_path().exists()


@pytest.mark.parametrize(("verdict", "wins"), [(Verdict(2.0, 1.0), "tuned"), (Verdict(1.0, 2.0), "default")])
def test_the_faster_of_default_and_tuned_is_returned_then_and_later(model, skewed, judged, verdict, wins):
    seen = judged(verdict)
    default = neo.compile(model, threads=1)
    module = neo.compile(model, tune=True, database=skewed, threads=1)
    ((first, second),) = seen
    assert module._native is (second if wins == "tuned" else first)
    assert module.tuning.chosen == wins
    assert module.tuning.verdict == verdict
    assert (routines(module) == routines(default)) == (wins == "default")
    # With tune= the search would go on, and may find another selection to be judged.
    again = neo.compile(model, database=skewed, threads=1)
    assert len(seen) == 1
    assert routines(again) == routines(module)
    assert again.tuning.verdict == verdict


@pytest.mark.parametrize(
    ("ratios", "is_sure"),
    [
        ([0.9] * 9, True),
        ([0.9] * 7 + [1.1] * 2, False),
        ([1.0] * 41, False),
        ([0.99] * 28 + [1.01] * 13, True),
        ([], False),
    ],
)
def test_a_median_is_below_one_where_chance_would_not_have_it_so(ratios, is_sure):
    assert is_below_one(ratios) == is_sure


def test_a_tuned_module_that_is_not_surely_faster_counts_as_equal(model, monkeypatch):
    module = neo.compile(model, threads=1)
    inputs = module.inputs
    for times, ratios, expected in [
        ([10.0, 9.8, 12.0], [0.99, 1.01] * 20, Verdict(10.0, 10.0, (12.0,))),
        ([10.0, 9.8, 12.0], [0.98] * 40, Verdict(10.0, 9.8, (12.0,))),
        ([10.0, 9.8, 9.7], [0.99, 1.01] * 20, Verdict(10.0, 10.0, (10.0,))),
        ([10.0, 5.0, 12.0], None, Verdict(10.0, 5.0, (12.0,))),
        ([10.0, 11.0, 12.0], None, Verdict(10.0, 11.0, (12.0,))),
    ]:
        monkeypatch.setattr(_native, "benchmark_modules", lambda *_, times=times: [(us, 9) for us in times])
        monkeypatch.setattr(_native, "paired_ratios", lambda *_, ratios=ratios: ratios)
        native = module._native
        assert compare_modules(native, native, inputs, native) == expected


def test_pairs_of_calls_give_ratios(model):
    module = neo.compile(model, threads=1)
    native, inputs = module._native, synthetic_inputs(module.inputs)
    ratios = _native.paired_ratios(native, native, inputs, 12, 60.0)
    assert len(ratios) == 12
    assert all(ratio > 0 for ratio in ratios)
    assert len(_native.paired_ratios(native, native, inputs, 1000, 0.0)) == 9


def test_what_takes_less_than_its_steps_is_profiled_again(model, path, monkeypatch):
    doubted, profiled = [], []

    def is_doubtful(chosen):
        doubted.append((list(chosen.choice), len(profiled)))
        return True

    original = end_to_end.ModulePlans.profile

    def profile(self, choices, rounds, seconds):
        profiled.append([list(choice) for choice in choices])
        return original(self, choices, rounds, seconds)

    monkeypatch.setattr(choose, "is_doubtful", is_doubtful)
    monkeypatch.setattr(end_to_end.ModulePlans, "profile", profile)
    module = neo.compile(model, tune=True, database=path, threads=1)
    ((choice, before),) = doubted
    assert any(choice in choices for choices in profiled[before:])
    assert module.tuning.measured > 0


def test_only_what_was_timed_just_now_is_doubted():
    module = SimpleNamespace(estimate_us=200.0)
    assert choose.is_doubtful(choose.Chosen(module, [], timed_us=100.0))
    assert not choose.is_doubtful(choose.Chosen(module, []))
    assert not choose.is_doubtful(choose.Chosen(SimpleNamespace(estimate_us=127.0), [], timed_us=100.0))


def test_what_tuning_leaves_as_it_was_is_timed_too(model, path, monkeypatch):
    seen = []
    monkeypatch.setattr(choose, "is_doubtful", lambda chosen: bool(seen.append(chosen)))
    module = neo.compile(model, tune=True, database=path, threads=1, routines={"*": "cpu/reference"})
    assert module.tuning.chosen == "same"
    assert seen[0].timed_us > 0


def test_where_they_cannot_be_compared_the_default_is_kept_and_the_report_says_why(model, skewed, judged):
    judged("[tune] an input must be a tensor")
    module = neo.compile(model, tune=True, database=skewed, threads=1)
    assert routines(module) == routines(neo.compile(model, threads=1))
    assert module.tuning.chosen == "default"
    assert "an input must be a tensor" in str(module.tuning)


def test_a_database_without_tune_is_only_read(model, skewed, judged):
    seen = judged(None)
    before = skewed.read_bytes()
    module = neo.compile(model, database=skewed, threads=1)
    assert routines(module) != routines(neo.compile(model, threads=1))
    assert module.tuning.measured == 0
    assert module.tuning.stored > 0
    assert seen == []
    assert skewed.read_bytes() == before


def test_a_database_that_is_missing_leaves_the_estimates(model, path):
    module = neo.compile(model, database=path, threads=1)
    assert routines(module) == routines(neo.compile(model, threads=1))
    assert not path.exists()


def test_times_of_another_number_of_threads_are_not_used(model, skewed):
    if neo._native.machine()["usable_cpus"] < 2:
        pytest.skip("one core")
    assert neo.compile(model, database=skewed, threads=2).tuning.stored == 0


def test_explain_marks_what_was_measured(model, path):
    assert "*" not in str(neo.compile(model, threads=1).explain())
    module = neo.compile(model, tune=True, database=path, threads=1)
    (node,) = module.explain("block.conv").nodes
    assert any(o.measured for o in node.options)
    with Database(path, read_only=True) as database:
        stored = {row.time_us for _, _, _, row in database.rows()}
    # The others' times, and those of a default selection that won, are in proportion to what the tuned ones take in the plan.
    if module.tuning.chosen != "default":
        chosen = [o.time_us for o in node.options if o.status == "chosen" and o.measured]
        assert all(any(us == pytest.approx(one) for one in stored) for us in chosen)
    text = str(module.explain("block.conv"))
    assert re.search(r"\d\*", text)
    assert "* a measured time; the others are estimates" in text
    assert f"tuning: {module.tuning}" in str(module.explain())


def test_what_is_expected_of_a_step_is_its_measured_time(model, path):
    module = neo.compile(model, tune=True, database=path, threads=1)
    with Database(path, read_only=True) as database:
        stored = {row.time_us for _, _, _, row in database.rows()}
    assert any(s.estimate_us == pytest.approx(time_us) for s in module.steps for time_us in stored)


def test_limits_hold_whatever_is_fastest(path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 28, 28])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 28, 28])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    neo.compile(model, tune=True, database=path, threads=1)
    connection = sqlite3.connect(path)
    assert connection.execute("UPDATE measurements SET time_us = 0.001 WHERE routine LIKE '%winograd%'").rowcount, (
        "the test needs a Winograd candidate"
    )
    connection.commit()
    connection.close()
    assert "winograd" in str(routines(neo.compile(model, database=path, threads=1)))
    strict = neo.compile(model, database=path, accuracy="strict", threads=1)
    assert "winograd" not in str(routines(strict))
    small = neo.compile(model, database=path, memory=strict.memory.bound, threads=1)
    assert "winograd" not in str(routines(small))


def test_models_that_nothing_can_be_synthetic_for_are_tuned_as_far_as_possible(path):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["x"], ["y"], "upper", case_change_action="UPPER")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["N"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = neo.compile(model, tune=True, database=path)
    assert module.tuning.measured == 0
    assert list(module(np.array(["a", "b"], object))) == ["A", "B"]
