"""What reports hold as plain data."""

import json

import neo
import numpy as np
import pytest
from neo import demo

from tests.report.conftest import HOSTILE, residual, weights

REPORTS = ["residual_profile", "branches_profile", "hostile_profile", "thousand_profile", "planned_profile"]


@pytest.fixture(params=REPORTS)
def data(request):
    return request.getfixturevalue(request.param)[1].data


def test_data_is_json_that_reads_back_the_same(residual_profile, tmp_path):
    _, profile = residual_profile
    text = profile.to_json(tmp_path / "p.json")
    assert json.loads(text) == json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == profile.data
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_every_step_belongs_to_one_drawn_node(data):
    owners = [step for node in data["graph"]["nodes"] for step in node["steps"]]
    assert sorted(owners) == [step["id"] for step in data["steps"]]


def test_edges_lead_from_earlier_nodes_of_the_same_body_and_change_schema_only_at_conversions(data):
    nodes = data["graph"]["nodes"]
    for edge in data["graph"]["edges"]:
        giver, taker = nodes[edge["from"]], nodes[edge["to"]]
        assert edge["from"] < edge["to"]
        assert (giver["parent"], giver["body"]) == (taker["parent"], taker["body"])
    for node in nodes:
        if node["kind"] == "conversion":
            assert node["from"] != node["schema"]
            assert node["routine"] == f"cpu:adapt/{node['from']}->{node['schema']}"


def test_blocks_divide_a_large_graph_into_runs_of_nodes(thousand_profile):
    graph = thousand_profile[1].data["graph"]
    assert len(graph["nodes"]) >= 1000
    members = [i for block in graph["blocks"] for i in block["nodes"]]
    assert members == sorted(set(members))
    outside = [n["kind"] for n in graph["nodes"] if n["id"] not in members]
    assert [kind for kind in outside if kind != "conversion"] == ["input", "output"]
    assert max(len(block["nodes"]) for block in graph["blocks"]) <= 18
    assert len({block["name"] for block in graph["blocks"]}) == len(graph["blocks"]) < 100
    of = {i: block["id"] for block in graph["blocks"] for i in block["nodes"]}
    assert all(of[e["from"]] <= of[e["to"]] for e in graph["edges"] if {e["from"], e["to"]} <= set(of))


def test_a_group_is_one_node_that_lists_its_members():
    module = neo.compile(residual(), routines={"block/relu": "cpu:float32/direct*", "*": "*"})
    graph = module.explain().data["graph"]
    (group,) = [n for n in graph["nodes"] if n["name"] == "block/relu"]
    assert [m["name"] for m in group["members"]] == ["block/conv", "block/add", "block/relu"]
    assert group["label"] == "Conv + Add + Relu"


def test_bodies_are_nested_in_the_node_that_runs_them(branches_profile):
    _, profile = branches_profile
    data = profile.data
    nodes = data["graph"]["nodes"]
    by_name = {n["name"]: n for n in nodes}
    chooses, scans = by_name["chooses"], by_name["scans"]
    assert (chooses["kind"], scans["kind"]) == ("control", "control")
    assert (scans["parent"], scans["body"]) == (chooses["id"], "then_branch")
    assert (by_name["else_neg"]["parent"], by_name["else_neg"]["body"]) == (chooses["id"], "else_branch")
    assert (by_name["scan_tanh"]["parent"], by_name["scan_tanh"]["body"]) == (scans["id"], "body")
    steps = data["steps"]
    (tanh,) = [s for s in steps if s["op"] == "Tanh"]
    assert tanh["calls"] == 6
    assert steps[tanh["parent"]]["op"] == "Scan"
    assert steps[steps[tanh["parent"]]["parent"]]["op"] == "If"
    (neg,) = [s for s in steps if s["op"] == "Neg"]
    assert (neg["calls"], neg["time_us"]) == (0, None)
    assert [e["iteration"] for e in data["events"] if e["step"] == tanh["id"]] == list(range(6))


def test_buffers_that_are_held_at_once_lie_apart(data):
    memory = data["memory"]
    for i, a in enumerate(memory["buffers"]):
        assert a["offset"] >= 0
        assert a["offset"] + a["bytes"] <= memory["arena_bytes"]
        for b in memory["buffers"][:i]:
            in_time = a["first"] <= b["last"] and b["first"] <= a["last"]
            in_space = a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]
            assert not (in_time and in_space), (a, b)
    for step, live in enumerate(memory["live_bytes"]):
        assert live == sum(b["bytes"] for b in memory["buffers"] if b["first"] <= step <= b["last"])
    assert memory["unshared_bytes"] == sum(b["bytes"] for b in memory["buffers"])


