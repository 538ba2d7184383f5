"""The commands ``neo tune`` and ``neo db``."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

import numpy as np

from neo.compile import compile as compile_model
from neo.errors import ModelError
from neo.report.table import render_table
from neo.report.write import write_whole
from neo.tune.database import Database, Record, default_path
from neo.tune.exchange import FORMATS, read_records, write_records
from neo.tune.machine import kernels_fingerprint
from neo.tune.report import ratio_table

__all__ = ["add_commands", "add_database", "budget_of"]

Run = Callable[[argparse.Namespace], int | None]
Sizes = Callable[[argparse.Namespace], Mapping[str, int]]

_AGE = re.compile(r"(\d+(?:\.\d+)?)(h|d|w)")
_AGE_SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def add_commands(add: Callable[[str, Run, str], argparse.ArgumentParser], sizes: Sizes) -> None:
    """Add both; `add` makes a command by name, what it runs and its help, `sizes` reads ``--shape``."""
    command = add(
        "tune", lambda options: _tune(options, sizes), "measure what models' nodes may be run by, and keep the times"
    )
    command.add_argument("models", nargs="*", metavar="model", help="ONNX files")
    command.add_argument("--target", default="cpu", help="cpu, cpu:avx2, ... (neo targets)")
    command.add_argument("--threads", type=int, help="threads of a call (default: the cores this process may use)")
    command.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE", help="fix a symbolic size")
    command.add_argument(
        "--budget", metavar="BUDGET", help="measure each model for at most a time such as 60s, or so many trials"
    )
    command.add_argument("--report", action="store_true", help="print how far the models' times are from the estimates")
    add_database(command)

    command = add("db", _help_db, "look into tuning databases, merge, prune and exchange them")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)

    def add_action(name: str, run: Run, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help_text, description=help_text)
        action.set_defaults(run=run)
        add_database(action)
        return action

    add_action("summary", _summary, "what it holds, and how far measured times are from estimates")
    add_action("list", _list, "every row")
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


def add_database(command: argparse.ArgumentParser) -> None:
    """Add the option that every command with a database has."""
    command.add_argument("--database", metavar="FILE", help="where measured times are kept (docs/tuning.md)")


def budget_of(text: bool | str) -> bool | int | str:
    """A time, or a number of trials."""
    return int(text) if isinstance(text, str) and text.isdigit() else text


def _tune(options: argparse.Namespace, sizes: Sizes) -> None:
    if not options.models:
        msg = "[cli] tune must be given models. Got none, expected ONNX files"
        raise ModelError(msg)
    ratios: dict[str, list[tuple[int, float]]] = {}
    for model in options.models:
        module = compile_model(
            model,
            target=options.target,
            threads=options.threads,
            shapes=sizes(options),
            tune=True if options.budget is None else budget_of(options.budget),
            database=options.database,
        )
        print(f"{Path(model).name}: {module.tuning}")
        for routine, ratio in (module.tuning.ratios if module.tuning else {}).items():
            ratios.setdefault(routine, []).append(ratio)
    if options.report:
        rows = [(r, sum(n for n, _ in of), f"{np.median([x for _, x in of]):.2f}") for r, of in sorted(ratios.items())]
        print(render_table(("routine", "times", "measured / estimated"), rows, right=(1, 2)))


def _help_db(_: argparse.Namespace) -> int:
    raise AssertionError("an action is required")


def _path(options: argparse.Namespace) -> Path:
    return Path(options.database) if options.database else default_path()


def _summary(options: argparse.Namespace) -> None:
    with Database(_path(options), read_only=True) as database:
        print(_path(options))
        for context, workloads, rows in database.contexts():
            print(f"  {context}: {rows} measurements of {workloads} workloads")
        print(ratio_table(database.rows()))


def _list(options: argparse.Namespace) -> None:
    header = ("context", "constants", "us", "spread", "estimate", "rounds", "measured", "candidate", "workload")
    with Database(_path(options), read_only=True) as database:
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
    form = options.format or (FORMATS.get(Path(options.file).suffix) if options.file else None) or "jsonl"
    with _existing(_path(options)) as database:
        if options.file is None:
            write_records(database.records(), sys.stdout, form)
            return
        import io

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
