"""Dynamic programming for routine selection with relaxed constraints, Algorithm 1 of SoftNeuro IV.

The variables are swept in one order. A partial solution is kept for each combination of the choices that later costs
depend on: those of branching layers, which SoftNeuro calls constraints. Where the last neighbour of one has been
reached, a merging layer, it is relaxed: of the solutions that differ in it alone the cheapest stays. Here any variable
may branch, what is forbidden is not kept, and where more combinations are open than allowed the cheapest go on, which
loses the proof.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neo import _native
from neo.select.problem import Array, Problem

STATES = 1 << 14


def dprs(problem: Problem, *, states: int = STATES) -> tuple[list[int] | None, bool]:
    """Sweep a problem; limits are not looked at.

    Parameters
    ----------
    problem : Problem
        What is solved.
    states : int
        Partial solutions that go on at most.

    Returns
    -------
    list of int or None
        The choice; None where none was found.
    bool
        Whether nothing was dropped: the choice is the best, and where there is none, none is allowed.
    """
    sizes = problem.sizes
    order = _native.linear_order(sizes, list(problem.edges))
    place = {v: i for i, v in enumerate(order)}
    earlier: list[list[tuple[int, Array]]] = [[] for _ in sizes]
    last = list(range(len(sizes)))  # by place: where the variable's last neighbour is
    for (u, v), matrix in problem.edges.items():
        first, second, turned = (u, v, matrix) if place[u] < place[v] else (v, u, matrix.T)
        earlier[second].append((first, turned))
        last[place[first]] = max(last[place[first]], place[second])
    total: Array = np.zeros(1)
    constraints: dict[int, npt.NDArray[np.intp]] = {}
    steps: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = []
    exact = True
    for i, v in enumerate(order):
        extended = total[:, None] + problem.costs[v][None, :]
        for u, matrix in earlier[v]:
            extended = extended + matrix[constraints[u]]
        parents, choices = np.nonzero(extended < np.inf)
        if not len(parents):
            return None, exact
        total = extended[parents, choices]
        constraints = {u: column[parents] for u, column in constraints.items() if last[place[u]] > i}
        if last[i] > i:
            constraints[v] = choices
        kept = _relaxed(total, [sizes[u] for u in constraints], list(constraints.values()))
        if len(kept) > states:
            exact = False
            kept = np.sort(kept[np.argsort(total[kept], kind="stable")[:states]])
        total = total[kept]
        constraints = {u: column[kept] for u, column in constraints.items()}
        steps.append((parents[kept], choices[kept]))
    state = int(total.argmin())
    choice = [0] * len(sizes)
    for v, (parents, choices) in zip(reversed(order), reversed(steps), strict=True):
        choice[v] = int(choices[state])
        state = int(parents[state])
    return choice, exact


def _relaxed(total: Array, sizes: list[int], columns: list[npt.NDArray[np.intp]]) -> npt.NDArray[np.intp]:
    """Of each combination of constraints the cheapest."""
    key = np.zeros(len(total), dtype=np.int64)
    room = 1
    for size, column in zip(sizes, columns, strict=True):
        if room * size >= 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            room = len(total)
        key = key * size + column
        room *= size
    order = np.lexsort((total, key))
    first = np.concatenate(([True], key[order][1:] != key[order][:-1]))
    return np.sort(order[first])
