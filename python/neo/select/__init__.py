"""The selection problem as arrays, and its solvers.

Nothing here knows an op, a layout, a dtype or a device.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neo.select.problem import Flat, InfeasibleError, Problem, Resource
from neo.select.shared import share_forms
from neo.select.solver import Solution, solve

if TYPE_CHECKING:
    from neo.select.certificate import Certificate
    from neo.select.chain_parts import chain, is_chain
    from neo.select.dprs_sweep import dprs
    from neo.select.greedy_choice import cheapest, greedy, improve
    from neo.select.methods import METHODS
    from neo.select.optimality_report import OptimalityReport, optimality
    from neo.select.pbqp_heuristic import pbqp
    from neo.select.uniform_group import uniform

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

_MODULES = {
    "certificate": ("Certificate",),
    "chain_parts": ("chain", "is_chain"),
    "dprs_sweep": ("dprs",),
    "greedy_choice": ("cheapest", "greedy", "improve"),
    "methods": ("METHODS",),
    "optimality_report": ("OptimalityReport", "optimality"),
    "pbqp_heuristic": ("pbqp",),
    "uniform_group": ("uniform",),
}


def __getattr__(name: str) -> Any:
    """Import what a compile does not need when it is first used."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"neo.select.{module}"), name)
    msg = f"module 'neo.select' has no attribute {name!r}"
    raise AttributeError(msg)
