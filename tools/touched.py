"""Print the folders of tests that a change reaches: ``python tools/touched.py [--base REV]``.

A change to ``csrc/<folder>`` reaches the tests of that folder and of every folder that may include it; one to
``python/neo/<folder>`` or ``tests/<folder>`` those of that name. The change is what has been committed since ``--base``,
``NEO_CI_BASE``, or the last commit that is a day older than the newest one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from check_layers import reachable, read_arrows  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[1]

#: Folders whose tests stand under another name.
TESTS_OF = {
    "capi": ("capi", "saved"),
    "kernel_ir": ("kernel_ir", "routines"),
    "candidates": ("select", "api", "models"),
    "tune": ("tune",),
    "lower": ("passes", "runtime", "models"),
    "exec": ("runtime", "saved"),
    "bindings": ("api", "typing"),
    "base": ("errors", "api"),
    "simd": ("routines",),
    "cli": ("api",),
    **dict.fromkeys(
        ("compile.py", "options.py", "candidates.py", "pins.py", "module.py", "variants.py"), ("api", "tune")
    ),
}


def git(*words: str) -> str:
    """Run git in the checkout and return what it prints."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout.strip()


def base() -> str:
    """Return the commit before the change."""
    newest = int(git("log", "-1", "--format=%ct"))
    older = git("rev-list", "-1", f"--before={newest - 24 * 3600}", "HEAD")
    return os.environ.get("NEO_CI_BASE") or older or git("rev-list", "--max-parents=0", "HEAD").splitlines()[-1]


def names_of(path: str) -> set[str]:
    """Return the names of the folders that a changed file reaches."""
    top, _, rest = path.partition("/")
    if top == "csrc":
        changed = rest.partition("/")[0]
        arrows = read_arrows(ROOT)
        return {folder for folder in arrows if changed in reachable(folder, arrows)} - {"bindings"} | {changed}
    if top == "python":
        return {rest.removeprefix("neo/").partition("/")[0]}
    return {rest.partition("/")[0]} if top == "tests" else set()


def touched(paths: Iterable[str], folders: set[str]) -> list[str]:
    """Return those of the folders of tests that a change of these files reaches, sorted."""
    names = {name for path in paths for name in names_of(path)}
    names |= {other for name in names for other in TESTS_OF.get(name, ())}
    return sorted(names & folders)


def main() -> int:
    """Print the folders, one a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base", default=None, help="the commit before the change")
    options = parser.parse_args()
    paths = git("diff", "--name-only", options.base or base(), "HEAD").splitlines()
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("*/test_*.py")}
    for folder in touched(paths, folders):
        print(f"tests/{folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
