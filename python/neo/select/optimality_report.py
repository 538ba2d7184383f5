"""How good a choice is: its total, a bound that no choice is below, and what simpler methods would have given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neo.select.problem import InfeasibleError, Problem
from neo.select.solver import solve


@dataclass(frozen=True)
class OptimalityReport:
    """A choice compared with all others.

    Attributes
    ----------
    total : float
        Its cost.
    lower_bound : float
        No choice costs less; limits are not looked at, and could only raise it.
    method : str
        How the bound was obtained.
    proof : int
        How many numbers its certificate consists of.
    others : mapping of str to float
        The totals of greedy, PBQP and, with several devices, two-pass; infinite where they are forbidden.
    """

    total: float
    lower_bound: float
    method: str
    proof: int
    others: Mapping[str, float]


def optimality(problem: Problem, choice: Sequence[int]) -> OptimalityReport | None:
    """Compare a choice with all others; None where nothing is allowed or the choice is not of this problem."""
    unlimited = Problem.from_flat(problem.flat, places=problem.places)
    if len(choice) != len(problem.sizes):
        return None
    try:
        best = solve(unlimited, certify=True)
    except InfeasibleError:
        return None
    total = unlimited.evaluate(choice)
    others = {}
    for name in ("greedy", "pbqp") if problem.places is None else ("greedy", "pbqp", "two-pass"):
        try:
            others[name] = solve(unlimited, method=name).total
        except InfeasibleError:
            others[name] = math.inf
    assert best.certificate is not None
    # Choices as good as the best may differ by rounding.
    bound = min(best.lower_bound, total)
    return OptimalityReport(total, bound, best.method, best.certificate.numbers, others)
