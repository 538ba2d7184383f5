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

from neo import demo
from neo.bench import Benchmark, Engine, Job
from rich.console import Console

from benchmarks import environment, page, results
from benchmarks.peers import ENGINES
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
    csrc = _ROOT / "csrc"
    pool = [csrc / "runtime" / name for name in ("thread_pool.cpp", "phased_run.cpp", "cpu_mask.cpp", "futex.cpp")]
    sources = [_ROOT / "benchmarks" / "micro" / "fork_join.cpp"]
    # Sources of a folder are compiled together: most of the time goes to the standard headers.
    for name, parts in (("runtime", pool), ("base", sorted((csrc / "base").glob("*.cpp")))):
        sources.append(folder / f"{name}.cpp")
        sources[-1].write_text("".join(f'#include "{part}"\n' for part in parts))
    flags = ["-std=c++20", "-O2", "-fopenmp", "-pthread", f"-I{csrc}"]
    done = subprocess.run(
        [compiler, *flags, *map(str, sources), "-o", str(program)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotBuiltError((done.stderr.strip().splitlines() or ["g++ failed"])[0])
    return program


def run(program: Path, threads: int, policy: str | None = None, rounds: int = 15) -> Figures:
    """Return neo's and OpenMP's figure of each line.

    Parameters
    ----------
    program : Path
        What ``build`` made.
    threads : int
        Threads of both.
    policy : str, optional
        OpenMP's wait policy, ``active`` or ``passive``; its own default without.
    rounds : int
        Rounds of each line, of which the best counts.
    """
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    if policy is not None:
        surroundings["OMP_WAIT_POLICY"] = policy
    done = subprocess.run(
        [str(program), str(threads), str(rounds)], env=surroundings, capture_output=True, text=True, check=True
    )
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
    notes = [environment.measured()]
    return Section(f"Thread pool: {threads} threads", text, ["", "neo", *policies], rows, notes)


def idle_section(engines: dict[str, Engine], pythons: dict[str, str], threads: int, runs: int) -> Section:
    """Measure what engines burn when nothing runs, on the digits network that comes with neo, and return the table.

    Parameters
    ----------
    engines : dict of str to Engine
        By name.
    pythons : dict of str to str
        Interpreters of engines that live in another environment.
    threads, runs : int
        How.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.onnx"
        path.write_bytes(demo.model_bytes())
        inputs = {"image": demo.images()[0][:1]}
        with Benchmark(engines, Job("digits", path, inputs, threads, Path(folder)), pythons=pythons) as benchmark:
            benchmark.load()
            found = [benchmark.idle_percent() for _ in range(runs)]
            measured = benchmark.measured
    rows = []
    for name, item in measured.items():
        shares = [one[name] for one in found if name in one]
        rows.append([item.version or name, item.error or f"{statistics.median(shares):.2f} %"])
    text = (
        "Processor time of all threads, as a share of one core, in the 200 ms that begin 50 ms after the last call of "
        f"a small network; medians of {runs} runs, {threads} threads."
    )
    notes = [f"Load average {os.getloadavg()[0]:.1f} at the end."]
    return Section(f"Idle engines: {threads} threads", text, ["engine", "of one core"], rows, notes)


POLICIES: dict[str, str | None] = {"OpenMP": None, "OpenMP, active": "active", "OpenMP, passive": "passive"}


def main(words: list[str] | None = None) -> None:
    """Measure the pools and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description="neo's thread pool beside OpenMP's.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--engines", default="neo,ort,openvino,ncnn,mnn", help="for idle use (default: %(default)s)")
    parser.add_argument("--python", action="append", default=[], metavar="ENGINE=PATH", help="interpreter of an engine")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    threads, record = arguments.threads, results.json_beside(arguments.results)
    engines = {name: ENGINES[name] for name in arguments.engines.split(",")}
    pythons = dict(word.split("=", 1) for word in arguments.python)
    with tempfile.TemporaryDirectory() as folder, console.status("compile and measure"):
        try:
            program = build(Path(folder))
        except NotBuiltError as error:
            parser.exit(1, f"not measured: {error}\n")
        runs = [
            {name: run(program, threads, policy) for name, policy in POLICIES.items()} for _ in range(arguments.runs)
        ]
        sections = {
            f"pool-{threads}": section(runs, threads),
            f"pool-{threads}-idle": idle_section(engines, pythons, threads, arguments.runs),
        }
    for key, made in sections.items():
        for row in made.rows:
            console.print("  ".join(row), highlight=False)
        results.record_section(key, made, record, arguments.results)
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
