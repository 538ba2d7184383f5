"""Quantized models beside ONNX Runtime: ``python -m benchmarks.quantized [PATTERN ...]``.

For each model of ``models/quantized.py`` whose name matches: how far the outputs are from ONNX Runtime's two modes (every
operator by itself, and fused), which steps run by the reference, how many convert codes to numbers or back, and, at each
number of threads, neo's time and how many times that ONNX Runtime and neo on the float model take, rounds in turns.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import neo
import numpy as np
import onnxruntime
from rich.console import Console

from benchmarks.models.quantized import QUANTIZED, Quantized

ROUNDS, ROUND_SECONDS = 7, 0.03


def session(model: bytes, threads: int, *, plain: bool = False) -> Any:
    """A session of ONNX Runtime; `plain`: every operator by itself, as the model is written."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def distance(results: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference in units of the largest magnitude of its output."""
    return max(
        float(np.abs(a.astype(np.float64) - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
        for a, b in zip(results, expected, strict=True)
    )


def benchmark(calls: list[Callable[[], Any]]) -> list[float]:
    """The least microseconds of each call, over rounds in turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            end = time.perf_counter() + ROUND_SECONDS
            while True:
                start = time.perf_counter()
                call()
                now = time.perf_counter()
                best[i] = min(best[i], now - start)
                if now > end:
                    break
    return [1e6 * b for b in best]


def report(name: str, case: Quantized, threads: list[int], console: Console) -> None:
    """Print one model's line, and its slow kinds of steps."""
    model, feeds = case.model(), case.feeds()
    data = model.SerializeToString()
    expected = [[np.asarray(a) for a in session(data, 1, plain=plain).run(None, feeds)] for plain in (True, False)]
    modules = [neo.compile(model, threads=count) for count in threads]
    results = [np.asarray(a) for a in modules[0].run(feeds).values()]
    far = [distance(results, e) for e in expected]
    steps = modules[0].steps
    slow = Counter(s.op for s in steps if s.routine.startswith("cpu/reference"))
    back = Counter(s.op for s in steps if s.op in ("QuantizeLinear", "DequantizeLinear") and "linear" in s.routine)
    line = f"{name:34} plain {far[0]:.1e} fused {far[1]:.1e} modes {distance(expected[1], expected[0]):.1e}"
    for count, module in zip(threads, modules, strict=True):
        peer = session(data, count)
        real = neo.compile(case.real(), threads=count)
        calls: list[Callable[[], Any]] = [
            lambda m=module: m.run(feeds),
            lambda p=peer: p.run(None, feeds),
            lambda r=real: r.run(feeds),
        ]
        ours, theirs, floats = benchmark(calls)
        line += f" | {count}: {ours:.0f} us, {theirs / ours:.2f}x, float {floats / ours:.2f}x"
    console.print(line, highlight=False, soft_wrap=True)
    if slow or back:
        console.print(f"    reference {dict(slow)} conversions {dict(back)}", highlight=False, soft_wrap=True)


def main() -> None:
    """Report the models that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantized", description="Quantized models.")
    parser.add_argument("patterns", nargs="*", default=["*"], help="of names (default: all)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: %(default)s)")
    arguments = parser.parse_args()
    threads = [int(word) for word in arguments.threads.split(",")]
    console = Console()
    for name, case in QUANTIZED.items():
        if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.patterns):
            try:
                report(name, case, threads, console)
            except Exception as error:
                console.print(f"{name:34} {type(error).__name__}: {str(error)[:300]}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
