"""neo itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo.bench.worker import Feeds, Outputs, Task


def version() -> str:
    """Return neo's version."""
    import neo

    return f"neo {neo.__version__}"


def load(task: Task) -> tuple[Callable[[Feeds], Any], Callable[[Any], Outputs]]:
    """Compile with the arguments that the options hold."""
    import neo

    module = neo.compile(str(task.path), threads=task.threads, **task.options)
    return lambda feeds: feeds, lambda feeds: list(module.run(feeds).values())
