"""What compiling takes beside ONNX Runtime's session creation: ``python -m benchmarks.compile_means``.

Every model is compiled in processes of their own, neo and ONNX Runtime in turn. A process imports its engine first;
what counts begins after that and ends with the module or session: processor seconds of all threads, wall seconds, and the
most memory that the process held (``VmHWM``) over what it held before. neo also saves the module. Of several rounds
the least time and the least memory stand.

The limits: time at most 0.1 s and 1.5 times ONNX Runtime's, memory at most 1.5 times, the saved file at most 1.2 times
the model with its external data. Where other programs run, processor seconds say more than wall seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Seconds that compiling may take whatever the model is.
ALLOWED_SECONDS = 0.1
TIME_RATIO, MEMORY_RATIO, FILE_RATIO = 1.5, 1.5, 1.2
ENGINES = ("neo", "ort")
#: Bytes below which a peak is the allocator's and the page cache's noise.
SMALL_BYTES = 16 << 20


@dataclass(frozen=True)
class Means:
    """What one engine took for one model; the least of several rounds."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    saved_bytes: int = 0
    error: str = ""


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def _prepared(engine: str, threads: int) -> Callable[[Path], Any]:
    """Import an engine and return what compiles a file."""
    if engine == "neo":
        import neo
        import neo.frontend.onnx
        import neo.pipeline

        return lambda path: neo.compile(path, threads=threads)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    return lambda path: onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure_here(engine: str, path: Path, threads: int) -> dict[str, Any]:
    """Compile a file in this process, which has done nothing yet, and return the fields of its ``Means``.

    Parameters
    ----------
    engine : str
        One of ``ENGINES``.
    path : Path
        The model.
    threads : int
        Of the module or session.
    """
    compile_file = _prepared(engine, threads)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, used, start = _status_bytes("VmRSS"), resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    made = compile_file(path)
    wall, now, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF), _status_bytes("VmHWM")
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    fields = {"cpu_s": cpu, "wall_s": wall, "peak_bytes": peak - before}
    if engine == "neo":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "module.neo"
            made.save(file)
            fields["saved_bytes"] = file.stat().st_size
    return fields


def _measure(engine: str, path: Path, threads: int, timeout: float) -> Means:
    command = [sys.executable, "-m", "benchmarks.compile_means", "--one", engine, str(path), "--threads", str(threads)]
    # Modules of a checkout are compiled once, as those of a package that is installed.
    surroundings = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True, env=surroundings)
    except subprocess.CalledProcessError as error:
        return Means(0, 0, 0, error=(error.stderr.strip().splitlines() or ["died"])[-1])
    except subprocess.TimeoutExpired:
        return Means(0, 0, 0, error=f"took more than {timeout:.0f} s")
    return Means(**json.loads(done.stdout.splitlines()[-1]))


def least(rounds: Iterable[Means]) -> Means:
    """Return the least of each figure; the error of a round that failed.

    Parameters
    ----------
    rounds : iterable of Means
        One or more.
    """
    found = list(rounds)
    failed = next((one for one in found if one.error), None)
    if failed is not None:
        return failed
    return Means(
        min(one.cpu_s for one in found),
        min(one.wall_s for one in found),
        min(one.peak_bytes for one in found),
        found[0].saved_bytes,
    )


def model_bytes(path: Path) -> int:
    """Return the size of a model with its external data.

    Parameters
    ----------
    path : Path
        The model.
    """
    import onnx
    from onnx.external_data_helper import uses_external_data

    proto = onnx.load(path, load_external_data=False)
    places = {
        entry.value
        for tensor in proto.graph.initializer
        if uses_external_data(tensor)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return path.stat().st_size + sum((path.parent / place).stat().st_size for place in places)


@dataclass(frozen=True)
class Line:
    """A model's figures, and where they exceed a limit."""

    name: str
    size: int
    ours: Means
    theirs: Means

    def misses(self) -> list[str]:
        """Return the limits that are exceeded: any of "time", "memory" and "file"."""
        if self.ours.error or self.theirs.error:
            return [self.ours.error] if self.ours.error else []
        found = []
        if self.ours.cpu_s > ALLOWED_SECONDS + TIME_RATIO * self.theirs.cpu_s:
            found.append("time")
        if self.ours.peak_bytes > max(SMALL_BYTES, MEMORY_RATIO * self.theirs.peak_bytes):
            found.append("memory")
        if self.ours.saved_bytes > FILE_RATIO * self.size:
            found.append("file")
        return found

    def cells(self) -> list[str]:
        """Return the row of the table."""

        def mb(count: int) -> str:
            return f"{count / 1e6:.1f}"

        ours, theirs = self.ours, self.theirs
        return [
            self.name,
            mb(self.size),
            *(f"{ours.cpu_s:.3f}", f"{theirs.cpu_s:.3f}", f"{ALLOWED_SECONDS + TIME_RATIO * theirs.cpu_s:.3f}"),
            *(f"{ours.wall_s:.3f}", f"{theirs.wall_s:.3f}"),
            *(mb(ours.peak_bytes), mb(theirs.peak_bytes), f"{ours.peak_bytes / max(1, theirs.peak_bytes):.2f}"),
            *(mb(ours.saved_bytes), f"{ours.saved_bytes / max(1, self.size):.2f}"),
            ", ".join(self.misses()) or (f"onnxruntime: {theirs.error}" if theirs.error else ""),
        ]


COLUMNS = (
    *("model", "MB", "CPU s", "ORT", "limit", "wall s", "ORT", "peak MB", "ORT", "ratio", "saved MB", "ratio"),
    "exceeds",
)


def find_models(cache: Path) -> dict[str, Path]:
    """Return the files by name: those of the shared folder, and those of ``benchmarks.models.generated``.

    Parameters
    ----------
    cache : Path
        Where generated models are kept.
    """
    from benchmarks.models import generated
    from tests.models import inputs

    folder = inputs.models_folder()
    files = {f"{path.parent.name}/{path.stem}": path for path in sorted(folder.glob("*/*.onnx"))}
    files |= {path.stem: path for path in sorted(cache.glob("*.onnx"))}
    return files | {name: generated.write(name, cache) for name in generated.GENERATED}


def main(words: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_means", description=__doc__)
    parser.add_argument("--models", help="parts of names, separated by commas (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of each engine (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FILE"), help="measure one in this process, print JSON")
    arguments = parser.parse_args(words)
    if arguments.one:
        engine, path = arguments.one
        print(json.dumps(measure_here(engine, Path(path), arguments.threads)))
        return
    from rich.console import Console
    from rich.table import Table

    wanted = arguments.models.split(",") if arguments.models else [""]
    files = {name: path for name, path in find_models(arguments.cache).items() if any(word in name for word in wanted)}
    engines = ENGINES if importlib.util.find_spec("onnxruntime") else ENGINES[:1]
    table = Table(*COLUMNS)
    console = Console(soft_wrap=True, width=200 if not os.isatty(1) else None)
    for name, path in files.items():
        rounds: dict[str, list[Means]] = {engine: [] for engine in engines}
        for _ in range(arguments.rounds):
            for engine in engines:
                rounds[engine].append(_measure(engine, path, arguments.threads, arguments.timeout))
        found = {engine: least(means) for engine, means in rounds.items()}
        line = Line(name, model_bytes(path), found["neo"], found.get("ort", Means(0, 0, 0, error="not installed")))
        table.add_row(*line.cells())
        console.print("  ".join(line.cells()), highlight=False)
    console.print(table)


if __name__ == "__main__":
    main()
