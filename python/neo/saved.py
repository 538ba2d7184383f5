"""Saved modules: compile once, load anywhere."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from neo import _native
from neo.errors import DTypeError, ModelError
from neo.limits import Limits, checked_threads
from neo.module import Module
from neo.provenance import Provenance
from neo.signature import Signature
from neo.variants import VariantModule

__all__ = ["load", "load_pickled"]


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes],
    *,
    threads: int | None = None,
    limits: Limits | None = None,
) -> Module:
    """Load a module that :meth:`Module.save` wrote.

    Parameters
    ----------
    source : path, bytes or binary file
        A path is mapped, and weights are read when they are first used; the file must not be changed in place while a
        module of it lives. Saving over it is safe.
    threads : int, optional
        Threads a call may use, all of them at each step. The default is the cores this process may really use, and the
        executors that compiling found best where there are as many.
    limits : Limits, optional
        What loading, and afterwards any one call, may take: memory and seconds, and the bytes of the file. Without,
        memory is what the system has free, and a call ends when it is done or cancelled.

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
        It is of another format, of routines that this neo lacks, or for an instruction set that does not run here; or an
        operator of it was registered by :func:`neo.register_op`, and is not in this process.
    neo.ResourceError
        The file cannot be read.
    neo.OutOfMemoryError, neo.TimeLimitError
        A limit was reached.
    """
    if threads is not None:
        threads = checked_threads(threads, "load")
    if limits is not None and not isinstance(limits, Limits):
        msg = f"[load] limits must be neo.Limits. Got {type(limits).__name__}"
        raise DTypeError(msg)
    given = _given(source)
    if limits is not None:
        size = len(given) if isinstance(given, bytes) else Path(given).stat().st_size if Path(given).is_file() else 0
        if size > limits.bytes:
            msg = f"[load] a file must stay within its limit. Got {size} bytes, expected at most {limits.bytes}"
            raise ModelError(msg)
    memory, seconds = (None, None) if limits is None else (limits.memory, float(limits.seconds))
    return _loaded(_native.load_variants(given, threads, memory, seconds))


def load_pickled(saved: bytes, threads: int, memory: int | None, seconds: float | None) -> Module:
    """Load a pickled module: its saved form, and the limits of a call."""
    return _loaded(_native.load_variants(saved, threads, memory, seconds))


def _reduce(
    module: Module,
) -> tuple[Callable[..., Module], tuple[bytes, int, int | None, float | None]]:
    return load_pickled, (module._saved_bytes(), module.threads, *module._native.quota)


for _kind in (Module, VariantModule):
    copyreg.pickle(_kind, _reduce)


def _loaded(parts: list[tuple[_native.Module, _native.Machine, dict[str, str], bool]]) -> Module:
    modules = [_module(*part) for part in parts]
    if len(modules) == 1:
        return modules[0]
    native, _, notes, _ = parts[0]
    union = Signature.from_json(notes.get("neo.union", ""), native.input_names, native.output_names)
    return VariantModule(modules, union)


def _module(native: _native.Module, machine: _native.Machine, notes: dict[str, str], chose_executors: bool) -> Module:
    signature = Signature.from_json(notes.get("neo.signature", ""), native.input_names, native.output_names)
    facts = {
        key.removeprefix("neo."): text
        for key, text in notes.items()
        if key not in ("neo.signature", "neo.union", "neo.format")
    }
    return Module(native, signature, machine, provenance=Provenance(facts), chose_executors=chose_executors)


def _given(source: Any) -> str | bytes:
    """The path, or the bytes."""
    if isinstance(source, str | os.PathLike):
        if Path(source).suffix.lower() == ".onnx":
            msg = f"[load] a saved module must be what Module.save wrote. Got {os.fsdecode(source)!r}, an ONNX model"
            raise ModelError(f"{msg}\nHint: neo.compile({os.fsdecode(source)!r})")
        return os.fsdecode(source)
    found = source.read() if hasattr(source, "read") else source
    if not isinstance(found, bytes | bytearray | memoryview):
        msg = (
            "[load] a saved module must be a path, bytes or a binary file. "
            f"Got {type(source).__name__}{' of text' if isinstance(found, str) else ''}"
        )
        raise DTypeError(msg)
    return bytes(found)
