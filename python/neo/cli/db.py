"""``neo db``."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from neo.cli.arguments import add_database, add_json, check_folder, print_json
from neo.errors import ModelError
from neo.report.table import render_table
from neo.report.write import write_whole
from neo.tune.database import Database, Record, default_path
from neo.tune.exchange import FORMATS, read_records, write_records
from neo.tune.machine import kernels_fingerprint
from neo.tune.report import ratio_table

HELP = "look into tuning databases, merge, prune and exchange them"

Run = Callable[[argparse.Namespace], int | None]

# The actions on one database, which may be named behind them or before.
_OF_FILE = ("summary", "list", "clear", "prune")

_AGE = re.compile(r"(\d+(?:\.\d+)?)(h|d|w)")
_AGE_SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the actions, each of which is run by a function of its own."""
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)

    def add_action(name: str, run: Run, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help_text, description=help_text)
        action.set_defaults(run=run)
        if name in _OF_FILE:
            action.add_argument("path", nargs="?", metavar="file", help="a database; the same as --database")
        add_database(action)
        return action

    add_json(
        add_action("summary", _summary, "what it holds, and how far measured times are from estimates"),
        "it",
    )
    add_json(add_action("list", _list, "every row"), "the rows")
    action = add_action("clear", _clear, "delete what was measured")
    action.add_argument("--stale", action="store_true", help="only what was measured with other kernels")
    action = add_action("prune", _prune, "delete what is old, or what is behind")
    action.add_argument("--older", metavar="AGE", help="measured longer ago than 90d, 12w, 36h, ...")
    action.add_argument("--best", type=int, metavar="N", help="keep only the N fastest of each workload")
    action = add_action("export", _export, "write everything as JSON lines or comma-separated values")
    action.add_argument("file", nargs="?", help="a .jsonl or .csv file (default: the standard output)")
    action.add_argument("--format", choices=sorted(FORMATS.values()), help="default: by the file's name, else jsonl")
    action = add_action("import", _import, "read what export wrote; all files, or none where a line is wrong")
    action.add_argument("files", nargs="+", metavar="file", help=".jsonl or .csv files")
    action.add_argument("--format", choices=sorted(FORMATS.values()), help="default: by each file's name")
    action = actions.add_parser("merge", help="put databases into one", description="put databases into one")
    action.set_defaults(run=_merge)
    action.add_argument("files", nargs="+", metavar="file", help="databases; they stay as they are")
    action.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="made, or added to; of two measurements the later stays"
    )


def action_first(arguments: Sequence[str]) -> list[str]:
    """Turn ``db FILE ACTION``, for an action that takes a database, into the ``db ACTION FILE`` that the parser knows."""
    if len(arguments) > 2 and arguments[0] == "db" and arguments[1] not in _OF_FILE and arguments[2] in _OF_FILE:
        return ["db", arguments[2], arguments[1], *arguments[3:]]
    return list(arguments)


def run(_: argparse.Namespace) -> int:
    """Fail: the parser asks for an action, whose function is run instead."""
    raise AssertionError("an action is required")


def _path(options: argparse.Namespace) -> Path:
    given = getattr(options, "path", None)
    if given and options.database and given != options.database:
        msg = f"[cli] a database must be given once. Got {given!r} and {options.database!r}"
        raise ModelError(msg)
    return Path(given or options.database) if given or options.database else default_path()


def _summary(options: argparse.Namespace) -> None:
    if options.json:
        check_folder(options.json, "--json")
    with _named(options) as database:
        if options.json:
            contexts = [{"context": str(c), "workloads": w, "measurements": n} for c, w, n in database.contexts()]
            print_json(options.json, {"database": str(_path(options)), "contexts": contexts})
        if options.json == "-":
            return
        print(_path(options))
        for context, workloads, rows in database.contexts():
            print(f"  {context}: {rows} measurements of {workloads} workloads")
        print(ratio_table(database.rows()))


