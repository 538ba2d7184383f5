"""Solve a selection problem: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neo.errors import ModelError
from neo.select.branch_and_bound import TABLE_LIMIT, Core, Outcome, branch_and_bound
from neo.select.elimination import (
    Array,
    Elimination,
    Factor,
    Order,
    best_order,
    eliminate,
    greedy_order,
    relabel,
)
from neo.select.greedy import improve
from neo.select.problem import InfeasibleError, Problem
from neo.select.reduction import Reduction

# Joined tables of an exact elimination, in cells: up to ENOUGH nothing else is tried first.
ENOUGH = 1 << 18
LARGEST = 1 << 22
MOST = 1 << 25


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

    Without a budget the work is bounded by fixed sizes, so the same problem gives the same choice; with one a search that
    has not ended goes on, wider, until then.

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
    deadline = math.inf if budget_s is None else start + budget_s
    solver = _Solver(problem, deadline)
    choice, bound, complete, method = solver.run()
    total = problem.evaluate(choice)
    return Solution(
        choice=choice,
        total=total,
        lower_bound=total if complete else min(bound, total),
        method=method,
        proven=complete,
        seconds=time.perf_counter() - start,
    )


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
        reduction.fold_decided()
        order = self._order()
        if reduction.limited or order.rest or order.cells > ENOUGH:
            reduction.tighten()
            order = self._order()
        if not reduction.unary:
            choice = reduction.restore({})
            self._check_decided()
            return choice, 0.0, True, "reduction"
        exact = not order.rest and order.cells <= MOST
        if exact:
            choice = self._eliminated(order)
            if not reduction.limited or self.problem.is_feasible(choice):
                return choice, 0.0, True, "elimination"
        if reduction.limited:
            return self._limited(exact)
        part = self._partly(greedy_order(*self._graph(), limit=TABLE_LIMIT))
        outcome = self._search(part)
        if outcome.choice is None:
            if outcome.complete:
                raise _nothing_allowed()
            raise InfeasibleError("[select] no allowed combination was found, and none is ruled out. Got no choice")
        choice = self._whole(part, outcome.choice)
        bound = outcome.bound + part.tables.bound + float(reduction.constant[0])
        return choice, bound, outcome.complete, "elimination, branch and bound"

    def _graph(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """Sizes and scopes with the variables that are left numbered from 0."""
        sizes = self.reduction.sizes
        number = {v: i for i, v in enumerate(sizes)}
        return list(sizes.values()), [(number[u], number[v]) for u, v in self.reduction.pairs]

    def _order(self) -> Order:
        sizes, scopes = self._graph()
        return best_order(sizes, scopes, limit=LARGEST, enough=ENOUGH)

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

    def _eliminated(self, order: Order) -> list[int]:
        part = self._partly(Order(order.eliminated, [], order.cells, order.largest))
        choice = part.complete([])
        if choice is None:
            raise _nothing_allowed()
        return self.reduction.restore(choice)

    def _whole(self, part: _Part, core_choice: Sequence[int]) -> list[int]:
        choice = part.complete(core_choice)
        if choice is None:
            raise _nothing_allowed()
        return self.reduction.restore(choice)

    def _search(self, part: _Part) -> Outcome:
        def accept(core_choice: list[int]) -> bool:
            if not part.core.usage:
                return True
            choice = part.complete(core_choice)
            return choice is not None and self.problem.is_feasible(self.reduction.restore(choice))

        return branch_and_bound(part.core, accept=accept, deadline=self.deadline)

    def _limited(self, thin: bool) -> tuple[list[int], float, bool, str]:
        """Within limits that the best choice without them exceeds."""
        sizes, scopes = self._graph()
        left = list(self.reduction.unary)
        uses = [bool(np.ptp(self.reduction.unary[v][1:], axis=1).any()) for v in left]
        number = {v: i for i, v in enumerate(left)}
        for (u, v), planes in self.reduction.pairs.items():
            if planes.shape[0] > 1:
                uses[number[u]] = uses[number[v]] = True
        free = [i for i, u in enumerate(uses) if not u]
        part = self._partly(greedy_order(sizes, scopes, limit=TABLE_LIMIT, allowed=free))
        self._check_reachable(part, thin)
        outcome = self._search(part)
        if outcome.choice is None:
            self._fail_together(outcome.complete)
        assert outcome.choice is not None
        bound = outcome.bound + part.tables.bound + float(self.reduction.constant[0])
        return self._whole(part, outcome.choice), bound, outcome.complete, "elimination, prices, branch and bound"

    def _check_reachable(self, part: _Part, thin: bool) -> None:
        """Each limit alone must leave some choice."""
        core = part.core
        forbidden = [(s, np.where(np.isinf(t), np.inf, 0.0)) for s, t in core.costs if np.isinf(t).any()]
        for resource, limit, usage in zip(self.reduction.limited, core.limits, core.usage, strict=True):
            factors = forbidden + usage
            order = best_order(core.sizes, [s for s, _ in factors], limit=LARGEST, enough=ENOUGH)
            variables = order.eliminated + order.rest
            position = [0] * len(variables)
            for p, v in enumerate(variables):
                position[v] = p
            sizes = [core.sizes[v] for v in variables]
            tables = eliminate(sizes, relabel(factors, position), limit=LARGEST)
            smallest = tables.bound + resource.limit - float(limit)
            if math.isinf(smallest):
                raise _nothing_allowed()
            if smallest > resource.limit + 1e-9 * max(1.0, abs(resource.limit)):
                raise _over_limit(resource.name, resource.limit, smallest, exact=tables.exact)

    def _check_decided(self) -> None:
        for resource, used in zip(self.reduction.limited, self.reduction.constant[1:], strict=True):
            if used > resource.limit + 1e-9 * max(1.0, abs(resource.limit)):
                raise _over_limit(resource.name, resource.limit, float(used), exact=True)

    def _fail_together(self, proven: bool) -> None:
        limits = ", ".join(f"{r.name} <= {r.limit:g}" for r in self.reduction.limited)
        if proven:
            raise InfeasibleError(f"[select] the limits can be met together. Got {limits}, each reachable only alone")
        raise InfeasibleError(
            f"[select] the limits can be met together. Got {limits}; no choice was found, and none is ruled out\n"
            "Hint: raise a limit, or give the search more time."
        )


def _nothing_allowed() -> InfeasibleError:
    return InfeasibleError(
        "[select] some combination of choices is allowed. Got forbidden pairs that leave none, whatever the limits"
    )


def _over_limit(name: str, limit: float, smallest: float, *, exact: bool) -> InfeasibleError:
    least = f"{smallest:g}" if exact else f"{smallest:g} or more"
    return InfeasibleError(
        f"[select] the limit on {name} can be met. Got {limit:g}, the smallest reachable value is {least}\n"
        f"Hint: raise the limit to at least {smallest:g}.",
        resource=name,
        limit=limit,
        smallest=smallest,
    )
