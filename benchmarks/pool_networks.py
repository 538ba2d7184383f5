"""Images per second from one thread to all, over neo's pool and over OpenMP's (NeoCPU, section 3.1.2 and Fig. 4).

``python -m benchmarks.pool_networks --threads 2`` compiles ``micro/pool_networks.cpp`` with the libraries of a build,
saves each network for one thread to all, and calls the same saved module over neo's pool, with workers pinned and not,
and over a team of OpenMP's threads that wait actively and are bound to cores, which is its best case. Each is a process
of its own; they take turns.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import neo
from rich.console import Console
from rich.progress import track

from benchmarks import environment, native_program, page, results
from benchmarks.results import Section
from benchmarks.suites import find_entries

#: The pool of each column, and the environment that it runs in.
POOLS: dict[str, tuple[str, dict[str, str]]] = {
    "neo": ("neo", {"NEO_PIN": "off"}),
    "neo, pinned": ("neo", {"NEO_PIN": "on"}),
    "OpenMP": ("openmp", {"OMP_WAIT_POLICY": "active", "OMP_PROC_BIND": "true"}),
}
#: Milliseconds of each pool's slices.
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Case:
    """A saved network of one float32 input, and the threads of each team."""

    network: str
    threads: int
    module: Path
    shape: tuple[int, ...]


def measure(program: Path, cases: Sequence[Case], rounds: int) -> list[Times]:
    """Call each saved network over each pool, all in turns: a machine's bad minutes meet all of them.

    Parameters
    ----------
    program : Path
        The compiled ``micro/pool_networks.cpp``.
    cases : sequence of Case
        What to call.
    rounds : int
        Slices of each case and pool.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "NEO_"))}
    times: list[Times] = [{name: [] for name in POOLS} for _ in cases]
    with ExitStack() as stack:
        running = []
        for case, found in zip(cases, times, strict=True):
            for name, (kind, surroundings) in POOLS.items():
                process = subprocess.Popen(
                    [str(program), kind, str(case.threads), str(case.module), *map(str, case.shape)],
                    env=clean | surroundings,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                stack.callback(process.communicate)
                stack.callback(process.send_signal, signal.SIGCONT)
                running.append((process, found[name]))
        for _ in track(range(rounds + 1), description="rounds"):
            for process, slices in running:
                assert process.stdin is not None
                assert process.stdout is not None
                process.send_signal(signal.SIGCONT)
                process.stdin.write("\n")
                process.stdin.flush()
                slices.append(float(process.stdout.readline()))
                # OpenMP's threads that wait actively never end it.
                process.send_signal(signal.SIGSTOP)
    # The first slices warm up.
    return [{name: slices[1:] for name, slices in found.items()} for found in times]


def row_of(case: Case, times: Times) -> list[str]:
    """Return a row: images per second of each pool, in its best slice, and neo's over OpenMP's.

    Parameters
    ----------
    case : Case
        What was called.
    times : dict
        Of `measure`.
    """
    best = {name: min(found) for name, found in times.items()}
    rates = (page.number(1000 / ms) for ms in best.values())
    return [case.network, str(case.threads), *rates, f"{best['OpenMP'] / best['neo']:.2f}"]


def main(words: list[str] | None = None) -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pool_networks", description="Images per second by pool."
    )
    parser.add_argument("--threads", type=int, default=2, help="the largest number (default: %(default)s)")
    parser.add_argument("--models", default="resnet50,vgg19,densenet201,inception_v3,ssd_resnet50_512")
    parser.add_argument("--rounds", type=int, default=9, help="of each (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--build", type=Path, default=native_program.BUILD, help="a build (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(soft_wrap=True)
    try:
        entries = find_entries("networks", arguments.models.split(","))
    except ValueError as error:
        parser.error(str(error))
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = native_program.build(Path(folder), "pool_networks", arguments.build, ["-fopenmp"])
        except native_program.NotBuiltError as error:
            parser.exit(1, f"not measured: {error}\n")
        for entry in entries:
            path, feeds = entry.prepare(arguments.cache.resolve())
            (x,) = feeds.values()
            for threads in range(1, arguments.threads + 1):
                with console.status(f"compile {entry.name}, {threads} threads"):
                    module = Path(folder) / f"{entry.name}-{threads}.neo"
                    neo.compile(path, threads=threads, executors=1).save(module)
                cases.append(Case(entry.name, threads, module, x.shape))
        rows = [row_of(*found) for found in zip(cases, measure(program, cases, arguments.rounds), strict=True)]
    for threads in range(1, arguments.threads + 1):
        ratios = [float(row[-1]) for row in rows if row[1] == str(threads)]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        rows.append(["geometric mean", str(threads), *[""] * len(POOLS), f"{mean:.2f}"])
    for row in rows:
        console.print("  ".join(row), highlight=False)
    text = (
        "Images per second of the same saved module over neo's pool, over the same with pinned workers, and over OpenMP "
        f"(GCC's, waiting actively, bound to cores): the best of {arguments.rounds} slices of 0.3 s, in turns with all others."
    )
    notes = [environment.measured()]
    header = ["network", "threads", *POOLS, "neo / OpenMP"]
    made = Section(f"Images per second from one thread to {arguments.threads}", text, header, rows, notes)
    results.record_section(
        f"pool-networks-{arguments.threads}", made, results.json_beside(arguments.results), arguments.results
    )
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
