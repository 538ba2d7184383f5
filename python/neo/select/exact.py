"""The solver: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neo import _native
from neo.select.problem import Array, InfeasibleError, Problem, Resource

if TYPE_CHECKING:
    from neo.select.certificate import Certificate


@dataclass(frozen=True)
class Solution:
    """A choice per variable and what is known about it.

    Attributes
    ----------
    choice : list of int
        Nothing forbidden, within every limit.
    total : float
        Its cost.
    lower_bound : float
        No choice within the limits costs less (up to rounding, 1e-9 of it); equal to `total` where proven.
    method : str
        The steps that found it: "elimination", "elimination, branch and bound", ...
    proven : bool
        No choice is better.
    seconds : float
        Time spent.
    certificate : Certificate or None
        Proves the bound; only where it was asked for.
    """

    choice: list[int]
    total: float
    lower_bound: float
    method: str
    proven: bool
    seconds: float
    certificate: Certificate | None = None

    @property
    def gap(self) -> float:
        """How much better a choice could be, as a share of the total."""
        return (self.total - self.lower_bound) / max(abs(self.total), 1e-300)


def solve_exactly(
    problem: Problem, budget_s: float | None, certify: bool, work: Mapping[str, float] | None
) -> Solution:
    """:func:`neo.select.solve` by the solver itself."""
    start = time.perf_counter()
    limited = [r for r in problem.resources if math.isfinite(r.limit)]
    found = _native.solve(
        *problem.flat, [_flat_resource(r) for r in limited], budget_s, certify=certify, work=dict(work or {})
    )
    if found["obstacle"]:
        raise infeasible(problem, limited, found)
    choice, proven = found["choice"], found["proven"]
    total = problem.evaluate(choice)
    bound = total if proven else min(found["bound"], total)
    certificate = None
    if certify:
        from neo.select.certificate import certificate_of

        certificate = certificate_of(
            found["certificate"], total if proven else found["bound"], [r.name for r in limited]
        )
    return Solution(choice, total, bound, found["method"], proven, time.perf_counter() - start, certificate)


def searched(problem: Problem) -> tuple[list[int] | None, bool]:
    """Branch and bound on the arrays as they are."""
    found = _native.solve(*problem.flat, [], search_alone=True)
    return (None if found["obstacle"] else found["choice"]), found["proven"] or found["obstacle"] == "pairs"


def _flat_resource(resource: Resource) -> tuple[float, Array, npt.NDArray[np.int64], Array]:
    def flat(tables: Sequence[npt.ArrayLike]) -> Array:
        return np.concatenate([np.ravel(t) for t in tables]) if tables else np.zeros(0)

    pairs = np.array(list(resource.matrices), dtype=np.int64).reshape(-1, 2)
    return resource.limit, flat(list(resource.vectors)), pairs, flat(list(resource.matrices.values()))


def infeasible(problem: Problem, limited: Sequence[Resource], found: Mapping[str, Any]) -> InfeasibleError:
    """Why the solver has found nothing (Obstacle in csrc/select/solve.h)."""
    limits = ", ".join(f"{r.name} <= {_number(r.limit)}" for r in limited)
    obstacle = found["obstacle"]
    if obstacle == "limit":
        resource, smallest = limited[found["which"]], found["smallest"]
        reached = f"{_number(smallest)}{'' if found['smallest_proven'] else ' or more'}"
        return InfeasibleError(
            f"[select] the limit on {resource.name} must be reachable. Got {_number(resource.limit)}, the smallest "
            f"reachable value is {reached}\n"
            f"Hint: raise the limit to {reached}.",
            resource=resource.name,
            limit=resource.limit,
            smallest=smallest,
        )
    if obstacle == "variable":
        v = found["which"]
        return InfeasibleError(
            "[select] every variable must have a choice that fits some choice of each neighbour. "
            f"Got none left of its {problem.sizes[v]} - at variable {v}"
        )
    return InfeasibleError(
        {
            "pairs": "[select] some combination of choices must be allowed. Got forbidden pairs that leave none",
            "effort": "[select] some combination of choices must be allowed. Got none found, and none is ruled out\n"
            "Hint: give the search more time.",
            "limits": f"[select] the limits must be reachable together. Got {limits}, reachable one by one only",
            "limits, effort": f"[select] the limits must be reachable together. Got {limits}; no choice was found, and "
            "none is ruled out\nHint: raise a limit, or give the search more time.",
        }[obstacle]
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
