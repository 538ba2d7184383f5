"""``neo bench``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from neo.cli.arguments import (
    add_json,
    add_model,
    check_folder,
    inputs_of,
    module_of,
    note_fallbacks,
    print_json,
    sizes_of,
)
from neo.cli.executors import compare_executors, executors_text
from neo.errors import ModelError
from neo.module import Module

HELP = "time a model"

_MIN_CALLS = 5


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(command, more="; all: one after the other, beside what was expected")
    command.add_argument("--seconds", type=float, default=2.0, help="how long to measure, each engine (default: 2)")
    command.add_argument(
        "--batch", type=int, metavar="N", help="fix the symbol of the inputs' first axis, and print items per second"
    )
    command.add_argument("--peers", action="store_true", help="beside every engine that is installed, in float32")
    command.add_argument("--rounds", type=int, help="rounds of calls (default: 1; with --peers 15, interleaved)")
    add_json(command, "the times")


def run(options: argparse.Namespace) -> None:
    """Measure, and print the quantiles of a call's time."""
    if not 0 < options.seconds < float("inf"):
        msg = f"[cli] --seconds must be positive. Got {options.seconds:g}"
        raise ModelError(msg)
    if options.rounds is not None and options.rounds < 1:
        msg = f"[cli] --rounds must be positive. Got {options.rounds}, expected 1 or more"
        raise ModelError(msg)
    if options.json:
        check_folder(options.json, "--json")
    if options.executors == "all":
        options.executors = None
        module = module_of(options)
        compare_executors(module, inputs_of(options, module), options.threads, options.seconds)
        return
    module = module_of(options)
    if options.batch is not None:
        options.shape += [f"{symbol}={options.batch}" for symbol in _batch_symbols(module, options.batch)]
    if options.peers:
        _bench_peers(options, module)
        note_fallbacks(options, module)
        return
    inputs = inputs_of(options, module)
    module.run(inputs)
    rounds = [_round(module, inputs, options.seconds / (options.rounds or 1)) for _ in range(options.rounds or 1)]
    times = np.concatenate(rounds) * 1e3
    low, median, high = np.quantile(times, [0.1, 0.5, 0.9])
    items = options.batch or _items(inputs)
    medians = [float(np.median(r)) * 1e3 for r in rounds]
    rate = items / float(median) * 1e3
    found = {
        "calls": len(times),
        "rounds": len(rounds),
        "min_ms": float(times.min()),
        "median_ms": float(median),
        "p10_ms": float(low),
        "p90_ms": float(high),
        "round_medians_ms": medians,
        "items_per_second": rate,
        "executors": list(module.executors),
        "threads": module.threads,
        "target": module.target,
    }
    if options.json:
        print_json(options.json, found)
    if options.json != "-":
        spread = f", {len(rounds)} rounds of medians {_range(medians)} ms" if len(rounds) > 1 else ""
        print(
            f"{median:.3f} ms median, {times.min():.3f} ms least, {low:.3f} to {high:.3f} ms (10 to 90 %), "
            f"{len(times)} calls{spread}, {rate:.1f} items/s, "
            f"{executors_text(module)}, {module.target}"
        )
    note_fallbacks(options, module)


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def _round(module: Module, inputs: dict[str, Any], seconds: float) -> np.ndarray[Any, Any]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _MIN_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        module.run(inputs)
        times.append(time.perf_counter() - start)
    return np.array(times)


def _batch_symbols(module: Module, batch: int) -> set[str]:
    """The symbols of the inputs' first axes."""
    if batch < 1:
        msg = f"[cli] --batch must be positive. Got {batch}, expected 1 or more"
        raise ModelError(msg)
    first = {t.shape[0] for t in module.inputs if t.shape}
    symbols = {d for d in first if isinstance(d, str)}
    if not symbols and first != {batch}:
        shapes = ", ".join(map(str, module.inputs))
        msg = f"[cli] --batch needs an input whose first axis is a symbol. Got {shapes}"
        raise ModelError(msg)
    return symbols


def _items(inputs: dict[str, Any]) -> int:
    """How many items a call has: the size of the first axis where all inputs agree on it."""
    first = {x.shape[0] for x in inputs.values() if isinstance(x, np.ndarray) and x.ndim > 0}
    return first.pop() if len(first) == 1 else 1


def _bench_peers(options: argparse.Namespace, module: Module) -> None:
    from neo.bench.peers import measure_peers, print_peers

    if Path(options.model).suffix == ".neo":
        msg = f"[cli] --peers must be given an ONNX file. Got {options.model!r}"
        raise ModelError(msg)
    inputs = {name: np.asarray(value) for name, value in inputs_of(options, module).items()}
    arguments = {"target": options.target, "shapes": sizes_of(options), "tune": options.tune}
    if options.database:
        arguments["database"] = str(Path(options.database).absolute())
    found = measure_peers(
        Path(options.model),
        inputs,
        threads=module.threads,
        options=arguments,
        rounds=options.rounds or 15,
        seconds=options.seconds,
    )
    if options.json:
        print_json(options.json, {name: _measured(m) for name, m in found.items()})
    if options.json != "-":
        print_peers(found, threads=module.threads)


def _measured(measured: Any) -> Any:
    from dataclasses import asdict, is_dataclass

    return asdict(measured) if is_dataclass(measured) and not isinstance(measured, type) else measured
