"""One engine in a process of its own, driven by lines of JSON: ``python -m benchmarks.worker ENGINE``.

Commands on standard input, one answer a line on standard output; whatever the engine prints itself goes to standard
error.

``{"do": "version"}``
    Import the engine; the answer holds ``version``.
``{"do": "load", "task": {...}}``
    Prepare a model; the answer holds ``load_ms``.
``{"do": "measure", "seconds": s}``
    Run for about that long after two calls that do not count, three times at least; the answer holds ``times_us`` and
    ``cpu_us``, the processor time of all threads per call.
``{"do": "outputs", "path": p}``
    Save the outputs of one call as an npz, in order.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from benchmarks.peers import Run, Task, get_peer

MOST_CALLS = 20000
UNCOUNTED_CALLS = 2


def _load(engine: str, request: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    fields = request["task"]
    with np.load(fields["inputs"]) as stored:
        inputs = {name: stored[f"a{index}"] for index, name in enumerate(fields["input_names"])}
    task = Task(
        name=fields["name"],
        path=Path(fields["path"]),
        inputs=inputs,
        threads=fields["threads"],
        cache=Path(fields["cache"]),
        network=fields["network"],
        tflite=Path(fields["tflite"]) if fields["tflite"] else None,
    )
    start = time.perf_counter()
    run = get_peer(engine).load(task)
    return run, {"load_ms": (time.perf_counter() - start) * 1e3}


def measure(run: Run, seconds: float) -> list[float]:
    """Return the times of single calls, in microseconds."""
    for _ in range(UNCOUNTED_CALLS):
        run()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < stop and len(times) < MOST_CALLS):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def _reason(error: Exception) -> str:
    """Return one line for the table: the last of the message's lines that says something."""
    lines = [line.strip() for line in str(error).splitlines() if any(c.isalpha() for c in line)]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]


def _answer(stream: TextIO, fields: dict[str, Any]) -> None:
    stream.write(json.dumps(fields) + "\n")
    stream.flush()


def main() -> None:
    """Serve requests until standard input closes."""
    engine = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run: Run | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "version":
                fields: dict[str, Any] = {"version": get_peer(engine).version()}
            elif request["do"] == "load":
                run, fields = _load(engine, request)
            elif run is None:
                raise RuntimeError("no model is loaded")
            elif request["do"] == "measure":
                before = time.process_time()
                times = measure(run, request["seconds"])
                used = time.process_time() - before
                fields = {"times_us": times, "cpu_us": used * 1e6 / (len(times) + UNCOUNTED_CALLS)}
            else:
                arrays: dict[str, Any] = {f"a{index}": array for index, array in enumerate(run())}
                np.savez(request["path"], **arrays)
                fields = {"count": len(arrays)}
        except Exception as error:
            _answer(answers, {"ok": False, "error": _reason(error)})
        else:
            _answer(answers, {"ok": True, **fields})


if __name__ == "__main__":
    main()
