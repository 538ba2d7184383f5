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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from neo.bench import Engine, Job, Measured, measure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import environment, pictures, results
from benchmarks.limits import Limits, measure_limits
from benchmarks.peers import ENGINES, OURS
from benchmarks.results import Cell, Row, Table
from benchmarks.suites import SUITES, WITHOUT_LIMIT, Entry, find_entries
from benchmarks.work import count_work


def _engines(arguments: argparse.Namespace) -> dict[str, Engine]:
    """Return the engines asked for; the times that tuning measures are kept in the cache, if nowhere else."""
    engines = {}
    for name in arguments.engines:
        engine = ENGINES[name]
        if engine.options.get("tune"):
            database = arguments.database or arguments.cache / "tuning.db"
            engine = Engine(engine.adapter, {**engine.options, "database": str(database)})
        engines[name] = engine
    return engines


def _cell(engine: str, found: Measured, stamp: str) -> Cell:
    """Return what the table keeps of a measurement."""
    version = f"{found.version} ({environment.commit()})" if engine in OURS and found.version else found.version
    if engine == "neo-tuned" and version:
        version = version.replace("neo ", "neo tuned ", 1)
    cell = Cell(version=version, error=found.error, difference=found.difference, load_ms=found.load_ms, stamp=stamp)
    cell.import_ms, cell.first_answer_ms = found.import_ms, found.first_answer_ms
    cell.peak_bytes, cell.best_ms = found.peak_bytes, found.best_ms
    if found.median_ms is not None:
        cell.median_ms, cell.low_ms, cell.high_ms = found.median_ms, min(found.rounds_ms), max(found.rounds_ms)
        cell.cpu_ms, cell.rounds = statistics.median(found.cpu_ms), len(found.rounds_ms)
        cell.rounds_ms = [round(time, 6) for time in found.rounds_ms]
    return cell


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
    def tell(what: str) -> None:
        progress.update(bar, description=f"{entry.name}, {threads}: {what}")

    stamp = datetime.datetime.now(tz=datetime.timezone.utc).isoformat(timespec="seconds")
    try:
        tell("prepare")
        path, feeds = entry.prepare(arguments.cache)
        row = _row(path, feeds, limits)
        job = Job(
            entry.name,
            path,
            feeds,
            threads,
            arguments.cache,
            rounds=arguments.rounds,
            slice_s=arguments.slice,
            timeout_s=arguments.timeout,
            starts=arguments.starts,
            network=entry.network,
            tflite=entry.tflite,
        )
        found = measure(_engines(arguments), job, pythons=arguments.python, progress=tell)
        row.cells = {engine: _cell(engine, item, stamp) for engine, item in found.items()}
    except (OSError, ImportError, ValueError) as error:
        row = Row(cells={engine: Cell(error=f"model: {error}") for engine in arguments.engines})
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
    usual = ",".join(name for name in ENGINES if name != "neo-tuned")
    parser.add_argument(
        "--engines", default=usual, help=f"of {', '.join(ENGINES)}, separated by commas (default: %(default)s)"
    )
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds per model (default: %(default)s)")
    parser.add_argument("--slice", type=float, default=0.5, help="seconds per engine and round (default: %(default)s)")
    parser.add_argument("--starts", type=int, default=3, help="starts of every engine (default: %(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=600, help="seconds an engine may be silent (default: %(default)s)"
    )
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PATH", help="interpreter of an engine")
    parser.add_argument("--database", type=Path, help="of neo-tuned's times (default: one in the cache)")
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


def _draw(table: Table, page_path: Path, console: Console) -> None:
    """Draw the pictures of a table, or say why there are none."""
    try:
        pictures.draw(table, page_path.parent / "pictures")
    except ImportError as error:
        console.print(f"no pictures: {error}", highlight=False)


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that measures the same again, without the places of files on this machine."""
    words = ["--suite", arguments.suite, "--engines", ",".join(arguments.engines)]
    words += ["--models", arguments.models] if arguments.models else []
    words += ["--threads", ",".join(map(str, arguments.threads))]
    words += ["--rounds", str(arguments.rounds), "--slice", str(arguments.slice)]
    words += ["--starts", str(arguments.starts)] if arguments.starts != 3 else []
    return "python -m benchmarks.run " + shlex.join(words)


def main() -> None:
    """Run the tables that the command line asks for."""
    arguments = parse()
    command = _command(arguments)
    json_path = results.json_beside(arguments.results)
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("limits", total=len(arguments.entries) * len(arguments.threads))
        for threads in arguments.threads:
            limits = None if arguments.suite in WITHOUT_LIMIT else measure_limits(threads)
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
            _draw(results.read_tables(json_path)[table.key], arguments.results, console)
    results.write_page(json_path, arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
