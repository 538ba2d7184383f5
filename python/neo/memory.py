"""What memory a module holds, and what stands in its place once it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neo import _native
from neo.errors import ModelError

__all__ = ["Closed", "Memory", "module_bytes"]


def module_bytes(native: _native.Module) -> int:
    """Bytes of a module's constants, each once, and of one call at the largest sizes that its ranges allow."""
    return native.constant_bytes + native.call_bytes


@dataclass(frozen=True)
class Memory:
    """Bytes of memory.

    Attributes
    ----------
    constants : int
        Weights and other constants, packed ones included; a loaded module reads them from its file as they are used.
    kept : int
        What idle calls keep for the next ones.
    call : int
        Intermediate values and scratch memory of one call of the sizes that selection assumes.
    bound : int
        What `memory` of :func:`neo.compile` limits: the constants and one call, at the largest sizes of the ranges that
        the module was compiled for.
    """

    constants: int
    kept: int
    call: int
    bound: int


class Closed:
    """Stands in the place of the plan that a closed module has let go: each use is a ModelError."""

    def __getattr__(self, name: str) -> Any:
        msg = "[module] a closed module must not be used. Got a call after close()"
        raise ModelError(msg)

    def __call__(self, *_: object) -> Any:
        """Raise as every other use does."""
        return self.call
