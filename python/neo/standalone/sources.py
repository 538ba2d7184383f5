"""Which files of neo's runtime an export needs."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from neo import _native
from neo.errors import ResourceError

__all__ = ["needed_files", "root"]

# Sources of an exported library beside the steps of its plan.
_RUNTIME = (
    *("csrc/standalone/standalone.cpp", "csrc/standalone/embedded.cpp", "csrc/capi/calls.cpp", "csrc/capi/modules.cpp"),
    *("csrc/standalone/standalone.h", "csrc/ops/families.h"),
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.cache
def root() -> Path:
    """The folder that holds csrc and cmake: beside this file in an installed package, else the checkout."""
    for folder in (Path(__file__).parent / "source", *Path(__file__).resolve().parents):
        if (folder / "csrc" / "standalone").is_dir():
            return folder
    msg = "[export] the sources of neo must be beside the package. Got none\nHint: install neo from a wheel."
    raise ResourceError(msg)


@functools.cache
def _graph() -> dict[str, dict[str, Any]]:
    """What cmake/source_graph.py found: sources to those that define what they use, and where functions are."""
    path = _native.library_path().resolve().parent / "export_sources.json"
    try:
        graph: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"[export] the list of sources must be readable. Got {error}"
        raise ResourceError(msg) from error
    return graph


def needed_files(makers: Iterable[str], families: Iterable[str]) -> list[str]:
    """Return sources and headers, from the root: all that the runtime, these steps and these references lead to.

    A source leads to the sources that define its symbols (the linker's own view of this build), a file to what it
    includes.
    """
    wanted = [f"make_{m}_step" for m in makers] + [f"add_{f}_ops" for f in families]
    needs, entries = _graph()["needs"], _graph()["entries"]
    pending = [*_RUNTIME, *(entries[name] for name in wanted)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending.extend(needs.get(name, ()))
        pending.extend(f"csrc/{header}" for header in _includes(name))
    return sorted(found)


def _includes(name: str) -> Iterator[str]:
    """What a file includes of csrc, from there."""
    folder = Path(name).parent.relative_to("csrc")
    for header in _INCLUDE.findall((root() / name).read_text(encoding="utf-8")):
        beside = folder / header
        yield str(beside) if (root() / "csrc" / beside).is_file() else header
