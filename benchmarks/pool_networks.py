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
import statistics
import subprocess
import tempfile
from pathlib import Path

import neo
from rich.console import Console

from benchmarks import environment, native_program, page, results
from benchmarks.results import Section
from benchmarks.suites import SUITES

#: The pool of each column, and the environment that it runs in.
POOLS: dict[str, tuple[str, dict[str, str]]] = {
    "neo": ("neo", {"NEO_PIN": "off"}),
    "neo, pinned": ("neo", {"NEO_PIN": "on"}),
    "OpenMP": ("openmp", {"OMP_WAIT_POLICY": "active", "OMP_PROC_BIND": "true"}),
}
#: Milliseconds of each pool's slices.
Times = dict[str, list[float]]


def measure(program: Path, module: Path, shape: tuple[int, ...], threads: int, rounds: int) -> Times:
    """Call a saved network over each pool, in turns.

    Parameters
    ----------
    program : Path
        The compiled ``micro/pool_networks.cpp``.
    module : Path
        The saved network, of one float32 input.
    shape : tuple of int
        Of the input.
    threads : int
        Of each team.
    rounds : int
        Slices of each pool.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "NEO_"))}
    running = {
        name: subprocess.Popen(
            [str(program), kind, str(threads), str(module), *map(str, shape)],
            env=clean | surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, (kind, surroundings) in POOLS.items()
    }
    times: Times = {name: [] for name in running}
    try:
        # The first slices warm up.
        for _ in range(rounds + 1):
            for name, process in running.items():
                assert process.stdin is not None
                assert process.stdout is not None
                process.send_signal(signal.SIGCONT)
                process.stdin.write("\n")
                process.stdin.flush()
                times[name].append(float(process.stdout.readline()))
                # OpenMP's threads that wait actively never end it.
                process.send_signal(signal.SIGSTOP)
    finally:
        for process in running.values():
            process.send_signal(signal.SIGCONT)
            process.communicate()
    return {name: found[1:] for name, found in times.items()}


def rows_of(network: str, threads: int, times: Times) -> list[str]:
    """Return a row: images per second of each pool, and neo's over OpenMP's.

    Parameters
    ----------
    network : str
        Its name.
    threads : int
        Of the teams.
    times : dict
        Of `measure`.
    """
    rates = {name: 1000 / statistics.median(found) for name, found in times.items()}
    ratios = [theirs / ours for ours, theirs in zip(times["neo"], times["OpenMP"], strict=True)]
    return [network, str(threads), *(page.number(rate) for rate in rates.values()), f"{statistics.median(ratios):.2f}"]


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
    entries = {entry.name: entry for entry in SUITES["networks"][1]()}
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = native_program.build(Path(folder), "pool_networks", arguments.build, ["-fopenmp"])
        except native_program.NotBuiltError as error:
            parser.exit(1, f"not measured: {error}\n")
        for name in arguments.models.split(","):
            path, feeds = entries[name].prepare(arguments.cache.resolve())
            (x,) = feeds.values()
            for threads in range(1, arguments.threads + 1):
                with console.status(f"measure {name}, {threads} threads"):
                    module = Path(folder) / f"{name}-{threads}.neo"
                    neo.compile(path, threads=threads, executors=1).save(module)
                    rows.append(rows_of(name, threads, measure(program, module, x.shape, threads, arguments.rounds)))
                console.print("  ".join(rows[-1]), highlight=False)
    for threads in range(1, arguments.threads + 1):
        ratios = [float(row[-1]) for row in rows if row[1] == str(threads)]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        rows.append(["geometric mean", str(threads), *[""] * len(POOLS), f"{mean:.2f}"])
    text = (
        "Images per second of the same saved module over neo's pool, over the same with pinned workers, and over OpenMP "
        f"(GCC's, waiting actively, bound to cores); medians of {arguments.rounds} slices of 0.3 s in turns, and the "
        "median of the rounds' ratios of neo to OpenMP."
    )
    place = "; ".join(f"{key}: {value}" for key, value in environment.describe().items())
    notes = [f"Measured on {place}; commit {environment.commit()}; load average {os.getloadavg()[0]:.1f} at the end."]
    header = ["network", "threads", *POOLS, "neo / OpenMP"]
    made = Section(f"Images per second from one thread to {arguments.threads}", text, header, rows, notes)
    results.record_section(
        f"pool-networks-{arguments.threads}", made, results.json_beside(arguments.results), arguments.results
    )
    console.print(f"written: {arguments.results}")


if __name__ == "__main__":
    main()
