"""What a call would take with one other choice and everything else as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["total_changes"]

_Array = np.ndarray[Any, np.dtype[np.float64]]


def total_changes(
    costs: Sequence[_Array], edges: Mapping[tuple[int, int], _Array], choices: Sequence[int], nodes: int
) -> list[_Array]:
    """Microseconds that each choice of each node adds to the selection's total, conversions chosen anew.

    Parameters
    ----------
    costs : sequence of array
        Per variable of the selection problem, the cost of each choice.
    edges : mapping (u, v) -> array
        The cost of each pair of choices.
    choices : sequence of int
        The choice of each variable.
    nodes : int
        The variables below this are nodes; the others say whether a value is held in a schema, and follow the nodes'.

    Returns
    -------
    list of array
        Per node and choice; infinite where the choice forbids that of a neighbour.
    """
    towards: list[list[tuple[int, _Array]]] = [[] for _ in costs]
    for (u, v), matrix in edges.items():
        towards[u].append((v, matrix))
        towards[v].append((u, matrix.T))
    changes = []
    for node in range(nodes):
        total = np.array(costs[node], dtype=np.float64)
        held: dict[int, _Array] = {}
        for other, matrix in towards[node]:
            if other < nodes:
                total = total + matrix[:, choices[other]]
            else:
                held[other] = matrix
        for schema, matrix in held.items():
            alone = np.array(costs[schema], dtype=np.float64)
            for other, theirs in towards[schema]:
                if other != node:
                    alone = alone + theirs[:, choices[other]]
            total = total + (matrix + alone[None, :]).min(axis=1)
        changes.append(total - total[choices[node]])
    return changes
