"""``neo machine``."""

from __future__ import annotations

import argparse

from neo import _native
from neo.cli.arguments import add_target

HELP = "the figures of this machine that estimates use"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_target(command)
    command.add_argument("--measure", action="store_true", help="measure them: what NEO_MACHINE names a file of")


def run(options: argparse.Namespace) -> None:
    """Print the figures, as a file that NEO_MACHINE may name."""
    if options.measure:
        print(_native.measure_machine(options.target, options.threads or _native.default_threads()), end="")
    else:
        print(_native.machine_text(options.target), end="")
