"""``tools/gpu_check.sh`` runs this: all parts one after the other, then ``summary.md`` and ``results.json``.

``--part`` runs one of them here, which is how each gets a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.gpu_check import basics, estimates, network, report
from benchmarks.gpu_check.context import Context, Found

#: In order of what they tell; the seconds that each may take, where so much is left.
PARTS: dict[str, tuple[Callable[[Context], Found], float]] = {
    "environment": (basics.environment, 25),
    "smoke": (basics.smoke, 45),
    "networks": (network.networks, 170),
    "kernels": (basics.kernels, 80),
    "conformance": (basics.conformance, 70),
    "models": (basics.models, 70),
    "figures": (estimates.figures, 25),
    "profiles": (estimates.profiles, 60),
    "dtypes": (basics.dtypes, 20),
    "tuning": (estimates.tuning, 90),
    "vision": (estimates.vision, 60),
}
LEAST_S = 4.0


def run_part(name: str, context: Context) -> int:
    """Run one part here, and keep what it finds or how it fails."""
    start = time.time()
    try:
        found = PARTS[name][0](context)
        status = "partial" if found.get("not done") else "skipped" if "not run" in found else "done"
    except Exception:
        found, status = {**context.load(name), "error": traceback.format_exc()}, "failed"
        traceback.print_exc()
    context.save(name, {**found, "status": status, "took, s": time.time() - start})
    return 0 if status != "failed" else 1


def start_part(name: str, context: Context, seconds: float) -> None:
    """Run one part in a process group of its own that ends with its time."""
    earlier = context.load(name)
    if earlier.get("status") in ("done", "skipped"):
        print(f"{name}: {earlier['status']} before", flush=True)
        return
    start = time.time()
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--part", name, "--target", context.target]
    command += ["--out", str(context.folder), "--deadline", str(start + seconds), *(["--few"] if context.few else [])]
    context.path(name).parent.mkdir(parents=True, exist_ok=True)
    with context.path(name).with_suffix(".log").open("a") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=basics.ROOT
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it started ends with it
            process.wait()
    found = context.load(name)
    if process.returncode and found.get("status") != "failed":
        why = "its time was over" if time.time() - start >= seconds else f"its process ended with {process.returncode}"
        context.save(name, {**found, "status": "partial" if found else "failed", "error": why})
    print(f"{name}: {context.load(name).get('status')}, {time.time() - start:.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are not done."""
    parser = argparse.ArgumentParser(prog="tools/gpu_check.sh", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--target", default="cuda", choices=["cuda", "opencl", "null"])
    parser.add_argument("--out", type=Path, default=Path("gpu_check"), help="results; a second run goes on there")
    parser.add_argument(
        "--results", type=Path, help="where summary.md, results.json and details.tar.gz go (default: --out)"
    )
    parser.add_argument("--seconds", type=float, default=530, help="no part goes on after these (default: %(default)s)")
    parser.add_argument("--few", action="store_true", help="as little as shows that everything works")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas (default: %(default)s)")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := set(options.only.split(",")) - set(PARTS):
        parser.error(f"--only must name parts. Got {', '.join(sorted(unknown))}, expected some of {', '.join(PARTS)}")
    folder = options.out.resolve()
    if options.part:
        return run_part(options.part, Context(options.target, folder, folder, options.few, options.deadline))
    deadline = time.time() + options.seconds
    context = Context(options.target, folder, (options.results or folder).resolve(), options.few, deadline)
    folder.mkdir(parents=True, exist_ok=True)
    context.results.mkdir(parents=True, exist_ok=True)
    # Compiled kernels stay with the results: a second run compiles none of them again.
    if not options.few:
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for name in options.only.split(","):
        if context.left_s > LEAST_S:
            # A dry run looks for errors, on machines that may be slow.
            start_part(name, context, context.left_s if options.few else min(PARTS[name][1], context.left_s))
        report.write(context, list(PARTS))
    failed = [name for name in options.only.split(",") if context.load(name).get("status") not in ("done", "skipped")]
    print(f"{context.results / 'summary.md'}; not done: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
