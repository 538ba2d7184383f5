"""Calls of a module for requests, those that wait at the same time in one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neo.errors import Error, ModelError
from neo.module import Module

__all__ = ["Batches"]

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass
class _Waiting:
    """Requests that may go together."""

    entries: list[tuple[Arrays, int, asyncio.Future[Arrays]]] = field(default_factory=list)
    rows: int = 0
    timer: asyncio.TimerHandle | None = None


class Batches:
    """Runs requests on a module, and joins those that wait along the first axis.

    Parameters
    ----------
    module : neo.Module
    max_rows : int
        Rows of a batch; 1 runs each request by itself.
    delay : float
        Seconds that a request waits for others.
    count : callable
        Is told the number of requests of each call.

    Raises
    ------
    neo.ModelError
        Requests are to be joined, and the first axis of an input or an output is not the batch.
    """

    def __init__(self, module: Module, max_rows: int, delay: float, count: Callable[[int], None]) -> None:
        self._module = module
        self._max_rows = max_rows
        self._delay = delay
        self._count = count
        self._waiting: dict[Hashable, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # a loop keeps weak references
        if max_rows > 1:
            _check_batch(module)

    async def run(self, arrays: Arrays) -> Arrays:
        """Outputs by name. Cancelling the task drops the request, and stops the call where no other needs it."""
        rows = self._rows_of(arrays)
        if rows is None:
            return await self._alone(arrays)
        key = tuple((name, x.dtype.str, x.shape[1:]) for name, x in sorted(arrays.items()))
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.rows + rows > self._max_rows:
            self._start(key)
            waiting = None
        if waiting is None:
            waiting = self._waiting[key] = _Waiting()
            waiting.timer = loop.call_later(self._delay, self._start, key)
        future: asyncio.Future[Arrays] = loop.create_future()
        waiting.entries.append((arrays, rows, future))
        waiting.rows += rows
        if waiting.rows == self._max_rows:
            self._start(key)
        return await future

    def _rows_of(self, arrays: Arrays) -> int | None:
        """How many rows a request adds to a batch; None where it goes by itself."""
        sizes = {x.shape[0] if x.ndim else 0 for x in arrays.values()}
        if self._max_rows == 1 or len(sizes) != 1 or len(arrays) != len(self._module.inputs):
            return None
        (rows,) = sizes
        return rows if 0 < rows < self._max_rows else None

    async def _alone(self, arrays: Arrays) -> Arrays:
        self._count(1)
        return await self._module.run_async(arrays)

    def _start(self, key: Hashable) -> None:
        waiting = self._waiting.pop(key)
        if waiting.timer is not None:
            waiting.timer.cancel()
        entries = [entry for entry in waiting.entries if not entry[2].done()]
        if not entries:
            return
        task = asyncio.ensure_future(self._together(entries))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def stop_unneeded(_: asyncio.Future[Arrays]) -> None:
            if all(future.cancelled() for _, _, future in entries):
                task.cancel()

        for _, _, future in entries:
            future.add_done_callback(stop_unneeded)

    async def _together(self, entries: list[tuple[Arrays, int, asyncio.Future[Arrays]]]) -> None:
        try:
            if len(entries) == 1:
                arrays, _, future = entries[0]
                _set(future, await self._alone(arrays))
                return
            self._count(len(entries))
            joined = {name: np.concatenate([arrays[name] for arrays, _, _ in entries]) for name in entries[0][0]}
            outputs = await self._module.run_async(joined)
        except Error as error:
            if len(entries) == 1:
                _fail(entries[0][2], error)
                return
            # One request may have spoilt the batch for the others.
            for entry in entries:
                await self._together([entry])
            return
        except asyncio.CancelledError:
            for _, _, future in entries:
                future.cancel()
            raise
        except Exception as error:
            for _, _, future in entries:
                _fail(future, error)
            return
        begin = 0
        for _, rows, future in entries:
            _set(future, {name: y[begin : begin + rows] for name, y in outputs.items()})
            begin += rows


def _set(future: asyncio.Future[Arrays], outputs: Arrays) -> None:
    if not future.done():
        future.set_result(outputs)


def _fail(future: asyncio.Future[Arrays], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _check_batch(module: Module) -> None:
    tensors = (*module.inputs, *module.outputs)
    batch = tensors[0].shape[0] if tensors[0].shape else None
    for t in tensors:
        is_first = isinstance(batch, str) and t.shape is not None and t.shape[:1] == (batch,)
        if is_first and not any(re.search(rf"\b{batch}\b", str(d)) for d in (t.shape or ())[1:]):
            continue
        msg = f"[serve] the first axis of every input and output must be the batch to join requests. Got {t}"
        raise ModelError(msg)
