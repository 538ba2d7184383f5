"""``neo export``."""

from __future__ import annotations

import argparse

HELP = "write the sources of a library that runs one saved module and nothing else"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="a module that neo compile wrote (.neo)")
    command.add_argument("--out", required=True, metavar="DIR", help="where to write: a new or empty folder")


def run(options: argparse.Namespace) -> None:
    """Write the sources."""
    from neo.standalone import export

    done = export(options.model, options.out)
    print(f"{done.folder}: {done.sources} sources for {done.target}, routines: {', '.join(done.routines)}")
