"""``neo check``."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neo.cli.arguments import (
    add_json,
    add_shape,
    add_target,
    check_folder,
    check_top,
    given_inputs,
    note,
    note_fallbacks,
    print_json,
    sizes_of,
)
from neo.cli.quantize import check_numeric_command
from neo.compile import compile as compile_model
from neo.errors import Error, ModelError, ResourceError
from neo.report.table import render_table
from neo.saved import load

HELP = "what of a model neo cannot run; which node is wrong (--accuracy), which scale (--numeric)"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file, or a module that neo compile wrote (.neo)")
    command.add_argument("--accuracy", action="store_true", help="compare every node with double precision")
    command.add_argument(
        "--numeric", action="store_true", help="look at every rounded value of a quantized model: overflow, underflow"
    )
    command.add_argument(
        "--data", metavar="DIR", help="with --numeric: samples as for neo quantize, else one of the --input files"
    )
    command.add_argument(
        "--differences", metavar="DIR", help="with --numeric: write what rounding changes, element by element"
    )
    command.add_argument(
        "--against",
        default="float64",
        metavar="ENGINE|FILE",
        help="float64 (default), onnxruntime, or a trusted model with the same names of values",
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help="inputs from an .npz file, or NAME=FILE.npy; else random",
    )
    command.add_argument("--samples", type=int, default=1, help="how many sets of random inputs (default: %(default)s)")
    command.add_argument("--measure", action="store_true", help="time what the pin that avoids an error costs")
    command.add_argument("--top", type=int, metavar="ROWS", help="only the nodes nearest to their bound")
    add_json(command, "everything")
    add_target(command)
    add_shape(command)


def run(options: argparse.Namespace) -> int:
    """Print what cannot run, or which node is wrong; 1 where there is any."""
    if options.json:
        check_folder(options.json, "--json")
    check_top(options.top)
    if options.accuracy:
        return _check_accuracy(options)
    if options.numeric:
        return check_numeric_command(options, sizes_of(options), _inputs(options))
    report = _check_saved(options) if Path(options.model).suffix == ".neo" else _check(options)
    if options.json:
        print_json(options.json, report)
    return 0 if report["runs"] else 1


def _print(options: argparse.Namespace, text: str) -> None:
    if options.json != "-":
        print(text)


def _check(options: argparse.Namespace) -> dict[str, Any]:
    from neo.frontend.onnx import check_model, find_stale_shapes

    refusals = check_model(options.model)
    report: dict[str, Any] = {"runs": False, "refusals": [asdict(r) for r in refusals]}
    if refusals:
        rows = [(r.node, r.op, r.opset, r.dtype, r.reason) for r in refusals]
        _print(options, render_table(("node", "op", "opset", "dtype", "reason"), rows))
        return report
    try:
        module = compile_model(options.model, target=options.target, threads=options.threads, shapes=sizes_of(options))
    except Error as error:
        _print(options, f"neo reads every node of this model but cannot compile it:\n{error}")
        return report | {"error": str(error)}
    _print(options, "neo runs every node of this model")
    stale = [str(s) for s in find_stale_shapes(options.model)]
    for text in stale:
        if options.json != "-" and not options.quiet:
            print(f"note: {text}; neo uses the latter")
    note_fallbacks(options, module)
    return report | {"runs": True, "stale_shapes": stale, "references": module.fallbacks}


def _check_saved(options: argparse.Namespace) -> dict[str, Any]:
    module = load(options.model, threads=options.threads)
    count = len(module.steps)
    _print(options, f"this machine runs the module: {count} steps for {module.target}")
    if len(module.variants) > 1:
        note(options, f"it has {len(module.variants)} variants; the steps are the first one's")
    note_fallbacks(options, module)
    return {"runs": True, "refusals": [], "steps": count, "target": module.target, "references": module.fallbacks}


def _check_accuracy(options: argparse.Namespace) -> int:
    from neo.accuracy import check_accuracy

    if Path(options.model).suffix == ".neo":
        msg = f"[cli] check --accuracy must be given an ONNX file. Got {options.model!r}"
        raise ModelError(msg)
    inputs = _inputs(options)
    report = check_accuracy(
        options.model,
        against=options.against,
        inputs=inputs or None,
        samples=options.samples,
        measure=options.measure,
        target=options.target,
        threads=options.threads,
        shapes=sizes_of(options),
    )
    if options.json:
        print_json(options.json, report.to_json())
    _print(options, report.table(options.top))
    _print(options, report.summary())
    return 0 if report.passed else 1


def _inputs(options: argparse.Namespace) -> dict[str, Any]:
    """The inputs of ``--input``: those of .npz files, and those given by name."""
    inputs: dict[str, Any] = {}
    for item in [i for i in options.input if "=" not in i]:
        inputs.update(_stored_inputs(item))
    options.input = [i for i in options.input if "=" in i]
    inputs.update(given_inputs(options))
    return inputs


def _stored_inputs(path: str) -> dict[str, Any]:
    """The arrays of an .npz file by name."""
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            msg = f"[cli] --input without a name must be an .npz file. Got one array - at {path}"
            raise ModelError(msg)
        with stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        msg = f"[cli] the file of an input must be readable. Got {error.strerror or error} - at {path}"
        raise ResourceError(msg) from error
    except (EOFError, ValueError, BadZipFile) as error:
        if isinstance(error, Error):
            raise
        msg = f"[cli] --input must be NAME=FILE or an .npz file. Got {error} - at {path}"
        raise ModelError(msg) from error
