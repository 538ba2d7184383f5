"""Files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from os import PathLike
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text file under a temporary name beside it, and rename it."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=target.name[:100] + ".", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
