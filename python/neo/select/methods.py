"""Other ways to a choice, to compare with; none of them looks at limits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from neo.errors import ModelError
from neo.select.chain_parts import chain
from neo.select.dprs_sweep import dprs
from neo.select.exact import Solution, infeasible, searched, solve_exactly
from neo.select.greedy_choice import cheapest, greedy, improve
from neo.select.pbqp_heuristic import pbqp
from neo.select.problem import InfeasibleError, Problem
from neo.select.two_pass import tagged

__all__ = ["METHODS", "solve_by"]

#: Each gives its choice, and whether nothing better is left.
METHODS: dict[str, Callable[[Problem], tuple[list[int] | None, bool]]] = {
    "cheapest": lambda problem: (cheapest(problem), False),
    "greedy": lambda problem: (greedy(problem), False),
    "improve": lambda problem: (improve(problem, greedy(problem)), False),
    "pbqp": lambda problem: (pbqp(problem), False),
    "chain": lambda problem: (chain(problem), True),
    "dprs": dprs,
    "two-pass": lambda problem: _two_pass(problem),
    "branch and bound": searched,
}


def solve_by(problem: Problem, method: str, certify: bool) -> Solution:
    """What a method finds, as a solution; see :func:`neo.select.solve`."""
    if method not in METHODS:
        raise ModelError(f"[select] a method must be known. Got {method!r}, expected one of {', '.join(METHODS)}")
    if certify or any(math.isfinite(r.limit) for r in problem.resources):
        raise ModelError(f"[select] limits and certificates must be left to the default method. Got method {method!r}")
    start = time.perf_counter()
    choice, proven = METHODS[method](problem)
    if choice is None:
        raise infeasible(problem, [], {"obstacle": "pairs" if proven else "effort"})
    total = problem.evaluate(choice)
    seconds = time.perf_counter() - start
    return Solution(choice, total, total if proven else -math.inf, method, proven, seconds)


def _two_pass(problem: Problem) -> tuple[list[int] | None, bool]:
    """Devices by the list, and what is best for them."""
    try:
        return solve_exactly(problem.restricted(tagged(problem)), None, False, None).choice, False
    except InfeasibleError:
        return None, False
