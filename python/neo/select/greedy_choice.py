"""Baselines and local search: quick choices without a proof, to compare with and to start from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neo.select.problem import Array, Problem


def cheapest(problem: Problem) -> list[int]:
    """Take the cheapest choice of each variable alone: the local optimum that NeoCPU 3.3 starts from."""
    return [int(c.argmin()) for c in problem.costs]


def greedy(problem: Problem) -> list[int]:
    """Decide the variables in order, each by its cost, its decided neighbours and the best of its undecided ones.

    What a decision forbids elsewhere is followed from neighbour to neighbour; a choice that leaves a variable nothing
    is not taken. Where every choice of a variable does, the result is forbidden.
    """
    edges = _Edges(problem)
    follower = Follower(problem)
    choice = [-1] * len(problem.costs)
    for v, cost in enumerate(problem.costs):
        allowed = follower.allowed
        total = np.where(allowed[v], cost, np.inf)
        for other, matrix in edges.around[v]:
            if choice[other] >= 0:
                total = total + matrix[:, choice[other]]
            else:
                total = total + (matrix + np.where(allowed[other], problem.costs[other], np.inf)).min(axis=1)
        ranked = [int(i) for i in np.argsort(total, kind="stable")]
        choice[v] = ranked[0]
        for i in ranked:
            if follower.allowed[v][i] and follower.restrict(v, np.arange(len(cost)) == i):
                choice[v] = i
                break
    return choice


Mask = npt.NDArray[np.bool_]


class Follower:
    """Which choices are left, when what some of them forbid elsewhere is followed from neighbour to neighbour.

    Attributes
    ----------
    allowed : list of array of bool
        Per variable.
    """

    def __init__(self, problem: Problem) -> None:
        around = _Edges(problem).around
        self._supports = [[(other, (matrix < np.inf).T) for other, matrix in edges] for edges in around]
        self.allowed: list[Mask] = [c < np.inf for c in problem.costs]
        self._follow(range(len(self.allowed)))

    def restrict(self, v: int, wanted: Mask) -> bool:
        """Leave a variable only what is wanted; False, and nothing changes, where that leaves a variable nothing."""
        before = list(self.allowed)
        self.allowed[v] = before[v] & wanted
        if self.allowed[v].any() and self._follow([v]):
            return True
        self.allowed = before
        return False

    def _follow(self, changed: Iterable[int]) -> bool:
        """Forbid what no choice of a neighbour supports any more; whether every variable has a choice left."""
        queue = dict.fromkeys(changed)
        while queue:
            v = next(iter(queue))
            del queue[v]
            for other, support in self._supports[v]:
                left = self.allowed[other] & support[:, self.allowed[v]].any(axis=1)
                if not left.any():
                    return False
                if left.sum() < self.allowed[other].sum():
                    self.allowed[other] = left
                    queue[other] = None
        return True


def improve(problem: Problem, choice: Sequence[int], *, sweeps: int = 20) -> list[int]:
    """Change one variable, or two that share an edge, as long as that lowers the total; limits are not looked at."""
    edges = _Edges(problem)
    now = list(choice)

    def around(v: int, but: int = -1) -> Array:
        total = problem.costs[v]
        for other, matrix in edges.around[v]:
            if other != but:
                total = total + matrix[:, now[other]]
        return total

    def better(new: float, old: float) -> bool:
        return new < old and (math.isinf(old) or old - new > 1e-12 * max(1.0, abs(old)))

    for _ in range(sweeps):
        changed = False
        for v in range(len(now)):
            total = around(v)
            best = int(total.argmin())
            if better(float(total[best]), float(total[now[v]])):
                now[v], changed = best, True
        for (u, v), matrix in problem.edges.items():
            both = matrix + around(u, v)[:, None] + around(v, u)[None, :]
            i, j = divmod(int(both.argmin()), both.shape[1])
            if better(float(both[i, j]), float(both[now[u], now[v]])):
                now[u], now[v], changed = i, j, True
        if not changed:
            break
    return now


class _Edges:
    """Per variable its neighbours, with matrices whose rows are the variable's own choices."""

    def __init__(self, problem: Problem) -> None:
        self.around: list[list[tuple[int, Array]]] = [[] for _ in problem.costs]
        for (u, v), matrix in problem.edges.items():
            self.around[u].append((v, matrix))
            self.around[v].append((u, np.ascontiguousarray(matrix.T)))
