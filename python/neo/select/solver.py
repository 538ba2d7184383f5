"""Solve a selection problem: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neo.errors import ModelError
from neo.select.branch_and_bound import Core, branch_and_bound
from neo.select.certificate import Certificate, Trace
from neo.select.chain import chain
from neo.select.collapse import Collapse
from neo.select.dprs import dprs
from neo.select.elimination import Factor
from neo.select.greedy import cheapest, greedy, improve
from neo.select.pbqp import pbqp
from neo.select.problem import LIMIT_TOLERANCE, InfeasibleError, Pair, Problem
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
    problem: Problem, *, budget_s: float | None = None, certify: bool = False, method: str | None = None
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
    solution = _minimise(problem, math.inf if budget_s is None else start + budget_s, certify=certify)
    return replace(solution, seconds=time.perf_counter() - start)


def _by_method(problem: Problem, method: str, certify: bool) -> Solution:
    if method not in METHODS:
        raise ModelError(f"[select] a method must be known. Got {method!r}, expected one of {', '.join(METHODS)}")
    if certify or any(math.isfinite(r.limit) for r in problem.resources):
        raise ModelError(f"[select] limits and certificates must be left to the default method. Got method {method!r}")
    start = time.perf_counter()
    choice, proven = METHODS[method](problem)
    if choice is None:
        raise _nothing_allowed() if proven else _nothing_found()
    total = problem.evaluate(choice)
    seconds = time.perf_counter() - start
    return Solution(choice, total, total if proven else -math.inf, method, proven, seconds)


def _two_pass(problem: Problem) -> tuple[list[int] | None, bool]:
    """Devices by the list, and what is best for them."""
    try:
        return _minimise(problem.restricted(tagged(problem)), math.inf).choice, False
    except InfeasibleError:
        return None, False


def _searched(problem: Problem) -> tuple[list[int] | None, bool]:
    """Branch and bound on the arrays as they are."""
    costs: list[Factor] = [((v,), c) for v, c in enumerate(problem.costs)]
    costs.extend(problem.edges.items())
    outcome = branch_and_bound(Core(problem.sizes, costs, [], np.zeros(0)), accept=lambda _: True)
    return outcome.choice, outcome.complete


def _minimise(problem: Problem, deadline: float, *, certify: bool = False) -> Solution:
    try:
        choice, bound, complete, method, certificate = _found(problem, deadline, certify)
    except _NothingFoundError as error:
        raise _explained(problem, deadline, proven=error.proven) from None
    total = problem.evaluate(choice)
    return Solution(choice, total, total if complete else min(bound, total), method, complete, 0.0, certificate)


class _NothingFoundError(Exception):
    def __init__(self, *, proven: bool) -> None:
        super().__init__()
        self.proven = proven


def _found(problem: Problem, deadline: float, certify: bool) -> tuple[list[int], float, bool, str, Certificate | None]:
    """Choice, lower bound, whether it is the best, method, certificate."""
    limited = any(math.isfinite(r.limit) for r in problem.resources)
    try:
        collapse = Collapse(problem, limited=False)
        choice = collapse.complete([]) if collapse.solved else None
        if limited and (choice is None or not problem.is_feasible(choice)):
            collapse = Collapse(problem, limited=True)
            choice = collapse.complete([]) if collapse.solved else None
            if choice is not None and not problem.is_feasible(choice):
                raise _NothingFoundError(proven=True)
    except InfeasibleError:
        if not limited:
            raise
        raise _NothingFoundError(proven=True) from None
    if choice is not None:
        certificate = Certificate(problem.evaluate(choice), collapse.steps, collapse.limits) if certify else None
        return choice, math.nan, True, "elimination" if collapse.eliminated else "reduction", certificate
    core = collapse.core()
    trace = Trace() if certify else None

    def accept(core_choice: list[int]) -> bool:
        if not core.usage:
            return True
        whole = collapse.complete(core_choice)
        return whole is not None and problem.is_feasible(whole)

    outcome = branch_and_bound(core, accept=accept, deadline=deadline, trace=trace)
    if outcome.choice is None:
        raise _NothingFoundError(proven=outcome.complete)
    choice = collapse.complete(outcome.choice)
    if choice is None:
        raise _NothingFoundError(proven=True)
    bound = problem.evaluate(choice) if outcome.complete else outcome.bound + collapse.constant
    certificate = None
    if trace is not None:
        search = trace.search(collapse.core_variables, [r.name for r in collapse.resources])
        certificate = Certificate(bound, collapse.steps, collapse.limits, search)
    method = "elimination, prices, branch and bound" if core.usage else "elimination, branch and bound"
    return choice, bound, outcome.complete, method, certificate


def _nothing_found() -> InfeasibleError:
    return InfeasibleError(
        "[select] some combination of choices must be allowed. Got none found, and none is ruled out\n"
        "Hint: give the search more time."
    )


def _nothing_allowed() -> InfeasibleError:
    return InfeasibleError("[select] some combination of choices must be allowed. Got forbidden pairs that leave none")


def _explained(problem: Problem, deadline: float, *, proven: bool) -> InfeasibleError:
    """Which limit cannot be met, and what could be reached, for a problem whose search found nothing."""
    limited = [r for r in problem.resources if math.isfinite(r.limit)]
    if not limited and not proven:
        return _nothing_found()
    for resource in limited:
        costs = [np.where(np.isinf(c), np.inf, r) for c, r in zip(problem.costs, resource.vectors, strict=True)]
        edges: dict[Pair, npt.ArrayLike] = {e: np.asarray(m) for e, m in resource.matrices.items()}
        for e, m in problem.edges.items():
            if e in edges:
                edges[e] = np.where(np.isinf(m), np.inf, edges[e])
            elif np.isinf(m).any():
                edges[e] = np.where(np.isinf(m), np.inf, 0.0)
        least = _minimise(Problem(costs, edges), deadline)
        if least.lower_bound > resource.limit + LIMIT_TOLERANCE * max(1.0, abs(resource.limit)):
            smallest = _number(least.lower_bound)
            return InfeasibleError(
                f"[select] the limit on {resource.name} must be reachable. Got {_number(resource.limit)}, the smallest "
                f"reachable value is {smallest}{'' if least.proven else ' or more'}\n"
                f"Hint: raise the limit to {smallest}{'' if least.proven else ' or more'}.",
                resource=resource.name,
                limit=resource.limit,
                smallest=least.lower_bound,
            )
    limits = ", ".join(f"{r.name} <= {_number(r.limit)}" for r in limited)
    if not limited:
        return _nothing_allowed()
    if proven:
        return InfeasibleError(
            f"[select] the limits must be reachable together. Got {limits}, reachable one by one only"
        )
    return InfeasibleError(
        f"[select] the limits must be reachable together. Got {limits}; no choice was found, and none is ruled out\n"
        "Hint: raise a limit, or give the search more time."
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
