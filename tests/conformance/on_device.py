"""``python -m tests.conformance.on_device``: every case of ONNX's backend suite with a device as target.

What no routine of the device takes runs on the CPU; the page that is written says how many nodes that are, and of which
operators. Status 1 where a case that passes on the CPU fails.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import neo
import numpy as np

from .backend_cases import Case, all_cases, run_case
from .exceptions import DEVICE_TOLERANCES, RANDOM, REFUSED, TOLERANCES

__all__ = ["Outcome", "cases", "check_case", "compare_random", "is_listed", "run_on"]


@dataclass(frozen=True)
class Outcome:
    """What one case did: where its nodes ran, and what was wrong."""

    name: str
    failure: str = ""
    refused: bool = False
    on_device: dict[str, int] = field(default_factory=dict)
    on_cpu: dict[str, int] = field(default_factory=dict)


@cache
def cases() -> dict[str, Case]:
    """Load every case; ONNX computes those of the kind node when it is asked for them."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in all_cases()}


def is_listed(name: str, patterns: Iterable[str]) -> bool:
    """Whether a case is named by one of the patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def compare_random(got: Any, want: Any, rtol: float, atol: float, name: str) -> None:
    """Compare what chance decides: type and shape, that a trial gives 0 or 1, and what a dropout keeps."""
    assert got.dtype == want.dtype, name
    assert got.shape == want.shape, name
    if np.isin(want, [0, 1]).all():
        assert np.isin(got, [0, 1]).all(), name
    kept = (got != 0) & (want != 0)
    np.testing.assert_allclose(got[kept], want[kept], rtol=rtol, atol=atol)


def check_case(case: Case, compile_model: Any, on_device: bool = False) -> bool:
    """Compile and run a case; raise where it does not pass, and return false where it must be refused and was."""
    if is_listed(case.name, REFUSED):
        try:
            run_case(case, compile_model)
        except neo.UnsupportedError as error:
            if "supported" in str(error):
                return False
            raise
        raise AssertionError("not refused")
    if is_listed(case.name, RANDOM):
        run_case(case, compile_model, compare_random)
    else:
        known = (
            {case.name: TOLERANCES[case.name]} if case.name in TOLERANCES else DEVICE_TOLERANCES if on_device else {}
        )
        rtol, atol, _ = next(
            (known[name] for name in known if fnmatch.fnmatchcase(case.name, name)), (case.rtol, case.atol, "")
        )
        run_case(case, compile_model, rtol=rtol, atol=atol)
    return True


def run_on(name: str, target: str) -> Outcome:
    """Run one case with a target."""
    on_device: Counter[str] = Counter()
    on_cpu: Counter[str] = Counter()

    def compile_model(model: Any) -> neo.Module:
        module = neo.compile(model, target=target)
        for step in module.steps:
            if step.op != "neo.Adapt":  # a copy or a layout
                (on_cpu if step.device == "cpu" else on_device)[step.op] += 1
        return module

    try:
        passed = check_case(cases()[name], compile_model, on_device=True)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return Outcome(name, f"{type(error).__name__}: {lines[0]}", False, dict(on_device), dict(on_cpu))
    return Outcome(name, "", not passed, dict(on_device), dict(on_cpu))


def _run(work: tuple[str, str]) -> Outcome:
    return run_on(*work)


def page(outcomes: Sequence[Outcome], target: str) -> str:
    """Write the page of docs/."""
    on_device: Counter[str] = Counter()
    on_cpu: Counter[str] = Counter()
    for outcome in outcomes:
        on_device.update(outcome.on_device)
        on_cpu.update(outcome.on_cpu)
    failures = [o for o in outcomes if o.failure]
    whole = [o for o in outcomes if o.on_device and not o.on_cpu and not o.failure]
    some = [o for o in outcomes if o.on_device]
    lines = [
        f'# ONNX\'s backend tests with `target="{target}"`',
        "",
        f"Written by `python -m tests.conformance.on_device --target {target}`; the device was PoCL. A node that no routine of the",
        "device takes runs on the CPU.",
        "",
        "| | |",
        "|---|---|",
        f"| cases | {len(outcomes)} |",
        f"| passed | {sum(not o.failure and not o.refused for o in outcomes)} |",
        f"| refused by name, as on the CPU | {sum(o.refused for o in outcomes)} |",
        f"| failed | {len(failures)} |",
        f"| cases with a step on the device | {len(some)} |",
        f"| cases with all steps on the device | {len(whole)} |",
        f"| steps on the device | {on_device.total()} |",
        f"| steps on the CPU | {on_cpu.total()} |",
        "",
    ]
    if failures:
        lines += ["Failed:", "", *(f"- `{o.name}`: {o.failure}" for o in failures), ""]
    lines += ["| operator | on the device | on the CPU |", "|---|---|---|"]
    lines += [f"| {op} | {on_device[op]} | {on_cpu[op]} |" for op in sorted({*on_device, *on_cpu})]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.on_device", description=__doc__)
    parser.add_argument("--target", default="opencl")
    parser.add_argument("--match", default="*", help="only cases of this pattern")
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--page", type=Path, help="where to write the page of docs/")
    options = parser.parse_args(arguments)
    names = fnmatch.filter(cases(), options.match)[:: options.every]
    work = [(name, options.target) for name in names]
    outcomes = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=options.processes, mp_context=context) as pool:
        for outcome in pool.map(_run, work, chunksize=8):
            outcomes.append(outcome)
            if outcome.failure:
                print(f"{outcome.name}: {outcome.failure}", flush=True)
    text = page(outcomes, options.target)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    print("\n".join(text.splitlines()[5:16]))
    return 1 if any(o.failure for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
