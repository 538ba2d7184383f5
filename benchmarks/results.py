"""The record of all measurements, from which ``benchmarks.page`` makes the page.

A record is a folder of one machine in ``benchmarks/results``. Its ``results.json`` holds one table per suite and number of threads, one row per model, one cell per engine: its
rounds, or why there are none; and the sections that other scripts wrote. ``RESULTS.md`` is written from it as a whole.
Both are replaced atomically; a run replaces the cells that it measured, and drops the cells of a table that were
measured on another machine or with another version of an engine. ``benchmarks.overview`` has a line for each table.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import page

#: What a command writes that names no record: git ignores it.
PAGE_PATH = Path(__file__).parent / "results" / "local" / "RESULTS.md"
JSON_PATH = PAGE_PATH.with_name("results.json")


@dataclass
class Cell:
    """What one engine did on one model, or why it did not.

    ``median_ms`` is the median of the rounds' medians, ``low_ms`` and ``high_ms`` the least and the largest of these,
    ``best_ms`` the least time of a single call, ``cpu_ms`` the processor time of all threads per call, which says more
    than time where other programs run. ``difference`` is how far the outputs are from onnxruntime's. ``rounds_ms`` are
    the rounds' medians, ``stamp`` says when: only cells of one stamp were measured in turn. ``first_answer_ms`` is the
    time from the file to the first outputs, the engine's import counted, ``import_ms`` that import, ``peak_bytes`` the
    memory that the engine and the model took at most.
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
    stamp: str = ""
    rounds_ms: list[float] = field(default_factory=list)
    import_ms: float | None = None
    first_answer_ms: float | None = None
    peak_bytes: int | None = None


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
    limits: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    rows: dict[str, Row] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the name of the table in the record."""
        return f"{self.suite}-{self.threads}"


@dataclass
class Section:
    """A table of another script: what it shows, its columns, its rows, and what to know about them."""

    title: str
    text: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


def _table(fields: dict[str, Any]) -> Table:
    rows = {
        name: Row(**{**row, "cells": {engine: Cell(**cell) for engine, cell in row["cells"].items()}})
        for name, row in fields["rows"].items()
    }
    return Table(**{**fields, "rows": rows})


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def read_tables(path: Path = JSON_PATH) -> dict[str, Table]:
    """Return all recorded tables, none where there is no record yet."""
    return {key: _table(fields) for key, fields in _read(path).items() if key != "sections"}


def read_sections(path: Path = JSON_PATH) -> dict[str, Section]:
    """Return the recorded sections of other scripts."""
    return {key: Section(**fields) for key, fields in _read(path).get("sections", {}).items()}


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step: readers see the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
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
    _write(tables, read_sections(json_path), json_path, page_path)


def record_section(key: str, section: Section, json_path: Path = JSON_PATH, page_path: Path = PAGE_PATH) -> None:
    """Replace a section of the record and write both files.

    Parameters
    ----------
    key : str
        Its place in the record.
    section : Section
        What the page shows.
    json_path, page_path : Path
        The two files.
    """
    _write(read_tables(json_path), {**read_sections(json_path), key: section}, json_path, page_path)


def _write(tables: dict[str, Table], sections: dict[str, Section], json_path: Path, page_path: Path) -> None:
    fields: dict[str, Any] = {key: asdict(tables[key]) for key in sorted(tables)}
    if sections:
        fields["sections"] = {key: asdict(sections[key]) for key in sorted(sections)}
    write_atomically(json_path, json.dumps(fields, indent=1) + "\n")
    write_page(json_path, page_path)


def write_page(json_path: Path = JSON_PATH, page_path: Path = PAGE_PATH) -> None:
    """Write the page from the record."""
    text = page.page(read_tables(json_path), read_sections(json_path), page_path.parent / "pictures")
    write_atomically(page_path, text)


def json_beside(page_path: Path) -> Path:
    """Return where the record of a page is."""
    return page_path.with_name(page_path.stem.lower() + ".json")
