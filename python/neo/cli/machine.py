"""``neo machine``."""

from __future__ import annotations

import argparse

from neo import _native
from neo.cli.arguments import add_json, add_target, check_folder, print_json

HELP = "the figures of this machine that estimates use"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_target(command)
    command.add_argument("--measure", action="store_true", help="measure them: what NEO_MACHINE names a file of")
    add_json(command, "the figures")


def run(options: argparse.Namespace) -> None:
    """Print the figures, as a file that NEO_MACHINE may name."""
    if options.json:
        check_folder(options.json, "--json")
    if options.measure:
        text = _native.measure_machine(options.target, options.threads or _native.default_threads())
    else:
        text = _native.machine_text(options.target)
    if options.json:
        print_json(options.json, _figures(text))
    if options.json != "-":
        print(text, end="")


def _figures(text: str) -> dict[str, float]:
    """The numbers of a machine's lines ``name = value``."""
    pairs = (line.partition("#")[0].partition("=") for line in text.splitlines())
    return {name.strip(): float(value) for name, equals, value in pairs if equals}
