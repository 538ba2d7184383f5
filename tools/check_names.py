"""Check the few words that neither compiler nor formatter knows about.

Usage: ``python tools/check_names.py [checkout]``

A bare ``throw`` is refused outside csrc/base/check.*: NEO_CHECK and ``fail`` format every message alike. Passing on an
error that Python has set is none. A type of namespace ``neo`` is defined in one file: two of one name are merged by the
linker into whichever it meets first. File names are lower case with underscores, and none is called utils, helpers, common
or misc.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

THROW = re.compile(r"\bthrow\b(?!\s*(?:;|py::error_already_set\(\)))")
COMMENT_OR_TEXT = re.compile(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"")
NAMESPACE = re.compile(r"^namespace(?P<name> [\w:]+)? {|^}  // namespace(?P<end>.*)", re.M)
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?|union) (?P<type>\w+)(?: final)?(?: :[^;{]*)? {", re.M)
FILE_NAME = re.compile(r"[a-z0-9_]+(\.isa)?\.(h|cpp|py|pyi)")
EMPTY_WORDS = {"utils", "util", "helpers", "helper", "common", "misc"}


def types(text: str) -> Iterator[str]:
    """Yield the types that a file defines in a named namespace, with the namespace before them."""
    names: list[str | None] = []
    found = sorted([*NAMESPACE.finditer(text), *TYPE.finditer(text)], key=lambda match: match.start())
    for match in found:
        if match.re is TYPE:
            if None not in names:
                yield "::".join([*filter(None, names), match["type"]])
        elif match["end"] is None:
            names.append(match["name"] and match["name"].strip())
        elif names:
            names.pop()


def check_types(csrc: Path) -> Iterator[str]:
    """Yield one line for every type that two files define; kernels have a namespace for each instruction set."""
    homes: dict[str, Path] = {}
    for path in sorted(p for p in csrc.rglob("*") if p.suffix in {".h", ".cpp"}):
        if path.parent.name == "simd" or ".isa." in path.name:
            continue
        for name in types(path.read_text(encoding="utf-8")):
            home = homes.setdefault(name, path)
            if home != path:
                yield f"{path.relative_to(csrc.parent)}: {name} is defined in {home.relative_to(csrc.parent)} too"


def check(root: Path) -> Iterator[str]:
    """Yield one line for every broken rule."""
    csrc = root / "csrc"
    for path in sorted(p for p in csrc.rglob("*") if p.suffix in {".h", ".cpp"}):
        if path.relative_to(csrc).as_posix() in {"base/check.h", "base/check.cpp"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if THROW.search(COMMENT_OR_TEXT.sub("", line)):
                yield f"{path.relative_to(root)}:{number}: a bare throw; use NEO_CHECK or neo::fail"
    yield from check_types(csrc)
    for folder in ("csrc", "python", "tests", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".h", ".cpp", ".py", ".pyi"}:
                continue
            if not FILE_NAME.fullmatch(path.name):
                yield f"{path.relative_to(root)}: file names are lower case with underscores"
            if path.name.partition(".")[0] in EMPTY_WORDS:
                yield f"{path.relative_to(root)}: name the file after the one thing inside"


def main() -> int:
    """Print the broken rules and return the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    problems = list(check(root))
    print(*problems, f"check_names: {len(problems)} broken rules", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
