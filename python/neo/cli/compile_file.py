"""``neo compile``."""

from __future__ import annotations

import argparse
from pathlib import Path

from neo.cli.arguments import add_model, budget_of, check_folder, note_fallbacks, size_variants_of
from neo.cli.executors import executors_of
from neo.compile import compile as compile_model
from neo.errors import ModelError

HELP = "compile a model into one file that runs without compiling again"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(command, variants=True)
    command.add_argument(
        "--accuracy", metavar="MODE", help="strict, reduced, or the least 1 - e, e.g. 0.999999999999 (docs/accuracy.md)"
    )
    command.add_argument("--memory", type=int, metavar="BYTES", help="what the module and a call may take")
    command.add_argument("--latency", type=float, metavar="MS", help="milliseconds that a call may take")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write (default: the model's name with .neo)")


def _accuracy_of(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def run(options: argparse.Namespace) -> None:
    """Compile and save."""
    source = Path(options.model)
    if source.suffix == ".neo":
        msg = f"[cli] compile must be given an ONNX file. Got {options.model!r}"
        raise ModelError(msg)
    target = Path(options.output) if options.output else source.with_suffix(".neo")
    check_folder(str(target), "--output")
    if target.exists() and source.exists() and target.samefile(source):
        msg = f"[cli] --output must be another file than the model. Got {options.output!r}"
        raise ModelError(msg)
    if target.suffix != ".neo":
        msg = f"[cli] --output must be a .neo file. Got {options.output!r}"
        raise ModelError(msg)
    module = compile_model(
        options.model,
        target=options.target or "cpu",
        threads=options.threads,
        executors=executors_of(options.executors),
        shapes=size_variants_of(options),
        tune=budget_of(options.tune),
        database=options.database,
        accuracy=_accuracy_of(options.accuracy),
        memory=options.memory,
        latency=options.latency,
    )
    note_fallbacks(options, module)
    module.save(target)
    size = f"{target}: {target.stat().st_size / 1e6:.1f} MB"
    count = len(module._saved_parts())
    if count == 1:
        print(f"{size}, {len(module.steps)} steps for {module.target}")
    else:
        print(f"{size}, {count} variants for {', '.join(options.target or ['cpu'])}")
