"""What a table of times must say about the machine and the programs that gave them."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def cpu_name() -> str:
    """Return the model of the CPU with its family numbers, which tell generations apart where the name does not."""
    fields: dict[str, str] = {}
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name") or platform.processor() or platform.machine()
    numbers = [fields[key] for key in ("cpu family", "model", "stepping") if key in fields]
    return f"{name} (family/model/stepping {'/'.join(numbers)})" if numbers else name


def instruction_sets() -> str:
    """Return the vector instruction sets that matter to the engines."""
    words = set((_read("/proc/cpuinfo") or "").split())
    names = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
    return " ".join(name for name in names if name in words)


#: What the commands write below benchmarks/results.
_WRITTEN = ("README.md", "*/RESULTS.md", "*/results.json", "*/pictures/**")


def commit() -> str:
    """Return the commit of this repository, marked where what is measured differs from it.

    Results do not count: a table that is written would mark the next one.
    """
    root = Path(__file__).parent.parent

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)

    described = git("describe", "--always", "--exclude", "*").stdout.strip()
    if not described:
        return "unknown"
    written = (f":(exclude,glob)benchmarks/results/{name}" for name in _WRITTEN)
    changed = git("diff", "--quiet", "HEAD", "--", ".", *written).returncode != 0
    return f"{described}-dirty" if changed else described


def describe() -> dict[str, str]:
    """Return machine and system as words."""
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    memory = next((line for line in (_read("/proc/meminfo") or "").splitlines() if line.startswith("MemTotal")), "")
    kilobytes = int(memory.split()[1]) if memory else 0
    return {
        "cpu": cpu_name(),
        "instruction sets": instruction_sets(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{kilobytes / 2**20:.0f} GiB",
        "governor": governor or "not told",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    }


def place() -> str:
    """Return what `describe` tells, in one line."""
    return "; ".join(f"{key}: {value}" for key, value in describe().items())


def measured() -> str:
    """Return the note below a table: the machine, the commit, and how busy others keep the machine."""
    return f"Measured on {place()}; commit {commit()}; load average {os.getloadavg()[0]:.1f} at the end."
