"""onnxruntime's answers as files, for a machine without onnxruntime: ``tests/models/store_answers.py`` writes them.

Where ``NEO_TEST_ANSWERS`` names a folder of them, the tests run the models that have an answer there, on the stored
inputs: NumPy's functions need not round alike on two machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import zoo
from .inputs import Feeds

Answer = tuple[str, Feeds, dict[str, Any]]


def folder() -> Path | None:
    """Return the folder of the stored answers, ``None`` where onnxruntime is asked."""
    name = os.environ.get("NEO_TEST_ANSWERS", "")
    return Path(name) if name else None


def covers(model: zoo.Model) -> bool:
    """Return whether the model takes part: all do where onnxruntime is asked."""
    where = folder()
    return where is None or _file(where, model).exists()


def save(where: Path, model: zoo.Model, answers: Sequence[Answer], fused: Sequence[Mapping[str, Any]] = ()) -> None:
    """Store what ``engines.expected_of`` and, of a quantized model, ``engines.fused_of`` gave."""
    arrays: dict[str, Any] = {}
    for index, (case, feeds, outputs) in enumerate(answers):
        arrays[f"{index}|case|"] = np.array(case)
        arrays |= {f"{index}|in|{name}": value for name, value in feeds.items()}
        arrays |= {f"{index}|out|{name}": value for name, value in outputs.items()}
    for index, outputs in enumerate(fused):
        arrays |= {f"{index}|fused|{name}": value for name, value in outputs.items()}
    np.savez(_file(where, model), **arrays)


def load(where: Path, model: zoo.Model) -> tuple[tuple[Answer, ...], tuple[dict[str, Any], ...]]:
    """Return what ``save`` was given."""
    with np.load(_file(where, model)) as stored:

        def of(index: int, kind: str) -> dict[str, Any]:
            prefix = f"{index}|{kind}|"
            return {key.removeprefix(prefix): stored[key] for key in stored.files if key.startswith(prefix)}

        count = sum(key.endswith("|case|") for key in stored.files)
        cases = tuple((str(stored[f"{index}|case|"]), of(index, "in"), of(index, "out")) for index in range(count))
        return cases, tuple(of(index, "fused") for index in range(count))


def _file(where: Path, model: zoo.Model) -> Path:
    return where / f"{model.name}.npz"
