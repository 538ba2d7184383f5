"""``neo optimize``."""

from __future__ import annotations

import argparse
from pathlib import Path

from neo.cli.arguments import add_shape, check_folder, sizes_of
from neo.errors import ModelError

HELP = "write a model as neo's passes leave it, as ONNX for another runtime"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file")
    command.add_argument("output", help="the ONNX file to write, another than the model")
    add_shape(command)


def run(options: argparse.Namespace) -> None:
    """Write the model, and say how many nodes are left."""
    from neo.onnx_export import optimize

    check_folder(options.output, "the output")
    source, target = Path(options.model), Path(options.output)
    if target.exists() and source.exists() and target.samefile(source):
        msg = f"[cli] the output must be another file than the model. Got {options.output!r} for both"
        raise ModelError(msg)
    if target.suffix != ".onnx":
        msg = f"[cli] the output must be an .onnx file. Got {options.output!r}"
        raise ModelError(msg)
    written = optimize(options.model, options.output, shapes=sizes_of(options))
    opsets = ", ".join(f"{domain} {version}" for domain, version in written.opsets.items())
    print(
        f"{options.output}: {written.size / 1e6:.1f} MB, {written.nodes_before} nodes became {written.nodes}, "
        f"opset {opsets}"
    )
