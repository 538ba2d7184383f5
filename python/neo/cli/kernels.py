"""``neo kernels``."""

from __future__ import annotations

import argparse

from neo.cli.arguments import add_shape, sizes_of
from neo.compile import compile as compile_model

HELP = "write the kernels that would run on a device, which need not be there"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument("model", help="an ONNX file")
    command.add_argument("--target", required=True, help="mali, intel_graphics, opencl, cuda (neo targets)")
    command.add_argument("--out", required=True, metavar="DIR", help="folder for one file for each kernel")
    command.add_argument("--threads", type=int, help="threads of the steps on the CPU")
    add_shape(command)


def run(options: argparse.Namespace) -> None:
    """Compile for the device, and write a file for each kernel."""
    from neo.kernels import write_kernels

    module = compile_model(options.model, target=options.target, threads=options.threads, shapes=sizes_of(options))
    print(write_kernels(module, options.out))
