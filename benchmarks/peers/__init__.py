"""One adapter per engine.

An adapter is a module with ``version() -> str`` and ``load(task) -> run``, where ``run() -> list of arrays`` computes
the outputs in the model's order, from arrays in memory to arrays in memory. Only its own worker process imports it.
``ENGINES`` is the table that the runner and the command line enumerate.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

Run = Callable[[], list[np.ndarray]]


@dataclass(frozen=True)
class Task:
    """What an adapter is asked to run.

    ``path`` is the ONNX file and ``inputs`` what it is fed; ``cache`` is a folder for converted files. ``network``
    names the builder of ``benchmarks.models.networks`` that the file came from, and ``tflite`` the same model as its
    author converted it, where there is one.
    """

    name: str
    path: Path
    inputs: dict[str, np.ndarray]
    threads: int
    cache: Path
    network: str | None = None
    tflite: Path | None = None


class Peer(Protocol):
    """What an adapter module offers."""

    def version(self) -> str:
        """Return the name and version of the engine, and the settings that matter."""

    def load(self, task: Task) -> Run:
        """Prepare the model and return what runs it."""


class NotAvailableError(Exception):
    """The engine has no way to run this model; the message is one line for the table."""


ENGINES = {
    "neo": "benchmarks.peers.neo",
    "ort": "benchmarks.peers.ort",
    "openvino": "benchmarks.peers.openvino",
    "ncnn": "benchmarks.peers.ncnn",
    "mnn": "benchmarks.peers.mnn",
    "litert": "benchmarks.peers.litert",
    "torch": "benchmarks.peers.torch",
}


def get_peer(name: str) -> Peer:
    """Import the adapter of an engine."""
    peer: Peer = importlib.import_module(ENGINES[name])
    return peer


def converted(task: Task, suffix: str, convert: Callable[[Path], None]) -> Path:
    """Return the converted file of a task, made once by ``convert(path)`` and kept in the cache.

    Parameters
    ----------
    task : Task
        Whose file is converted; a newer ONNX file is converted again.
    suffix : str
        Name of the format, such as ``mnn``.
    convert : callable
        Writes the file it is given.
    """
    folder = task.cache / suffix
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task.name}.{suffix}"
    if not path.exists() or path.stat().st_mtime < task.path.stat().st_mtime:
        partial = folder / f"{task.name}.partial.{suffix}"
        convert(partial)
        partial.replace(path)
    return path
