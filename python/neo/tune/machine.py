"""What a measured time depends on beside the workload: this machine, these kernels, this team, this device."""

from __future__ import annotations

import functools
import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

from neo import _native
from neo.errors import ResourceError, UnsupportedError

__all__ = ["Context", "kernels_fingerprint", "machine_fingerprint"]


@dataclass(frozen=True)
class Context:
    """Times are comparable, and stored ones valid, where all of these agree."""

    machine: str
    kernels: str
    target: str
    threads: int

    def __str__(self) -> str:
        return f"{self.machine}; kernels {self.kernels}; {self.target}, {self.threads} threads"

    @classmethod
    def here(cls, target: str, threads: int, *, measures: bool = True) -> Context:
        """The context of a module compiled for a target on a team of this size.

        A target with a device names it. Where it is absent that is a ResourceError, unless nothing is measured.
        """
        runs = target.partition(":")[2] or _native.host_isa()
        if target in {t["name"] for t in _native.device_targets()}:
            runs += f" + {_device(target, measures=measures)}"
        return cls(machine_fingerprint(), kernels_fingerprint(), runs, threads)


def _device(target: str, *, measures: bool) -> str:
    try:
        return _native.device_fingerprint(target)
    except (ResourceError, UnsupportedError):
        if measures:
            raise
        return f"{target}, absent"


@functools.cache
def machine_fingerprint() -> str:
    """CPU model, logical CPUs, cache sizes and the tiers of instructions that run, readable."""
    host = _native.machine()
    caches = "/".join(str(host[key] >> 10) for key in ("l1d_bytes", "l2_bytes", "l3_bytes"))
    cpus = f"{host['cpus']} cpus ({host['usable_cpus']} usable)"
    return f"{_cpu_model()}, {cpus}, caches {caches} KiB, {'/'.join(_native.host_tiers())}"


def _cpu_model() -> str:
    """The model as the system names it, with family and stepping, which tell apart what shares a marketing name."""
    wanted = ("model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part", "CPU variant")
    found: dict[str, str] = {}
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            found.setdefault(key.strip(), value.strip())
    return " ".join(found[key] for key in wanted if key in found) or platform.processor() or platform.machine()


@functools.cache
def kernels_fingerprint() -> str:
    """A hash of the extension module: every change of a kernel changes it. Read once per process (some milliseconds)."""
    return hashlib.sha256(_native.library_path().read_bytes()).hexdigest()[:16]
