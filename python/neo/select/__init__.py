"""The selection problem as arrays, and its solvers.

Nothing here knows an op, a layout, a dtype or a device.
"""

from neo.select.greedy import cheapest, greedy, improve, pbqp
from neo.select.problem import InfeasibleError, Problem, Resource
from neo.select.solver import Solution, solve

__all__ = ["InfeasibleError", "Problem", "Resource", "Solution", "cheapest", "greedy", "improve", "pbqp", "solve"]
