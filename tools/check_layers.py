"""Check that includes and imports follow the arrows between neo's folders.

Usage: ``python tools/check_layers.py [checkout]``

Each rule that is broken prints one line, ``file:line: rule``, and the exit status is 1.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = re.compile(r"^neo_folder\((\w+)([^)]*)\)", re.MULTILINE)


def read_arrows(root: Path) -> dict[str, tuple[str, ...]]:
    """Return, of every folder of csrc, those whose headers it may include beside its own and what these may include.

    They are the targets that CMakeLists.txt links; the bindings see every folder but ``standalone``.
    """
    arrows = {}
    for name, words in FOLDER.findall((root / "CMakeLists.txt").read_text(encoding="utf-8")):
        _, _, targets = words.partition("DEPENDS")
        arrows[name] = tuple(itertools.takewhile(str.islower, targets.split()))
    return {**arrows, "bindings": tuple(sorted(arrows.keys() - {"standalone"}))}


# Rooms of csrc/routines, each with the rooms that it may include; its other folders are rooms of the last two kinds.
ROOMS: dict[str, tuple[str, ...]] = {
    "cost": (),
    "": ("cost",),
    "patterns": ("", "cost"),
    "cpu": ("patterns", "", "cost"),
    "gpu": ("patterns", "", "cost"),
    "adapt": ("cpu", "gpu", "patterns", "", "cost"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Kernels are compiled once per instruction set: a C++ header would leave inline functions that the linker merges.
C_HEADER = re.compile(r"\w+\.h")
KERNEL_MAY_INCLUDE = ("simd/", "base/span.h")

Problem = tuple[Path, int, str]


def reachable(folder: str, arrows: dict[str, tuple[str, ...]]) -> set[str]:
    """Return every folder that the arrows lead to from a folder, itself included."""
    found = {folder}
    for target in arrows[folder]:
        found |= reachable(target, arrows)
    return found


def includes(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, opening bracket and name of every include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def check_includes(csrc: Path, arrows: dict[str, tuple[str, ...]]) -> Iterator[Problem]:
    """Yield the includes that point against the arrows."""
    for path in sorted(p for p in csrc.rglob("*") if p.suffix in {".h", ".cpp"}):
        folder = path.relative_to(csrc).parts[0]
        if folder not in arrows:
            yield path, 1, f"csrc/{folder} is not a known folder. Hint: give it a neo_folder() in CMakeLists.txt"
            continue
        allowed = reachable(folder, arrows)
        for number, bracket, name in includes(path):
            target = name.partition("/")[0]
            if bracket == "<":
                continue
            if target not in arrows:
                yield path, number, f'includes are written from csrc, "{name}" is not'
            elif target not in allowed:
                yield path, number, f'csrc/{folder} must not include "{name}" (it may: {", ".join(sorted(allowed))})'
            elif not (csrc / name).is_file():
                yield path, number, f'"{name}" does not exist in csrc'


def check_rooms(csrc: Path) -> Iterator[Problem]:
    """Yield the includes inside csrc/routines that cross a wall, and the folders that include each other in a circle."""
    folders: dict[str, dict[str, tuple[Path, int]]] = {}
    for path in sorted(p for p in (csrc / "routines").rglob("*") if p.suffix in {".h", ".cpp"}):
        folder = str(path.parent.relative_to(csrc / "routines")).removeprefix(".")
        room = folder.partition("/")[0]
        for number, _, name in includes(path):
            other = str(Path(name).parent)
            if not other.startswith("routines") or other == str(path.parent.relative_to(csrc)):
                continue
            other = other.removeprefix("routines").removeprefix("/")
            target = other.partition("/")[0]
            if target != room and target not in ROOMS.get(room, ()):
                yield path, number, f'csrc/routines/{room} must not include "{name}"'
            folders.setdefault(folder, {})[other] = (path, number)
    for folder, targets in folders.items():
        for target, (path, number) in targets.items():
            if folder in _led_to(target, folders):
                yield path, number, f"csrc/routines/{folder} and csrc/routines/{target} include each other in a circle"


def _led_to(start: str, arrows: dict[str, dict[str, tuple[Path, int]]]) -> set[str]:
    """Return everything that arrows lead to from one folder or module."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in arrows.get(waiting.pop(), {}):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def check_kernels(csrc: Path) -> Iterator[Problem]:
    """Yield what a kernel file, or a header that one includes, must not include."""
    waiting = [*csrc.rglob("*.isa.cpp"), *(csrc / "simd").rglob("*.h")]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        for number, bracket, name in includes(path):
            if bracket == "<":
                if not C_HEADER.fullmatch(name):
                    yield path, number, f"kernels include C headers only, not <{name}>"
                continue
            header = csrc / name
            if not name.startswith(KERNEL_MAY_INCLUDE) and not name.startswith("routines/"):
                yield path, number, f'kernels include simd/, base/span.h and headers beside them, not "{name}"'
            elif header.is_file() and header not in seen:
                seen.add(header)
                waiting.append(header)


