"""Tuning by measuring: candidates are timed on this machine, and their times kept in a database."""

from neo.tune.budget import Budget, parse_budget
from neo.tune.choose import Chosen, choose
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
]
