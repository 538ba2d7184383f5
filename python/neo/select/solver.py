"""Solve a selection problem: the best choice with a proof, or a good one with a bound."""

from __future__ import annotations

from collections.abc import Mapping

from neo.errors import ModelError
from neo.select.exact import Solution, solve_exactly
from neo.select.problem import Problem

__all__ = ["Solution", "solve"]


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
        from neo.select.methods import solve_by

        return solve_by(problem, method, certify)
    return solve_exactly(problem, budget_s, certify, work)
