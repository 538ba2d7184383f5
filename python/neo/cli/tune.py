"""``neo tune``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from neo.cli.arguments import (
    add_database,
    add_json,
    add_shape,
    add_target,
    budget_of,
    check_folder,
    print_json,
    sizes_of,
)
from neo.compile import compile as compile_model
from neo.errors import ModelError
from neo.report.table import render_table

HELP = "measure what models' nodes may be run by, and keep the times"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("models", nargs="*", metavar="model", help="ONNX files")
    add_target(command)
    add_shape(command)
    command.add_argument(
        "--budget", metavar="BUDGET", help="measure each model for at most a time such as 60s, or so many trials"
    )
    command.add_argument("--report", action="store_true", help="print how far the models' times are from the estimates")
    add_json(command, "what tuning did")
    add_database(command)


def run(options: argparse.Namespace) -> None:
    """Tune each model, and print what it brought."""
    if not options.models:
        msg = "[cli] tune must be given models. Got none, expected ONNX files"
        raise ModelError(msg)
    if options.json:
        check_folder(options.json, "--json")
    ratios: dict[str, list[tuple[int, float]]] = {}
    found = {}
    for model in options.models:
        module = compile_model(
            model,
            target=options.target,
            threads=options.threads,
            shapes=sizes_of(options),
            tune=True if options.budget is None else budget_of(options.budget),
            database=options.database,
        )
        if options.json != "-":
            print(f"{Path(model).name}: {module.tuning}")
        own = module.tuning.ratios if module.tuning else {}
        found[model] = {
            "tuning": str(module.tuning),
            "ratios": {r: {"times": n, "ratio": x} for r, (n, x) in own.items()},
        }
        for routine, ratio in own.items():
            ratios.setdefault(routine, []).append(ratio)
    if options.json:
        print_json(options.json, found)
    if options.report and options.json != "-":
        rows = [(r, sum(n for n, _ in of), f"{np.median([x for _, x in of]):.2f}") for r, of in sorted(ratios.items())]
        print(render_table(("routine", "times", "measured / estimated"), rows, right=(1, 2)))
