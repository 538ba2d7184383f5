"""Why each node runs as it does, and where the time of a call goes."""

import json
import math
import re
from dataclasses import replace

import neo
import numpy as np
import onnx
import pytest
from neo import demo
from neo.report.estimates import FarStep, far_steps, render_far
from neo.report.explain import Bound, Explanation


def statuses(node):
    return [option.status for option in node.options]


def test_every_node_has_one_chosen_routine_first_and_rejected_ones_last(digits):
    explanation = digits.explain()
    assert {n.op for n in explanation.nodes} >= {"Conv", "MaxPool", "Add", "Gemm", "Softmax"}
    for node in explanation.nodes:
        found = statuses(node)
        assert found[0] == "chosen"
        assert found.count("chosen") == 1
        assert found == sorted(found, key=["chosen", "slower", "rejected"].index)


def test_a_node_shows_what_is_slower_by_how_much_and_what_was_rejected_why(digits):
    (node,) = digits.explain("block.conv").nodes
    assert node.op == "Conv"
    by_status = {s: [o for o in node.options if o.status == s] for s in ("chosen", "slower", "rejected")}
    reference = next(o for o in by_status["slower"] if o.routine == "cpu/reference")
    assert reference.time_us > by_status["chosen"][0].time_us
    depthwise = next(o for o in by_status["rejected"] if o.routine == "cpu:float32/depthwise_nchwc")
    assert depthwise.time_us is None
    assert depthwise.reason == "not one input and one output channel per group"
    text = str(digits.explain("block.conv"))
    assert text.startswith("block.conv: Conv\n")
    factor = reference.time_us / by_status["chosen"][0].time_us
    assert f"{reference.time_us:.2f} ({factor:.2f}x)" in text


def test_a_node_is_found_by_the_name_of_its_value_too(digits):
    by_value = digits.explain("probabilities").nodes
    assert [n.op for n in by_value] == ["Softmax"]


def test_the_routine_that_is_chosen_is_the_one_that_runs(digits):
    running = {s.node: s.routine for s in digits.steps if s.op != "neo.Adapt"}
    for node in digits.explain().nodes:
        if node.node in running:
            assert running[node.node] == node.options[0].routine


def test_a_pin_changes_what_is_chosen():
    module = neo.compile(demo.model_bytes(), routines={"block.conv": "cpu/reference", "*": "*"})
    assert module.explain("block.conv").nodes[0].options[0].routine == "cpu/reference"
    assert {s.node: s.routine for s in module.steps if s.op == "Conv"}["block.conv"] == "cpu/reference"


def test_a_pin_may_name_a_routine_without_its_schedule_and_tier():
    chosen = neo.compile(demo.model_bytes(), routines={"*.conv": ["cpu:float32/direct_nchwc"]})
    for name in ("stem.conv", "block.conv"):
        routine = chosen.explain(name).nodes[0].options[0].routine
        assert routine.startswith("cpu:float32/direct_nchwc")


def test_the_selections_total_and_the_measured_time_stand_side_by_side(digits, images):
    explanation = digits.explain(inputs={"image": images[:1]})
    assert explanation.estimate_us > 0
    assert explanation.measured_us > 0
    text = str(explanation).splitlines()[-1]
    totals = f"selection's total {explanation.estimate_us:.1f} us; measured {explanation.measured_us:.1f} us"
    assert text == f"{totals} ({explanation.measured_us / explanation.estimate_us:.2f}x) at N=1"
    assert "measured" not in str(digits.explain())


def test_totals_at_open_sizes_say_at_which():
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", "columns"])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", "columns"])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "open", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    feeds = {"x": np.ones((3, 4), np.float32)}
    module = neo.compile(model)
    assert module.inputs[0].hints == (1, 512)
    assert str(module.explain()).endswith(" us at rows=1, columns=512")
    other = str(module.explain(inputs=feeds))
    assert re.search(r" us at rows=1, columns=512; measured [\d.]+ us at rows=3, columns=4$", other)
    same = str(module.explain(inputs={"x": np.ones((1, 512), np.float32)}))
    assert re.search(r" us; measured [\d.]+ us \([\d.]+x\) at rows=1, columns=512$", same)
    fixed = str(neo.compile(model, shapes={"rows": 3, "columns": 4}).explain(inputs=feeds))
    assert re.search(r"selection's total [\d.]+ us; measured [\d.]+ us \([\d.]+x\)$", fixed)


def test_a_node_without_a_name_goes_by_its_value():
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "nameless", [x], [y])
    module = neo.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8))
    assert [n.node for n in module.explain().nodes] == ["y"]
    assert str(module.explain("y")).startswith("y: Exp\n")


def test_control_flow_is_a_block_of_the_plan(loop):
    nodes = {n.op: n for n in loop.explain().nodes}
    assert nodes["Loop"].options[0].routine == "block"
    assert nodes["Add"].options[0].status == "chosen"


def test_a_profile_times_every_step_once(digits, images):
    profile = digits.profile({"image": images}, repeat=3)
    assert [s.node for s in profile.steps] == [s.node for s in digits.steps]
    assert all(s.calls == 1 for s in profile.steps)
    assert sum(e.end_us - e.start_us for e in profile.events) <= profile.total_us
    assert [e.step for e in profile.events] == list(range(len(profile.steps)))
    assert profile.threads == digits.threads


