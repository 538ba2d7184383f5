"""Engines beside each other on one model: load, compare what they compute, and time them in interleaved rounds."""

from __future__ import annotations

import math
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from neo.bench.engines import Engine
from neo.bench.process import EngineError, EngineProcess
from neo.bench.worker import VARIANTS

__all__ = ["Benchmark", "Job", "Measured", "difference", "measure"]

#: An engine whose outputs differ from the reference's by more, relative to the largest value, computes something else.
LARGEST_DIFFERENCE = 0.01
#: The same for a model with codes, of the root mean square of the error relative to that of the values: engines round
#: differently, and a code that is one off in an early layer becomes several in the last.
LARGEST_CODE_DIFFERENCE = 0.1
#: Operators that round to codes, or that engines compute with rounded operands.
_CODE_OPERATORS = re.compile("[Qq]uantize|QLinear|Integer|NBits|QGemm|QAttention")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Job:
    """What all engines are to do.

    Attributes
    ----------
    name : str
        Of the model, in file names of the cache.
    path : Path
        The ONNX file.
    inputs : mapping of str to array
        All its inputs; calls get these and others of the same kind in turn.
    threads : int
        Threads of every engine.
    cache : Path
        Where converted files are kept.
    rounds : int
        How often each engine is measured.
    slice_s : float
        Seconds an engine is measured for in a round.
    timeout_s : float
        Seconds an engine may be silent.
    starts : int
        How often each engine starts anew and answers first.
    network : str, optional
        The builder that the file came from.
    tflite : Path, optional
        The same model as its author converted it.
    """

    name: str
    path: Path
    inputs: Mapping[str, Array]
    threads: int
    cache: Path
    rounds: int = 15
    slice_s: float = 0.5
    timeout_s: float = 600.0
    starts: int = 1
    network: str | None = None
    tflite: Path | None = None


@dataclass
class Measured:
    """What one engine did, or why it did not.

    ``rounds_ms`` holds the median time of each round's calls and ``best_ms`` the least of all calls; ``import_ms``
    is what importing the engine took; ``first_answer_ms`` is the time from the engine's file to the first outputs, that
    import counted; both are, as ``load_ms``, medians over the starts. ``peak_bytes`` is the memory that the engine and
    the model took at most. ``difference`` is how far the outputs are from the reference's.
    """

    version: str = ""
    error: str | None = None
    import_ms: float | None = None
    load_ms: float | None = None
    first_answer_ms: float | None = None
    difference: float | None = None
    peak_bytes: int | None = None
    best_ms: float | None = None
    rounds_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float | None:
        """Return the median of the rounds, None where the engine failed."""
        return statistics.median(self.rounds_ms) if self.rounds_ms and self.error is None else None


def difference(actual: list[Array], expected: list[Array], *, steps: Sequence[float] | None = None) -> float | None:
    """Return how far outputs lie apart in the one that differs most, or None where they do not correspond.

    Outputs correspond by order. Where an engine moves axes, the values are compared sorted.

    Parameters
    ----------
    actual, expected : list of arrays
        All outputs.
    steps : sequence of float, optional
        For a model with codes: what one code of each output is worth. Then a difference counts from one step on, also in
        outputs of bytes, and the root mean square is taken, relative to that of the expected values; else the largest
        difference relative to the largest value, of floats alone.
    """
    if [value.size for value in actual] != [value.size for value in expected]:
        return None
    worst = 0.0
    for index, (left, right) in enumerate(zip(actual, expected, strict=True)):
        is_compared = right.dtype.kind == "f" or (steps is not None and right.dtype in (np.uint8, np.int8))
        if not is_compared or not right.size:
            continue
        flat_left, flat_right = left.ravel().astype(np.float64), right.ravel().astype(np.float64)
        if left.squeeze().shape != right.squeeze().shape:
            flat_left, flat_right = np.sort(flat_left), np.sort(flat_right)
        error = np.abs(flat_left - flat_right)
        if steps is not None:
            error = np.maximum(error - steps[index] * (1 + 1e-6), 0)
            size = math.sqrt(float(np.mean(np.square(error))) / max(float(np.mean(np.square(flat_right))), 1e-60))
        else:
            size = float(error.max()) / max(float(np.abs(flat_right).max()), 1e-30)
        worst = max(worst, size)
    return worst


