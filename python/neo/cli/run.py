"""``neo run``."""

from __future__ import annotations

import argparse

import numpy as np

from neo.cli.arguments import add_model, check_folder, inputs_of, module_of, note_fallbacks
from neo.cli.values import check_output, save_outputs, to_json
from neo.report.table import render_table

HELP = "run a model on inputs from files, or on random ones"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(command)
    command.add_argument("--output", metavar="FILE", help="write the outputs to an .npz or .json file; -: print JSON")


def run(options: argparse.Namespace) -> None:
    """Print each output's dtype, shape and range, or the outputs themselves."""
    if options.output and options.output != "-":
        check_folder(options.output, "--output")
        check_output(options.output)
    module = module_of(options)
    outputs = module.run(inputs_of(options, module))
    note_fallbacks(options, module)
    if options.output == "-":
        print(to_json(outputs))
        return
    rows = []
    for name, x in outputs.items():
        if not isinstance(x, np.ndarray):
            kind = next(spec.dtype for spec in module.outputs if spec.name == name)
            rows.append((name, kind, [] if x is None else [len(x)], "", ""))
            continue
        numeric = x.size and x.dtype.kind in "fiu"
        rows.append(
            (name, x.dtype, list(x.shape), f"{x.min():.6g}" if numeric else "", f"{x.max():.6g}" if numeric else "")
        )
    print(render_table(("output", "dtype", "shape", "min", "max"), rows))
    if options.output:
        save_outputs(options.output, outputs)
