"""Print how far measured times lie from estimates: ``python -m benchmarks.estimates``.

Networks of every kind are drawn from fresh seeds, compiled as anybody's would be, and called; each step's least time
stands beside what selection expected of it. A family is held to a median of 0.8 to 1.25 and to 0.5 to 2 for nine steps
of ten.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from neo.report.table import render_table
from rich.progress import track

from benchmarks.estimates.networks import KINDS
from benchmarks.estimates.record import RECORDS, SECONDS, Step, machine_name, record, write

#: What a family's median must lie between, and nine steps of ten; families of fewer steps are not judged.
MEDIAN = (0.8, 1.25)
NINE_OF_TEN = (0.5, 2.0)
FEWEST = 20


def holds(ratios: list[float]) -> bool:
    """Whether a family's ratios of measured to estimated time are where they must be."""
    within = np.mean([NINE_OF_TEN[0] <= r <= NINE_OF_TEN[1] for r in ratios])
    return bool(MEDIAN[0] <= np.median(ratios) <= MEDIAN[1] and within >= 0.9)


def table(steps: list[Step]) -> str:
    """Families by their time: how many steps, the ratios' median and percentiles, the sums of both times."""
    families: dict[str, list[Step]] = defaultdict(list)
    for s in steps:
        families[s.family].append(s)
    rows = []
    for name, members in sorted(families.items(), key=lambda f: -sum(s.time_us for s in f[1])):
        ratios = [s.ratio for s in members]
        low, median, high = np.percentile(ratios, (10, 50, 90))
        within = np.mean([NINE_OF_TEN[0] <= r <= NINE_OF_TEN[1] for r in ratios])
        judged = "" if len(members) < FEWEST else "holds" if holds(ratios) else "DOES NOT HOLD"
        times = sum(s.time_us for s in members), sum(s.estimate_us for s in members)
        figures = (f"{median:.2f}", f"{low:.2f}", f"{high:.2f}", f"{within:.0%}", *(f"{t:.0f}" for t in times))
        rows.append((name, str(len(members)), *figures, judged))
    head = ("family", "steps", "median", "10 %", "90 %", "in 0.5..2", "measured, us", "expected, us", "")
    return render_table(head, rows, right=(1, 2, 3, 4, 5, 6, 7))


def main() -> None:
    """Draw, measure, print; with ``--record``, keep what :mod:`benchmarks.estimates.fit` fits the constants to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="kinds of networks; none: all")
    parser.add_argument("--count", type=int, default=20, help="networks of each kind")
    parser.add_argument("--seed", type=int, help="the first seed; the default is another each time")
    parser.add_argument("--threads", type=int, help="of the modules; the default is one and two in turn")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of calls of a module")
    parser.add_argument("--record", action="store_true", help="replace this machine's records")
    parser.add_argument("--output", type=Path, help="write the steps to a file as well")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    kinds = options.kinds or list(KINDS)
    steps: list[Step] = []
    networks = record(options.count, seed, kinds, options.threads, options.seconds)
    for found in track(networks, total=options.count * len(kinds), description="networks"):
        steps += found
    for path in [RECORDS / f"{machine_name()}.csv.gz"] * options.record + [options.output] * bool(options.output):
        write(path, steps)
    print(f"{options.count * len(kinds)} networks, seeds from {seed} on")
    print(table(steps))


if __name__ == "__main__":
    main()
