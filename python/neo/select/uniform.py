"""One group of choices for the whole problem: NeoCPU's fixed block size, for the ablation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from neo.select.problem import InfeasibleError, Problem
from neo.select.solver import Solution, solve


def uniform(problem: Problem, groups: Sequence[Sequence[Hashable]]) -> tuple[Hashable, Solution]:
    """Give the best choice that keeps to one group, and that group; limits are not looked at.

    Parameters
    ----------
    problem : Problem
        What is solved.
    groups : sequence of sequence
        Per variable, the group of each choice; None: in every group. A variable that has no choice of a group takes
        any.

    Raises
    ------
    InfeasibleError
        No group leaves an allowed combination.
    """
    best: tuple[Hashable, Solution] | None = None
    known = dict.fromkeys(g for parts in groups for g in parts if g is not None)
    for group in known or {None: None}:
        allowed = []
        for parts in groups:
            mine = np.array([g == group for g in parts], dtype=bool)
            free = np.array([g is None for g in parts], dtype=bool)
            allowed.append(mine | free if mine.any() else np.ones(len(parts), dtype=bool))
        try:
            solution = solve(problem.restricted(allowed))
        except InfeasibleError:
            continue
        if best is None or solution.total < best[1].total:
            best = group, solution
    if best is None:
        raise InfeasibleError("[select] some group leaves an allowed combination. Got forbidden pairs that leave none")
    return best
