"""What a call would take with one other choice and everything else as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["add_inner_changes", "total_changes"]

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
    towards = _towards(costs, edges)
    changes = []
    for node in range(nodes):
        total = _totals(costs, towards, choices, nodes, node)
        changes.append(total - total[choices[node]])
    return changes


def add_inner_changes(
    costs: Sequence[_Array],
    edges: Mapping[tuple[int, int], _Array],
    choices: Sequence[int],
    found: Mapping[tuple[int, int], tuple[float, list[int]]],
    nodes: Sequence[Any],
    changes: Sequence[_Array],
) -> None:
    """Add what inner graphs change to :func:`total_changes`, and their times to the nodes.

    Parameters
    ----------
    costs, edges, choices
        As there.
    found : mapping of (int, int) to (float, list of int)
        By node and choice: what the best selection with an inner graph, or without a chosen one, takes more, and its
        choices.
    nodes : sequence
        The nodes with their choices.
    changes : sequence of array
        What choices of one node change while the others stay, which is nothing for inner graphs.
    """
    towards = _towards(costs, edges) if found else []
    for (variable, number), (change, picked) in found.items():
        option = nodes[variable]["choices"][number]
        is_chosen = choices[variable] == number
        if is_chosen:
            total = _totals(costs, towards, picked, len(nodes), variable)
            if np.isfinite(change):
                changes[variable][:] = total - total[picked[variable]] + change
            changes[variable][number] = 0.0
        else:
            changes[variable][number] = change
        inner = [n["variable"] for n in option["graph"]["nodes"]]
        chosen = [nodes[v]["choices"][(choices if is_chosen else picked)[v]] for v in inner]
        option["steps"] = [c for c in chosen if "routine" in c]


def _towards(costs: Sequence[_Array], edges: Mapping[tuple[int, int], _Array]) -> list[list[tuple[int, _Array]]]:
    towards: list[list[tuple[int, _Array]]] = [[] for _ in costs]
    for (u, v), matrix in edges.items():
        towards[u].append((v, matrix))
        towards[v].append((u, matrix.T))
    return towards


def _totals(
    costs: Sequence[_Array],
    towards: Sequence[Sequence[tuple[int, _Array]]],
    choices: Sequence[int],
    nodes: int,
    node: int,
) -> _Array:
    """What each choice of a node costs with its neighbours as they are, but for the schemas of values."""
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
    return total
