"""The values of one run of a compiled module: what its steps wrote, by the model's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neo import _native

__all__ = ["Observed", "Wrote", "observe"]


@dataclass(frozen=True)
class Wrote:
    """The step that wrote a value: its node, which is the last of a group, its operator and its routine."""

    node: str
    op: str
    routine: str


@dataclass
class Observed:
    """One run.

    Attributes
    ----------
    values : dict of str to array
        What steps wrote, and the inputs of the call.
    wrote : dict of str to Wrote
        The step behind each value that a step wrote.
    renamed : dict of str to array
        Values whose names stand for other values in the model.
    changed : dict of str to str
        Values that a conversion changed, and that conversion: conversions move elements and must change none.
    """

    values: dict[str, Any] = field(default_factory=dict)
    wrote: dict[str, Wrote] = field(default_factory=dict)
    renamed: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> dict[str, Any]:
        """Every value, by the names of the compiled graph."""
        return {**self.values, **self.renamed}

    def forget(self, names: Iterable[str]) -> None:
        """Take values out whose names stand for others in the model."""
        for name in names:
            if name in self.values:
                self.renamed[name] = self.values.pop(name)


def observe(native: _native.Module, inputs: Mapping[str, Any]) -> Observed:
    """Run a module once and keep everything its steps write."""
    _, written = native.observe([inputs[name] for name in native.input_names])
    run = Observed(dict(inputs))
    for node, op, routine, name, value in written:
        if name not in run.values:
            run.values[name] = value
            run.wrote[name] = Wrote(node, op, routine)
        elif isinstance(value, np.ndarray) and not _same(run.values[name], value):
            run.changed.setdefault(name, routine)
    return run


def _same(a: Any, b: np.ndarray[Any, Any]) -> bool:
    if not isinstance(a, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() or bool(np.array_equal(a, b))
