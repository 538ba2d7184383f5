"""python -m tests.soak [--seconds N] [--threads N] [--seed N]: status 0 where all held, 1 where not, 2 where it hung."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_LIBRARY = "NEO_SOAK_LIBRARY"


def main() -> int:
    """Build the library that takes memory away, start again with it, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=2, help="threads of each kind of work (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if _LIBRARY in os.environ:
        from tests.soak.soak import run

        return run(options.seconds, options.threads, options.seed, os.environ[_LIBRARY])
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "short_of_memory.so"
        source = Path(__file__).with_name("short_of_memory.cpp")
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        preload = " ".join([*os.environ.get("LD_PRELOAD", "").split(), str(library)])
        environment = {**os.environ, "LD_PRELOAD": preload, _LIBRARY: str(library)}
        return subprocess.run(
            [sys.executable, "-m", "tests.soak", *sys.argv[1:]], env=environment, check=False
        ).returncode


sys.exit(main())
