"""``neo quantize``, and ``neo check --numeric``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neo.cli.arguments import add_shape, add_target, check_folder, check_picture, print_json, sizes_of
from neo.errors import ModelError

__all__ = ["HELP", "add_arguments", "check_numeric_command", "run"]

HELP = "make a float model one of 8-bit codes, as ONNX for neo and other runtimes"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file")
    command.add_argument(
        "data", nargs="?", help="a folder of calibration samples, .npy or .npz (none: weights only, dynamic scales)"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="where to write (default: the model's name with -int8)")
    command.add_argument(
        "--accuracy", type=float, metavar="SHARE", help="least agreement of a classifier, else least 1 - error: 0.99"
    )
    command.add_argument(
        "--skip", action="append", default=[], metavar="PATTERN", help="nodes that stay float; may be repeated"
    )
    command.add_argument("--ranges", default="mse", help="mse (default), minmax or percentile")
    command.add_argument("--symmetric", action="store_true", help="int8 with a zero point of 0 for what layers read")
    command.add_argument("--per-tensor", action="store_true", help="one scale for all weights of a layer")
    command.add_argument("--weight-bits", type=int, default=8, metavar="BITS", help="2 to 8 (default: %(default)s)")
    command.add_argument(
        "--bias-correction",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let biases take the mean error of rounded weights (default)",
    )
    command.add_argument("--equalize", action="store_true", help="even out channels between convolutions first")
    command.add_argument("--samples", type=int, help="take at most so many samples")
    command.add_argument("--seed", type=int, default=0, help="what draws the samples that plans are compared on")
    command.add_argument("--pareto", metavar="FILE", help="draw time against error (needs matplotlib)")
    add_target(command)
    add_shape(command)


def run(options: argparse.Namespace) -> None:
    """Quantize, and write the model."""
    from neo.quantize import quantize

    source = Path(options.model)
    target = Path(options.output) if options.output else source.with_name(f"{source.stem}-int8.onnx")
    check_folder(str(target), "--output")
    check_picture(options.pareto, "--pareto")
    if target.exists() and source.exists() and target.samefile(source):
        msg = f"[cli] --output must be another file than the model. Got {options.output!r}"
        raise ModelError(msg)
    if target.suffix != ".onnx":
        msg = f"[cli] --output must be an .onnx file. Got {options.output!r}"
        raise ModelError(msg)
    quantized = quantize(
        options.model,
        options.data,
        accuracy=options.accuracy,
        skip=options.skip,
        ranges=options.ranges,
        symmetric=options.symmetric,
        per_channel=not options.per_tensor,
        weight_bits=options.weight_bits,
        correct_bias=options.bias_correction,
        equalize=options.equalize,
        samples=options.samples,
        seed=options.seed,
        target=options.target,
        threads=options.threads,
        shapes=sizes_of(options),
    )
    quantized.save(target)
    print(quantized.report)
    print(f"written to {target}")
    if options.pareto:
        front = quantized.pareto()
        print(front)
        front.plot().savefig(options.pareto, dpi=120)


def check_numeric_command(options: argparse.Namespace, shapes: Mapping[str, Any], inputs: Mapping[str, Any]) -> int:
    """Look at every rounded value of a quantized model; 1 where a scale is wrong."""
    from neo.options import Options
    from neo.quantize.numeric import check_numeric
    from neo.quantize.study import Builder

    if options.data is None and not inputs:
        msg = "[cli] --numeric must have values to look at. Got neither --data nor --input"
        raise ModelError(msg)
    settings = Options.of(options.target, options.threads, None, False, None, None, None, None, shapes, None)
    data = [inputs] if options.data is None else options.data
    report = check_numeric(options.model, data, Builder(settings), differences=options.differences)
    if options.json:
        print_json(options.json, report.to_json())
    if options.json != "-":
        print(report.table(options.top))
        print(report.summary())
    return 0 if report.passed else 1
