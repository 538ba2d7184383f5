"""What is checked: a model, the module that was compiled from it, and other ways to compile it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neo import _native
from neo.accuracy.exact import ExactGraph
from neo.candidates import Selection, selection_arrays
from neo.frontend.onnx import read_model
from neo.module import Module
from neo.select import InfeasibleError, Problem, solve

__all__ = ["Alternative", "Subject"]


@dataclass(frozen=True)
class Alternative:
    """The model compiled with another choice for one node.

    Attributes
    ----------
    native : _native.Module
    choice : list of int
    added_us : float
        What selection expects it to take more.
    """

    native: _native.Module
    choice: list[int]
    added_us: float


@dataclass
class Subject:
    """A compiled model under test.

    Attributes
    ----------
    model : path, bytes or onnx.ModelProto
    module : Module
    shapes, accuracy
        As for ``neo.compile``.
    """

    model: Any
    module: Module
    shapes: Mapping[str, int | tuple[int, int]] | None = None
    accuracy: str | None = None

    @cached_property
    def own(self) -> ExactGraph:
        """The model as it was imported."""
        return ExactGraph(read_model(self.model, shapes=self.shapes)[0])

    @cached_property
    def compiled(self) -> ExactGraph:
        """The graph that selection saw."""
        return ExactGraph(_native.run_passes(read_model(self.model, shapes=self.shapes)[0]))

    @property
    def _selection(self) -> Selection:
        selection = self.module._selection
        assert selection is not None
        return selection

    @property
    def problem(self) -> _native.Problem:
        """The selection problem of the module, which was compiled here."""
        return self._selection.problem

    @cached_property
    def variables(self) -> list[Any]:
        """The nodes of the selection problem with their choices."""
        return list(self.problem.nodes)

    @cached_property
    def arrays(self) -> Problem:
        """The selection problem as arrays."""
        return selection_arrays(self.problem, self.accuracy)

    @property
    def choice(self) -> list[int]:
        """The choice of each variable."""
        return list(self._selection.choice)

    def variable_of(self, value: str) -> int | None:
        """The variable of the node that makes a value; None where the compiled graph has no such value."""
        return next((i for i, node in enumerate(self.variables) if value in node["outputs"]), None)

    def chosen(self, variable: int, choice: Sequence[int] | None = None) -> Mapping[str, Any]:
        """What was chosen for a variable."""
        picked = (self.choice if choice is None else choice)[variable]
        entry: Mapping[str, Any] = self.variables[variable]["choices"][picked]
        return entry

    def executing(self, variable: int) -> int:
        """The variable whose candidate executes a node: its own, or the group's that absorbed it."""
        entry = self.chosen(variable)
        if "routine" in entry or entry.get("absorbed_by") is None:
            return variable
        name = self.variables[variable]["name"]
        for i in range(len(self.variables)):
            other = self.chosen(i)
            if ("routine" in other or "expansion" in other) and name in other["nodes"] and i != variable:
                return i
        return variable

    def restricted(self, allowed: Mapping[int, Sequence[int]]) -> Alternative | None:
        """Compile with fewer choices for some variables; None where none is left."""
        costs = [np.array(c, dtype=np.float64) for c in self.arrays.costs]
        for variable, choices in allowed.items():
            forbidden = np.ones(len(costs[variable]), dtype=bool)
            forbidden[list(choices)] = False
            costs[variable][forbidden] = math.inf
        base = self.arrays
        try:
            solution = solve(Problem(costs, dict(base.edges), base.resources))
        except InfeasibleError:
            return None
        choice = [int(c) for c in solution.choice]
        native = self.problem.lower(choice, float(solution.total), self.module.threads)
        return Alternative(native, choice, float(solution.total) - float(base.evaluate(self.choice)))

    def tapped(self, names: Sequence[str]) -> _native.Module:
        """Compile with values as outputs, so that no group hides them."""
        graph = read_model(self.model, shapes=self.shapes)[0]
        values = {v.name: v for node in graph.nodes for v in node.outputs if v is not None}
        present = {v.name for v in graph.outputs}
        graph.outputs = [*graph.outputs, *(values[n] for n in names if n in values and n not in present)]
        target = self.module.target
        problem = _native.build_problem(_native.run_passes(graph, target=target), target, self.module.threads)
        solution = solve(selection_arrays(problem, self.accuracy))
        return problem.lower([int(c) for c in solution.choice], float(solution.total), self.module.threads)
