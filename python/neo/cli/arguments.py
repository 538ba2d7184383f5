"""Arguments that several commands have, and what they stand for."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neo.cli.executors import executors_of, with_executors_of
from neo.cli.values import read_value
from neo.compile import compile as compile_model
from neo.errors import ModelError, ResourceError
from neo.limits import MAX_THREADS
from neo.module import Module, Tensor
from neo.report.fallbacks import fallback_line
from neo.report.write import write_whole
from neo.saved import load

__all__ = [
    "add_database",
    "add_json",
    "add_model",
    "add_shape",
    "add_target",
    "add_threads",
    "budget_of",
    "check_folder",
    "check_picture",
    "check_threads",
    "check_top",
    "given_inputs",
    "inputs_of",
    "module_of",
    "note",
    "note_fallbacks",
    "print_json",
    "size_variants_of",
    "sizes_of",
]

_MAX_RANDOM_BYTES = 1 << 36


def check_threads(options: argparse.Namespace) -> None:
    """Refuse numbers of threads that no machine has.

    Raises
    ------
    neo.ModelError
        ``--threads`` is none of them.
    """
    threads = getattr(options, "threads", None)
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        msg = f"[cli] --threads must be 1 to {MAX_THREADS}. Got {threads}"
        raise ModelError(msg)


def add_database(command: argparse.ArgumentParser) -> None:
    """Add the option that every command with a database has."""
    command.add_argument("--database", metavar="FILE", help="where measured times are kept (docs/tuning.md)")


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    """Add ``--json``: a file, or the standard output for "-" and for no name."""
    command.add_argument(
        "--json",
        nargs="?",
        const="-",
        type=_json_file,
        metavar="FILE",
        help=f"write {what} as JSON; -, or none: print it",
    )


def _json_file(text: str) -> str:
    """A file to write, which ``--json`` before a model must not take the model for."""
    if Path(text).suffix in (".onnx", ".neo"):
        msg = f"the file must not be a model. Got {text}: write --json behind the model, or --json=-"
        raise argparse.ArgumentTypeError(msg)
    return text


def add_target(command: argparse.ArgumentParser) -> None:
    """Add ``--target`` and ``--threads``."""
    command.add_argument("--target", default="cpu", help="cpu, cpu:avx2, ... (neo targets)")
    add_threads(command)


def add_threads(command: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    command.add_argument("--threads", type=int, help="threads of a call (default: the cores this process may use)")


def add_shape(command: argparse.ArgumentParser) -> None:
    """Add ``--shape``."""
    command.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE", help="fix a symbolic size")


def add_model(command: argparse.ArgumentParser, *, variants: bool = False, more: str = "") -> None:
    """Add a model, and how to compile it and what to call it with; `more` is said of ``--executors``."""
    command.add_argument("model", help="an ONNX file, or a module that neo compile wrote (.neo)")
    if variants:
        command.add_argument(
            "--target", action="append", help="cpu, cpu:avx2, ... (neo targets); several: a variant for each"
        )
        add_threads(command)
        command.add_argument(
            "--shape",
            action="append",
            default=[],
            metavar="SYMBOL=SIZE,...",
            help="fix a symbolic size; a size or LEAST:MOST, several: a variant for each",
        )
    else:
        add_target(command)
        add_shape(command)
    command.add_argument(
        "--executors",
        metavar="K[xT]",
        help="parts of the model that run beside each other, and the threads of each, as in 4x2; auto: those that "
        "estimates, or with --tune measurements, put first" + more,
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an input from a .npy or .json file, else random",
    )
    command.add_argument(
        "--tune",
        nargs="?",
        const=True,
        default=False,
        metavar="BUDGET",
        help="measure instead of estimating, for at most a time such as 60s, or so many trials such as 500 "
        "(write --tune=60s before a model)",
    )
    add_database(command)


def budget_of(text: bool | str) -> bool | int | str:
    """A time, or a number of trials."""
    return int(text) if isinstance(text, str) and text.isdigit() else text


def sizes_of(options: argparse.Namespace) -> dict[str, int]:
    """The sizes of symbols that ``--shape`` gives."""
    sizes = {}
    for item in options.shape:
        name, _, size = item.partition("=")
        if not size.isdigit():
            msg = f"[cli] --shape must be SYMBOL=SIZE. Got {item!r}"
            raise ModelError(msg)
        sizes[name] = int(size)
    return sizes


def size_variants_of(options: argparse.Namespace) -> dict[str, Any]:
    """The sizes of symbols: one, or a list; each a number or LEAST:MOST."""
    sizes: dict[str, Any] = {}
    for item in options.shape:
        name, _, text = item.partition("=")
        parts = text.split(",")
        if not all(re.fullmatch(r"[0-9]+(:[0-9]+)?", part) for part in parts):
            msg = f"[cli] --shape must be SYMBOL=SIZE or SYMBOL=LEAST:MOST, several with commas. Got {item!r}"
            raise ModelError(msg)
        found = [tuple(map(int, part.split(":"))) for part in parts]
        variants = [one if len(one) == 2 else one[0] for one in found]
        sizes[name] = variants[0] if len(variants) == 1 else variants
    return sizes


def module_of(options: argparse.Namespace) -> Module:
    """Compile the model that is named, or load it."""
    if Path(options.model).suffix == ".neo":
        if options.tune or options.database or options.target != "cpu":
            msg = f"[cli] a compiled module must not be compiled again. Got {options.model!r} with options of compiling"
            raise ModelError(msg)
        module = load(options.model, threads=options.threads)
        _check_symbols(options, module)
        return with_executors_of(module, options.executors, options.threads)
    return compile_model(
        options.model,
        target=options.target,
        threads=options.threads,
        executors=executors_of(options.executors),
        shapes=sizes_of(options),
        tune=budget_of(options.tune),
        database=options.database,
    )


def _check_symbols(options: argparse.Namespace, module: Module) -> None:
    """Refuse sizes of symbols that a compiled module does not have; those of an ONNX model are looked at as it compiles."""
    symbols = [d for t in module.inputs for d in t.shape or () if isinstance(d, str)]
    for name in sizes_of(options):
        if name not in symbols:
            expected = ", ".join(map(repr, dict.fromkeys(symbols))) or "no --shape: all sizes are fixed"
            msg = f"[cli] --shape must name a symbol of the module. Got {name!r}, expected {expected}"
            raise ModelError(msg)


def note(options: argparse.Namespace, text: str) -> None:
    """Print a note on the error stream, unless ``--quiet`` is given."""
    if not options.quiet:
        print(f"note: {text}", file=sys.stderr)


def note_fallbacks(options: argparse.Namespace, module: Module) -> None:
    """Note the operators that take more than a tenth of the estimated time for want of a fast routine."""
    if line := fallback_line(module.fallbacks):
        note(options, line)


def check_folder(path: str, option: str) -> None:
    """Refuse a file that could not be written, before anything is computed.

    Raises
    ------
    neo.ModelError
        It is "-", the standard output, which only JSON is printed to.
    neo.ResourceError
        Its folder does not exist, or it is a folder itself.
    """
    if path == "-":
        if option == "--json":
            return
        msg = f"[cli] {option} must be a file. Got '-'\nHint: ./- is a file of that name"
        raise ModelError(msg)
    if not Path(path).parent.is_dir():
        msg = f"[cli] {option} must lie in a folder that exists. Got {path!r}"
        raise ResourceError(msg)
    if Path(path).is_dir():
        msg = f"[cli] {option} must be a file. Got {path!r}, a folder"
        raise ResourceError(msg)


def check_picture(path: str | None, option: str) -> None:
    """Refuse a picture that could not be drawn or written, before anything is computed.

    Raises
    ------
    neo.ModelError
        Its ending is none of a kind of picture.
    neo.ResourceError
        matplotlib is missing, or the file could not be written.
    """
    if path is None:
        return
    check_folder(path, option)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ModuleNotFoundError as error:
        msg = f"[cli] {option} must find matplotlib. Got none\nHint: pip install matplotlib"
        raise ResourceError(msg) from error
    if Path(path).suffix[1:].lower() not in FigureCanvasBase.filetypes:
        msg = f"[cli] {option} must end in a kind of picture. Got {path!r}, expected .png, .svg, .pdf or the like"
        raise ModelError(msg)


def check_top(top: int | None) -> None:
    """Refuse a number of rows that is none.

    Raises
    ------
    neo.ModelError
        ``--top`` is less than 1.
    """
    if top is not None and top < 1:
        msg = f"[cli] --top must be positive. Got {top}, expected 1 or more"
        raise ModelError(msg)


def print_json(path: str, data: Any) -> None:
    """Write plain data to a file, or to the standard output for "-"."""
    text = data if isinstance(data, str) else json.dumps(data, indent=1, default=str)
    if path == "-":
        print(text)
    else:
        write_whole(path, text + "\n")


def given_inputs(options: argparse.Namespace, kinds: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Inputs from files; those from .json files by their type in `kinds`."""
    given = {}
    for item in options.input:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            msg = f"[cli] --input must be NAME=FILE. Got {item!r}"
            raise ModelError(msg)
        try:
            given[name] = read_value(path, None if kinds is None else kinds.get(name))
        except OSError as error:
            msg = f"[cli] the file of an input must be readable. Got {error.strerror or error} - at {path}"
            raise ResourceError(msg) from error
        except (EOFError, ValueError) as error:
            msg = f"[cli] the file of an input must hold its value, as .npy or .json. Got {error} - at {path}"
            raise ModelError(msg) from error
    return given


