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
LINE = re.compile(r"^(?:[0-9a-fA-F]+)?\s+(?P<kind>[A-Za-z])\s+(?P<name>.+)$")
# Kinds that other objects see: strong ones clash between tiers, weak (W, V), unique (u) and common (C) ones are merged.
VISIBLE = set("TDBRGSWVwvuCi")
# Of a symbol's demangled name, what stands before the entity: "vtable for", "guard variable for", a return type.
DECORATION = re.compile(r"^(?:(?:vtable|VTT|typeinfo|typeinfo name|guard variable|non-virtual thunk) (?:for|to) )")


def find_objects(build: Path) -> list[tuple[Path, str]]:
    """Return the kernel objects of a build folder and their tiers."""
    found = []
    for path in sorted(build.rglob("*.isa.cpp.o")):
        folders = [part for part in path.parts if part.endswith(".dir")]
        tier = folders[-1].removesuffix(".dir").rpartition("_")[2] if folders else ""
        if tier in TIERS:
            found.append((path, tier))
    return found


def is_inside(name: str, tier: str) -> bool:
    """Say whether a demangled name belongs to ``neo::<tier>``.

    A function template is printed with its return type in front, so the namespace must begin the entity itself: the
    last word before the parameters, at depth zero of angle brackets and parentheses.
    """
    name = DECORATION.sub("", name).replace("(anonymous namespace)", "{anonymous}")
    depth, start = 0, 0
    for position, letter in enumerate(name):
        if letter in "<([{":
            if letter == "(" and depth == 0:
                break
            depth += 1
        elif letter in ">)]}":
            depth -= 1
        elif letter == " " and depth == 0:
            start = position + 1
    return name[start:].startswith(f"neo::{tier}::")


def foreign_symbols(path: Path, tier: str) -> list[str]:
    """Return the visible symbols of an object that lie outside its namespace."""
    nm = os.environ.get("NM", "nm")
    listing = subprocess.run([nm, "-C", "--defined-only", str(path)], check=True, capture_output=True, text=True).stdout
    foreign = []
    for line in listing.splitlines():
        match = LINE.match(line)
        if match and match["kind"] in VISIBLE and not is_inside(match["name"], tier):
            foreign.append(f"{match['kind']} {match['name']}")
    return foreign


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
