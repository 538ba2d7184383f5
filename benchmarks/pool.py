"""neo's thread pool beside OpenMP's: what forking and joining cost, and what idle threads burn.

``python -m benchmarks.pool`` compiles ``micro/fork_join.cpp`` with the pool's own sources and writes a table.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks import environment, page, results
from benchmarks.results import Section

_ROOT = Path(__file__).resolve().parents[1]
_LINE = re.compile(r"^(?P<label>.+?) +(?P<neo>\d+\.\d{3}) +(?P<openmp>\d+\.\d{3})$")

Figures = dict[str, tuple[float, float]]


class NotBuiltError(Exception):
    """The program cannot be built here."""


def build(folder: Path) -> Path:
    """Compile the program and return it.

    Parameters
    ----------
    folder : Path
        Where to.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise NotBuiltError("there is no g++")
    program = folder / "fork_join"
    sources = [_ROOT / "benchmarks" / "micro" / "fork_join.cpp", _ROOT / "csrc" / "runtime" / "thread_pool.cpp"]
    sources += sorted((_ROOT / "csrc" / "base").glob("*.cpp"))
    flags = ["-std=c++20", "-O2", "-fopenmp", "-pthread", f"-I{_ROOT / 'csrc'}"]
    done = subprocess.run(
        [compiler, *flags, *map(str, sources), "-o", str(program)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotBuiltError((done.stderr.strip().splitlines() or ["g++ failed"])[0])
    return program


def run(program: Path, threads: int, policy: str | None = None) -> Figures:
    """Return neo's and OpenMP's figure of each line.

    Parameters
    ----------
    program : Path
        What ``build`` made.
    threads : int
        Threads of both.
    policy : str, optional
        OpenMP's wait policy, ``active`` or ``passive``; its own default without.
    """
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    if policy is not None:
        surroundings["OMP_WAIT_POLICY"] = policy
    done = subprocess.run([str(program), str(threads)], env=surroundings, capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        if match := _LINE.match(line):
            found[match["label"]] = float(match["neo"]), float(match["openmp"])
    return found


def section(runs: list[dict[str, Figures]], threads: int) -> Section:
    """Return the table, from several runs of each policy: medians.

    Parameters
    ----------
    runs : list of dict
        Figures by policy.
    threads : int
        Threads of all.
    """
    policies = list(runs[0])
    labels = list(runs[0][policies[0]])
    rows = []
    for index, label in enumerate(labels):
        columns = {name: [list(one[name].values())[index] for one in runs] for name in policies}
        ours = statistics.median(pair[0] for pairs in columns.values() for pair in pairs)
        theirs = [statistics.median(pair[1] for pair in columns[name]) for name in policies]
        what = label if label.startswith(("CPU", "%")) else f"{label}, us"
        rows.append([what, page.number(ours), *map(page.number, theirs)])
    text = (
        "What it costs to spread a step over the threads and to join them, least time of 15 rounds, and what the "
        f"threads burn after 100 short steps when nothing runs; medians of {len(runs)} runs, {threads} threads. OpenMP "
        "is GCC's, with its default wait policy, with active waiting and with passive waiting."
    )
    place = "; ".join(f"{key}: {value}" for key, value in environment.describe().items())
    notes = [f"Measured on {place}; commit {environment.commit()}; load average {os.getloadavg()[0]:.1f} at the end."]
    return Section(f"Thread pool: {threads} threads", text, ["", "neo", *policies], rows, notes)


POLICIES: dict[str, str | None] = {"OpenMP": None, "OpenMP, active": "active", "OpenMP, passive": "passive"}


def main(words: list[str] | None = None) -> None:
    """Measure the pools and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description="neo's thread pool beside OpenMP's.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    with tempfile.TemporaryDirectory() as folder, console.status("compile and measure"):
        try:
            program = build(Path(folder))
        except NotBuiltError as error:
            parser.exit(1, f"not measured: {error}\n")
        runs = [
            {name: run(program, arguments.threads, policy) for name, policy in POLICIES.items()}
            for _ in range(arguments.runs)
        ]
    made = section(runs, arguments.threads)
    for row in made.rows:
        console.print("  ".join(row), highlight=False)
    key = f"pool-{arguments.threads}"
    results.record_section(key, made, results.json_beside(arguments.results), arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
