"""Dynamic programming on chains, Algorithm 2 of NeoCPU 3.3.2."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from neo.errors import ModelError
from neo.select.problem import Array, Problem


def is_chain(problem: Problem) -> bool:
    """Say whether every connected part is a path."""
    return _paths(problem) is not None


def chain(problem: Problem) -> list[int]:
    """Give the best choice of a problem each of whose parts is a path; limits are not looked at.

    Each variable along a path keeps, for each of its choices, the cheapest way to arrive there.
    """
    paths = _paths(problem)
    if paths is None:
        raise ModelError("[select] every part of a chain must be a path. Got a problem with a branch or a cycle")
    choice = [0] * len(problem.costs)
    for path in paths:
        total: Array = problem.costs[path[0]]
        came: list[npt.NDArray[np.intp]] = []
        for u, v in itertools.pairwise(path):
            matrix = problem.edges[u, v] if u < v else problem.edges[v, u].T
            ways = total[:, None] + matrix
            came.append(ways.argmin(axis=0))
            total = ways.min(axis=0) + problem.costs[v]
        choice[path[-1]] = int(total.argmin())
        for u, v, best in zip(path[-2::-1], path[:0:-1], came[::-1], strict=True):
            choice[u] = int(best[choice[v]])
    return choice


def _paths(problem: Problem) -> list[list[int]] | None:
    around: list[list[int]] = [[] for _ in problem.costs]
    for u, v in problem.edges:
        around[u].append(v)
        around[v].append(u)
    if any(len(near) > 2 for near in around):
        return None
    seen = [False] * len(around)
    paths = []
    for start, near in enumerate(around):
        if seen[start] or len(near) == 2:
            continue
        path = [start]
        seen[start] = True
        while unseen := [v for v in around[path[-1]] if not seen[v]]:
            path.append(unseen[0])
            seen[unseen[0]] = True
        paths.append(path)
    return paths if all(seen) else None
