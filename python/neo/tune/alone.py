"""One measurement at a time on a machine, whoever makes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["alone", "lock_path"]

_POLL_SECONDS = 0.002
# Whoever holds the lock longer hangs, or was stopped.
_MOST_SECONDS = 120.0

_here = threading.RLock()
_depth = 0


def _forget() -> None:
    """After a fork nobody here measures."""
    global _here, _depth
    _here, _depth = threading.RLock(), 0


os.register_at_fork(after_in_child=_forget)


def lock_path() -> Path:
    """The file whose lock a measurement holds: of this machine, not of a home folder that several share."""
    return Path(tempfile.gettempdir()) / "neo-measuring.lock"


@contextlib.contextmanager
def alone(
    seconds: float = _MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bool]:
    """Hold the lock of this machine; gives whether it could be had in so many seconds. Works in itself.

    Where nobody can lock (no such file may be made or opened), it is as though it were free.
    """
    global _depth
    with _here:
        if _depth > 0:
            yield True
            return
        descriptor = _open()
        is_held = False
        _depth += 1
        try:
            is_held = descriptor is None or _lock(descriptor, seconds, clock, sleep)
            yield is_held
        finally:
            _depth -= 1
            if descriptor is not None:
                os.close(descriptor)


def _open() -> int | None:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    # Making a file that is there already is refused where another user made it in a shared folder.
    for more in (0, os.O_CREAT):
        with contextlib.suppress(OSError):
            descriptor = os.open(lock_path(), flags | more, 0o666)
            if more:
                with contextlib.suppress(OSError):
                    os.fchmod(descriptor, 0o666)
            return descriptor
    return None


def _lock(descriptor: int, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> bool:
    end = clock() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock() >= end:
                return False
            sleep(_POLL_SECONDS)
        except OSError:
            return True
        else:
            return True
