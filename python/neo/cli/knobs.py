"""``neo knobs``."""

from __future__ import annotations

import argparse

from neo import _native
from neo.cli.arguments import add_json, check_folder, print_json
from neo.report.table import render_table

HELP = "every environment variable"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_json(command, "them")


def run(options: argparse.Namespace) -> None:
    """Print each variable, its default and what it is now."""
    if options.json:
        check_folder(options.json, "--json")
        print_json(options.json, _native.knobs())
    if options.json != "-":
        rows = [(k["name"], k["type"], k["default"], k["value"], k["summary"]) for k in _native.knobs()]
        print(render_table(("variable", "type", "default", "now", ""), rows))
