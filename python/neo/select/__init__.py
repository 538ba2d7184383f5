"""The selection problem as arrays, and its solvers.

Nothing here knows an op, a layout, a dtype or a device.
"""

from neo.select.certificate import Certificate
from neo.select.greedy import cheapest, greedy, improve, pbqp
from neo.select.problem import Flat, InfeasibleError, Problem, Resource
from neo.select.solver import Solution, solve

__all__ = [
    "Certificate",
    "Flat",
    "InfeasibleError",
    "Problem",
    "Resource",
    "Solution",
    "cheapest",
    "greedy",
    "improve",
    "pbqp",
    "solve",
]
