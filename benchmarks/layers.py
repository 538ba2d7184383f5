"""Where the time of the networks goes, and how far that is from the machine's peak: ``python -m benchmarks.layers``.

Steps are put together by what limits them. Shares of the peak count the operations of the direct algorithm, so that
fast algorithms may exceed it. Of the networks that the record has under 1.2 times their best peer, the steps that hold
them back are listed one by one.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import neo
from neo.report.profile import StepTime
from rich.progress import track

from benchmarks import environment, results
from benchmarks.limits import Limits, measure_limits
from benchmarks.page import speed_up
from benchmarks.suites import find_entries

#: Kinds of steps by what their routine's name holds, the first that fits; the rest computes little.
KINDS = (
    ("winograd", ("winograd",)),
    ("chains with depthwise", ("pointwise_depthwise", "depthwise_pointwise", "inverted_residual", "stem_depthwise")),
    ("depthwise", ("depthwise",)),
    ("direct", ("direct_nchwc", "direct_rows", "im2col", "pointwise_with_prologue", "strassen")),
    ("first layer", ("direct_nchw",)),
    ("matrix products", ("gemm", "gemv")),
)
REST = "the rest"

#: Networks below this speed-up are looked at step by step, the steps that lose most first.
HELD_BACK = 1.2
STEPS_LISTED = 5


def kind_of(routine: str) -> str:
    """Return the kind of a step's routine."""
    name = routine.split("{")[0]
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


def losses_of(steps: list[StepTime], limits: Limits) -> list[tuple[float, StepTime]]:
    """Return what each step takes beyond its limit, in microseconds, the largest first.

    Parameters
    ----------
    steps : list of StepTime
        One profile.
    limits : Limits
        The limit of a step is its operations at the peak; of a matrix product, which uses each weight once, its bytes
        at the speed of memory where that is longer. A step without operations has none.
    """

    def limit_us(step: StepTime) -> float:
        far = step.bytes / (limits.gbytes * 1e3) if kind_of(step.routine) == "matrix products" else 0.0
        return step.calls * max(step.flops / (limits.gflops * 1e3), far)

    return sorted(((step.time_us - limit_us(step), step) for step in steps), key=lambda pair: -pair[0])


def held_back_rows(name: str, ratio: float, steps: list[StepTime], limits: Limits) -> list[list[str]]:
    """Return the rows of a network's steps that lose most: what each takes of the time, of the peak, and beyond its limit."""
    total = sum(step.time_us for step in steps)
    return [
        [
            name,
            f"{ratio:.2f}",
            step.node,
            step.routine,
            f"{step.time_us / total:.1%}",
            f"{step.gflops / limits.gflops:.0%}" if step.flops else "",
            f"{step.gbps:.0f}",
            f"{lost / total:.1%}",
        ]
        for lost, step in losses_of(steps, limits)[:STEPS_LISTED]
        if lost > 0
    ]


def main() -> None:
    """Write the sections of the results."""
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
    record = results.json_beside(arguments.results)
    table = results.read_tables(record).get(f"networks-{arguments.threads}")
    found = {name: speed_up(row) for name, row in table.rows.items()} if table else {}
    rows, held = [], []
    for entry in track(entries, description="profile", transient=True):
        path, feeds = entry.prepare(arguments.cache.resolve())
        module = neo.compile(str(path), threads=arguments.threads)
        profile = module.profile(feeds, repeat=arguments.repeat)
        rows.append([entry.name, *cells_of(list(profile.steps), limits.gflops)])
        ratio = found.get(entry.name)
        if ratio is not None and ratio.ratio.median < HELD_BACK:
            held += held_back_rows(entry.name, ratio.ratio.median, list(profile.steps), limits)
    notes = [
        environment.place(),
        f"`python -m benchmarks.layers --threads {arguments.threads}`",
    ]
    section = results.Section(
        title=f"Where the time goes: {arguments.threads} threads",
        text='Share of the time of all steps, and after "at" the share of the machine\'s peak '
        f"({limits.gflops:.0f} GFLOP/s) that these steps reach, counting the operations of the direct algorithm: "
        "Winograd's may exceed it.",
        head=["network", *(name for name, _ in KINDS), REST],
        rows=rows,
        notes=notes,
    )
    results.record_section(f"layers-{arguments.threads}", section, record, arguments.results)
    section = results.Section(
        title=f"What holds back the networks under {HELD_BACK} times their best peer: {arguments.threads} threads",
        text="The steps of each that take most beyond their limit: the operations of the direct algorithm at the peak; "
        f"of matrix products, which use each weight once, the bytes at the speed of memory ({limits.gbytes:.0f} GB/s) "
        "where that is longer. Steps of fast algorithms may take less than this limit and are not listed then.",
        head=[
            "network",
            "speed-up",
            "step",
            "routine",
            "of the time",
            "of the peak",
            "GB/s",
            "beyond the limit, of the time",
        ],
        rows=held,
        notes=notes,
    )
    results.record_section(f"layers-{arguments.threads}-held", section, record, arguments.results)


if __name__ == "__main__":
    main()
