"""Check that kernels leave nothing outside their namespace that the linker could mix between instruction sets.

Usage: ``python tools/check_isa_symbols.py BUILD_FOLDER``

A template or inline function compiled in a baseline file and in an AVX-512 file links to one copy, and the baseline
path may get the wide one. So every object of a ``*.isa.cpp`` may define weak, unique or common symbols, and global
ones, only inside ``neo::<tier>``. The tier is the end of the target's folder, as ``neo_routines_avx2.dir``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TIERS = ("scalar", "avx2", "avx512", "neon")
LINE = re.compile(r"^(?:[0-9a-fA-F]+)?\s+(?P<kind>[A-Za-z])\s+(?P<name>\S+)$")
# Kinds that other objects see: strong ones clash between tiers, weak (W, V), unique (u) and common (C) ones are merged.
VISIBLE = set("TDBRGSWVwvuCi")
# A mangled name up to its first namespace: guard variables, tables and locals of a function belong to what they name.
PREFIX = r"_Z(?:GV|GR|T[VTISC])?Z*N[rVKRO]*"


def find_objects(build: Path) -> list[tuple[Path, str]]:
    """Return the kernel objects of a build folder and their tiers."""
    found = []
    for path in sorted(build.rglob("*.isa.cpp.o")):
        folders = [part for part in path.parts if part.endswith(".dir")]
        tier = folders[-1].removesuffix(".dir").rpartition("_")[2] if folders else ""
        if tier in TIERS:
            found.append((path, tier))
    return found


def is_inside(mangled: str, tier: str) -> bool:
    """Say whether a mangled name belongs to ``neo::<tier>``."""
    return re.match(f"{PREFIX}3neo{len(tier)}{tier}", mangled) is not None


def foreign_symbols(path: Path, tier: str) -> list[str]:
    """Return the visible symbols of an object that lie outside its namespace, each with its kind."""
    command = [os.environ.get("NM", "nm"), "--defined-only", str(path)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    matches = [match for line in listing.splitlines() if (match := LINE.match(line)) and match["kind"] in VISIBLE]
    foreign = [f"{match['kind']} {match['name']}" for match in matches if not is_inside(match["name"], tier)]
    if not foreign:
        return []
    text = subprocess.run(["c++filt"], input="\n".join(foreign), check=True, capture_output=True, text=True).stdout
    return text.splitlines()


def main() -> int:
    """Print the foreign symbols and return the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    objects = find_objects(Path(sys.argv[1]))
    failures = 0
    for path, tier in objects:
        for symbol in foreign_symbols(path, tier):
            failures += 1
            print(f"{path}: outside neo::{tier}: {symbol}")
    print(f"check_isa_symbols: {len(objects)} objects, {failures} symbols outside their namespace")
    if not objects:
        print("check_isa_symbols: no kernel objects found; is this a build folder?")
    return 1 if failures or not objects else 0


if __name__ == "__main__":
    sys.exit(main())
