"""An NVIDIA GPU on the host: a driver and a compiler of CUDA that run neo's kernels one thread after the other.

Programs that run with ``environment()`` find a device of kind ``cuda``. What holds there holds of the text of the kernels
and of the order of calls; not of speed, and not of what only the hardware does.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests import compiled

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def libraries() -> Path:
    """Build libcuda.so.1 and libnvrtc.so, and return their folder."""
    texts = {name: (HERE / name).read_text(encoding="utf-8") for name in ("driver.cpp", "kernel.h")}
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", f'-DEMULATED_FOLDER="{HERE}"']
    driver = compiled.compiled([*command, "-o", "libcuda.so.1", "driver.cpp"], texts, "libcuda.so.1")
    (driver.parent / "libnvrtc.so").unlink(missing_ok=True)
    (driver.parent / "libnvrtc.so").symlink_to(driver.name)
    return driver.parent


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a process that has the device; compiled kernels are kept from one run to the next."""
    folder = libraries()
    key = hashlib.blake2b((HERE / "kernel.h").read_bytes(), digest_size=8).hexdigest()
    python = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
    found = os.environ.get("LD_LIBRARY_PATH")
    return {
        **os.environ,
        "PYTHONPATH": python,
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder), *([found] if found else [])]),
        "XDG_CACHE_HOME": str(compiled.folder() / f"emulated-cuda-{key}"),
        **more,
    }


def run(code: str, *arguments: str, **more: str) -> str:
    """Run code in a process that has the device; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout
