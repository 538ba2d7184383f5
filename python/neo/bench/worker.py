"""One engine in a process of its own, driven by lines of JSON: ``python worker.py ADAPTER``.

Commands on standard input, one answer a line on standard output; whatever the engine prints itself goes to standard
error. This file and the adapters import nothing of neo, so that any interpreter with numpy runs them.

``{"do": "version"}``
    Import the engine; the answer holds ``version`` and ``import_ms``.
``{"do": "load", "task": {...}}``
    Prepare a model and run it once; the answer holds ``load_ms``, without the conversion to the engine's own files, and
    ``first_ms``, the first run.
``{"do": "measure", "seconds": s}``
    Run for about that long after two calls that do not count, three times at least; the answer holds ``times_us``,
    ``cpu_us``, the processor time of all threads per call, and ``peak_bytes``, the most memory that the engine and the
    model have taken (None where the system does not tell): engines differ in what they import at once and what with
    the first model. Each call gets the next of several sets of inputs and makes new outputs.
``{"do": "idle"}``
    Make calls, wait 50 ms, and tell ``idle_percent``: the processor time of all threads in the 200 ms after that, as a
    share of one core.
``{"do": "outputs", "path": p, "variant": i}``
    Save the outputs of one call on a set of inputs as an npz, in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

Feeds = dict[str, "np.ndarray[Any, Any]"]
Outputs = list["np.ndarray[Any, Any]"]

MOST_CALLS = 20000
UNCOUNTED_CALLS = 2
#: Sets of inputs that calls take in turn.
VARIANTS = 4


@dataclass(frozen=True)
class Task:
    """What an adapter is asked to run.

    ``path`` is the ONNX file, ``inputs`` what it is fed and ``outputs`` the names of what it gives; ``cache`` is a
    folder for converted files. ``network`` names the builder that the file came from and ``tflite`` the same model as
    its author converted it, where there is one. ``options`` are the engine's own.
    """

    name: str
    path: Path
    inputs: Feeds
    outputs: list[str]
    threads: int
    cache: Path
    network: str | None = None
    tflite: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def converted(self, suffix: str) -> Path:
        """Return where the converted file of a format is kept."""
        return self.cache / suffix / f"{self.name}.{suffix}"

    def convert(self, suffix: str, write: Callable[[Path], None]) -> None:
        """Make the converted file by ``write(path)``, unless it is newer than the model."""
        path = self.converted(suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.stat().st_mtime < self.path.stat().st_mtime:
            partial = path.with_name(f"{self.name}.partial.{suffix}")
            write(partial)
            partial.replace(path)


def read_task(fields: dict[str, Any]) -> Task:
    """Return the task that a request describes, its arrays read from its npz file."""
    with np.load(fields["inputs"]) as stored:
        inputs = {name: stored[f"a{index}"] for index, name in enumerate(fields["input_names"])}
    return Task(
        name=fields["name"],
        path=Path(fields["path"]),
        inputs=inputs,
        outputs=fields["outputs"],
        threads=fields["threads"],
        cache=Path(fields["cache"]),
        network=fields["network"],
        tflite=Path(fields["tflite"]) if fields["tflite"] else None,
        options=fields["options"],
    )


def vary(feeds: Feeds, variant: int) -> Feeds:
    """Return inputs of the same kind with other values, those given for variant 0.

    The elements of float arrays and of integer arrays of two or more axes move round; vectors of integers, which may be
    sizes, stay.
    """
    varied = {}
    for name, array in feeds.items():
        moves = array.dtype.kind == "f" or (array.dtype.kind in "iu" and array.ndim > 1)
        by = variant * max(1, array.size // VARIANTS) if moves else 0
        varied[name] = np.roll(array.ravel(), by).reshape(array.shape)
    return varied


def peak_bytes() -> int | None:
    """Return the most memory that this process has held, None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def held_bytes() -> int:
    """Return the memory that this process holds, from where the peak counts anew, as far as the system permits."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes() or 0


class Worker:
    """An engine, and the model it has loaded."""

    def __init__(self, adapter: Path) -> None:
        spec = importlib.util.spec_from_file_location(f"adapter_{adapter.stem}", adapter)
        assert spec is not None
        assert spec.loader is not None
        self._engine: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._engine)
        self._run: Callable[[Any], Outputs] | None = None
        self._variants: list[Any] = []
        self._calls = 0
        self._bytes_before = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request says and return the fields of its answer."""
        if request["do"] == "version":
            self._bytes_before = held_bytes()
            start = time.perf_counter()
            version = self._engine.version()
            return {"version": version, "import_ms": (time.perf_counter() - start) * 1e3}
        if request["do"] == "load":
            return self._load(read_task(request["task"]))
        if self._run is None:
            raise RuntimeError("no model is loaded")
        if request["do"] == "measure":
            return self._measure(request["seconds"])
        if request["do"] == "idle":
            return {"idle_percent": self._idle_percent()}
        outputs = self._run(self._variants[request["variant"]])
        arrays: dict[str, Any] = {f"a{index}": array for index, array in enumerate(outputs)}
        np.savez(request["path"], **arrays)
        return {"count": len(arrays)}

    def _load(self, task: Task) -> dict[str, Any]:
        imported = held_bytes()
        feeds = [vary(task.inputs, variant) for variant in range(VARIANTS)]
        if hasattr(self._engine, "convert"):
            self._engine.convert(task)
        self._bytes_before += held_bytes() - imported
        task = dataclasses.replace(task, inputs=feeds[0])
        start = time.perf_counter()
        arrange, run = self._engine.load(task)
        loaded = time.perf_counter()
        self._variants = [arrange(feeds[0])]
        before = time.perf_counter()
        run(self._variants[0])
        first = time.perf_counter()
        self._variants += [arrange(item) for item in feeds[1:]]
        self._run = run
        return {"load_ms": (loaded - start) * 1e3, "first_ms": (first - before) * 1e3}

    def _call(self) -> None:
        assert self._run is not None
        self._calls += 1
        self._run(self._variants[self._calls % VARIANTS])

    def _measure(self, seconds: float) -> dict[str, Any]:
        processor = time.process_time()
        for _ in range(UNCOUNTED_CALLS):
            self._call()
        times: list[float] = []
        stop = time.perf_counter() + seconds
        while len(times) < 3 or (time.perf_counter() < stop and len(times) < MOST_CALLS):
            start = time.perf_counter_ns()
            self._call()
            times.append((time.perf_counter_ns() - start) / 1e3)
        cpu_us = (time.process_time() - processor) * 1e6 / (len(times) + UNCOUNTED_CALLS)
        peak = peak_bytes()
        grown = max(0, peak - self._bytes_before) if peak is not None else None
        return {"times_us": times, "cpu_us": cpu_us, "peak_bytes": grown}

    def _idle_percent(self) -> float:
        for _ in range(VARIANTS):
            self._call()
        time.sleep(0.05)
        processor, start = time.process_time(), time.perf_counter()
        time.sleep(0.2)
        return 100 * (time.process_time() - processor) / (time.perf_counter() - start)


def _reason(error: Exception) -> str:
    """Return one line for the table: the last of the message's lines that says something."""
    lines = [line.strip() for line in str(error).splitlines() if any(c.isalpha() for c in line)]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]


def _send(stream: TextIO, fields: dict[str, Any]) -> None:
    stream.write(json.dumps(fields) + "\n")
    stream.flush()


def main() -> None:
    """Serve requests until standard input closes."""
    # The folder of this file, which Python puts first, holds no modules for adapters.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(Path(sys.argv[1]))
    for line in sys.stdin:
        try:
            fields = worker.answer(json.loads(line))
        except Exception as error:
            _send(answers, {"ok": False, "error": _reason(error)})
        else:
            _send(answers, {"ok": True, **fields})


if __name__ == "__main__":
    main()
