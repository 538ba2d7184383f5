"""What is dear to make in tests, kept by what it is made from: another run, of any checkout, compiles nothing again.

The folder is ``NEO_TEST_CACHE``, or ``neo-tests`` in the user's folder for caches. What nobody used for thirty days goes.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

KEPT_SECONDS = 30 * 24 * 3600


@functools.cache
def folder() -> Path:
    """Return the folder of what was made, after removing what is old."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(os.environ.get("NEO_TEST_CACHE") or caches / "neo-tests")
    path.mkdir(parents=True, exist_ok=True)
    for old in path.iterdir():
        if time.time() - old.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    return path


@functools.cache
def version(compiler: str) -> str:
    """Return all that a compiler says of itself."""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


def kept(parts: Sequence[str], result: str, make: Callable[[Path], None]) -> Path:
    """Make a file, or find the one that was made of the same parts before.

    Parameters
    ----------
    parts : sequence of str
        All that the file is made from.
    result : str
        Name of the file.
    make : callable
        Called with an empty folder, in which it makes the file.

    Returns
    -------
    Path
        That file, not to be written to.
    """
    home = folder() / hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()
    if not (home / result).exists():
        made = Path(tempfile.mkdtemp(dir=folder(), prefix="new-"))
        try:
            make(made)
            made.rename(home)
        except OSError:  # another process was faster
            assert (home / result).exists()
        finally:
            shutil.rmtree(made, ignore_errors=True)
    os.utime(home)
    return home / result


def compiled(command: Sequence[str | Path], texts: Mapping[str, str], result: str) -> Path:
    """Compile texts, or find what was made of the same ones before.

    Parameters
    ----------
    command : sequence of str
        The compiler and its arguments, run in a folder with the texts as files.
    texts : mapping
        Name of a file -> its text.
    result : str
        Name of the file that the command makes.

    Returns
    -------
    Path
        That file, not to be written to.

    Raises
    ------
    AssertionError
        If the compiler refuses the texts; with its messages.
    """
    words = [str(word) for word in command]

    def run(made: Path) -> None:
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # that of a sanitizer
        done = subprocess.run(words, cwd=made, env=alone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    parts = [version(words[0]), *words, *(part for name, text in sorted(texts.items()) for part in (name, text))]
    return kept(parts, result, run)
