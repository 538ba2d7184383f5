"""Write which source files need which others, as the linker sees it: a file needs those that define its symbols.

Usage: ``python source_graph.py NM OBJECTS OUTPUT``

OBJECTS lists object files, one a line. OUTPUT has ``needs``, the sources that each source needs, and ``entries``, where the
functions are that an export names itself.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

# What csrc/standalone has another definition of.
REPLACED = "csrc/capi/open.cpp"

# Functions of the lists in routines/families.h and ops/families.h.
ENTRY = re.compile(r"_ZN3neo\d+(make_\w+_step|add_\w+_ops)E")


def source_of(path: str) -> str:
    """The source of an object that CMake made, from the root of the checkout."""
    return path.rpartition(".dir/")[2].removeprefix("./").removesuffix(".o").removesuffix(".obj")


def main(nm: str, objects: str, output: str) -> None:
    """Read the symbols of every object and write the graph."""
    paths = Path(objects).read_text(encoding="utf-8").split()
    listing = subprocess.run([nm, "-A", *paths], check=True, capture_output=True, text=True).stdout
    defined: dict[str, str] = {}
    weak: dict[str, str] = {}
    wanted: dict[str, set[str]] = {source_of(path): set() for path in paths}
    for line in listing.splitlines():
        path, _, rest = line.partition(":")
        kind, name = rest.split()[-2:]
        if kind == "U":
            wanted[source_of(path)].add(name)
        elif kind in "TDRB" and source_of(path) != REPLACED:
            defined[name] = source_of(path)
        elif kind in "VW":
            # Where a file wants a virtual table and has none, one that defines the first virtual function has it.
            weak.setdefault(name, source_of(path))
    defined = weak | defined
    # Every instruction set has the same functions, in a namespace of its own.
    tiers = ("scalar", "avx2", "avx512", "neon")
    for name, source in list(defined.items()):
        for tier in tiers:
            defined.setdefault(name.replace("6scalar", f"{len(tier)}{tier}"), source)
    graph = {
        source: sorted({defined[name] for name in names if name in defined} - {source})
        for source, names in sorted(wanted.items())
    }
    entries = {match[1]: source for name, source in sorted(defined.items()) if (match := ENTRY.match(name))}
    rows = {"entries": entries, "needs": graph}
    parts = [f'"{part}": {{\n' + ",\n".join(_line(*row) for row in of.items()) + "\n}" for part, of in rows.items()]
    Path(output).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _line(name: str, value: str | list[str]) -> str:
    return f"{json.dumps(name)}: {json.dumps(value)}"


if __name__ == "__main__":
    main(*sys.argv[1:])
