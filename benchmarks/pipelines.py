"""Stacks of recurrent layers, layer after layer and as a pipeline over layers: ``python -m benchmarks.pipelines``.

A line for each stack: ONNX Runtime, neo with one thread, neo with all threads at each layer, the fastest schedule of the
pipeline, and the plan that a compile chooses by itself, in microseconds. A time is the least of some rounds, in which all
take turns. The results of the pipeline are those of the layers up to rounding, and are compared.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import neo
import numpy as np

from benchmarks.models.recurrent import recurrent_stack

ROUTINE = "cpu:float32/recurrent"
ROUND_SECONDS = 0.02


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--op", default="LSTM")
    parser.add_argument("--layers", default="2,4,8")
    parser.add_argument("--units", default="64,128,256")
    parser.add_argument("--steps", default="17,100")
    parser.add_argument("--batch", default="1,4,16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--states", action="store_true", help="the last states of all layers are results, too")
    parser.add_argument(
        "--chunks", default="1,2,4,8,16,32", help="steps that a stage does at once, as far as T has them"
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(
        f"| layers x units, T, batch | ONNX Runtime | 1 thread | {options.threads} threads | pipeline | schedule | chosen | gain |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for layers, units, steps, batch in itertools.product(
        *(map(int, text.split(",")) for text in (options.layers, options.units, options.steps, options.batch))
    ):
        print(_line(options, layers, units, steps, batch), flush=True)


def _line(options: argparse.Namespace, layers: int, units: int, steps: int, batch: int) -> str:
    import onnxruntime

    model, feeds = recurrent_stack(options.op, layers, steps, batch, units, states=options.states)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    plain: dict[str, str | list[str]] = {"layer*": [ROUTINE, ROUTINE + "{*}", ROUTINE + "_exponent_packed*"]}
    shapes = {"t": steps}
    modules = {
        "one": neo.compile(model, threads=1, shapes=shapes),
        "all": neo.compile(model, threads=options.threads, shapes=shapes, routines=plain),
        "chosen": neo.compile(model, threads=options.threads, shapes=shapes),
    }
    pipelines = dict(_pipelines(model, feeds, layers, options))
    expected = next(iter(modules["one"].run(feeds).values()))
    for name, module in (modules | pipelines).items():
        found = next(iter(module.run(feeds).values()))
        if not np.allclose(found, expected, rtol=1e-4, atol=1e-5):
            return f"| {layers} x {units}, {steps}, {batch} | WRONG: {name} |"
    runs: dict[str, Callable[[], object]] = {"ort": lambda: session.run(None, feeds)}
    for name, module in (modules | pipelines).items():
        runs[name] = lambda module=module: module.run(feeds)  # type: ignore[misc]
    least = _times(runs, options.rounds)
    best = min(pipelines, key=lambda name: least[name])
    figures = [least[name] for name in ("ort", "one", "all", best)]
    cells = " | ".join(f"{us:.0f}" for us in figures)
    gain = min(least["one"], least["all"]) / least[best]
    return f"| {layers} x {units}, {steps}, {batch} | {cells} | {best} | {least['chosen']:.0f} | {gain:.2f} |"


def _pipelines(
    model: object, feeds: dict[str, np.ndarray], layers: int, options: argparse.Namespace
) -> Iterator[tuple[str, neo.Module]]:
    last, stages, steps = f"layer{layers - 1}", min(layers, options.threads), len(feeds["x"])
    for chunk, beside in itertools.product(map(int, options.chunks.split(",")), (False, True)):
        schedule = f"{'beside=1 ' if beside else ''}chunk={chunk} stages={stages}"
        if chunk > max(1, steps // 2):
            continue
        pins = {last: f"{ROUTINE}_stack{{{schedule}}}"}
        try:
            yield schedule, neo.compile(model, threads=options.threads, shapes={"t": steps}, routines=pins)
        except neo.Error:  # no schedule of its own
            continue


def _times(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            end = time.perf_counter() + ROUND_SECONDS
            while (start := time.perf_counter()) < end:
                run()
                least[name] = min(least[name], (time.perf_counter() - start) * 1e6)
    return least


if __name__ == "__main__":
    main()
