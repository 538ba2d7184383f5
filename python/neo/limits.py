"""What compiling or loading a model, and a call of it, may take."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from neo import _native
from neo.errors import DTypeError, Error, ModelError, OutOfMemoryError

__all__ = ["MAX_THREADS", "Limits", "checked_threads", "whole"]

#: More threads than this are no machine's.
MAX_THREADS = 1024


@dataclass(frozen=True)
class Limits:
    """Limits for a model that nobody has looked at; the defaults let every sound model through.

    Parameters
    ----------
    bytes : int
        Of the model's file.
    nodes : int
        Of an ONNX model, functions and bodies written out.
    memory : int, optional
        Bytes that tensors may take at once: while compiling those neo makes itself (folded constants, packed weights),
        in a call its results and intermediate values. The default is what the system has free.
    seconds : float
        That compiling or loading may take, and afterwards any one call; tuning has a budget of its own.

    Examples
    --------
    >>> import neo
    >>> neo.Limits(seconds=10, memory=1 << 30)
    Limits(bytes=68719476736, nodes=250000, memory=1073741824, seconds=10)
    """

    bytes: int = 1 << 36
    nodes: int = 250_000
    memory: int | None = None
    seconds: float = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "memory":
                continue
            kinds = (int, float) if field.name == "seconds" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds):
                msg = f"[limits] {field.name} must be a number. Got {value!r}, expected {kinds[-1].__name__}"
                raise DTypeError(msg)
            if not 0 <= value < 1 << 62 or math.isnan(value):
                msg = f"[limits] {field.name} must be 0 or more. Got {value!r}, expected 0 to 2^62"
                raise ModelError(msg)

    @contextlib.contextmanager
    def budget(self, *, timed: bool = True) -> Iterator[None]:
        """A context of compiling, in which time from now on and memory are limited.

        Raises
        ------
        neo.TimeLimitError, neo.OutOfMemoryError
            A limit is reached, or the system has no more memory.
        """
        try:
            with _native.Budget(float(self.seconds) if timed else None, self.memory):
                yield
        except MemoryError as error:
            if isinstance(error, Error):
                raise
            msg = f"[compile] memory must be available. Got {error or 'none'}"
            raise OutOfMemoryError(msg) from error


def whole(value: object) -> int | None:
    """A number that counts something: an int, or a whole number of NumPy; None for anything else, True and False too."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers
        return None


def checked_threads(threads: int, area: str) -> int:
    """Threads that a user gives.

    Raises
    ------
    neo.ModelError
        They are no number of threads; `area` is for the message.
    """
    count = whole(threads)
    if count is None or not 1 <= count <= MAX_THREADS:
        msg = f"[{area}] threads must be a positive int. Got {threads!r}, expected 1 to {MAX_THREADS}"
        raise ModelError(msg)
    return count
