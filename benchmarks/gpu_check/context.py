"""What a part is told, and where it keeps what it finds."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neo import _native

__all__ = ["Context", "Found"]

Found = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """One run of the check.

    Attributes
    ----------
    target : str
        As of ``neo.compile``.
    folder : Path
        All that is found and made.
    results : Path
        The summary and archives of it: few files, which are kept up to date.
    few : bool
        As little as shows that everything works: the dry run.
    deadline : float
        ``time.time()`` at which the part ends.
    """

    target: str
    folder: Path
    results: Path
    few: bool
    deadline: float

    @property
    def computes(self) -> bool:
        """Whether the device computes anything."""
        return self.target != "null"

    @property
    def left_s(self) -> float:
        """Seconds that are left to the part."""
        return self.deadline - time.time()

    @property
    def cache(self) -> Path:
        """Exported networks, which a second run finds again."""
        return self.folder / "cache"

    def path(self, part: str) -> Path:
        """Return the file of a part."""
        return self.folder / "parts" / f"{part}.json"

    def load(self, part: str) -> Found:
        """Return what a part found so far."""
        path = self.path(part)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def resume(self, part: str, empty: Found) -> Found:
        """Return what a part found so far under the keys of ``empty``, which has what it begins with."""
        earlier = self.load(part)
        return {key: earlier.get(key, value) for key, value in empty.items()}

    def save(self, part: str, found: Found) -> None:
        """Keep what a part found so far; a reader sees all of it or what was there before."""
        path = self.path(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
        partial.replace(path)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While one process measures, no other one of the check does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def device(self) -> str | None:
        """Return the name of the device, nothing where there is none."""
        for kind in _native.devices():
            if kind["kind"] == self.target and kind["devices"]:
                return str(kind["devices"][0]["name"])
        return None
