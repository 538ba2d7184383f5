"""The atlas of operators: ``python -m benchmarks.operators``.

Every case of ``models/operators.py`` (one operator, some dtype, some form) is run by neo and by ONNX Runtime, each in a
process of its own with the same threads, in turns: a round times the engines one after the other, and a ratio is the
median over the rounds. Outputs are compared first. The page tells, per family and dtype, how the ratios lie, how many
cases the reference runs, and every case that is slower than the peer, with its routine and the share of what memory or
arithmetic allow.

An operator that ONNX Runtime has not for a dtype has no ratio; its time is beside the limit alone.

``--random 300`` takes cases of ``models/random_operators.py`` instead, which nobody has seen, ``--subgraphs 300`` operators
with what usually surrounds them (``models/random_subgraphs.py``); those by the reference that take long are listed too.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import commit, describe
from benchmarks.models.operators import Case, cases
from benchmarks.models.random_draw import RandomCase
from benchmarks.models.random_operators import random_case
from benchmarks.models.random_subgraphs import random_subgraph

#: Below this ratio a case is listed.
SLOW = 0.8
#: Why cases stay below it that were looked into, by a regular expression of their names.
REVIEWED = {
    r"^ReduceLogSumExp int": "ONNX Runtime adds exponentials that it rounds to integers, and gives other results",
}
#: Microseconds from which a case of the reference is listed, however fast the peer is.
LONG_US = 20.0
ENGINES = ("neo", "ort")
#: Seconds of a case's calls in each round, and the rounds.
ROUND_SECONDS = 0.01
ROUNDS = 5
TIMEOUT_SECONDS = 60.0


@dataclass
class Found:
    """What a case gave: microseconds per engine, the median of rounds' ratios, and why an engine has none."""

    name: str
    family: str
    dtype: str
    us: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    ratio: float = 0.0  # ONNX Runtime's time by neo's; 0: there is none
    routine: str = ""
    limit_us: float = 0.0
    wrong: str = ""


# A worker: one engine that answers lines of JSON.


def _neo_runner(case: Case | RandomCase, threads: int) -> tuple[Callable[[], Sequence[np.ndarray]], dict[str, Any]]:
    import neo

    model, feeds = case.build()
    module = neo.compile(model, threads=threads)
    steps = [s for s in module.steps if s.op != "neo.Adapt"]
    about = {
        "routine": " + ".join(s.routine.split("{")[0].split("@")[0] for s in steps),
        "flops": sum(s.flops for s in steps),
        "bytes": sum(s.bytes for s in steps),
    }
    return lambda: list(module.run(feeds).values()), about


def _ort_runner(case: Case | RandomCase, threads: int) -> tuple[Callable[[], Sequence[np.ndarray]], dict[str, Any]]:
    import onnxruntime

    model, feeds = case.build()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds), {}


def _random_case_of(name: str) -> RandomCase:
    make = {"#": random_case, "@": random_subgraph}[name[0]]
    return make(int(name[1:].split()[0]))


