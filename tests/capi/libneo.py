"""libneo of this checkout's build, installed where a user would have it, and programs that are compiled with it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from neo import _native

from tests.capi.values import pack, unpack

__all__ = [
    "ROOT",
    "answers_of",
    "build_folder",
    "c_compiler",
    "cmake",
    "compile_program",
    "configure",
    "prefix",
    "run",
    "sanitizers",
    "scratch",
    "tool",
]

ROOT = Path(__file__).resolve().parents[2]

# Programs of the environment come first.
_SEARCH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


@functools.cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="neo-capi-")


def scratch() -> Path:
    """Return a folder that lives as long as this process."""
    return Path(_kept().name)


@functools.cache
def build_folder() -> Path:
    """Find the build folder that this extension module comes from."""
    extension = Path(_native._neo.__file__).resolve()
    for folder in (*extension.parents, ROOT / "build" / "venv"):
        if (folder / "CMakeCache.txt").exists():
            return folder
    return pytest.skip("the build folder is absent (./test makes build/venv)")


def tool(name: str) -> str:
    """Return the path of a program, or skip the test."""
    return shutil.which(name, path=_SEARCH) or pytest.skip(f"{name} is not installed")


def cmake() -> str:
    """Return the path of CMake."""
    return tool("cmake")


def configure(source: Path, build: Path, *options: str) -> None:
    """Configure a build by CMake, for Ninja where it is installed."""
    ninja = shutil.which("ninja", path=_SEARCH)
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []
    run([cmake(), "-S", source, "-B", build, *generator, *options])


def c_compiler() -> str:
    """Return the path of the C compiler."""
    return tool(os.environ.get("CC", "cc"))


@functools.cache
def sanitizers() -> list[str]:
    """Return the flags that a program needs to run with a build of these sanitizers."""
    for line in (build_folder() / "CMakeCache.txt").read_text().splitlines():
        if line.startswith("NEO_SANITIZE:") and not line.endswith("="):
            return [f"-fsanitize={line.partition('=')[2]}", "-g"]
    return []


def run(command: Sequence[str | Path], **options: Any) -> str:
    """Run a command that must succeed and return what it prints."""
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@functools.cache
def prefix() -> Path:
    """Install the component `runtime` once and return where."""
    folder = scratch() / "prefix"
    run([cmake(), "--install", build_folder(), "--component", "runtime", "--prefix", folder])
    return folder


@functools.cache
def compile_program(source: Path, *flags: str) -> Path:
    """Compile one C file with the installed library."""
    program = scratch() / source.stem
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    library = [f"-I{prefix() / 'include'}", f"-L{prefix() / 'lib'}", f"-Wl,-rpath,{prefix() / 'lib'}"]
    run([c_compiler(), "-O1", *warnings, *sanitizers(), source, "-o", program, *library, "-lneo", *flags])
    return program


def answers_of(
    modules: Sequence[tuple[Path, list[list[Any]]]], folder: Path, threads: int = 2
) -> list[list[list[Any]]]:
    """Give the outputs that a C program has of each saved module, one list for each list of inputs."""
    given, answered = [], []
    for number, (_, cases) in enumerate(modules):
        given.append(folder / f"{number}.given")
        answered.append(folder / f"{number}.answered")
        given[-1].write_bytes(pack(cases))
    files = [x for (path, _), g, a in zip(modules, given, answered, strict=True) for x in (path, g, a)]
    run([compile_program(ROOT / "tests" / "capi" / "answer.c"), str(threads), *files])
    return [unpack(path.read_bytes()) for path in answered]
