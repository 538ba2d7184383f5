"""What :meth:`neo.Module.run_async` returns."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from neo import _native

__all__ = ["CallFuture"]


class CallFuture(Future[dict[str, Any]]):
    """A future whose cancel() also stops a call that runs."""

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
