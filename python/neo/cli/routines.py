"""``neo routines``."""

from __future__ import annotations

import argparse

from neo import _native
from neo.cli.arguments import add_json, add_target, check_folder, print_json
from neo.report.table import render_table

HELP = "every routine, or those that take a workload with how many schedules"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("workload", nargs="?", help="a workload's text, as explain prints it (docs/workloads.md)")
    add_target(command)
    add_json(command, "them")


def run(options: argparse.Namespace) -> None:
    """Print the names, with a workload the sizes of their spaces."""
    if options.json:
        check_folder(options.json, "--json")
    if options.workload is None:
        names = _native.routine_names()
        if options.json:
            print_json(options.json, names)
        if options.json != "-":
            print("\n".join(names))
        return
    threads = _native.default_threads() if options.threads is None else options.threads
    sizes = _native.space_sizes(options.workload, options.target, threads)
    rows = sorted(sizes.items(), key=lambda item: item[1], reverse=True)
    if options.json:
        print_json(options.json, dict(rows))
    if options.json != "-":
        print(render_table(("routine", "schedules"), rows, right=(1,)))
