"""Measure engines beside each other and write the tables: ``python -m benchmarks.run --suite zoo --engines neo,ort``.

A model or engine that fails becomes a cell that says why. Results are written after every model, so a run may be
interrupted.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import environment, results
from benchmarks.limits import Limits, measure_limits
from benchmarks.peers import ENGINES
from benchmarks.process import EngineError, EngineProcess
from benchmarks.results import Cell, Row, Table
from benchmarks.suites import SUITES, Entry, find_entries
from benchmarks.work import count_work

#: A peer whose outputs differ from onnxruntime's by more, relative to the largest value, computes something else.
LARGEST_DIFFERENCE = 0.01


def _save_inputs(feeds: dict[str, np.ndarray], path: Path) -> None:
    arrays: dict[str, Any] = {f"a{index}": value for index, value in enumerate(feeds.values())}
    np.savez(path, **arrays)


def difference(actual: list[np.ndarray], expected: list[np.ndarray]) -> float | None:
    """Return the largest difference relative to the largest value, or None where the outputs do not correspond.

    Outputs correspond by order. Where an engine moves axes, the values are compared sorted.
    """
    if [value.size for value in actual] != [value.size for value in expected]:
        return None
    worst = 0.0
    for left, right in zip(actual, expected, strict=True):
        if right.dtype.kind != "f" or not right.size:
            continue
        flat_left, flat_right = left.ravel().astype(np.float64), right.ravel().astype(np.float64)
        if left.squeeze().shape != right.squeeze().shape:
            flat_left, flat_right = np.sort(flat_left), np.sort(flat_right)
        scale = max(float(np.abs(flat_right).max()), 1e-30)
        worst = max(worst, float(np.abs(flat_left - flat_right).max()) / scale)
    return worst


class ModelRun:
    """All engines on one model with one number of threads."""

    def __init__(self, entry: Entry, arguments: argparse.Namespace, threads: int, folder: Path) -> None:
        self.entry = entry
        self.arguments = arguments
        self.threads = threads
        self.folder = folder
        self.cells: dict[str, Cell] = {}
        self.times: dict[str, list[float]] = {}
        self.cpu_times: dict[str, list[float]] = {}
        self.processes: dict[str, EngineProcess] = {}

    def _fail(self, engine: str, reason: str) -> None:
        self.cells[engine].error = reason
        self.processes.pop(engine).close()

    def _outputs(self, engine: str) -> list[np.ndarray]:
        path = self.folder / f"{engine}.npz"
        self.processes[engine].ask({"do": "outputs", "path": str(path)}, self.arguments.timeout)
        with np.load(path) as stored:
            return [stored[f"a{index}"] for index in range(len(stored.files))]

    def load(self, path: Path, feeds: dict[str, np.ndarray]) -> None:
        """Start every engine on the model and compare what they compute."""
        stored = self.folder / "inputs.npz"
        _save_inputs(feeds, stored)
        task: dict[str, Any] = {
            "name": self.entry.name,
            "path": str(path),
            "inputs": str(stored),
            "input_names": list(feeds),
            "threads": self.threads,
            "cache": str(self.arguments.cache),
            "network": self.entry.network,
            "tflite": str(self.entry.tflite) if self.entry.tflite else None,
        }
        outputs = {}
        for engine in self.arguments.engines:
            python = self.arguments.python.get(engine, sys.executable)
            cell = self.cells[engine] = Cell()
            self.processes[engine] = EngineProcess(engine, self.threads, python)
            try:
                process = self.processes[engine]
                cell.version = process.ask({"do": "version"}, self.arguments.timeout)["version"]
                cell.load_ms = process.ask({"do": "load", "task": task}, self.arguments.timeout)["load_ms"]
                outputs[engine] = self._outputs(engine)
                process.hold()
            except EngineError as error:
                self._fail(engine, str(error))
        if "ort" in outputs:
            for engine, arrays in outputs.items():
                found = difference(arrays, outputs["ort"])
                self.cells[engine].difference = found
                if found is None or not found <= LARGEST_DIFFERENCE:
                    sizes = [[value.size for value in item] for item in (arrays, outputs["ort"])]
                    what = f"sizes {sizes[0]}, expected {sizes[1]}" if found is None else f"off by {found:.2g}"
                    self._fail(engine, f"outputs differ from onnxruntime's: {what}")

    def round(self) -> None:
        """Measure every engine once while the others are held."""
        for engine in list(self.processes):
            process = self.processes[engine]
            process.release()
            try:
                request = {"do": "measure", "seconds": self.arguments.slice}
                answer = process.ask(request, self.arguments.timeout)
                times = [time / 1e3 for time in answer["times_us"]]
                cell = self.cells[engine]
                cell.best_ms = min([*times, *([cell.best_ms] if cell.best_ms is not None else [])])
                self.times.setdefault(engine, []).append(statistics.median(times))
                self.cpu_times.setdefault(engine, []).append(answer["cpu_us"] / 1e3)
                process.hold()
            except EngineError as error:
                self._fail(engine, str(error))

    def finish(self) -> dict[str, Cell]:
        """Return the cells."""
        for engine, times in self.times.items():
            cell = self.cells[engine]
            if cell.error is None:
                cell.median_ms, cell.low_ms, cell.high_ms = statistics.median(times), min(times), max(times)
                cell.cpu_ms, cell.rounds = statistics.median(self.cpu_times[engine]), len(times)
        return self.cells

    def close(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.close()


def _row(path: Path, feeds: dict[str, np.ndarray], limits: Limits | None) -> Row:
    """Return the row of a model before anything ran: its size and its limit, where the graph tells them."""
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    row = Row(measured=today, load=os.getloadavg()[0])
    try:
        work = count_work(path, feeds)
    except Exception:
        row.complete = False
        return row
    row.gmac, row.complete = work.gmac, work.complete
    if limits is not None:
        row.limit_ms = limits.direct_ms(work)
    return row


def _measure_model(
    entry: Entry, arguments: argparse.Namespace, threads: int, limits: Limits | None, progress: Progress, bar: Any
) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        run = ModelRun(entry, arguments, threads, Path(folder))
        try:
            progress.update(bar, description=f"{entry.name}, {threads}: prepare")
            path, feeds = entry.prepare(arguments.cache)
            row = _row(path, feeds, limits)
            progress.update(bar, description=f"{entry.name}, {threads}: load")
            run.load(path, feeds)
            for number in range(arguments.rounds):
                progress.update(bar, description=f"{entry.name}, {threads}: round {number + 1}")
                run.round()
            row.cells = run.finish()
        except (OSError, ImportError, ValueError) as error:
            row = Row(cells={engine: Cell(error=f"model: {error}") for engine in arguments.engines})
        finally:
            run.close()
    return row


def _summary(row: Row) -> str:
    parts = []
    for engine, cell in row.cells.items():
        parts.append(
            f"{engine} {cell.median_ms:.3f} ms" if cell.median_ms is not None else f"{engine} failed: {cell.error}"
        )
    return ", ".join(parts)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure engines beside each other.")
    parser.add_argument("--suite", choices=SUITES, default="networks")
    parser.add_argument("--models", help="names, separated by commas (default: all of the suite)")
    parser.add_argument(
        "--engines", default=",".join(ENGINES), help="names, separated by commas (default: %(default)s)"
    )
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds per model (default: %(default)s)")
    parser.add_argument("--slice", type=float, default=0.5, help="seconds per engine and round (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=600, help="seconds an engine may be silent (default: %(default)s)"
    )
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PATH", help="interpreter of an engine")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    arguments.engines = arguments.engines.split(",")
    unknown = [engine for engine in arguments.engines if engine not in ENGINES]
    if unknown:
        parser.error(f"unknown engine {unknown[0]!r}, expected some of {', '.join(ENGINES)}")
    arguments.threads = [int(word) for word in arguments.threads.split(",")]
    arguments.python = dict(word.split("=", 1) for word in arguments.python)
    arguments.cache = arguments.cache.resolve()
    try:
        arguments.entries = find_entries(arguments.suite, arguments.models.split(",") if arguments.models else None)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that measures the same again, without the places of files on this machine."""
    words = ["--suite", arguments.suite, "--engines", ",".join(arguments.engines)]
    words += ["--models", arguments.models] if arguments.models else []
    words += ["--threads", ",".join(map(str, arguments.threads))]
    words += ["--rounds", str(arguments.rounds), "--slice", str(arguments.slice)]
    return "python -m benchmarks.run " + shlex.join(words)


def main() -> None:
    """Run the tables that the command line asks for."""
    arguments = parse()
    command = _command(arguments)
    json_path = arguments.results.with_name(arguments.results.stem.lower() + ".json")
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("limits", total=len(arguments.entries) * len(arguments.threads))
        for threads in arguments.threads:
            limits = measure_limits(threads)
            table = Table(
                arguments.suite,
                threads,
                environment=environment.describe(),
                limits=asdict(limits) if limits else {},
                command=command,
            )
            for entry in arguments.entries:
                row = _measure_model(entry, arguments, threads, limits, progress, bar)
                table.rows[entry.name] = row
                results.record(table, json_path, arguments.results)
                progress.advance(bar)
                console.print(f"{entry.name}, {threads} threads: {_summary(row)}", highlight=False)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
