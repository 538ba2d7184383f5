"""What :meth:`neo.Module.run_async` returns."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from neo import _native

__all__ = ["CallFuture"]


class CallFuture(Future[dict[str, Any]]):
    """A future that can be awaited, and whose cancel() also stops a call that runs."""

    def __init__(self, token: _native.CancelToken) -> None:
        super().__init__()
        self._token = token
        self.waiting: Future[None] | None = None

    def cancel(self) -> bool:
        """Drop a call that waits, stop one that runs; False where it is done."""
        if super().cancel():
            return True
        if self.done():
            return False
        self._token.cancel()
        return True

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        """Wait in the running loop; a task that is cancelled meanwhile stops the call."""
        return asyncio.wrap_future(self).__await__()