def _read_structure(path: Path) -> tuple[list[str], list[float] | None]:
    """Return the names of a model's outputs, and what one code of each is worth, None where it has no codes anywhere."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    graphs, nodes = [model.graph], [node for function in model.functions for node in function.node]
    while graphs:
        nodes += (graph := graphs.pop()).node
        graphs += [item.g for node in graph.node for item in node.attribute if item.type == onnx.AttributeProto.GRAPH]
    names = [output.name for output in model.graph.output]
    if not any(_CODE_OPERATORS.search(node.op_type) for node in nodes):
        return names, None
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = {item.name: item for item in model.graph.initializer}
    constants |= {name: node.attribute[0].t for name, node in makers.items() if node.op_type == "Constant"}
    bytes_ = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8)
    steps = [float(output.type.tensor_type.elem_type in bytes_) for output in model.graph.output]
    for index, name in enumerate(names):
        node = makers.get(name)
        if node is not None and node.op_type == "DequantizeLinear" and node.input[1] in constants:
            steps[index] = float(onnx.numpy_helper.to_array(constants[node.input[1]]).max(initial=0))
    return names, steps


class Benchmark:
    """All engines on one model, each in a process of its own that is stopped while others run.

    Parameters
    ----------
    engines : mapping of str to Engine
        By the names of the table.
    job : Job
        What they do.
    pythons : mapping of str to str
        Interpreters of engines that live in another environment.
    reference : str
        The engine that the outputs of all others are compared with, where it runs the model.
    """

    def __init__(
        self,
        engines: Mapping[str, Engine],
        job: Job,
        *,
        pythons: Mapping[str, str] | None = None,
        reference: str = "ort",
    ) -> None:
        self.measured: dict[str, Measured] = {}
        self._engines = dict(engines)
        self._job = job
        self._pythons = dict(pythons or {})
        self._reference = reference
        self._processes: dict[str, EngineProcess] = {}
        self._steps: list[float] | None = None
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Benchmark:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.close()
        self._folder.cleanup()

    def _fail(self, engine: str, reason: str) -> None:
        self.measured[engine].error = reason
        self._processes.pop(engine).close()

    def _outputs(self, engine: str) -> list[list[Array]]:
        """Return what an engine computes from two of the sets of inputs."""
        found = []
        for variant in (0, VARIANTS - 1):
            path = Path(self._folder.name) / f"{engine}.npz"
            request = {"do": "outputs", "path": str(path), "variant": variant}
            self._processes[engine].ask(request, self._job.timeout_s)
            with np.load(path) as stored:
                found.append([stored[f"a{index}"] for index in range(len(stored.files))])
        return found

    def _start(self, name: str, task: dict[str, Any]) -> dict[str, float]:
        """Start an engine, anew where it runs already, and return the milliseconds of its import, load and first answer."""
        engine, timeout_s = self._engines[name], self._job.timeout_s
        if name in self._processes:
            self._processes.pop(name).close()
        process = EngineProcess(engine.adapter, self._job.threads, self._pythons.get(name, sys.executable))
        self._processes[name] = process
        answer = process.ask({"do": "version"}, timeout_s)
        self.measured[name].version = answer["version"]
        loaded = process.ask({"do": "load", "task": {**task, "options": dict(engine.options)}}, timeout_s)
        process.hold()
        first_ms = answer["import_ms"] + loaded["load_ms"] + loaded["first_ms"]
        return {"import_ms": answer["import_ms"], "load_ms": loaded["load_ms"], "first_answer_ms": first_ms}

    def load(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Start every engine on the model, one after the other, and compare what they compute.

        Parameters
        ----------
        progress : callable
            Told what is done next.
        """
        job = self._job
        stored = Path(self._folder.name) / "inputs.npz"
        outputs_of_model, self._steps = _read_structure(job.path)
        arrays: dict[str, Any] = {
            f"a{index}": value.astype("U") if value.dtype.kind == "O" else value
            for index, value in enumerate(job.inputs.values())
        }
        np.savez(stored, **arrays)
        task = {
            "name": job.name,
            "path": str(job.path),
            "inputs": str(stored),
            "input_names": list(job.inputs),
            "outputs": outputs_of_model,
            "threads": job.threads,
            "cache": str(job.cache),
            "network": job.network,
            "tflite": str(job.tflite) if job.tflite else None,
        }
        names = list(self._engines)
        answers: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        self.measured = {name: Measured() for name in names}
        # Or the first to start would be the one that waits for the disk, and where the machine is a virtual one, for
        # memory that its host has not given it yet. No more than an engine takes, and free again before the first.
        size = len(job.path.read_bytes())
        written = b"\1" * (2 * size)
        del written
        for start in range(job.starts):
            # Whoever comes first in a start comes last in the next, and only the processes of the last start stay.
            for name in names[start % len(names) :] + names[: start % len(names)]:
                if self.measured[name].error is not None:
                    continue
                progress(f"{name} loads")
                try:
                    answers[name].append(self._start(name, task))
                except EngineError as error:
                    self._fail(name, str(error))
        outputs = {}
        for name in list(self._processes):
            found = self.measured[name]
            found.import_ms, found.load_ms, found.first_answer_ms = (
                statistics.median(answer[key] for answer in answers[name])
                for key in ("import_ms", "load_ms", "first_answer_ms")
            )
            process = self._processes[name]
            process.release()
            try:
                outputs[name] = self._outputs(name)
                process.hold()
            except EngineError as error:
                self._fail(name, str(error))
        if self._reference in outputs:
            for name, variants in outputs.items():
                self._compare(name, variants, outputs[self._reference])

    def _compare(self, engine: str, actual: list[list[Array]], expected: list[list[Array]]) -> None:
        """Compare the values on the given inputs, and whether other inputs give other outputs.

        The values on the other inputs, which no user chose, may be unstable: a detector orders near-equal scores.
        """
        largest = LARGEST_DIFFERENCE if self._steps is None else LARGEST_CODE_DIFFERENCE
        found = self.measured[engine].difference = difference(actual[0], expected[0], steps=self._steps)
        if found is None or not found <= largest:
            sizes = [[value.size for value in item] for item in (actual[0], expected[0])]
            what = f"sizes {sizes[0]}, expected {sizes[1]}" if found is None else f"off by {found:.2g}"
            self._fail(engine, f"outputs differ from {self._reference}'s: {what}")
        elif difference(*actual) == 0 and (difference(*expected) or 0.0) > LARGEST_DIFFERENCE:
            self._fail(engine, "other inputs give the same outputs")

    def round(self, number: int) -> None:
        """Measure every engine once while the others are stopped; the round's number says which begins."""
        names = [name for name in self._engines if name in self._processes]
        begin = number % len(names) if names else 0
        for name in names[begin:] + names[:begin]:
            process, found = self._processes[name], self.measured[name]
            process.release()
            try:
                answer = process.ask({"do": "measure", "seconds": self._job.slice_s}, self._job.timeout_s)
                times = [time / 1e3 for time in answer["times_us"]]
                found.best_ms = min([*times, *([found.best_ms] if found.best_ms is not None else [])])
                found.rounds_ms.append(statistics.median(times))
                found.cpu_ms.append(answer["cpu_us"] / 1e3)
                found.peak_bytes = answer["peak_bytes"]
                process.hold()
            except EngineError as error:
                self._fail(name, str(error))

    def idle_percent(self) -> dict[str, float]:
        """Return what each engine's threads burn from 50 ms after its calls on, in percent of one core."""
        found = {}
        for name in list(self._processes):
            process = self._processes[name]
            process.release()
            try:
                found[name] = process.ask({"do": "idle"}, self._job.timeout_s)["idle_percent"]
                process.hold()
            except EngineError as error:
                self._fail(name, str(error))
        return found


def measure(
    engines: Mapping[str, Engine],
    job: Job,
    *,
    pythons: Mapping[str, str] | None = None,
    reference: str = "ort",
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Measured]:
    """Load all engines, run all rounds, and return what each did.

    Parameters
    ----------
    engines : mapping of str to Engine
        By the names of the table.
    job : Job
        What they do.
    pythons : mapping of str to str
        Interpreters of engines that live in another environment.
    reference : str
        The engine that the outputs of all others are compared with.
    progress : callable
        Told what is done next.
    """
    with Benchmark(engines, job, pythons=pythons, reference=reference) as benchmark:
        benchmark.load(progress)
        for number in range(job.rounds):
            progress(f"round {number + 1} of {job.rounds}")
            benchmark.round(number)
        return benchmark.measured
