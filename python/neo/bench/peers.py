"""A user's model in neo and beside the installed engines: what ``neo bench --peers`` prints."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from neo.bench.benchmark import Job, Measured, measure
from neo.bench.engines import ENGINES, Engine
from neo.bench.intervals import ratio_interval
from neo.errors import UnsupportedError

__all__ = ["measure_peers", "print_peers"]

_NOT_INSTALLED = ("ModuleNotFoundError", "PackageNotFoundError")


def measure_peers(
    path: Path,
    inputs: Mapping[str, np.ndarray[Any, Any]],
    *,
    threads: int,
    options: Mapping[str, Any],
    rounds: int,
    seconds: float,
    console: Console | None = None,
) -> dict[str, Measured]:
    """Measure a model in neo and in every installed engine.

    Parameters
    ----------
    path : Path
        The ONNX file. LiteRT takes the TFLite file beside it, of the same name, if there is one.
    inputs : mapping of str to array
        All its inputs.
    threads : int
        Threads of every engine.
    options : mapping
        Arguments of ``neo.compile``.
    rounds : int
        How often each engine is measured.
    seconds : float
        How long each engine is measured, all rounds together.
    console : rich.console.Console, optional
        Where progress is shown; the default is standard error.
    """
    engines = {**ENGINES, "neo": Engine(ENGINES["neo"].adapter, options)}
    tflite = path.with_suffix(".tflite")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = console or Console(stderr=True)
    with tempfile.TemporaryDirectory() as cache, Progress(*columns, console=shown, transient=True) as progress:
        bar = progress.add_task("start")
        job = Job(
            path.stem,
            path.absolute(),
            inputs,
            threads,
            Path(cache),
            rounds=rounds,
            slice_s=seconds / rounds,
            tflite=tflite.absolute() if tflite.is_file() else None,
        )
        return measure(engines, job, progress=lambda what: progress.update(bar, description=what))


def print_peers(found: Mapping[str, Measured], *, threads: int, console: Console | None = None) -> None:
    """Print the table of times and ratios, and a line for each engine that did not run the model.

    Parameters
    ----------
    found : mapping of str to Measured
        By engine; neo's is what the others are compared with.
    threads : int
        What they ran with.
    console : rich.console.Console, optional
        Where to; the default is standard output.

    Raises
    ------
    neo.UnsupportedError
        neo itself did not run the model.
    """
    console = console or Console(soft_wrap=True)
    neo = found["neo"]
    if neo.median_ms is None:
        msg = f"[bench] neo must run the model beside its peers. Got {neo.error}"
        raise UnsupportedError(msg)
    rounds = len(neo.rounds_ms)
    table = Table(
        title=f"{threads} thread{'s' if threads > 1 else ''}, float32, {rounds} interleaved rounds",
        title_justify="left",
    )
    table.add_column("engine", no_wrap=True)
    for heading in ("median, ms", "neo / engine [95 %]", "first answer, ms", "peak, MiB"):
        table.add_column(heading, justify="right", no_wrap=True)
    ran = {name: item for name, item in found.items() if item.median_ms is not None}
    for name, item in sorted(ran.items(), key=lambda pair: pair[1].median_ms or 0.0):
        ratio = ""
        if name != "neo":
            interval = ratio_interval(neo.rounds_ms, item.rounds_ms)
            ratio = f"{interval.median:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
        memory = "" if item.peak_bytes is None else f"{item.peak_bytes / 2**20:.1f}"
        table.add_row(name, f"{item.median_ms:.3f}", ratio, f"{item.first_answer_ms:.1f}", memory)
    console.print(table, highlight=False)
    console.print("; ".join(item.version for item in ran.values()), highlight=False, markup=False)
    failed = {name: item.error or "" for name, item in found.items() if name not in ran}
    missing = [name for name, error in failed.items() if error.startswith(_NOT_INSTALLED)]
    for name, error in failed.items():
        if name not in missing:
            console.print(f"{name}: {error}", highlight=False, markup=False)
    if missing:
        console.print(f"not installed: {', '.join(missing)}", highlight=False, markup=False)
    if len(ran) == 1:
        console.print(
            "no engine to compare with: pip install onnxruntime openvino ncnn MNN ai-edge-litert",
            highlight=False,
            markup=False,
        )
