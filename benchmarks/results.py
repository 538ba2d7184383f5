"""The record of all measurements and the page made from it.

``results.json`` holds one table per suite and number of threads, one row per model, one cell per engine: a time with
its spread, or why there is none. ``RESULTS.md`` is written from it as a whole. Both are replaced atomically; a run
replaces the cells that it measured, and drops the cells of a table that were measured on another machine or with
another version of an engine.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import ENGINES
from benchmarks.suites import SUITES

JSON_PATH = Path(__file__).parent / "results.json"
#: A load average this much above the number of threads means that other programs were running.
BUSY_LOAD = 1.5

PAGE_PATH = Path(__file__).parent / "RESULTS.md"


@dataclass
class Cell:
    """What one engine did on one model, or why it did not.

    ``median_ms`` is the median of the rounds' medians, ``low_ms`` and ``high_ms`` the least and the largest of these,
    ``best_ms`` the least time of a single call, ``cpu_ms`` the processor time of all threads per call, which says more
    than time where other programs run. ``difference`` is how far the outputs are from onnxruntime's.
    """

    median_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    best_ms: float | None = None
    cpu_ms: float | None = None
    rounds: int = 0
    load_ms: float | None = None
    difference: float | None = None
    error: str | None = None
    version: str = ""


@dataclass
class Row:
    """One model of a table; ``load`` is the machine's load average when its measurement began."""

    gmac: float | None = None
    complete: bool = True
    limit_ms: float | None = None
    measured: str = ""
    load: float = 0.0
    cells: dict[str, Cell] = field(default_factory=dict)