def inputs_of(options: argparse.Namespace, module: Module) -> dict[str, Any]:
    """The inputs given by name, and random ones for the rest."""
    random = np.random.default_rng(0)
    sizes = sizes_of(options)
    inputs = given_inputs(options, {spec.name: spec.dtype for spec in module.inputs})
    for spec in module.inputs:
        if spec.name in inputs:
            continue
        if spec.shape is None:
            what, ending = ("unknown rank", "npy") if "(" not in spec.dtype else (f"type {spec.dtype}", "json")
            msg = (
                f"[cli] an input of {what} must be given. Got none for {spec.name!r}\n"
                f"Hint: --input {spec.name}=FILE.{ending}"
            )
            raise ModelError(msg)
        shape = [sizes.get(str(d), hint) for d, hint in zip(spec.shape, spec.hints or (), strict=True)]
        inputs[spec.name] = _random_array(random, spec, shape)
    return inputs


def _random_array(random: np.random.Generator, spec: Tensor, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    count = 1
    for size in shape:
        count *= size
    if count * 8 > _MAX_RANDOM_BYTES:
        msg = f"[cli] a synthetic input must fit in memory. Got {list(shape)} for {spec.name!r}"
        raise ModelError(msg)
    try:
        if spec.dtype in ("float64", "float32", "float16", "complex64", "complex128"):
            return random.standard_normal(shape).astype(spec.dtype)
        if spec.dtype == "string":
            return np.full(shape, "neo", object)
        return random.integers(0, 2, shape).astype(spec.dtype)
    except MemoryError as error:
        msg = f"[cli] a synthetic input must fit in memory. Got {list(shape)} for {spec.name!r}"
        raise ModelError(msg) from error
    except TypeError as error:
        msg = (
            f"[cli] an input of dtype {spec.dtype} must be given. Got none for {spec.name!r}\n"
            f"Hint: --input {spec.name}=FILE.npy"
        )
        raise ModelError(msg) from error