def work(engine: str, threads: int) -> None:
    """Answer requests on standard input until it ends.

    Parameters
    ----------
    engine : str
        One of ``ENGINES``.
    threads : int
        Of the module or session.
    """
    everything: dict[str, Case | RandomCase] = {case.name: case for case in cases()}
    make = {"neo": _neo_runner, "ort": _ort_runner}[engine]
    run: Callable[[], Sequence[np.ndarray]] = list
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            if "case" in request:
                name = request["case"]
                run, answer = make(everything.get(name) or _random_case_of(name), threads)
                first = [np.asarray(v) for v in run()]
                plain = [v if v.dtype.kind in "biufc" else v.astype(np.float32) for v in first]
                np.savez(request["to"], *plain)
            else:
                answer = {"us": _time(run, request["seconds"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _time(run: Callable[[], Any], seconds: float) -> float:
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if len(times) >= 3 and times[-1] > seconds:
            break
    return statistics.median(times) * 1e6


class Worker:
    """One engine's process, begun anew where it ends or hangs; stopped while others work, whose threads would spin beside."""

    def __init__(self, engine: str, threads: int) -> None:
        self.engine, self.threads = engine, threads
        self._start()

    def _start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.operators",
            "--worker",
            self.engine,
            "--threads",
            str(self.threads),
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, or an error."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.send_signal(signal.SIGCONT)
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], TIMEOUT_SECONDS)[0]:
                raise TimeoutError
            answer: dict[str, Any] = json.loads(process.stdout.readline())
        except (OSError, ValueError, TimeoutError) as error:
            process.kill()
            code = process.wait()
            self._start()
            return {"error": "no answer" if isinstance(error, TimeoutError) else f"the process ended with {code}"}
        process.send_signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


# The run.


def differs(found: np.ndarray, expected: np.ndarray, dtype: str) -> str:
    """Return how two results differ by more than their dtype allows; nothing where they do not.

    Parameters
    ----------
    found, expected : array
        Of any shape and dtype; halves as float32.
    dtype : str
        Of the operator.
    """
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if found.size == 0:
        return ""
    if expected.dtype.kind in "biu":
        wrong = int((found != expected).sum())
        return f"{wrong} of {found.size} differ" if wrong else ""
    epsilon = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-6}.get(dtype, 1e-4)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-6)
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    bad = ~((error <= epsilon * scale) | (found == expected) | (np.isnan(found) & np.isnan(expected)))
    return f"{int(bad.sum())} of {found.size} differ, {np.nanmax(error) / scale:.1g}" if bad.any() else ""


def measure(case: Case | RandomCase, workers: dict[str, Worker], peak: tuple[float, float], folder: Path) -> Found:
    """Compare the engines on one case.

    Parameters
    ----------
    case : Case or RandomCase
        What to run.
    workers : dict
        Of each engine.
    peak : tuple of float
        Operations and bytes per microsecond of the machine.
    folder : Path
        For outputs.
    """
    found = Found(case.name, case.family, case.dtype)
    outputs: dict[str, list[np.ndarray]] = {}
    for engine, worker in workers.items():
        path = folder / f"{engine}.npz"
        answer = worker.ask({"case": case.name, "to": str(path)})
        if "error" in answer:
            found.errors[engine] = answer["error"]
            continue
        with np.load(path) as arrays:
            outputs[engine] = [arrays[k] for k in arrays.files]
        if engine == "neo":
            found.routine = answer["routine"]
            found.limit_us = max(answer["flops"] / peak[0], answer["bytes"] / peak[1])
    if len(outputs) == len(ENGINES):
        notes = [differs(a, b, case.dtype) for a, b in zip(outputs["neo"], outputs["ort"], strict=False)]
        found.wrong = "; ".join(n for n in notes if n)
    times: dict[str, list[float]] = defaultdict(list)
    for index in range(ROUNDS):
        order = [e for e in ENGINES if e in outputs]
        for engine in order if index % 2 == 0 else reversed(order):
            answer = workers[engine].ask({"seconds": ROUND_SECONDS})
            if "us" in answer:
                times[engine].append(answer["us"])
    found.us = {engine: statistics.median(values) for engine, values in times.items()}
    if len(times) == len(ENGINES) and len(times["neo"]) == len(times["ort"]):
        found.ratio = statistics.median(o / n for n, o in zip(times["neo"], times["ort"], strict=True))
    return found


# The page.


