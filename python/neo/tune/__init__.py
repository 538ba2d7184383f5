"""Tuning by measuring: candidates are timed on this machine, and their times kept in a database."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo.budget import Budget, parse_budget
    from neo.tune.choose import Chosen, choose, tune_selection
    from neo.tune.database import Database, Hint, Record, Row, Verdict, default_path
    from neo.tune.machine import Context
    from neo.tune.measure import Tuning, tune_problem
    from neo.tune.sweep import Sweep

__all__ = [
    "Budget",
    "Chosen",
    "Context",
    "Database",
    "Hint",
    "Record",
    "Row",
    "Sweep",
    "Tuning",
    "Verdict",
    "choose",
    "default_path",
    "parse_budget",
    "tune_problem",
    "tune_selection",
]

_MODULES = {
    "neo.budget": ("Budget", "parse_budget"),
    "neo.tune.choose": ("Chosen", "choose", "tune_selection"),
    "neo.tune.database": ("Database", "Hint", "Record", "Row", "Verdict", "default_path"),
    "neo.tune.machine": ("Context",),
    "neo.tune.measure": ("Tuning", "tune_problem"),
    "neo.tune.sweep": ("Sweep",),
}


def __getattr__(name: str) -> Any:
    """Import what a compile without tuning does not need when it is first used."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    msg = f"module 'neo.tune' has no attribute {name!r}"
    raise AttributeError(msg)
