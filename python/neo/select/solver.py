"""Solve a selection problem: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neo import _native
from neo.errors import ModelError
from neo.select.certificate import Certificate, certificate_of
from neo.select.chain import chain
from neo.select.dprs import dprs
from neo.select.greedy import cheapest, greedy, improve
from neo.select.pbqp import pbqp
from neo.select.problem import Array, InfeasibleError, Problem, Resource
from neo.select.two_pass import tagged


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


#: Other ways to a choice, to compare with; none of them looks at limits.
METHODS: dict[str, Callable[[Problem], tuple[list[int] | None, bool]]] = {
    "cheapest": lambda problem: (cheapest(problem), False),
    "greedy": lambda problem: (greedy(problem), False),
    "improve": lambda problem: (improve(problem, greedy(problem)), False),
    "pbqp": lambda problem: (pbqp(problem), False),
    "chain": lambda problem: (chain(problem), True),
    "dprs": dprs,
    "two-pass": lambda problem: _two_pass(problem),
    "branch and bound": lambda problem: _searched(problem),
}


def solve(
    problem: Problem,
    *,
    budget_s: float | None = None,
    certify: bool = False,
    method: str | None = None,
    work: Mapping[str, float] | None = None,
) -> Solution:
    """Minimise the total cost within the resources' limits.

    Without a budget the work is bounded by fixed sizes, so the same problem gives the same choice; with one a search
    that has not ended goes on, wider, until then.

    Parameters
    ----------
    problem : Problem
        What to solve.
    budget_s : float, optional
        Seconds for what elimination alone cannot solve. The first narrow search always ends.
    certify : bool
        Give the bound's proof with the solution.
    method : str, optional
        One of `METHODS` instead of the best there is. What it finds may be forbidden (a total of infinity), and has a
        bound only where the method proves it.
    work : mapping of str to float, optional
        Sizes that bound the work instead of the solver's own (docs/selection.md); methods do not look at them.

    Raises
    ------
    InfeasibleError
        Limits that cannot be met, or no combination that is allowed.

    Examples
    --------
    >>> problem = Problem([[1.0, 3.0], [2.0, 1.0]], {(0, 1): [[5.0, 9.0], [4.0, 0.0]]})
    >>> solution = solve(problem)
    >>> solution.choice, solution.total, solution.proven
    ([1, 1], 4.0, True)
    """
    if budget_s is not None and not budget_s >= 0:
        raise ModelError(f"[select] a budget must be a time. Got {budget_s}, expected seconds >= 0")
    if method is not None:
        return _by_method(problem, method, certify)
    start = time.perf_counter()
    limited = [r for r in problem.resources if math.isfinite(r.limit)]
    found = _native.solve(
        *problem.flat, [_flat_resource(r) for r in limited], budget_s, certify=certify, work=dict(work or {})
    )
    if found["obstacle"]:
        raise _infeasible(problem, limited, found)
    choice, proven = found["choice"], found["proven"]
    total = problem.evaluate(choice)
    bound = total if proven else min(found["bound"], total)
    certificate = None
    if certify:
        certificate = certificate_of(
            found["certificate"], total if proven else found["bound"], [r.name for r in limited]
        )
    return Solution(choice, total, bound, found["method"], proven, time.perf_counter() - start, certificate)


def _by_method(problem: Problem, method: str, certify: bool) -> Solution:
    if method not in METHODS:
        raise ModelError(f"[select] a method must be known. Got {method!r}, expected one of {', '.join(METHODS)}")
    if certify or any(math.isfinite(r.limit) for r in problem.resources):
        raise ModelError(f"[select] limits and certificates must be left to the default method. Got method {method!r}")
    start = time.perf_counter()
    choice, proven = METHODS[method](problem)
    if choice is None:
        raise _infeasible(problem, [], {"obstacle": "pairs" if proven else "effort"})
    total = problem.evaluate(choice)
    seconds = time.perf_counter() - start
    return Solution(choice, total, total if proven else -math.inf, method, proven, seconds)


def _two_pass(problem: Problem) -> tuple[list[int] | None, bool]:
    """Devices by the list, and what is best for them."""
    try:
        return solve(problem.restricted(tagged(problem))).choice, False
    except InfeasibleError:
        return None, False


def _searched(problem: Problem) -> tuple[list[int] | None, bool]:
    """Branch and bound on the arrays as they are."""
    found = _native.solve(*problem.flat, [], search_alone=True)
    return (None if found["obstacle"] else found["choice"]), found["proven"] or found["obstacle"] == "pairs"


def _flat_resource(resource: Resource) -> tuple[float, Array, npt.NDArray[np.int64], Array]:
    def flat(tables: Sequence[npt.ArrayLike]) -> Array:
        return np.concatenate([np.ravel(t) for t in tables]) if tables else np.zeros(0)

    pairs = np.array(list(resource.matrices), dtype=np.int64).reshape(-1, 2)
    return resource.limit, flat(list(resource.vectors)), pairs, flat(list(resource.matrices.values()))


def _infeasible(problem: Problem, limited: Sequence[Resource], found: Mapping[str, Any]) -> InfeasibleError:
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
