"""One group of choices for the whole problem: NeoCPU's fixed block size, for the ablation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from neo.select.problem import InfeasibleError, Problem
from neo.select.solver import Solution, solve


def uniform(
    problem: Problem, groups: Sequence[Sequence[Hashable]], tried: Iterable[Hashable] | None = None
) -> tuple[Hashable, Solution]:
    """Give the best choice that keeps to one group, and that group; limits are not looked at.

    Parameters
    ----------
    problem : Problem
        What is solved.
    groups : sequence of sequence
        Per variable, the group of each choice; None: in every group. A variable that has no choice of a group takes
        any.
    tried : iterable, optional
        The groups that may be the one; by default all that as many variables have as any other group.

    Raises
    ------
    InfeasibleError
        No group leaves an allowed combination.
    """
    best: tuple[Hashable, Solution] | None = None
    for group in _commonest(groups) if tried is None else tried:
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
        raise InfeasibleError(
            "[select] some group must leave an allowed combination. Got forbidden pairs that leave none"
        )
    return best


def _commonest(groups: Sequence[Sequence[Hashable]]) -> list[Hashable]:
    counts = Counter(g for parts in groups for g in dict.fromkeys(parts) if g is not None)
    most = max(counts.values(), default=0)
    return [g for g, n in counts.items() if n == most] or [None]
