"""Where a module comes from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from neo.version import __version__

if TYPE_CHECKING:
    import onnx

__all__ = ["Provenance"]


@dataclass
class Provenance:
    """The release of neo, the model's name and the hash of its file.

    A file is hashed when somebody asks, and only if it is still the one that was compiled: hashing takes as long as
    reading a large model does.
    """

    facts: dict[str, str] = field(default_factory=dict)
    file: tuple[Path, int, int] | None = None  # size and time of change when it was compiled

    @classmethod
    def of(cls, model: str | PathLike[str] | bytes | onnx.ModelProto, name: str) -> Provenance:
        """Of what `neo.compile` was given, whose graph has this name."""
        facts = {"version": __version__, "model": name}
        if isinstance(model, bytes):
            import hashlib

            return cls({**facts, "model_sha256": hashlib.sha256(model).hexdigest()})
        if not isinstance(model, str | PathLike):
            return cls(facts)
        path = Path(model).absolute()
        try:
            status = path.stat()
        except OSError:  # the file went when it had been read
            return cls({**facts, "model": path.name})
        return cls({**facts, "model": path.name}, (path, status.st_size, status.st_mtime_ns))

    def told(self) -> Mapping[str, str]:
        """By name: ``version``, ``model`` and, where it is known, ``model_sha256``."""
        if self.file is not None:
            import hashlib

            path, *identity = self.file
            self.file = None
            try:
                with path.open("rb") as file:
                    digest = hashlib.sha256()
                    while block := file.read(1 << 20):
                        digest.update(block)
                    status = os.fstat(file.fileno())
                if [status.st_size, status.st_mtime_ns] == identity:
                    self.facts["model_sha256"] = digest.hexdigest()
            except OSError:
                pass  # the file is gone
        return self.facts
