"""Where the time of the networks goes, and how far that is from the machine's peak: ``python -m benchmarks.layers``.

Steps are put together by what limits them. Shares of the peak count the operations of the direct algorithm, so that
fast algorithms may exceed it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import neo
from neo.report.profile import StepTime
from rich.progress import track

from benchmarks import environment, results
from benchmarks.limits import measure_limits
from benchmarks.suites import find_entries

#: Kinds of steps by what their routine's name holds, the first that fits; the rest computes little.
KINDS = (
    ("winograd", ("winograd",)),
    ("chains with depthwise", ("pointwise_depthwise", "depthwise_pointwise", "inverted_residual")),
    ("depthwise", ("depthwise",)),
    ("direct", ("direct_nchwc", "direct_rows", "panel", "affine_pointwise")),
    ("first layer", ("direct_nchw",)),
    ("matrix products", ("gemm",)),
)
REST = "the rest"


def kind_of(routine: str) -> str:
    """Return the kind of a step's routine."""
    name = routine.split("{")[0].split("@")[0]
    return next((kind for kind, parts in KINDS if any(part in name for part in parts)), REST)


def cells_of(steps: list[StepTime], peak: float) -> list[str]:
    """Return a cell per kind: its share of the time, and of the peak where it computes.

    Parameters
    ----------
    steps : list of StepTime
        One profile.
    peak : float
        Of all threads, in 10^9 operations per second.
    """
    times: dict[str, float] = defaultdict(float)
    operations: dict[str, float] = defaultdict(float)
    for step in steps:
        times[kind_of(step.routine)] += step.time_us
        operations[kind_of(step.routine)] += step.time_us * step.gflops
    total = sum(times.values())
    cells = []
    for kind in [*(name for name, _ in KINDS), REST]:
        if not times[kind]:
            cells.append("")
            continue
        share = f"{times[kind] / total:.0%}"
        cells.append(share if kind == REST else f"{share} at {operations[kind] / times[kind] / peak:.0%}")
    return cells


def main() -> None:
    """Write the section of the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", help="names, separated by commas (default: all networks)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--repeat", type=int, default=9, help="calls per network (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args()
    limits = measure_limits(arguments.threads)
    if limits is None:
        parser.error("the machine's peak needs a C compiler")
    entries = find_entries("networks", arguments.models.split(",") if arguments.models else None)
    rows = []
    for entry in track(entries, description="profile", transient=True):
        path, feeds = entry.prepare(arguments.cache.resolve())
        module = neo.compile(str(path), threads=arguments.threads)
        profile = module.profile(feeds, repeat=arguments.repeat)
        rows.append([entry.name, *cells_of(list(profile.steps), limits.gflops)])
    section = results.Section(
        title=f"Where the time goes: {arguments.threads} threads",
        text='Share of the time of all steps, and after "at" the share of the machine\'s peak '
        f"({limits.gflops:.0f} GFLOP/s) that these steps reach, counting the operations of the direct algorithm: "
        "Winograd's may exceed it.",
        head=["network", *(name for name, _ in KINDS), REST],
        rows=rows,
        notes=[
            "; ".join(f"{key}: {value}" for key, value in environment.describe().items()),
            f"`python -m benchmarks.layers --threads {arguments.threads}`",
        ],
    )
    record = arguments.results.with_name(arguments.results.stem.lower() + ".json")
    results.record_section(f"layers-{arguments.threads}", section, record, arguments.results)


if __name__ == "__main__":
    main()
