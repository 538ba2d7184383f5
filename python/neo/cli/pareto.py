"""``neo pareto``."""

from __future__ import annotations

import argparse

from neo.cli.arguments import add_json, add_shape, add_target, check_folder, check_picture, print_json, sizes_of

__all__ = ["HELP", "add_arguments", "run"]

HELP = "measure the modules between the fastest, the smallest and the most exact one"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file")
    command.add_argument(
        "data", nargs="?", help="a folder of samples, .npy or .npz: then modules with 8-bit layers are among them"
    )
    command.add_argument("--points", type=int, default=16, help="about so many modules (default: %(default)s)")
    command.add_argument("--picture", metavar="FILE", help="draw time against error and sizes (needs matplotlib)")
    add_target(command)
    add_shape(command)
    add_json(command, "the points")


def run(options: argparse.Namespace) -> None:
    """Print the points, and write them and their picture."""
    from neo.tradeoffs import pareto

    if options.json:
        check_folder(options.json, "--json")
    check_picture(options.picture, "--picture")
    front = pareto(
        options.model,
        options.data,
        points=options.points,
        target=options.target,
        threads=options.threads,
        shapes=sizes_of(options),
    )
    if options.json:
        print_json(options.json, front.to_json())
    if options.json != "-":
        print(front)
    if options.picture:
        front.plot().savefig(options.picture, dpi=120)
