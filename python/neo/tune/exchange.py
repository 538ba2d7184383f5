"""Measurements as text that other programs read: JSON lines, or comma-separated values."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, TextIO

from neo.errors import ModelError
from neo.tune.database import Record, Row
from neo.tune.machine import Context

__all__ = ["FORMATS", "read_records", "write_records"]

#: Names of the formats, by the suffix of a file.
FORMATS = {".jsonl": "jsonl", ".csv": "csv"}

_TEXT = ("workload", "cache_level", "candidate", "routine", "failure", "version", "machine", "kernels", "target")
_NAMES = (
    *("workload", "cache_level", "candidate", "routine", "time_us", "spread_us", "estimate_us", "rounds", "failure"),
    *("made", "version", "machine", "kernels", "target", "threads"),
)


def write_records(records: Iterable[Record], file: TextIO, form: str) -> int:
    """Write records in a format, one a line; returns how many."""
    count = 0
    table = csv.DictWriter(file, _NAMES, lineterminator="\n") if form == "csv" else None
    if table is not None:
        table.writeheader()
    for record in records:
        entry = _entry(record)
        if table is not None:
            table.writerow({name: "" if value is None else value for name, value in entry.items()})
        else:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        count += 1
    return count


def read_records(file: TextIO, form: str, name: str) -> Iterator[Record]:
    """Read back what `write_records` wrote.

    Raises
    ------
    neo.ModelError
        A line that is no such record; `name` is the file's, for the message.
    """
    if form == "csv":
        table = csv.DictReader(file)
        if tuple(table.fieldnames or ()) != _NAMES:
            raise _malformed(name, 1, f"columns {', '.join(table.fieldnames or ()) or '(none)'}", ", ".join(_NAMES))
        for entry in table:
            yield _record({k: _number(k, v) for k, v in entry.items()}, name, table.line_num)
        return
    for line, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            entry = json.loads(text)
        except ValueError as error:
            raise _malformed(name, line, str(error), "a JSON object") from error
        yield _record(entry, name, line)


def _entry(record: Record) -> dict[str, Any]:
    row, context = record.row, record.context
    return {
        "workload": record.workload,
        "cache_level": record.cache_level,
        "candidate": row.candidate,
        "routine": row.routine,
        "time_us": row.time_us,
        "spread_us": row.spread_us,
        "estimate_us": row.estimate_us,
        "rounds": row.rounds,
        "failure": row.failure,
        "made": datetime.fromtimestamp(record.made, timezone.utc).isoformat(),
        "version": record.version,
        "machine": context.machine,
        "kernels": context.kernels,
        "target": context.target,
        "threads": context.threads,
    }


def _number(name: str, text: Any) -> Any:
    """What a field of a table means; text where that is no number, for the message."""
    if name in _TEXT or name == "made" or not isinstance(text, str):
        return text
    if text == "":
        return None
    try:
        return int(text) if name in ("rounds", "threads") else float(text)
    except ValueError:
        return text


def _record(entry: Any, name: str, line: int) -> Record:
    if not isinstance(entry, dict) or set(entry) != set(_NAMES):
        got = f"the keys {', '.join(map(str, entry))}" if isinstance(entry, dict) else type(entry).__name__
        raise _malformed(name, line, got, f"the keys {', '.join(_NAMES)}")

    def need(key: str, is_right: Callable[[Any], bool], expected: str) -> Any:
        value = entry[key]
        if not is_right(value):
            raise _malformed(name, line, f"{key} = {value!r}", expected)
        return value

    for key in _TEXT:
        need(key, lambda v: isinstance(v, str), "text")
    for key in ("time_us", "spread_us"):
        need(key, lambda v: v is None or _is_time(v), "a time of 0 or more, or nothing")
    need("estimate_us", _is_time, "a time of 0 or more")
    need("rounds", lambda v: _is_int(v) and v >= 0, "an integer of 0 or more")
    need("threads", lambda v: _is_int(v) and v > 0, "a positive integer")
    try:
        made = datetime.fromisoformat(need("made", lambda v: isinstance(v, str), "a time"))
    except ValueError as error:
        raise _malformed(name, line, f"made = {entry['made']!r}", "a time such as 2026-01-31T12:00:00+00:00") from error
    fields = ("candidate", "routine", "time_us", "estimate_us", "rounds", "failure", "spread_us")
    row = Row(*(entry[field] for field in fields))
    context = Context(entry["machine"], entry["kernels"], entry["target"], entry["threads"])
    stamp = (made if made.tzinfo else made.replace(tzinfo=timezone.utc)).timestamp()
    return Record(context, entry["workload"], entry["cache_level"], row, stamp, entry["version"])


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < 1 << 31


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _malformed(name: str, line: int, got: str, expected: str) -> ModelError:
    return ModelError(f"[database] a line must be a measurement. Got {got}, expected {expected} - at {name}:{line}")
