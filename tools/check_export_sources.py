"""Check that cmake/export_sources.json is what the linker sees: the sources that each part of an export leads to.

Usage: ``python tools/check_export_sources.py BUILD_FOLDER``

BUILD_FOLDER is a Release build with ``NEO_UNITY=OFF``, such as that of the preset ``release``, whose target
``neo_source_graph`` is up to date. Builds that compile several sources together, and so every wheel, take the list of the
repository. A call that makes no difference to what an export needs leaves the list as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HINT = "renew it with: cmake --preset release && cmake --build --preset release --target renew_export_sources"


def reached(needs: dict[str, list[str]], source: str) -> set[str]:
    """Return all sources that one leads to, itself among them."""
    found: set[str] = set()
    pending = [source]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(needs.get(name, ()))
    return found


def differences(kept: dict[str, Any], built: dict[str, Any]) -> Iterator[str]:
    """Yield one line for every part of an export that another source defines, and for every source that needs others."""
    for name in sorted(kept["entries"].keys() | built["entries"].keys()):
        homes = [graph["entries"].get(name, "nowhere") for graph in (kept, built)]
        if homes[0] != homes[1]:
            yield f"{name} is in {homes[1]}, not in {homes[0]}"
    for name in sorted(kept["needs"].keys() | built["needs"].keys()):
        if name not in kept["needs"]:
            yield f"{name} is missing"
        elif name not in built["needs"]:
            yield f"{name} is no longer there"
        else:
            sources = [reached(graph["needs"], name) for graph in (kept, built)]
            yield from (f"{name} needs {other} too" for other in sorted(sources[1] - sources[0]))
            yield from (f"{name} no longer needs {other}" for other in sorted(sources[0] - sources[1]))


def main() -> int:
    """Print the differences and return the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    paths = (Path(__file__).parents[1] / "cmake", Path(sys.argv[1]))
    kept, built = (json.loads((path / "export_sources.json").read_text(encoding="utf-8")) for path in paths)
    problems = list(differences(kept, built))
    print(*problems, *([HINT] if problems else []), f"check_export_sources: {len(problems)} differences", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
