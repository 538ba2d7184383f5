"""Saved modules: compile once, load anywhere."""

from __future__ import annotations

import os
from typing import IO, Any

from neo import _native
from neo.errors import DTypeError, ModelError
from neo.module import Module
from neo.provenance import Provenance
from neo.signature import Signature
from neo.variants import VariantModule

__all__ = ["load"]


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes],
    *,
    threads: int | None = None,
    memory: int | None = None,
    seconds: float | None = None,
) -> Module:
    """Load a module that :meth:`Module.save` wrote.

    Parameters
    ----------
    source : path, bytes or binary file
        A path is mapped, and weights are read when they are first used; the file must not be changed in place while a
        module of it lives. Saving over it is safe.
    threads : int, optional
        Threads a call may use. The default is the cores this process may really use.
    memory : int, optional
        Bytes that loading, and afterwards any one call, may hold at once: values, results and what they are made with,
        but not the file itself. The default is what the system has free at that moment.
    seconds : float, optional
        How long loading, and afterwards any one call, may take. Without, a call ends when it is done or cancelled.

    Returns
    -------
    Module
        It gives the same bits as the saved one. Of a file of several variants it has those for the best instruction
        set that runs here. Nothing in the file is trusted.

    Raises
    ------
    neo.ModelError
        The file is not a whole saved module.
    neo.UnsupportedError
        It is of another format, of routines that this neo lacks, or for an instruction set that does not run here.
    neo.ResourceError
        The file cannot be read.
    neo.OutOfMemoryError, neo.CancelledError
        Loading did not stay within `memory` or `seconds`.
    """
    if threads is None:
        threads = _native.default_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        msg = f"[load] threads must be a positive int. Got {threads!r}, expected 1 or more"
        raise ModelError(msg)
    if memory is not None and (not isinstance(memory, int) or isinstance(memory, bool) or not 0 <= memory < 2**63):
        msg = f"[load] memory must be a number of bytes. Got {memory!r}, expected an int of 0 or more"
        raise ModelError(msg)
    if seconds is not None and (not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0):
        msg = f"[load] seconds must be a time. Got {seconds!r}, expected a number of 0 or more"
        raise ModelError(msg)
    parts = _native.load_variants(_given(source), threads, memory, seconds)
    modules = [_module(*part) for part in parts]
    if len(modules) == 1:
        return modules[0]
    native, _, notes = parts[0]
    union = Signature.from_json(notes.get("neo.union", ""), native.input_names, native.output_names)
    return VariantModule(modules, union)


def _module(native: _native.Module, machine: _native.Machine, notes: dict[str, str]) -> Module:
    signature = Signature.from_json(notes.get("neo.signature", ""), native.input_names, native.output_names)
    facts = {
        key.removeprefix("neo."): text
        for key, text in notes.items()
        if key not in ("neo.signature", "neo.union", "neo.format")
    }
    return Module(
        native,
        signature.inputs,
        signature.outputs,
        None,
        (),
        machine,
        signature.depth,
        signature.kinds,
        provenance=Provenance(facts),
    )


def _given(source: Any) -> str | bytes:
    """The path, or the bytes."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    found = source.read() if hasattr(source, "read") else source
    if not isinstance(found, bytes | bytearray | memoryview):
        msg = (
            "[load] a saved module must be a path, bytes or a binary file. "
            f"Got {type(source).__name__}{' of text' if isinstance(found, str) else ''}"
        )
        raise DTypeError(msg)
    return bytes(found)
