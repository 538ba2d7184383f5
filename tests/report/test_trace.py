"""A trace keeps to the trace event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU."""

import json

import pytest

REPORTS = ["residual_profile", "branches_profile", "hostile_profile", "thousand_profile", "planned_profile"]


@pytest.fixture(params=REPORTS)
def profile(request):
    return request.getfixturevalue(request.param)[1]


@pytest.fixture
def trace(profile, tmp_path):
    profile.trace(tmp_path / "t.json")
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]
    return json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))


def test_events_have_what_their_phase_wants(trace):
    assert trace["displayTimeUnit"] in ("ns", "ms")
    wanted = {
        "X": {"name", "cat", "ts", "dur", "pid", "tid"},
        "M": {"name", "pid", "tid", "args"},
        "C": {"name", "ts", "pid", "args"},
    }
    for event in trace["traceEvents"]:
        assert set(event) >= wanted[event["ph"]]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "C":
            assert all(isinstance(v, int | float) for v in event["args"].values())


def test_events_are_in_order_and_nested(trace):
    spans = [e for e in trace["traceEvents"] if e["ph"] != "M"]
    assert [e["ts"] for e in spans] == sorted(e["ts"] for e in spans)
    for thread in {e["tid"] for e in spans}:
        open_ends = []
        for e in (e for e in spans if e["ph"] == "X" and e["tid"] == thread):
            while open_ends and open_ends[-1] <= e["ts"] + 1e-4:
                open_ends.pop()
            end = e["ts"] + e["dur"]
            assert not open_ends or end <= open_ends[-1] + 1e-4, e
            open_ends.append(end)


def test_every_track_has_a_name_and_every_execution_an_event(profile, trace):
    data = profile.data
    named = {e["tid"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["tid"] for e in complete} <= named
    assert len([e for e in complete if e["tid"] == 0]) == len(data["events"])
    assert len([e for e in complete if e["tid"] > 0]) == len(data["spans"])


def test_control_flow_holds_its_iterations(branches_profile, tmp_path):
    branches_profile[1].trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    (scan,) = [e for e in events if e["ph"] == "X" and e["name"] == "scans"]
    rows = [e for e in events if e["ph"] == "X" and e["tid"] == 0 and e["name"] == "scan_tanh"]
    assert [e["args"]["iteration"] for e in rows] == list(range(6))
    assert all(scan["ts"] <= e["ts"] <= scan["ts"] + scan["dur"] for e in rows)
