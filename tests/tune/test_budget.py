"""What ``tune=`` may be."""

import math

import neo
import pytest
from neo.tune import Budget, parse_budget


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(True, 50), ("60s", 60), ("1.5 s", 1.5), ("250ms", 0.25), ("2m", 120), ("1min", 60)],
)
def test_a_budget_is_a_bool_or_a_time(given, seconds):
    assert parse_budget(given) == Budget(seconds, math.inf)


@pytest.mark.parametrize("trials", [1, 500])
def test_or_a_number_of_trials(trials):
    assert parse_budget(trials) == Budget(math.inf, trials)


def test_false_is_none():
    assert parse_budget(False) is None


@pytest.mark.parametrize("given", [None, 0, -1, 2.5, "60", "fast", "-1s", "0s", "", b"60s", "1s 2s"])
def test_anything_else_is_an_error(given, model):
    with pytest.raises(
        neo.ModelError, match=r"^\[compile\] tune must be a bool, a time or a number of trials\. Got .*, expected True"
    ):
        neo.compile(model, tune=given)


def test_a_database_is_a_path(model):
    with pytest.raises(neo.DTypeError, match=r"^\[compile\] database must be a path\. Got int"):
        neo.compile(model, database=3)
