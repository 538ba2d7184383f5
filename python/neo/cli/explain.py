"""``neo explain``."""

from __future__ import annotations

import argparse
from pathlib import Path

from neo.cli.arguments import add_json, add_model, check_folder, inputs_of, module_of, print_json
from neo.errors import Error

HELP = "which routine runs each node, and why"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(command)
    command.add_argument("node", nargs="?", help="one node or value: all its options")
    command.add_argument(
        "--measure",
        action=argparse.BooleanOptionalAction,
        help="measure the module beside the selection's total (default: with all nodes)",
    )
    command.add_argument("--html", metavar="FILE", help="write a page of graph, memory and choices")
    add_json(command, "all of it")


def run(options: argparse.Namespace) -> None:
    """Print the choices of every node, or all options of one."""
    for name in ("json", "html"):
        if path := getattr(options, name):
            check_folder(path, f"--{name}")
    module = module_of(options)
    measure = options.node is None if options.measure is None else options.measure
    refusal = ""
    try:
        explanation = module.explain(options.node, inputs_of(options, module) if measure else None)
    except Error as error:
        if options.measure or not measure:
            raise
        explanation = module.explain(options.node)
        refusal = f"not measured: {error}"
    if options.json:
        print_json(options.json, explanation.data)
    if options.json != "-":
        print(explanation)
        if refusal:
            print(refusal)
    if options.html:
        explanation.html(options.html, title=Path(options.model).stem)