def read_table(path: Path) -> tuple[dict[str, set[str]], list[Problem]]:
    """Return the parts of python/neo with those that each may import, and what is wrong with the table itself."""
    table: dict[str, set[str]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        part, colon, targets = line.partition("#")[0].partition(":")
        if not colon:
            continue
        for target in targets.split():
            if target not in table:
                problems.append((path, number, f"{part} may import parts above it only, {target} is none"))
        table[part] = set(targets.split())
    return table, problems


def modules_of(package: Path) -> dict[str, Path]:
    """Return every module of the package by its full name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, modules: dict[str, Path], *, typing: bool = True) -> Iterator[tuple[int, str]]:
    """Yield line number and full name of every module that a file imports; of other packages the name as written."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield node.lineno, name if name in modules or name == "neo._neo" else base
        elif typing or not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from imported(node, modules, typing=typing)


def part_of(module: str) -> str:
    """Return the part of python/neo that a module is or belongs to."""
    return [*module.split("."), "__init__"][1]


def check_imports(root: Path) -> Iterator[Problem]:
    """Yield the imports of python/neo that point against its arrows, or in a circle."""
    package = root / "python" / "neo"
    table, problems = read_table(root / "python" / "arrows.txt")
    yield from problems
    modules = modules_of(package)
    runs: dict[str, dict[str, tuple[Path, int]]] = {}
    used: dict[str, set[str]] = {}
    for module, path in modules.items():
        part = part_of(module)
        if part not in table:
            yield path, 1, f"{part} is not a part of python/arrows.txt"
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for number, name in imported(tree, modules):
            if name.startswith("."):
                yield path, number, f"imports are absolute, {name} is not"
            if name.partition(".")[0] != "neo" or part_of(name) == part:
                continue
            used.setdefault(part, set()).add(part_of(name))
            if part_of(name) not in table[part]:
                yield path, number, f"{part} must not import {name} (python/arrows.txt)"
            if part == "select" and name == "neo._native" and path.name not in ("exact.py", "dprs_sweep.py"):
                yield (
                    path,
                    number,
                    "neo.select works on arrays and does not import neo._native (exact.py, dprs_sweep.py may)",
                )
        for number, name in imported(tree, modules, typing=False):
            if name in modules and name != module:
                runs.setdefault(module, {})[name] = (path, number)
    for part in table.keys() & {part_of(module) for module in modules}:
        for target in sorted(table[part] - used.get(part, set())):
            yield package / part, 1, f"{part} does not import {target}, which python/arrows.txt allows"
    for module, targets in runs.items():
        for name, (path, number) in targets.items():
            if module in _led_to(name, runs):
                yield path, number, f"{module} and {name} import each other in a circle"


def check(root: Path) -> list[Problem]:
    """Return every broken rule of a checkout."""
    csrc = root / "csrc"
    return [
        *check_includes(csrc, read_arrows(root)),
        *check_rooms(csrc),
        *check_kernels(csrc),
        *check_imports(root),
    ]


def main() -> int:
    """Print the broken rules and return the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    problems = check(root)
    for path, number, rule in problems:
        print(f"{path.relative_to(root)}:{number}: {rule}")
    print(f"check_layers: {len(problems)} broken rules" if problems else "check_layers: all arrows hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