def _list(options: argparse.Namespace) -> None:
    header = ("context", "constants", "us", "spread", "estimate", "rounds", "measured", "candidate", "workload")
    if options.json:
        check_folder(options.json, "--json")
    with _named(options) as database:
        if options.json:
            text = io.StringIO()
            write_records(database.records(), text, "jsonl")
            print_json(options.json, [json.loads(line) for line in text.getvalue().splitlines()])
        if options.json == "-":
            return
        print(render_table(header, [_listed(record) for record in database.records()], right=(2, 3, 4, 5)))


def _listed(record: Record) -> tuple[object, ...]:
    c, row = record.context, record.row
    took = row.failure or f"{row.time_us:.2f}"
    spread = "" if row.spread_us is None or not row.time_us else f"{row.spread_us / row.time_us:.0%}"
    when = time.strftime("%Y-%m-%d", time.gmtime(record.made))
    kind = f"{c.target} x{c.threads} {c.kernels}"
    values = (kind, record.cache_level, took, spread, f"{row.estimate_us:.2f}", row.rounds)
    return (*values, f"{when} {record.version}".rstrip(), row.candidate, record.workload)


def _clear(options: argparse.Namespace) -> None:
    path = _path(options)
    if not path.exists():
        print(f"{path}: no database")
        return
    with Database(path) as database:
        keep = {"kernels": kernels_fingerprint()} if options.stale else None
        print(f"{path}: {database.clear(keep=keep)} measurements deleted")


def _prune(options: argparse.Namespace) -> None:
    if options.older is None and options.best is None:
        msg = "[cli] prune must be told what to delete. Got neither, expected --older, --best or both"
        raise ModelError(msg)
    before = None
    if options.older is not None:
        match = _AGE.fullmatch(options.older)
        if match is None:
            msg = f"[cli] --older must be a time. Got {options.older!r}, expected 90d, 12w, 36h or the like"
            raise ModelError(msg)
        before = time.time() - float(match[1]) * _AGE_SECONDS[match[2]]
    if options.best is not None and options.best < 1:
        msg = f"[cli] --best must be positive. Got {options.best}, expected 1 or more"
        raise ModelError(msg)
    path = _path(options)
    if not path.exists():
        print(f"{path}: no database")
        return
    with Database(path) as database:
        print(f"{path}: {database.prune(before=before, best=options.best)} measurements deleted")


def _export(options: argparse.Namespace) -> None:
    if options.file is not None:
        check_folder(options.file, "the file to export to")
    form = options.format or (FORMATS.get(Path(options.file).suffix) if options.file else None) or "jsonl"
    with _existing(_path(options)) as database:
        if options.file is None:
            write_records(database.records(), sys.stdout, form)
            return
        text = io.StringIO()
        count = write_records(database.records(), text, form)
    write_whole(options.file, text.getvalue())
    print(f"{options.file}: {count} measurements")


def _import(options: argparse.Namespace) -> None:
    forms = [options.format or FORMATS.get(Path(name).suffix) for name in options.files]
    for name, form in zip(options.files, forms, strict=True):
        if form is None:
            msg = f"[cli] a file to import must be JSON lines or a table. Got {name!r}, expected .jsonl or .csv, or --format"
            raise ModelError(msg)
    with contextlib.ExitStack() as stack:
        files: list[TextIO] = [
            stack.enter_context(Path(name).open(newline="", encoding="utf-8")) for name in options.files
        ]
        records = [
            record
            for file, form, name in zip(files, forms, options.files, strict=True)
            for record in read_records(file, form or "", name)
        ]
    path = _path(options)
    with Database(path) as database:
        print(f"{path}: {database.add(records)} of {len(records)} measurements were new")


def _merge(options: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(_existing(Path(name))) for name in options.files]
        with Database(options.output) as output:
            for name, source in zip(options.files, sources, strict=True):
                print(f"{name}: {output.merge(source)} measurements were new")
    print(f"{options.output}: written")


def _existing(path: Path) -> Database:
    if not path.exists():
        raise ModelError(f"[cli] a database must exist. Got none - at {path}")
    return Database(path, read_only=True)


def _named(options: argparse.Namespace) -> Database:
    """The database to look into: a file that is named must exist; the one that commands use may be still to come."""
    return _existing(_path(options)) if options.path else Database(_path(options), read_only=True)
