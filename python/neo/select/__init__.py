"""The selection problem as arrays, and its solvers.

Nothing here knows an op, a layout, a dtype or a device.
"""

from neo.select.certificate import Certificate
from neo.select.chain import chain, is_chain
from neo.select.dprs import dprs
from neo.select.greedy import cheapest, greedy, improve
from neo.select.optimality import OptimalityReport, optimality
from neo.select.pbqp import pbqp
from neo.select.problem import Flat, InfeasibleError, Problem, Resource
from neo.select.shared import share_forms
from neo.select.solver import METHODS, Solution, solve
from neo.select.uniform import uniform

__all__ = [
    "METHODS",
    "Certificate",
    "Flat",
    "InfeasibleError",
    "OptimalityReport",
    "Problem",
    "Resource",
    "Solution",
    "chain",
    "cheapest",
    "dprs",
    "greedy",
    "improve",
    "is_chain",
    "optimality",
    "pbqp",
    "share_forms",
    "solve",
    "uniform",
]
