"""Exports that are built as their README says, and programs that are linked with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neo.standalone import Export, export

from tests.capi.libneo import ROOT, c_compiler, cmake, configure, run, sanitizers
from tests.capi.values import pack, unpack

__all__ = ["answers", "built", "code_bytes", "link"]

# Code and its constants; the plan of the model is among them, the model is not.
_CODE = (".text", ".rodata", ".init", ".fini", ".plt", ".plt.got", ".plt.sec")


def built(model: Path, folder: Path, *options: str) -> Export:
    """Export a saved module and build the library."""
    done = export(model, folder)
    cache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    configure(folder, folder / "build", *cache, *options)
    run(
        [cmake(), "--build", folder / "build", "-j2"],
        env={**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"},
    )
    return done


def link(source: Path, folder: Path, *flags: str) -> Path:
    """Compile a C program with the library of an export, as one for libneo is."""
    program = folder / source.stem
    command = [c_compiler(), "-O1", *sanitizers(), source, "-o", program, f"-I{folder / 'include'}", *flags]
    run([*command, folder / "build" / "libneo.a", "-Wl,--gc-sections", "-lstdc++", "-lm", "-lpthread", "-ldl"])
    return program


def answers(folder: Path, cases: Sequence[Sequence[Any]], launcher: Sequence[str] = ()) -> list[list[Any]]:
    """Give what tests/capi/answer.c, a program for libneo, has from the library."""
    program = link(ROOT / "tests" / "capi" / "answer.c", folder)
    (folder / "given").write_bytes(pack(cases))
    run([*launcher, program, "2", folder / "model.neo", folder / "given", folder / "answered"])
    return unpack((folder / "answered").read_bytes())


def code_bytes(program: Path) -> int:
    """Count the bytes of code and its constants in a program, after stripping it."""
    stripped = program.with_suffix(".stripped")
    run(["strip", "-o", stripped, program])
    sizes = subprocess.run(["size", "-A", stripped], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in sizes.splitlines()]
    return sum(int(row[1]) for row in rows if len(row) == 3 and row[0] in _CODE)