@dataclass
class Table:
    """One suite with one number of threads."""

    suite: str
    threads: int
    environment: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    command: str = ""
    rows: dict[str, Row] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the name of the table in the record."""
        return f"{self.suite}-{self.threads}"


def _table(fields: dict[str, Any]) -> Table:
    rows = {
        name: Row(**{**row, "cells": {engine: Cell(**cell) for engine, cell in row["cells"].items()}})
        for name, row in fields["rows"].items()
    }
    return Table(**{**fields, "rows": rows})


def read_tables(path: Path = JSON_PATH) -> dict[str, Table]:
    """Return all recorded tables, none where there is no record yet."""
    if not path.exists():
        return {}
    return {key: _table(fields) for key, fields in json.loads(path.read_text()).items()}


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step: readers see the old text or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def record(table: Table, json_path: Path = JSON_PATH, page_path: Path = PAGE_PATH) -> None:
    """Merge a table into the record and write both files.

    Parameters
    ----------
    table : Table
        What a run has measured so far.
    json_path, page_path : Path
        The two files.
    """
    tables = read_tables(json_path)
    old = tables.get(table.key)
    if old is not None and old.environment == table.environment:
        cells = [pair for row in table.rows.values() for pair in row.cells.items()]
        versions = {engine: item.version for engine, item in cells if item.version}
        for name, row in old.rows.items():
            merged = table.rows.setdefault(name, row)
            kept = {
                engine: item for engine, item in row.cells.items() if item.version == versions.get(engine, item.version)
            }
            merged.cells = {**kept, **({} if merged is row else merged.cells)}
    tables[table.key] = table
    write_atomically(json_path, json.dumps({key: asdict(tables[key]) for key in sorted(tables)}, indent=1) + "\n")
    write_atomically(page_path, page(tables))


def geometric_mean(values: list[float]) -> float | None:
    """Return the geometric mean, or None of nothing."""
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def _number(value: float | None) -> str:
    """Print three significant digits without an exponent."""
    if value is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{digits}f}"


#: Errors of an engine that is not installed, or that has no way to run a model.
_NOT_THERE = ("ModuleNotFoundError", "ImportError", "NotAvailableError")


def _reasons(table: Table, names: list[str], engines: list[str]) -> list[str]:
    """Return why cells are empty: one line for an engine that has one reason everywhere, else one for each model."""
    lines = []
    for engine in engines:
        cells = {name: table.rows[name].cells[engine] for name in names if engine in table.rows[name].cells}
        errors = {cell.error for cell in cells.values()}
        if len(cells) > 1 and len(errors) == 1 and None not in errors:
            lines.append(f"- {engine}: {errors.pop()}")
        else:
            lines += [f"- {name}, {engine}: {cell.error}" for name, cell in cells.items() if cell.error]
    return lines


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.median_ms is None or cell.low_ms is None or cell.high_ms is None:
        return "n/a" if (cell.error or "").startswith(_NOT_THERE) else "failed"
    spread = (cell.high_ms - cell.low_ms) / cell.median_ms / 2
    return f"{_number(cell.median_ms)} ± {spread:.0%} ({_number(cell.best_ms)})"


def _time(row: Row, engine: str) -> float | None:
    return row.cells[engine].median_ms if engine in row.cells else None


def _best_peer(row: Row) -> tuple[float, str] | None:
    times = [(_time(row, engine), engine) for engine in row.cells if engine != "neo"]
    return min([(time, engine) for time, engine in times if time is not None], default=None)


def _ratio(time: float | None, of: float | None) -> str:
    return f"{time / of:.2f}" if time is not None and of else ""


def render(table: Table) -> str:
    """Return one table as Markdown, with what it was measured on and the reasons of what failed."""
    engines = [engine for engine in ENGINES if any(engine in row.cells for row in table.rows.values())]
    threads = f"{table.threads} thread" + ("s" if table.threads > 1 else "")
    lines = [f"## {SUITES[table.suite][0]}: {threads}", ""]
    head = [
        "model",
        "GMAC",
        *[f"{engine}, ms" for engine in engines],
        "best peer",
        "neo / best",
        "neo / ort",
        "limit, ms",
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    order = [entry.name for entry in SUITES[table.suite][1]()]
    names = sorted(table.rows, key=lambda name: (order.index(name) if name in order else len(order), name))
    for name in names:
        row = table.rows[name]
        best, neo = _best_peer(row), _time(row, "neo")
        gmac = f"{'' if row.complete else '≥ '}{_number(row.gmac)}"
        fields = [name, gmac, *[_cell(row.cells.get(engine)) for engine in engines]]
        fields += [best[1] if best else "", _ratio(neo, best[0] if best else None)]
        fields += [_ratio(neo, _time(row, "ort")), _number(row.limit_ms)]
        lines.append("| " + " | ".join(fields) + " |")
    for engine, of in (("best peer", None), ("onnxruntime", "ort")):
        ratios = []
        for row in table.rows.values():
            best, neo = _best_peer(row), _time(row, "neo")
            against = (best[0] if best else None) if of is None else _time(row, of)
            if neo is not None and against is not None:
                ratios.append(neo / against)
        mean = geometric_mean(ratios)
        if mean is not None:
            lines += ["", f"neo / {engine}, geometric mean of {len(ratios)}: {mean:.2f}; worst {max(ratios):.2f}."]
    disturbed = [name for name in names if table.rows[name].load > BUSY_LOAD + table.threads]
    if disturbed:
        lines += ["", f"Measured while other programs ran, so of little worth: {', '.join(disturbed)}."]
    if reasons := _reasons(table, names, engines):
        lines += ["", "Not measured:", "", *reasons]
    versions = sorted({cell.version for row in table.rows.values() for cell in row.cells.values() if cell.version})
    lines += ["", "Measured on " + "; ".join(f"{key}: {value}" for key, value in table.environment.items()) + "."]
    if table.limits:
        lines.append(f"Limits: {table.limits['gflops']:.0f} GFLOP/s, {table.limits['gbytes']:.0f} GB/s from memory.")
    lines += [f"Engines: {'; '.join(versions)}.", f"Last command: `{table.command}`.", ""]
    return "\n".join(lines)


_HEAD = """# Results

Written by `python -m benchmarks.run`; do not edit. Every engine runs in a process of its own with the same number of
threads and in float32. Rounds are interleaved: in each round every engine is measured in turn while the others are
stopped. A cell is the median of the rounds' medians of single calls, from arrays in memory to arrays in memory, with
half the range of the rounds. "Limit" is the time of all convolutions, matrix products and recurrent layers done
directly at the measured peak of this machine, or at the speed their weights arrive where these exceed 12 MiB; it
leaves out everything else.

"""


def page(tables: dict[str, Table]) -> str:
    """Return the whole page."""
    return _HEAD + "\n".join(render(tables[key]) for key in sorted(tables))