def test_a_profile_counts_the_work_of_the_sizes_that_ran(digits, images):
    def work(batch):
        steps = digits.profile({"image": images[:batch]}, repeat=1).steps
        return {s.node: s.gflops * s.time_us for s in steps if s.op == "Conv"}

    one, eight = work(1), work(8)
    for node in one:
        np.testing.assert_allclose(eight[node], 8 * one[node], rtol=1e-6)


def test_a_profile_sums_the_iterations_of_a_loop(loop):
    profile = loop.profile({"trips": np.array(5, np.int64), "x": np.zeros(4, np.float32)}, repeat=2)
    assert {s.op: s.calls for s in profile.steps}["Add"] == 5
    assert len([e for e in profile.events if profile.steps[e.step].op == "Add"]) == 5


def test_a_profile_is_a_table_json_and_a_timeline(digits, images, tmp_path):
    pytest.importorskip("matplotlib")
    profile = digits.profile({"image": images[:4]}, repeat=2)
    table = profile.table(3).splitlines()
    assert table[0].split() == ["node", "op", "routine", "us", "%", "GFLOP/s", "GB/s"]
    assert len(table) == 2 + 3 + 1
    assert str(profile) == profile.table()
    text = profile.to_json(tmp_path / "profile.json")
    read = json.loads((tmp_path / "profile.json").read_text())
    assert json.loads(text) == read
    assert [s["node"] for s in read["steps"]] == [s.node for s in profile.steps]
    convolutions = sum(step.op == "Conv" for step in digits.steps)
    assert {op: count for op, count, _ in profile.by_op()}["Conv"] == convolutions > 0
    axes = profile.timeline().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [s.node for s in profile.steps]
    assert len(axes.collections) == len(profile.steps)


def test_the_bound_stands_above_the_total(digits):
    explanation = digits.explain()
    bound = explanation.bound
    assert bound.total_us == pytest.approx(explanation.estimate_us)
    assert bound.gap <= 1e-9
    assert bound.proof > len(explanation.nodes)
    assert all(us >= bound.bound_us * (1 - 1e-9) for us in bound.others_us.values())
    line = str(explanation).splitlines()[-2]
    assert line.startswith(
        f"optimal for these costs: no choice is below {bound.bound_us:.1f} us ({bound.method}); greedy "
    )
    assert explanation.data["bound"]["bound_us"] == bound.bound_us
    node = digits.explain(explanation.nodes[0].node)
    assert node.bound is None


def test_a_gap_is_told():
    bound = Bound(101.0, 100.0, "elimination, branch and bound", 7, {"greedy": 202.0, "pbqp": math.inf})
    assert str(bound) == (
        "within 0.99% of optimal: no choice is below 100.0 us (elimination, branch and bound); "
        "greedy 202.0 us (+100.0%), pbqp nothing allowed"
    )


def test_steps_far_from_their_estimates_are_named_with_both_times():
    steps = [
        FarStep("slow", 40.0, 10.0),
        FarStep("quick", 10.0, 35.0),
        FarStep("near", 30.0, 20.0),
        FarStep("small", 0.4, 0.1),
        FarStep("unknown", 9.0, 0.0),
    ]
    far = far_steps(steps, 100.0)
    assert [s.node for s in far] == ["slow", "quick", "unknown"]
    assert far[0].ratio == 4
    line = render_far(far)
    assert line.startswith("\nfar from their estimates: slow 40.0 us for 10.0, quick 10.0 us for 35.0, unknown")
    assert " and 1 more" in render_far((*far, FarStep("", 50.0, 1.0)))
    assert render_far(()) == ""


def test_a_profile_and_an_explanation_with_inputs_say_which_steps_are_far(digits, images):
    profile = digits.profile({"image": images[:4]})
    profile = replace(profile, estimate_sizes=profile.measured_sizes)
    slowed = replace(profile, steps=tuple(replace(s, time_us=(9 * s.estimate_us + 9) * s.calls) for s in profile.steps))
    assert {s.node for s in slowed.far} == {s.node for s in slowed.steps}
    assert "far from their estimates" in str(slowed)
    assert replace(slowed, measured_sizes={"N": 99}).far == ()
    exact = replace(profile, steps=tuple(replace(s, time_us=s.estimate_us * s.calls) for s in profile.steps))
    assert exact.far == ()
    assert "far from" not in str(exact)
    explanation = digits.explain(inputs={"image": images[:4]})
    assert (explanation.far == ()) == ("far from their estimates" not in str(explanation))


def test_a_tuned_module_says_where_measured_times_were_far_from_estimates(digits):
    subject = digits._subject()
    chosen = [node["choices"][choice] for node, choice in zip(subject.nodes, subject.choices, strict=False)]
    chosen = [c for c in chosen if "routine" in c]
    for c in chosen:
        c |= {"measured": True, "time_us": 50.0, "estimate_us": 5.0}
    explanation = Explanation.of(subject, None, 500.0, None, {}, {})
    assert len(explanation.far) == len(chosen)
    assert "us for 5.0" in str(explanation)
