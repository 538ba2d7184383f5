"""``python -m tests.models.on_device``: every model of the zoo with a device as target.

Float models and quantized ones run beside onnxruntime, twins of the float models in float16 beside neo on the CPU. Status 1
where a model differs by more than the rule of its kind. Each model runs in a process of its own.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import neo
import numpy as np

from . import zoo
from .engines import assert_agrees, assert_meets_reference, expected_of, source_of
from .half_twin import half_twin
from .inputs import Feeds

# How far a twin may be from the CPU's answer beside the output's largest value. The rule for floats alone allows all of
# it for sums of some hundred terms, and twins were within 0.004 where no value left float16's range.
MAX_HALF_DIFFERENCE = 0.05
KINDS = {
    "float32": "The float models of the zoo",
    "float16": "Their twins in float16",
    "codes": "The quantized models of the zoo",
}


@dataclass(frozen=True)
class Outcome:
    """What one model did: the largest difference relative to the largest value, where its steps ran, what was wrong."""

    model: str
    failure: str = ""
    difference: float = 0.0
    on_device: int = 0
    on_cpu: str = ""
    kind: str = "float32"


def cases_of(model: zoo.Model) -> Iterator[tuple[Feeds, Feeds, Callable[[Feeds], None]]]:
    """Yield inputs, outputs and the check of a run: those of onnxruntime, or what is stored where it refuses the model."""
    if model.onnxruntime:
        for _, feeds, expected in expected_of(model):
            yield feeds, expected, partial(assert_agrees, model, feeds, expected=expected)
        return
    for reference in model.references:
        for feeds, expected in zoo.load_reference(model, reference):
            yield feeds, expected, partial(assert_meets_reference, model, reference, feeds, expected=expected)


def half_cases_of(model: zoo.Model, twin: bytes) -> Iterator[tuple[Feeds, Feeds, Callable[[Feeds], None]]]:
    """Yield the same of a model's twin: inputs rounded to float16, and what neo makes of them on the CPU."""
    alone = neo.compile(twin)
    all_feeds = [case.feeds for case in model.cases()]
    all_feeds += [feeds for reference in model.references for feeds, _ in zoo.load_reference(model, reference)]
    for given in all_feeds:
        feeds = {k: x.astype(np.float16) if x.dtype == np.float32 else x for k, x in given.items()}
        expected = {k: np.asarray(y) for k, y in alone.run(feeds).items()}
        yield feeds, expected, partial(assert_agrees, model, feeds, expected=expected)


def run_on(name: str, target: str, kind: str = "float32") -> Outcome:
    """Run every case of a model, or of its twin in float16."""
    model = zoo.BY_NAME[name]
    try:
        if kind == "float16":
            source: str | bytes = (twin := half_twin(source_of(model)))
            cases = list(half_cases_of(model, twin))
        else:
            source = source_of(model)
            cases = list(cases_of(model))
        module = neo.compile(source, target=target)
        steps = module.steps
        on_cpu = Counter(step.op for step in steps if step.device == "cpu")
        listed = ", ".join(f"{count} {op}" for op, count in sorted(on_cpu.items()))
        difference, failure = 0.0, ""
        for feeds, expected, check in cases:
            actual = module.run(feeds)
            try:
                check(actual)
            except AssertionError as error:
                failure = failure or f"AssertionError: {_line(error)}"
            if kind == "float16" or model.onnxruntime:  # what is stored may be labels
                difference = max([difference, *(_difference(actual[n], right) for n, right in expected.items())])
        if kind == "float16" and not model.ranked and difference > MAX_HALF_DIFFERENCE:
            failure = failure or f"the difference must be at most {MAX_HALF_DIFFERENCE}"
        return Outcome(name, failure, difference, len(steps) - on_cpu.total(), listed, kind)
    except Exception as error:
        return Outcome(name, f"{type(error).__name__}: {_line(error)}", kind=kind)


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _difference(actual: Any, expected: Any) -> float:
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape or left.size == 0:
        return 0.0 if left.shape == right.shape else float("inf")
    if not np.issubdtype(right.dtype, np.floating):
        return float((left != right).any())
    scale = float(np.abs(right).max()) or 1.0
    return float(np.abs(left.astype(np.float64) - right.astype(np.float64)).max()) / scale


def page(outcomes: Sequence[Outcome], target: str) -> str:
    """Write the page of docs/."""
    lines = [
        f'# The models of the zoo with `target="{target}"`',
        "",
        f"Written by `python -m tests.models.on_device --target {target}`; the device was PoCL. The reference is onnxruntime, and for the",
        "twins neo on the CPU. The difference is the largest of all outputs and cases, relative to the output's largest value; of",
        "integers it is 1 where any differs.",
    ]
    for kind, heading in KINDS.items():
        some = [o for o in outcomes if o.kind == kind]
        if not some:
            continue
        held = sum(not o.failure for o in some)
        lines += ["", f"## {heading}", "", f"{held} of {len(some)} agree by the rule of [accuracy](accuracy.md)."]
        lines += ["", "| model | difference | steps on the device | steps on the CPU | |", "|---|---|---|---|---|"]
        lines += [
            f"| {o.model} | {o.difference:.1e} | {o.on_device} | {o.on_cpu or '0'} | {o.failure or 'agrees'} |"
            for o in some
        ]
    return "\n".join(lines) + "\n"


def run_alone(name: str, target: str, kind: str, seconds: float) -> Outcome:
    """Run a model in a process of its own."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(max_workers=1, mp_context=context)
    try:
        return pool.submit(run_on, name, target, kind).result(timeout=seconds)
    except futures.TimeoutError:
        for process in pool._processes.values():
            process.kill()
        return Outcome(name, f"not done within {seconds:.0f} s", kind=kind)
    except Exception as error:
        return Outcome(name, f"the process ended: {_line(error)}", kind=kind)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.models.on_device", description=__doc__)
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--match", default="*", help="only models of this pattern")
    parser.add_argument("--seconds", type=float, default=600, help="that a model may take")
    parser.add_argument("--until", type=float, default=float("inf"), help="no model is begun after so many seconds")
    parser.add_argument("--page", type=Path, help="where to write the page of docs/, after every model")
    options = parser.parse_args(arguments)
    models = [
        m
        for m in zoo.MODELS
        if (m.onnxruntime or m.references) and m.path.exists() and fnmatch.fnmatchcase(m.name, options.match)
    ]
    models.sort(key=lambda m: (m.name.startswith("light"), m.path.stat().st_size))
    outcomes: list[Outcome] = []
    start = time.monotonic()
    work = [(m.name, kind) for kind in options.kinds for m in models if m.quantized == (kind == "codes")]
    for name, kind in work:
        if time.monotonic() - start > options.until:
            print(f"not begun after {options.until:.0f} s: {name} ({kind}) and what follows", flush=True)
            break
        outcomes.append(run_alone(name, options.target, kind, options.seconds))
        print(outcomes[-1], flush=True)
        if options.page:
            options.page.write_text(page(outcomes, options.target), encoding="utf-8")
    return 1 if any(o.failure for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
