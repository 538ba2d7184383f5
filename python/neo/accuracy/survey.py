"""Every value of a run beside double precision: what each node adds, and what has come together by then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neo.accuracy.exact import RANDOM, ExactGraph, widen
from neo.accuracy.local import LocalError, local_error, relative_error
from neo.accuracy.observed import Observed

__all__ = ["ValueError64", "known_values", "local_errors", "survey"]


@dataclass(frozen=True)
class ValueError64:
    """One value of a run.

    Attributes
    ----------
    name : str
        The value.
    local : LocalError
        What the nodes between this value and those before it add.
    accumulated : float
        The distance from the model in double precision from its inputs on, over the largest value.
    segment : tuple of int
        The nodes between the values that are known and this one.
    """

    name: str
    local: LocalError
    accumulated: float
    segment: tuple[int, ...]


def known_values(graph: ExactGraph, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those values of a run that the graph has as well."""
    return {name: value for name, value in values.items() if name in graph.producer or name in graph.input_names}


def survey(graph: ExactGraph, run: Observed, *, advance: Callable[[int], None] = lambda _: None) -> list[ValueError64]:
    """Compare every value of a run, in the order of the graph.

    A value inside the graph whose shape is not the graph's stands for another one: the run forgets it.

    Parameters
    ----------
    graph : ExactGraph
        What should be computed.
    run : Observed
        What a run wrote, and its inputs.
    advance : callable
        Told of each node done.
    """
    known = known_values(graph, run.values)
    local: dict[str, Any] = {name: known[name] for name in graph.input_names if name in known}
    whole: dict[str, Any] = dict(local)
    found = []
    for index, done in graph.walk():
        made = graph.evaluate(index, _wide(graph, index, local))
        clean = (
            made if _same_operands(graph, index, local, whole) else graph.evaluate(index, _wide(graph, index, whole))
        )
        for name, exact in made.items():
            if name in known and _shape(known[name]) != _shape(exact) and name not in graph.output_names:
                run.forget([name])
                del known[name]
            if graph.nodes[index].op in RANDOM:
                local[name] = whole[name] = known.get(name, exact)
                continue
            local[name], whole[name] = exact, clean[name]
            if name not in known:
                continue
            segment = tuple(graph.segment(name, known))
            error = local_error(graph, name, known[name], exact, known, segment)
            is_array = isinstance(clean[name], np.ndarray)
            apart = relative_error(known[name], clean[name]) if is_array else 0.0
            found.append(ValueError64(name, error, apart, segment))
            if _shape(known[name]) == _shape(exact):
                local[name] = known[name]
        for name in done:
            local.pop(name, None)
            whole.pop(name, None)
        advance(1)
    return found


def local_errors(
    graph: ExactGraph, values: Mapping[str, Any], names: Sequence[str]
) -> dict[str, tuple[LocalError, tuple[int, ...]]]:
    """The local errors of some values of a run, and the nodes they are of; values the run lacks are left out."""
    known = known_values(graph, values)
    errors = {}
    for name in names:
        if name not in known or name not in graph.producer:
            continue
        segment = tuple(graph.segment(name, known))
        made = graph.run_segment(segment, known)
        errors[name] = (local_error(graph, name, known[name], made[name], known, segment), segment)
    return errors


def _shape(value: Any) -> tuple[int, ...] | None:
    return value.shape if isinstance(value, np.ndarray) else None


def _wide(graph: ExactGraph, index: int, values: Mapping[str, Any]) -> list[Any]:
    return [widen(x) for x in graph.operands(index, values)]


def _same_operands(graph: ExactGraph, index: int, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether a node reads the very same arrays in both runs."""
    return all(a.get(name) is b.get(name) for name in graph.inputs[index] if name)