def test_memory_is_of_the_sizes_that_ran():
    module = neo.compile(residual())
    at_hints = module.explain().data["memory"]
    large = module.profile({"x": weights(4, 3, 16, 16)}, repeat=1).data["memory"]
    assert large["arena_bytes"] == pytest.approx(4 * at_hints["arena_bytes"], rel=0.1)
    assert large["result_bytes"] == 4 * (32 * 16 * 16 + 10) * 4
    assert large["packed_bytes"] == at_hints["packed_bytes"] > 0


def test_threads_work_inside_the_steps_they_work_on(data):
    events = {}
    for e in data["events"]:
        events.setdefault(e["step"], []).append(e)
    assert data["spans"]
    last = {}
    for span in data["spans"]:
        assert 0 <= span["thread"] < data["threads"]
        assert any(e["start_us"] <= span["start_us"] <= span["end_us"] <= e["end_us"] for e in events[span["step"]])
        assert last.get(span["thread"], 0.0) <= span["start_us"]
        last[span["thread"]] = span["end_us"]
    ran = {e["step"] for e in data["events"] if not data["steps"][e["step"]]["control"]}
    assert {span["step"] for span in data["spans"]} == ran


def test_the_machine_does_at_least_what_the_steps_did(residual_profile):
    machine = residual_profile[1].data["machine"]
    assert machine["gflops"] > 1
    assert machine["gbps"] > 0.1


def test_every_choice_names_its_cost_and_what_it_would_change(residual_profile):
    module, profile = residual_profile
    data = profile.data
    assert [c["node"] for c in data["choices"]] == [n.node for n in module.explain().nodes]
    for choice in data["choices"]:
        chosen, *others = choice["options"]
        assert chosen["status"] == "chosen"
        assert chosen["change_us"] in (0.0, None)
        for option in others:
            if option["status"] == "rejected":
                assert (option["time_us"], option["change_us"]) == (None, None)
                assert option["reason"]


def test_the_change_is_what_the_total_becomes_with_that_choice(residual_profile):
    """Every other choice stays, conversions are chosen anew: so a pin of all nodes to these gives that total."""
    module, _ = residual_profile
    dense = module.explain("dense").nodes[0]
    pins = {n.node: n.options[0].routine for n in module.explain().nodes if n.options[0].routine != "absorbed"}
    checked = 0
    for option in dense.options:
        if option.status != "slower" or option.change_us is None:
            continue
        pinned = neo.compile(residual(), threads=2, routines=pins | {"dense": option.routine})
        assert pinned.explain().estimate_us <= module.explain().estimate_us + option.change_us + 1e-6
        if len([o for o in dense.options if o.routine == option.routine]) == 1:
            expected = module.explain().estimate_us + option.change_us
            assert pinned.explain().estimate_us == pytest.approx(expected, rel=1e-9)
            checked += 1
    assert checked


def test_no_choice_of_one_node_makes_the_optimum_better(data):
    changes = [o["change_us"] for c in data["choices"] for o in c["options"] if o["change_us"] is not None]
    assert min(changes) >= -1e-6


def test_an_explanation_is_drawn_without_a_call(tmp_path):
    module = neo.compile(demo.model_bytes())
    data = module.explain().data
    assert data["events"] == data["spans"] == []
    assert data["total_us"] is data["machine"] is None
    assert data["memory"]["arena_bytes"] > 0
    one = module.explain("block.conv").data
    assert [c["node"] for c in one["choices"] if c["wanted"]] == ["block.conv"]
    assert len(one["choices"]) == len(data["choices"])


def test_names_stay_whole_in_data(hostile_profile):
    data = hostile_profile[1].data
    assert {n["name"] for n in data["graph"]["nodes"]} >= set(HOSTILE)


def test_sizes_that_only_the_call_knows_are_told(branches_profile):
    module, _ = branches_profile
    other = module.profile({"go": np.array(False), "x": weights(6, 4)}, repeat=1).data
    assert {s["node"]: s["calls"] for s in other["steps"]}["else_neg"] == 1


def test_a_plan_alone_is_drawn_too(planned_profile, branches_profile):
    graph, whole = planned_profile[1].data["graph"], branches_profile[1].data["graph"]
    assert {n["name"] for n in graph["nodes"]} >= {"chooses", "scans", "scan_tanh", "else_neg", "ends"}
    by_name = {n["name"]: n for n in graph["nodes"]}
    assert by_name["scan_tanh"]["parent"] == by_name["scans"]["id"]
    pairs = [{(g["nodes"][e["from"]]["name"], g["nodes"][e["to"]]["name"]) for e in g["edges"]} for g in (graph, whole)]
    assert pairs[0] == pairs[1]
