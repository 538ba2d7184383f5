"""Prints which lines of the loader tests and fuzz targets run: ``python -m fuzz.coverage``.

Builds ``build/loader`` with g++ and gcov, runs the tests of saved modules and some inputs of each fuzz target.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from fuzz.campaign import CORPUS, ROOT, TARGETS

BUILD = ROOT / "build" / "loader"
SOURCES = ("csrc/saved/", "csrc/base/json")
# What an exported library reads is its own source.
LEFT_OUT = ("csrc/saved/compact", "csrc/saved/sha256")
INPUTS = 3000
GOAL = 90.0


def build() -> None:
    """Configure and build."""
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "NEO_BUILD_FUZZERS": "ON",
        "NEO_BUILD_RUNTIME": "OFF",
        "NEO_FUZZ_COVERAGE": "ON",
        "Python_EXECUTABLE": sys.executable,
    }
    if shutil.which("ccache"):
        options["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    settings = [f"-D{key}={value}" for key, value in options.items()]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *settings], check=True)
    subprocess.run(["cmake", "--build", str(BUILD)], check=True)


def run() -> None:
    """Run tests and targets; each adds to the counts."""
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        shutil.copytree(ROOT / "python" / "neo", site / "neo", ignore=shutil.ignore_patterns("_neo*.so", "__pycache__"))
        for library in BUILD.glob("_neo*.so"):
            shutil.copy(library, site / "neo")
        tests = ["tests/saved", "--ignore=tests/saved/test_models.py", "--ignore=tests/saved/test_cases.py"]
        environment = {**os.environ, "PYTHONPATH": f"{site}:{ROOT / 'tools'}"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *tests]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    for target, what in TARGETS.items():
        folders = [str(CORPUS / part) for part in what.corpus]
        command = [str(BUILD / f"neo_fuzz_{target}"), "-seed=1", f"-runs={INPUTS}", *folders]
        subprocess.run(command, cwd=BUILD, check=True)


def report() -> float:
    """Print the lines that nothing ran; returns the percentage of those that something did."""
    counts: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for notes in BUILD.rglob("*.gcda"):
        text = subprocess.run(["gcov", "-t", "-j", str(notes)], cwd=BUILD, capture_output=True, check=True).stdout
        for file in json.loads(text)["files"]:
            path = os.path.relpath((BUILD / file["file"]).resolve(), ROOT)
            if path.startswith(SOURCES) and not path.startswith(LEFT_OUT):
                for line in file["lines"]:
                    counts[path][line["line_number"]] += line["count"]
    for path, lines in sorted(counts.items()):
        missed = sorted(number for number, count in lines.items() if count == 0)
        done = 100 * (1 - len(missed) / len(lines))
        print(f"{done:5.1f} %  {path}  {' '.join(map(str, missed))}")
    every = [count for lines in counts.values() for count in lines.values()]
    total = 100 * sum(count > 0 for count in every) / max(len(every), 1)
    print(f"{total:5.1f} % of {len(every)} lines, goal {GOAL:.0f} %")
    return total


if __name__ == "__main__":
    build()
    run()
    sys.exit(report() < GOAL)
