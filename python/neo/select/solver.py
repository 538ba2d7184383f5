"""Solve a selection problem: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neo.errors import ModelError
from neo.select.branch_and_bound import TABLE_LIMIT, Core, Outcome, branch_and_bound
from neo.select.elimination import (
    Elimination,
    Factor,
    Order,
    eliminate,
    greedy_order,
    relabel,
)
from neo.select.problem import LIMIT_TOLERANCE, InfeasibleError, Pair, Problem
from neo.select.reduction import Reduction

# Cells of an exact elimination: its largest table, all of them, and all up to which no other order is tried.
LARGEST = 1 << 22
MOST = 1 << 25
ENOUGH = 1 << 21


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
    """

    choice: list[int]
    total: float
    lower_bound: float
    method: str
    proven: bool
    seconds: float

    @property
    def gap(self) -> float:
        """How much better a choice could be, as a share of the total."""
        return (self.total - self.lower_bound) / max(abs(self.total), 1e-300)


def solve(problem: Problem, *, budget_s: float | None = None) -> Solution:
    """Minimise the total cost within the resources' limits.

    Without a budget the work is bounded by fixed sizes, so the same problem gives the same choice; with one a search
    that has not ended goes on, wider, until then.

    Parameters
    ----------
    problem : Problem
        What to solve.
    budget_s : float, optional
        Seconds for what elimination alone cannot solve. The first narrow search always ends.

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
        raise ModelError(f"[select] a budget is a time. Got {budget_s}, expected seconds >= 0")
    start = time.perf_counter()
    solution = _minimise(problem, math.inf if budget_s is None else start + budget_s)
    return replace(solution, seconds=time.perf_counter() - start)


def _minimise(problem: Problem, deadline: float) -> Solution:
    try:
        choice, bound, complete, method = _Solver(problem, deadline).run()
    except _NothingFoundError as error:
        raise _explained(problem, deadline, proven=error.proven) from None
    total = problem.evaluate(choice)
    return Solution(choice, total, total if complete else min(bound, total), method, complete, 0.0)


class _NothingFoundError(Exception):
    def __init__(self, *, proven: bool) -> None:
        super().__init__()
        self.proven = proven


@dataclass
class _Part:
    """What is left of a problem after eliminating some variables exactly, and the way back."""

    variables: list[int]  # of the reduction; those eliminated come first
    tables: Elimination
    core: Core

    def complete(self, core_choice: Sequence[int]) -> dict[int, int] | None:
        choice = [0] * self.tables.count + list(core_choice)
        if not self.tables.decode(choice):
            return None
        return dict(zip(self.variables, choice, strict=True))


class _Solver:
    def __init__(self, problem: Problem, deadline: float) -> None:
        self.problem = problem
        self.deadline = deadline
        self.reduction = Reduction(problem)

    def run(self) -> tuple[list[int], float, bool, str]:
        """Choice, lower bound, whether it is the best, method."""
        reduction = self.reduction
        try:
            reduction.fold_decided()
            if reduction.limited:
                reduction.drop_beyond_limits()
            order = self._order("weight")
            if not order.rest and order.cells <= MOST:
                choice = self._whole(self._partly(order), [])
                if not reduction.limited or self.problem.is_feasible(choice):
                    return choice, math.nan, True, "elimination" if order.eliminated else "reduction"
            reduction.tighten()
        except InfeasibleError:
            if not any(math.isfinite(r.limit) for r in self.problem.resources):
                raise
            raise _NothingFoundError(proven=True) from None
        order = self._order("weight")
        if order.rest or order.cells > ENOUGH:
            order = min(order, self._order("fill"), key=lambda o: (len(o.rest), o.cells))
        if not order.rest and order.cells <= MOST:
            choice = self._whole(self._partly(order), [])
            if not reduction.limited or self.problem.is_feasible(choice):
                return choice, math.nan, True, "elimination"
        if not reduction.unary:
            raise _NothingFoundError(proven=True)
        if reduction.limited:
            # Only what uses the same whatever is chosen may be decided by cost alone.
            method = "elimination, prices, branch and bound"
            part = self._partly(greedy_order(*self._graph(), limit=TABLE_LIMIT, allowed=self._unlimited()))
        else:
            method = "elimination, branch and bound"
            part = self._partly(greedy_order(*self._graph(), limit=TABLE_LIMIT))
        outcome = self._search(part)
        if outcome.choice is None:
            raise _NothingFoundError(proven=outcome.complete)
        bound = outcome.bound + part.tables.bound + float(reduction.constant[0])
        return self._whole(part, outcome.choice), bound, outcome.complete, method

    def _graph(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """Sizes and scopes with the variables that are left numbered from 0."""
        sizes = self.reduction.sizes
        number = {v: i for i, v in enumerate(sizes)}
        return list(sizes.values()), [(number[u], number[v]) for u, v in self.reduction.pairs]

    def _order(self, rule: str) -> Order:
        sizes, scopes = self._graph()
        return greedy_order(sizes, scopes, limit=LARGEST, rule=rule)

    def _partly(self, order: Order) -> _Part:
        """Eliminate in this order; the rest is the core."""
        left = list(self.reduction.unary)
        variables = [left[i] for i in order.eliminated + order.rest]
        position = {v: i for i, v in enumerate(variables)}
        sizes = self.reduction.sizes
        costs, usage = self.reduction.factors(position)
        count = len(order.eliminated)
        tables = eliminate([sizes[v] for v in variables], costs, count=count)
        place = [p - count for p in range(len(variables))]
        limits = np.array([r.limit for r in self.reduction.limited]) - self.reduction.constant[1:]
        kept: list[list[Factor]] = []
        for k, parts in enumerate(usage):
            # What is eliminated here uses the same whatever is chosen.
            limits[k] -= sum(float(t.flat[0]) for s, t in parts if s[0] < count)
            kept.append(relabel([(s, t) for s, t in parts if s[0] >= count], place))
        core = Core([sizes[v] for v in variables[count:]], relabel(tables.rest, place), kept, limits)
        return _Part(variables, tables, core)

    def _whole(self, part: _Part, core_choice: Sequence[int]) -> list[int]:
        choice = part.complete(core_choice)
        if choice is None:
            raise _NothingFoundError(proven=True)
        return self.reduction.restore(choice)

    def _search(self, part: _Part) -> Outcome:
        def accept(core_choice: list[int]) -> bool:
            if not part.core.usage:
                return True
            choice = part.complete(core_choice)
            return choice is not None and self.problem.is_feasible(self.reduction.restore(choice))

        return branch_and_bound(part.core, accept=accept, deadline=self.deadline)

    def _unlimited(self) -> list[int]:
        """Variables, numbered from 0, none of whose choices uses more of a resource than another."""
        left = list(self.reduction.unary)
        uses = {v for v in left if np.ptp(self.reduction.unary[v][1:], axis=1).any()}
        for (u, v), planes in self.reduction.pairs.items():
            if planes.shape[0] > 1:
                uses |= {u, v}
        return [i for i, v in enumerate(left) if v not in uses]


def _nothing_allowed() -> InfeasibleError:
    return InfeasibleError("[select] some combination of choices is allowed. Got forbidden pairs that leave none")


def _explained(problem: Problem, deadline: float, *, proven: bool) -> InfeasibleError:
    """Which limit cannot be met, and what could be reached, for a problem whose search found nothing."""
    limited = [r for r in problem.resources if math.isfinite(r.limit)]
    if not limited and not proven:
        return InfeasibleError(
            "[select] some combination of choices is allowed. Got none found, and none is ruled out\n"
            "Hint: give the search more time."
        )
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
                f"[select] the limit on {resource.name} can be met. Got {_number(resource.limit)}, the smallest "
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
        return InfeasibleError(f"[select] the limits can be met together. Got {limits}, reachable one by one only")
    return InfeasibleError(
        f"[select] the limits can be met together. Got {limits}; no choice was found, and none is ruled out\n"
        "Hint: raise a limit, or give the search more time."
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
