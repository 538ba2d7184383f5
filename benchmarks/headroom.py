"""How far the networks' best peers are from what fast algorithms could reach: ``python -m benchmarks.headroom``.

From the record: nothing but the machine's limits is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import environment, results
from benchmarks.limits import Limits, measure_limits
from benchmarks.page import geometric_mean, number, speed_up
from benchmarks.suites import find_entries
from benchmarks.work import Work, count_work


def cells_of(work: Work, limits: Limits, peer_ms: float, ratio: float) -> tuple[list[str], float]:
    """Return the cells of a network behind its name, and its headroom.

    Parameters
    ----------
    work : Work
        What it multiplies.
    limits : Limits
        Of the machine.
    peer_ms, ratio : float
        The best peer's time, in milliseconds, and neo's speed-up over it.
    """
    direct, fast = limits.direct_ms(work), limits.fast_ms(work)
    headroom = peer_ms / fast
    cells = [number(direct), number(fast), f"{direct / peer_ms:.0%}", f"{headroom:.2f}", f"{ratio:.2f}"]
    return [*cells, f"{ratio / headroom:.0%}"], headroom


def main() -> None:
    """Write the section of the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.headroom", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args()
    limits = measure_limits(arguments.threads)
    if limits is None:
        parser.error("the machine's peak needs a C compiler")
    record = results.json_beside(arguments.results)
    table = results.read_tables(record).get(f"networks-{arguments.threads}")
    if table is None:
        parser.error(f"the record has no networks with {arguments.threads} threads: run benchmarks.run first")
    rows, headrooms, ratios = [], [], []
    for entry in find_entries("networks", None):
        found = speed_up(table.rows[entry.name]) if entry.name in table.rows else None
        peer_ms = table.rows[entry.name].cells[found.peer].median_ms if found else None
        if found is None or peer_ms is None:
            continue
        path, feeds = entry.prepare(arguments.cache.resolve())
        cells, headroom = cells_of(count_work(path, feeds), limits, peer_ms, found.ratio.median)
        rows.append([entry.name, *cells])
        headrooms.append(headroom)
        ratios.append(found.ratio.median)
    mean, reached = geometric_mean(headrooms), geometric_mean(ratios)
    section = results.Section(
        title=f"How much there is to win: {arguments.threads} threads",
        text="The limit of the direct algorithm, as in the tables above, and the same where every convolution is done "
        "by what takes least: directly, by Winograd's algorithm in tiles of 2, 4 or 6 outputs along each axis (also of "
        "stride 2), by one level of Strassen's where it has one tap. A last tile has no more outputs than are left, and "
        "the larger weights count (of 3x3 in tiles of 4 as taps); transforms, additions and every other operator do "
        "not, so that no program reaches it. Headroom is the best peer's time over that limit; the last column the part of it that neo's default has. "
        f"Geometric means: headroom {number(mean)}, neo {number(reached)}, of {len(rows)} networks.",
        head=["network", "direct, ms", "fast, ms", "best peer, of direct", "headroom", "neo", "neo, of headroom"],
        rows=rows,
        notes=[
            environment.place(),
            f"Limits: {limits.gflops:.0f} GFLOP/s, {limits.gbytes:.0f} GB/s from memory.",
            f"`python -m benchmarks.headroom --threads {arguments.threads}`",
        ],
    )
    results.record_section(f"headroom-{arguments.threads}", section, record, arguments.results)


if __name__ == "__main__":
    main()
