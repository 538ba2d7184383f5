"""``neo profile``."""

from __future__ import annotations

import argparse
from pathlib import Path

from neo.cli.arguments import (
    add_json,
    add_model,
    check_folder,
    check_picture,
    check_top,
    inputs_of,
    module_of,
    print_json,
)
from neo.errors import ModelError
from neo.report.profile import Profile

HELP = "where the time goes, step by step"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(command)
    command.add_argument("--top", type=int, default=25, help="rows of the table")
    add_json(command, "the profile")
    command.add_argument("--timeline", metavar="FILE", help="draw a timeline (needs matplotlib)")
    command.add_argument("--html", metavar="FILE", help="write a page of graph, timeline, roofline, memory and choices")
    command.add_argument(
        "--against",
        metavar="MODEL",
        help="another form of the model, ONNX or .neo: both side by side; --html is then that page",
    )
    command.add_argument("--trace", metavar="FILE", help="write a trace for Perfetto or chrome://tracing")


def run(options: argparse.Namespace) -> None:
    """Measure every step, and print or write what was found."""
    for name in ("json", "html", "trace"):
        if path := getattr(options, name):
            check_folder(path, f"--{name}")
    check_picture(options.timeline, "--timeline")
    check_top(options.top)
    if options.against and (options.json or options.timeline or options.trace):
        msg = "[cli] --against must be alone or with --html. Got --json, --timeline or --trace"
        raise ModelError(msg)
    profile = _measured(options)
    if options.against:
        names = (options.model, options.against)
        if names[0] == names[1]:
            names = (f"{names[0]} (1)", f"{names[1]} (2)")
        other = _measured(argparse.Namespace(**{**vars(options), "model": options.against}))
        comparison = profile.compare(other, names)
        print(comparison.table(options.top))
        if options.html:
            comparison.html(options.html)
        return
    if options.json != "-":
        print(profile.table(options.top))
    if options.json:
        print_json(options.json, profile.to_json())
    if options.timeline:
        profile.timeline().savefig(options.timeline, dpi=120)
    if options.html:
        profile.html(options.html, title=Path(options.model).stem)
    if options.trace:
        profile.trace(options.trace)


def _measured(options: argparse.Namespace) -> Profile:
    module = module_of(options)
    return module.profile(inputs_of(options, module))
