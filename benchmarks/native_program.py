"""C++ programs of ``micro/`` that are linked with the static libraries of a build."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BUILD", "NotBuiltError", "build"]

_ROOT = Path(__file__).resolve().parents[1]
BUILD = _ROOT / "build" / "release"


class NotBuiltError(Exception):
    """The program cannot be built here."""


def build(folder: Path, name: str, libraries: Path, flags: Sequence[str] = ()) -> Path:
    """Compile a program of ``micro/`` and return it.

    Parameters
    ----------
    folder : Path
        Where to.
    name : str
        Of its source, without the suffix.
    libraries : Path
        A build's folder, with its static libraries.
    flags : sequence of str
        Of the compiler, besides those that all need.

    Raises
    ------
    NotBuiltError
        There is no compiler or no build, or the compiler fails; its first line is the message.
    """
    compiler, archives = shutil.which("g++"), sorted(libraries.glob("libneo_*.a"))
    if compiler is None:
        raise NotBuiltError("there is no g++")
    if not archives:
        raise NotBuiltError(f"{libraries} must hold the libraries of a build")
    program = folder / name
    source = _ROOT / "benchmarks" / "micro" / f"{name}.cpp"
    common = ["-std=c++20", "-O2", "-pthread", f"-I{_ROOT / 'csrc'}", str(source), "-Wl,--start-group"]
    command = [compiler, *flags, *common, *map(str, archives), "-Wl,--end-group", "-ldl", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuiltError((done.stderr.strip().splitlines() or ["g++ failed"])[0])
    return program
