"""The selection problem of a graph: what may run each node, and one choice among all of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neo import _native
from neo.errors import UnsupportedError
from neo.options import Options
from neo.select.problem import Array, Flat, InfeasibleError, Problem, Resource
from neo.select.shared import share_forms
from neo.select.solver import solve

__all__ = ["Candidates", "Selection", "build_candidates", "inner_selections", "selection_arrays"]


@dataclass(frozen=True)
class Selection:
    """A candidate for every node, and a conversion wherever one is needed.

    Attributes
    ----------
    problem : _native.Problem
    choice : tuple of int
        A choice for each variable of the problem.
    total_us : float
        What a call should take, by the costs that the problem had.
    bound_us : float
        No selection within the same limits takes less by these costs; 0 where nobody asked.
    """

    problem: _native.Problem
    choice: tuple[int, ...]
    total_us: float
    bound_us: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """A selection problem, and what a user asks of a selection of it.

    Attributes
    ----------
    problem : _native.Problem
    options : Options
    names_schedules : bool
        Whether a pin asks for one schedule, which leaves nothing to search.
    """

    problem: _native.Problem
    options: Options
    names_schedules: bool = False

    def arrays(self) -> Problem:
        """The problem as a solver takes it, with the costs that it has now."""
        return selection_arrays(self.problem, self.options.accuracy)

    def select(self) -> Selection:
        """The best selection by the costs that the problem has now; constants that several nodes read in few forms."""
        arrays = self.arrays()
        sizes = np.concatenate([np.zeros(0), *self.problem.resource("constant_bytes")])
        solution = share_forms(arrays, solve(arrays), sizes, self.problem.packed_forms)
        return self.selection(solution.choice, float(solution.total), float(solution.lower_bound))

    def selection(self, choice: Sequence[int], total_us: float, bound_us: float = 0.0) -> Selection:
        """Name a choice for each variable a selection."""
        return Selection(self.problem, tuple(choice), total_us, bound_us)

    def lower(self, selection: Selection, *, remake: Callable[[], _native.Graph] | None = None) -> _native.Module:
        """Lower a selection.

        With `remake`, which makes the graph once more, the graph's constants are given up once they are packed.
        """
        return self.problem.lower(
            list(selection.choice),
            selection.total_us,
            self.options.threads,
            keeps_denormals=self.options.accuracy == "strict",
            remake=remake,
        )


def build_candidates(
    graph: _native.Graph, target: str, options: Options, corrections: _native.CostTrees | None
) -> Candidates:
    """What may run each node of a graph on a target, at which cost.

    Parameters
    ----------
    graph : _native.Graph
    target : str
    options : Options
    corrections : _native.CostTrees or None
        What corrects the routines' estimates.

    Raises
    ------
    neo.ModelError, neo.UnsupportedError
        A pin matches nothing, or leaves a node nothing.
    """
    if not options.routines:
        return Candidates(_native.build_problem(graph, target, options.threads, trees=corrections), options)
    from neo.pins import Pins

    pins = Pins(options.routines, graph)
    try:
        problem = _native.build_problem(graph, target, options.threads, pins.allow, corrections)
    except UnsupportedError:
        pins.complain_where_nothing_is_left()
        raise
    return Candidates(problem, options, pins.names_schedules)


def selection_arrays(problem: _native.Problem, accuracy: str | float | None = None) -> Problem:
    """The arrays of a selection problem, without the methods that the user's accuracy rules out."""
    resources = []
    if accuracy == "strict":
        resources.append(Resource("error", 0.0, problem.resource("error")))
    if accuracy != "reduced" and problem.rounds:
        resources.append(Resource("rounding", 0.0, problem.resource("rounding")))
    return Problem.from_flat(Flat(*problem.flat), resources, problem.places)


def inner_selections(
    problem: Problem, choice: Sequence[int], nodes: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, int], tuple[float, list[int]]]:
    """For each inner graph that a node may be, the best selection with it; without it where it is chosen.

    Parameters
    ----------
    problem : Problem
        Its first variables are the nodes.
    choice : sequence of int
        The choice of each variable.
    nodes : sequence of mapping
        Those of ``_native.Problem``.

    Returns
    -------
    dict of (int, int) to (float, list of int)
        By variable and choice the microseconds that this selection takes more, and its choices. The node, those that
        the inner graph computes with it, and the inner graph's own choose anew; infinite where nothing is left.
    """
    found = {}
    total = float(problem.evaluate(choice))
    for variable, node in enumerate(nodes):
        for number, option in enumerate(node["choices"]):
            if "expansion" not in option:
                continue
            free = {*option["members"], *(n["variable"] for n in option["graph"]["nodes"])}
            costs = [
                _only(c, choice[i]) if i < len(nodes) and i not in free else c for i, c in enumerate(problem.costs)
            ]
            if choice[variable] == number:
                costs[variable] = np.array(costs[variable])
                costs[variable][number] = math.inf
            else:
                costs[variable] = _only(costs[variable], number)
            try:
                solution = solve(Problem(costs, problem.edges))
            except InfeasibleError:
                found[variable, number] = math.inf, list(choice)
            else:
                found[variable, number] = float(solution.total) - total, [int(c) for c in solution.choice]
    return found


def _only(costs: Array, number: int) -> Array:
    """The costs with all choices but one forbidden."""
    kept = np.full_like(costs, math.inf)
    kept[number] = costs[number]
    return kept
