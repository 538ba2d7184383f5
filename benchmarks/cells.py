"""Layers whose cell is no operator of ONNX, in a Scan or written out: ``python -m benchmarks.cells``.

A line for each cell and size: ONNX Runtime, neo, in microseconds, their ratio, neo's time by that of an LSTM of the same
sizes that neo recognises, and the largest difference of the results. A time is the least of some rounds, in which all take
turns.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable

import neo
import numpy as np

from benchmarks.models.cells import CELLS, cell_model, feeds_of_cells

ROUND_SECONDS = 0.02


def main() -> None:
    """Print the table, and in the end the geometric mean and the least of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default=",".join(CELLS), help="names, or random-N for the cell of a seed")
    parser.add_argument("--random", type=int, default=0, help="so many random cells instead")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--units", default="64")
    parser.add_argument("--steps", default="1,2,7,16,100,1000")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--unrolled", action="store_true", help="copies of the cell instead of a Scan")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.random:
        options.cells = ",".join(f"random-{seed}" for seed in range(options.first, options.first + options.random))
    print("| cell | units | T | batch | threads | ONNX Runtime, us | neo, us | ratio | of the LSTM | difference |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name, units, threads in itertools.product(
        options.cells.split(","), map(int, options.units.split(",")), map(int, options.threads.split(","))
    ):
        for line, ratio in _lines(options, name, units, threads):
            print(line, flush=True)
            ratios.append(ratio)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


def _lines(options: argparse.Namespace, name: str, units: int, threads: int) -> list[tuple[str, float]]:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4
    lines = []
    plain = neo.compile(cell_model("lstm", units), threads=threads)
    module = session = None
    for steps, batch in itertools.product(*(map(int, text.split(",")) for text in (options.steps, options.batch))):
        if module is None or options.unrolled:
            model = cell_model(name, units, unrolled=steps if options.unrolled else 0)
            module = neo.compile(model, threads=threads)
            session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
        assert session is not None
        feeds, of_plain = feeds_of_cells(model, steps, batch), feeds_of_cells(cell_model("lstm", units), steps, batch)
        found, expected = list(module.run(feeds).values()), session.run(None, feeds)
        difference = max(
            float(np.abs(f - e).max(initial=0)) / max(1.0, float(np.abs(e).max(initial=0)))
            for f, e in zip(found, expected, strict=True)
        )
        runs: list[Callable[[], object]] = [
            lambda session=session, feeds=feeds: session.run(None, feeds),  # type: ignore[misc]
            lambda module=module, feeds=feeds: module.run(feeds),  # type: ignore[misc]
            lambda of_plain=of_plain: plain.run(of_plain),  # type: ignore[misc]
        ]
        peer, own, lstm = _times(runs, options.rounds)
        figures = f"{peer:.0f} | {own:.0f} | {peer / own:.2f} | {own / lstm:.2f} | {difference:.0e}"
        lines.append((f"| {name} | {units} | {steps} | {batch} | {threads} | {figures} |", peer / own))
    return lines


def _times(runs: list[Callable[[], object]], rounds: int) -> list[float]:
    """Microseconds of the fastest call of each."""
    least = [math.inf] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            end = time.perf_counter() + ROUND_SECONDS
            while (start := time.perf_counter()) < end:
                run()
                least[i] = min(least[i], (time.perf_counter() - start) * 1e6)
    return least


if __name__ == "__main__":
    main()
