"""A call in the trace event format that Perfetto and chrome://tracing read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["trace_events"]

_PROCESS = 1
_STEPS = 0  # the track of the first executor's steps; those of the others and then the threads follow


def trace_events(data: Mapping[str, Any]) -> dict[str, Any]:
    """Complete events of the steps by executor and of the threads, and a counter of the memory that buffers hold.

    Parameters
    ----------
    data : mapping
        What ``Profile.data`` is.
    """
    steps = {s["id"]: s for s in data["steps"]}
    executors, each = data["executors"]
    events: list[dict[str, Any]] = []

    def add(name: str, category: str, thread: int, start: float, end: float, **args: Any) -> None:
        start, end = round(start, 3), round(end, 3)
        event = {"name": name, "cat": category, "ph": "X", "ts": start, "dur": round(max(end - start, 0.0), 3)}
        events.append(event | {"pid": _PROCESS, "tid": thread, "args": args})

    for e in data["events"]:
        step = steps[e["step"]]
        args: dict[str, Any] = {"node": step["node"], "routine": step["routine"], "estimate_us": step["estimate_us"]}
        if e["iteration"] >= 0:
            args["iteration"] = e["iteration"]
        if not step["control"]:
            args |= {"flops": step["flops"], "bytes": step["bytes"]}
        add(step["node"] or step["op"], step["op"], _STEPS + e["executor"], e["start_us"], e["end_us"], **args)
    for s in data["spans"]:
        step = steps[s["step"]]
        add(step["op"], "thread", executors + s["thread"], s["start_us"], s["end_us"], node=step["node"])
    live = data["memory"]["live_bytes"]
    for e in data["events"]:
        if not steps[e["step"]]["control"]:
            counter = {"name": "arena bytes held", "ph": "C", "ts": round(e["start_us"], 3), "pid": _PROCESS}
            events.append(counter | {"tid": _STEPS, "args": {"bytes": live[e["step"]]}})
    events.sort(key=lambda e: (e["ts"], -e.get("dur", 0.0)))
    names = {_STEPS: "steps"} if executors == 1 else {_STEPS + e: f"executor {e}" for e in range(executors)}
    for thread in range(data["threads"]):
        led_by = "" if executors == 1 else f" of executor {thread // each}"
        names[executors + thread] = f"thread {thread}{led_by}"
    meta: list[dict[str, Any]] = [_meta("process_name", _STEPS, f"neo {data['model']}")]
    meta += [_meta("thread_name", thread, name) for thread, name in names.items()]
    return {"traceEvents": meta + events, "displayTimeUnit": "ns", "otherData": {"target": data["target"]}}


def _meta(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "ts": 0, "pid": _PROCESS, "tid": thread, "args": {"name": name}}
