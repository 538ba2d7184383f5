"""Every routine of the CPU with each of its axes of 0 and of 1 elements, fixed and at run time, on every tier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.errors import Error, InternalError

from tests.edges.batch import Note, run_cases
from tests.edges.routines import ROUTINES
from tests.routines.pinning import TIERS, candidates, compile_pinned

NAMES = [name for name in _native.routine_names() if name.startswith("cpu") and name != "cpu/reference"]

#: The cases of a tier are tried in so many tests, of which the ring draws some.
PARTS = 12


def test_every_routine_has_a_graph():
    assert sorted(ROUTINES) == sorted(NAMES)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("part", range(PARTS))
def test_axes_of_nought_and_one(part, tier):
    names = cases(tier)[part::PARTS]
    failures = {name: f for name, f in run_cases("tests.edges.test_routines:run_case", names).items() if f}
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())


def cases(tier: str) -> list[str]:
    """``tier routine number axis size fixed|dynamic`` of all graphs; first each as it is."""
    found = []
    for name, specs in ROUTINES.items():
        for number, spec in enumerate(specs):
            found.append(f"{tier} {name} {number} - 0 fixed")
            fixed = spec.net().fixed
            for axis in spec.sizes:
                for size in (0, 1):
                    found.append(f"{tier} {name} {number} {axis} {size} fixed")
                    if axis not in fixed:
                        found.append(f"{tier} {name} {number} {axis} {size} dynamic")
    return found


def run_case(case: str, note: Note) -> str:
    """What is wrong with one graph, run by each candidate of a routine and by the references."""
    tier, routine, number, axis, size, kind = case.split(" ")
    spec = ROUTINES[routine][int(number)]
    note("building")
    try:
        net = spec.net({} if axis == "-" else {axis: int(size)}, axis if kind == "dynamic" else "")
    except InternalError:
        raise
    except Error:
        return ""  # the operator has no such size
    note("reference")
    expected: list[np.ndarray] | Error
    try:
        expected = list(net.graph.evaluate(net.inputs))
    except Error as error:
        expected = error
    note("compiling")
    offered = offers(net.graph, tier, net.pinned, routine)
    if not offered and (kind == "dynamic" or axis == "-"):
        return "the routine is not offered"
    # One node: each of its candidates; several: the routine with any schedule.
    schedules = next(iter(offered.values())) if len(offered) == 1 else [routine] if offered else [""]
    for schedule in schedules:
        pins = dict.fromkeys(offered, schedule)
        note(f"compiling {schedule}")
        pinned = compile_pinned(net.graph, tier, pins)
        note(f"running {schedule}")
        try:
            found = pinned.module.call(net.inputs)
        except Error as error:
            if isinstance(error, InternalError) or not isinstance(expected, Error):
                return f"refused by {schedule}: {error}"
            continue
        if isinstance(expected, Error):
            return f"not refused by {schedule} as by the reference: {expected}"
        for result in (found, pinned.module.with_threads(3).call(net.inputs)):
            for value, right in zip(result, expected, strict=True):
                if value.shape != right.shape or value.dtype != right.dtype:
                    return f"{schedule}: {value.dtype}{value.shape}, expected {right.dtype}{right.shape}"
                if not np.allclose(value, right, rtol=1e-3, atol=1e-4, equal_nan=True):
                    return f"{schedule}: {value.ravel()[:4]}, expected {right.ravel()[:4]}"
    return ""


def offers(graph: Any, tier: str, nodes: list[str], routine: str) -> dict[str, list[str]]:
    """By node, those of its candidates that are the routine's."""
    found = {node: sorted({c["routine"] for c in candidates(graph, tier, node)}) for node in nodes}
    own = {node: [c for c in all_ if c.split("{")[0] == routine] for node, all_ in found.items()}
    return {node: texts for node, texts in own.items() if texts}
