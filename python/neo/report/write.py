"""Files that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for bytes under a temporary name beside `path`, and rename it when the block ends without an error.

    A device or a pipe is written where it stands: renaming would put a file in its place.
    """
    target = Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(prefix=target.name[:100] + ".", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text file as :func:`whole_file` does."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