def _mean(ratios: Iterable[float]) -> float:
    logs = [math.log(r) for r in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _is_reference(found: Found) -> bool:
    return "cpu/reference" in found.routine


def reviewed(name: str) -> str:
    """Return why a case may stay below ``SLOW``; nothing where nobody has looked into it.

    Parameters
    ----------
    name : str
        Of a case.
    """
    return next((why for pattern, why in REVIEWED.items() if re.search(pattern, name)), "")


def _group(title: str, groups: dict[str, list[Found]]) -> list[str]:
    lines = [
        f"| {title} | cases | with a peer | geometric mean | slowest | under {SLOW} | by reference |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, members in groups.items():
        ratios = [f.ratio for f in members if f.ratio > 0]
        mean, slowest = (f"{_mean(ratios):.2f}", f"{min(ratios):.2f}") if ratios else ("", "")
        under, reference = sum(r < SLOW for r in ratios), sum(map(_is_reference, members))
        lines.append(f"| {name} | {len(members)} | {len(ratios)} | {mean} | {slowest} | {under} | {reference} |")
    return lines


def page(everything: Sequence[Found], threads: int, about: Sequence[str]) -> str:
    """Return the page.

    Parameters
    ----------
    everything : sequence of Found
        All cases.
    threads : int
        Of both engines.
    about : sequence of str
        Machine and versions, a line each.
    """
    by: dict[str, dict[str, list[Found]]] = {"all": {"all": list(everything)}, "family": {}, "dtype": {}}
    for f in everything:
        by["family"].setdefault(f.family, []).append(f)
        by["dtype"].setdefault(f.dtype, []).append(f)
    lines = [f"# Operators beside ONNX Runtime, {threads} thread{'s' if threads > 1 else ''}", ""]
    lines += [
        "A ratio is ONNX Runtime's time by neo's: above 1 neo is faster.",
        "",
        *(f"- {line}" for line in about),
        "",
    ]
    for title, groups in by.items():
        lines += [*_group(title, groups), ""]
    slow = sorted((f for f in everything if 0 < f.ratio < SLOW), key=lambda f: f.ratio)
    slow += [f for f in everything if _is_reference(f) and not 0 < f.ratio < SLOW and f.us.get("neo", 0) > LONG_US]
    if slow:
        lines += [
            "## Slower than the peer, or long by the reference",
            "",
            "| case | ratio | neo, us | ONNX Runtime, us | of the limit | routine | why it stays |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {f.name} | {f.ratio:.3f} | {f.us['neo']:.1f} | {f.us.get('ort', math.nan):.1f} | {f.limit_us / f.us['neo']:.0%} | {f.routine} | {reviewed(f.name)} |"
            for f in slow
        ]
        lines.append("")
    for title, members in (
        ("Different from the peer", [(f.name, f.wrong) for f in everything if f.wrong]),
        ("Refused", [(f.name, f.errors["neo"]) for f in everything if "neo" in f.errors and "ort" not in f.errors]),
    ):
        if members:
            lines += [f"## {title}", "", *(f"- {name}: {what}" for name, what in members), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="a regular expression that names of cases must contain")
    parser.add_argument("--every", type=int, default=1, help="take one case in so many")
    parser.add_argument("--random", type=int, default=0, help="take so many random cases")
    parser.add_argument("--subgraphs", type=int, default=0, help="take so many random groups of operators")
    parser.add_argument("--seed", type=int, default=0, help="of the first random case or group")
    parser.add_argument("--page", type=Path, help="where the page goes; default: it is printed")
    parser.add_argument("--record", type=Path, help="a file of JSON lines; cases that it has are not measured again")
    parser.add_argument("--worker", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(options.worker, options.threads)
        return
    from benchmarks.limits import measure_limits

    limits = measure_limits(options.threads)
    peak = (limits.gflops * 1e3, limits.gbytes * 1e3) if limits else (math.inf, math.inf)
    done: dict[str, Found] = {}
    if options.record and options.record.exists():
        done = {f["name"]: Found(**f) for f in map(json.loads, options.record.read_text().splitlines())}
    every: list[Case | RandomCase] = [
        *(random_case(options.seed + i) for i in range(options.random)),
        *(random_subgraph(options.seed + i) for i in range(options.subgraphs)),
    ]
    every = every or [*cases()]
    chosen = [c for c in every if re.search(options.only, c.name)][:: options.every]
    workers = {engine: Worker(engine, options.threads) for engine in ENGINES}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for index, case in enumerate(chosen):
                if case.name in done:
                    continue
                found = done[case.name] = measure(case, workers, peak, Path(folder))
                if options.record:
                    with options.record.open("a") as record:
                        record.write(json.dumps(asdict(found)) + "\n")
                print(f"{index + 1} of {len(chosen)} {case.name}: {found.ratio:.2f}", file=sys.stderr)
    finally:
        for worker in workers.values():
            worker.close()
    about = [f"{name}: {value}" for name, value in describe().items()] + [f"commit: {commit()}"]
    text = page([done[c.name] for c in chosen], options.threads, about)
    if options.page:
        options.page.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
