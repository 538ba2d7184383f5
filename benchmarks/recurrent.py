"""Recurrent layers of every form: ``python -m benchmarks.recurrent``.

Each layer is compared with ONNX Runtime, where that runs it, and timed beside it and beside neo's plain layer of the same
sizes; layers are random, or those of ``--forms``: one form each at the sizes given. A time is the least of some rounds,
in which the three take turns.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import neo
import numpy as np

from benchmarks.models.recurrent import FORMS, GATES, Layer, random_layer

#: Forms that have no time of their own: the plain layer keeps them.
KEPT = frozenset({"bias", "states", "last", "linear", "layout"})
ROUNDS = 7
ROUND_SECONDS = 0.02


def main() -> None:
    """Print a line for each layer, and in the end how many differ or are slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0, help="so many random layers")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--largest", type=int, default=160, help="largest input and state of a random layer")
    parser.add_argument("--sizes", default="32,1,128,128", help="steps, batch, input, hidden units of --forms")
    parser.add_argument("--directions", default="forward,bidirectional")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-times", action="store_true", help="only compare")
    options = parser.parse_args()
    worst = [math.inf, math.inf]
    wrong = 0
    for layer in _layers(options):
        line, ratios = _look_at(layer, options.threads, not options.no_times)
        wrong += "WRONG" in line or "ERROR" in line
        worst = [min(w, r) for w, r in zip(worst, ratios, strict=True)]
        print(line, flush=True)
    print(f"wrong {wrong}; least: {worst[0]:.2f} of ONNX Runtime's time, {worst[1]:.2f} of the plain layer's")


def _layers(options: argparse.Namespace) -> Iterator[Layer]:
    if options.random:
        for seed in range(options.first, options.first + options.random):
            yield random_layer(seed, largest=options.largest)
        return
    steps, batch, inputs, hidden = (int(s) for s in options.sizes.split(","))
    for op in GATES:
        for direction in options.directions.split(","):
            plain = Layer(op, steps, batch, inputs, hidden, direction, forms=frozenset({"bias"}))
            yield plain
            for form in FORMS:
                fits = op == "LSTM" if form in ("peepholes", "coupled") else op == "GRU" or form != "linear"
                if form != "bias" and fits:
                    yield replace(plain, forms=plain.forms | {form})
                    if form == "linear":
                        yield replace(plain, forms=plain.forms | {form, "lengths"})


def _look_at(layer: Layer, threads: int, timed: bool) -> tuple[str, list[float]]:
    import onnxruntime

    model, feeds = layer.build()
    try:
        module = neo.compile(model, threads=threads)
        found = module.run(feeds)
    except Exception as error:
        return f"{layer.name:70} ERROR {error}", [math.inf, math.inf]
    runs: list[Callable[[], object]] = [lambda: module.run(feeds)]
    routine = next((s.routine for s in module.steps if s.op == layer.op), "?")
    note = ""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        expected = dict(zip(names, session.run(None, feeds), strict=True))
        error = max(_error(found[n], expected[n]) for n in names)
        note = f"error {error:.1e}" if error < 2e-5 else f"WRONG by {error:.1e}"
        runs.append(lambda: session.run(None, feeds))
    except Exception as error:
        note = f"not in ONNX Runtime: {str(error)[-60:]!r}"
        runs.append(lambda: None)
    if not timed:
        return f"{layer.name:70} {routine:34} {note}", [math.inf, math.inf]
    plain, plain_feeds = replace(layer, forms=layer.forms & KEPT).build()
    beside = neo.compile(plain, threads=threads)
    runs.append(lambda: beside.run(plain_feeds))
    own, peer, base = _times(runs)
    ratios = [peer / own if "not in" not in note else math.inf, base / own]
    return f"{layer.name:70} {routine:34} {own:9.1f} us  {ratios[0]:6.2f}x  plain {ratios[1]:5.2f}x  {note}", ratios


def _error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference of numbers, by the largest of them where that is more than one; what is no number must agree."""
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return math.inf
    largest = float(np.abs(expected[finite]).max(initial=1))
    return float(np.abs(found[finite] - expected[finite]).max(initial=0)) / largest


def _times(runs: list[Callable[[], object]]) -> list[float]:
    """Microseconds of a call of each."""
    counts = []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, int(ROUND_SECONDS / max(1e-7, time.perf_counter() - start))))
    best = [math.inf] * len(runs)
    for _ in range(ROUNDS):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            for _ in range(counts[i]):
                run()
            best[i] = min(best[i], (time.perf_counter() - start) / counts[i])
    return [b * 1e6 for b in best]


if __name__ == "__main__":
    main()
