"""A file of the times of every step, in the form that ONNX Runtime writes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neo.module import Module

__all__ = ["Profiler"]


class Profiler:
    """Collects the steps of runs, and writes them as events of Chrome's trace format.

    Parameters
    ----------
    prefix : str
        The start of the file's name; the time of writing follows.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._events: list[dict[str, Any]] = []
        self._start_ns = time.monotonic_ns()

    def run(self, module: Module, feeds: Mapping[str, Any], out: Mapping[str, Any] | None) -> dict[str, Any]:
        """Run, and keep when each step began and how long it took."""
        begin = time.monotonic_ns()
        arranged, memory = module._arrange(feeds), module._memory_of(out)
        results, steps, _, _ = module._native.trace(arranged)
        first = min((s["start_ns"] for s in steps), default=0)
        for step in steps:
            args = {"op_name": step["op"], "provider": "CPUExecutionProvider", "routine": step["routine"]}
            start = begin - self._start_ns + step["start_ns"] - first
            name = f"{step['node']}_kernel_time"
            self._add("Node", name, start, step["end_ns"] - step["start_ns"], args)
        self._add("Session", "model_run", begin - self._start_ns, time.monotonic_ns() - begin, {})
        if memory is not None:
            for array, result in zip(memory.direct, results, strict=True):
                if array is not None:
                    array[...] = result
            results = memory.finish(results)
        return module._name(results)

    def _add(self, category: str, name: str, start_ns: int, length_ns: int, args: dict[str, Any]) -> None:
        times = {"ts": start_ns // 1000, "dur": length_ns // 1000}
        self._events.append(
            {"cat": category, "pid": os.getpid(), "tid": 0, "ph": "X", "name": name, "args": args, **times}
        )

    def write(self) -> str:
        """Write what was collected, and return the file's name."""
        path = Path(f"{self._prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json")
        path.write_text(json.dumps(sorted(self._events, key=lambda e: e["ts"]), indent=0), encoding="utf-8")
        return str(path)
