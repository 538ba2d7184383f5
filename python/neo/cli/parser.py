"""The parser of all commands, and the way from arguments to a command and its exit status."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from neo.cli import (
    bench,
    check,
    compile_file,
    completion,
    db,
    demo,
    explain,
    export,
    info,
    kernels,
    knobs,
    machine,
    optimize,
    pareto,
    profile,
    quantize,
    routines,
    run,
    serve,
    targets,
    tune,
)
from neo.cli.arguments import check_threads
from neo.errors import Error, ModelError
from neo.version import __version__

__all__ = ["main", "make_parser"]

# A command is a module with HELP, add_arguments(parser) and run(options), which returns an exit status or None.
COMMANDS = {
    "run": run,
    "compile": compile_file,
    "export": export,
    "optimize": optimize,
    "quantize": quantize,
    "pareto": pareto,
    "bench": bench,
    "profile": profile,
    "explain": explain,
    "tune": tune,
    "db": db,
    "check": check,
    "kernels": kernels,
    "info": info,
    "routines": routines,
    "targets": targets,
    "machine": machine,
    "knobs": knobs,
    "serve": serve,
    "completion": completion,
    "demo": demo,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0: done, 1: an error that was printed, 2: wrong usage)."""
    parser = make_parser()
    options = parser.parse_args(db.action_first(sys.argv[1:] if arguments is None else arguments))
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    with_log = _LogLines(options.verbose)
    logging.getLogger("neo").addHandler(with_log)
    try:
        _import(options.imports)
        check_threads(options)
        status = int(options.run(options) or 0)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # A reader such as head has enough; the interpreter's last flush must not find the pipe, either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Error as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        at = "" if error.filename is None else f" - at {error.filename}"
        print(f"[cli] files must be readable and writable. Got {error.strerror or error}{at}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"[cli] there must be memory enough. {error or 'Got none'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        logging.getLogger("neo").removeHandler(with_log)


def _import(names: Sequence[str]) -> None:
    """Import modules, those in the current folder too, as ``python -m`` does."""
    if names and "" not in sys.path:
        sys.path.insert(0, "")
    for name in names:
        if not name or name.startswith("."):
            msg = f"[cli] --import must give a module's whole name. Got {name!r}"
            raise ModelError(msg)
        try:
            importlib.import_module(name)
        except ImportError as error:
            msg = f"[cli] --import must name a module. Got {name!r}: {error}"
            raise ModelError(msg) from error


class _LogLines(logging.Handler):
    """Log lines on the error stream with -v and -vv; without, the commands print what matters themselves."""

    def __init__(self, verbose: int) -> None:
        super().__init__(logging.INFO if verbose == 1 else logging.DEBUG)
        self._is_shown = verbose > 0
        if self._is_shown:
            logging.getLogger("neo").setLevel(self.level)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line."""
        if self._is_shown:
            print(f"{record.name}: {record.getMessage()}", file=sys.stderr)


class _PrintVersion(argparse.Action):
    """Prints the release; of a checkout what git says of it, by the newest tag."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        checkout = Path(__file__).resolve().parents[3]
        commit = ""
        if (checkout / ".git").exists():
            command = ["git", "-C", str(checkout), "describe", "--tags", "--always", "--dirty"]
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                commit = f" ({found.stdout.strip()})"
        print(f"neo {__version__}{commit}")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="neo", description="Compile a neural network for this machine, run it, look inside."
    )
    parser.add_argument(
        "--version", action=_PrintVersion, nargs=0, help="print the release, in a checkout its commit too"
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-q", "--quiet", action="store_true", help="print no notes")
    common.add_argument("-v", "--verbose", action="count", default=0, help="print what neo logs; -vv: all of it")
    common.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module of Python first, such as one that calls neo.register_op",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in COMMANDS.items():
        made = commands.add_parser(name, help=command.HELP, description=command.HELP, parents=[common])
        made.set_defaults(run=command.run, parser=parser)
        command.add_arguments(made)
    return parser
