"""What tuning takes and gives, network by network: ``python -m benchmarks.tuning``.

From an empty database each network is tuned (``tune=True``, which ends after a minute at most), compiled again with
what was learned, and the default module and the tuned one run in turn. Beside them stands what the selection expected
the tuned module to take. Where the default module, timed before, between and after, says that the machine itself became
faster or slower meanwhile, all of it is done anew after the other networks.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import neo
from neo import _native
from neo.bench.intervals import Interval, ratio_interval
from neo.report.table import render_table
from neo.tune.compare import synthetic_inputs
from rich.progress import track

from benchmarks import environment, page, results
from benchmarks.suites import find_entries

ROUNDS = 15
#: A round ends after so many seconds of both.
SECONDS = 0.6
#: The default module may take so much longer at one time than at another before all is measured anew; attempts.
STEADY = 0.06
ATTEMPTS = 4
HEAD = (
    "network",
    "tuning, s",
    "times",
    "compiling again, s",
    "default, ms",
    "tuned, ms",
    "default / tuned [95 %]",
    "selection's total / measured",
    "machine changed by",
)


@dataclass(frozen=True)
class Tuned:
    """One network: what tuning took, and the medians of the rounds."""

    name: str
    tuning_s: float
    measured: int
    again_s: float
    default_us: list[float]
    tuned_us: list[float]
    total_us: float
    control_us: list[float]

    @property
    def change(self) -> float:
        """How much longer the default module took at one time than at another."""
        return max(self.control_us) / min(self.control_us) - 1

    @property
    def gain(self) -> Interval:
        """Default over tuned time, round by round."""
        return ratio_interval(self.default_us, self.tuned_us)

    @property
    def predicted(self) -> float:
        """The selection's total over the measured time: the lower quartiles of rounds, as its summands are."""
        return self.total_us / lower_quartile(self.tuned_us)

    def cells(self) -> list[str]:
        """A row of the table."""
        gain = self.gain
        default_ms, tuned_ms = (sorted(v)[len(v) // 2] / 1e3 for v in (self.default_us, self.tuned_us))
        return [
            self.name,
            f"{self.tuning_s:.1f}",
            str(self.measured),
            f"{self.again_s:.2f}",
            page.number(default_ms),
            page.number(tuned_ms),
            f"{gain.median:.3f} [{gain.low:.3f}, {gain.high:.3f}]",
            f"{self.predicted:.2f}",
            f"{self.change:.0%}",
        ]


def lower_quartile(times: list[float]) -> float:
    """Return the time that a quarter of the rounds did not reach."""
    return sorted(times)[(len(times) - 1) // 4]


def measure(name: str, path: Path, threads: int) -> Tuned:
    """Tune a network from nothing and time what comes of it."""
    default = neo.compile(path, threads=threads)
    arrays = synthetic_inputs(default.inputs)

    def time_default() -> float:
        return lower_quartile([_native.benchmark_modules([default._native], arrays, 5, 0.2)[0][0] for _ in range(5)])

    control_us = [time_default()]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "tuning.db"
        start = time.perf_counter()
        first = neo.compile(path, threads=threads, tune=True, database=database)
        tuning_s = time.perf_counter() - start
        verdict = first.tuning.verdict
        del first
        start = time.perf_counter()
        tuned = neo.compile(path, threads=threads, database=database)
        again_s = time.perf_counter() - start
    control_us.append(time_default())
    default_us, tuned_us = [], []
    for _ in range(ROUNDS):
        (d, _), (t, _) = _native.benchmark_modules([default._native, tuned._native], arrays, 5, SECONDS)
        default_us.append(d)
        tuned_us.append(t)
    control_us.append(lower_quartile(default_us))
    # The last word on the selection is a benchmark with the default module, where they differ.
    if verdict is not None and verdict.default_us:
        control_us.append(verdict.default_us)
    stored, total_us = tuned.tuning.stored, float(tuned._native.estimate_us)
    return Tuned(name, tuning_s, stored, again_s, default_us, tuned_us, total_us, control_us)


def main() -> None:
    """Measure, print the table and write it into the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--networks", help="by name, with commas between; all where it is not given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    options = parser.parse_args()
    entries = find_entries("networks", options.networks and options.networks.split(","))
    json_path = options.results.with_name(options.results.stem.lower() + ".json")
    key = f"tuning {options.threads}"
    machine = f"Measured on {environment.cpu_name()}."
    before = results.read_sections(json_path).get(key) if json_path.exists() else None
    # Networks that are not measured now keep their rows, if this is the machine.
    rows = {row[0]: row for row in before.rows if len(row) == len(HEAD)} if before and machine in before.notes else {}
    steadiest: dict[str, Tuned] = {}
    for _ in range(ATTEMPTS):
        left = [entry for entry in entries if entry.name not in steadiest or steadiest[entry.name].change > STEADY]
        for entry in track(left, "tuning"):
            path, _ = entry.prepare(options.cache.resolve())
            tuned = measure(entry.name, path, options.threads)
            print(*tuned.cells(), sep="  ", flush=True)
            if entry.name not in steadiest or tuned.change < steadiest[entry.name].change:
                steadiest[entry.name] = tuned
                rows[entry.name] = tuned.cells()
    order = [entry.name for entry in find_entries("networks", None)]
    table = sorted(rows.values(), key=lambda row: order.index(row[0]))
    print(render_table(HEAD, table, right=range(1, len(HEAD))))
    slowest = max(table, key=lambda row: float(row[1]))
    predicted = sorted(float(row[7]) for row in table)
    notes = [
        f"Default over tuned time: geometric mean {page.geometric_mean([float(row[6].split()[0]) for row in table]):.3f} "
        f"of {len(table)}. The longest tuning took {slowest[1]} s ({slowest[0]}). Selection's total over measured time: "
        f"{predicted[0]:.2f} to {predicted[-1]:.2f}.",
        "The last column: by how much the default module's times before, at the end of, and after tuning, and while it "
        f"ran beside the tuned one, differ. Above {STEADY:.0%} all was measured anew after the other networks, up to "
        f"{ATTEMPTS} times, and the steadiest counts.",
        machine,
        f"`python -m benchmarks.tuning --threads {options.threads}`",
    ]
    text = (
        f"`tune=True` from an empty database on {options.threads} threads; compiling again with what it holds; {ROUNDS} "
        "rounds of the default and the tuned module in turn, medians; what the selection expected of the tuned one over "
        "what it took, both by lower quartiles."
    )
    section = results.Section("Tuning the networks", text, list(HEAD), table, notes)
    results.record_section(key, section, json_path, options.results)


if __name__ == "__main__":
    main()
