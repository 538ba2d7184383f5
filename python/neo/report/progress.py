"""A bar for work that takes long."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

__all__ = ["LateProgress"]

_SECONDS = 2.0


class LateProgress(AbstractContextManager["LateProgress"]):
    """A bar on the standard error stream, where that is a terminal, that appears after two seconds.

    It is drawn when told of something done, never by a thread of its own: that would run beside what is measured.

    Parameters
    ----------
    text : str
        What is done.
    total : int
        How much of it there is.
    clock : callable
        Seconds; a test gives its own.
    is_shown : bool
        False: there is no bar, wherever the stream leads.
    """

    def __init__(
        self, text: str, total: int, clock: Callable[[], float] = time.monotonic, *, is_shown: bool = True
    ) -> None:
        self._text = text
        self._total = total
        self._clock = clock
        self._is_shown = is_shown
        self._start = clock()
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def advance(self, count: int) -> None:
        """Tell of so much done."""
        self._done += count
        if self._bar is None:
            if not self._is_shown or self._clock() - self._start < _SECONDS:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(
                *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
            )
            self._bar.start()
            self._task = self._bar.add_task(self._text, total=self._total)
        self._bar.update(self._task, completed=self._done, total=max(self._total, self._done), refresh=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
