"""What ``tune=`` may be."""

import math

import neo
import pytest
from neo.tune import parse_budget


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(False, None), (True, math.inf), ("60s", 60), ("1.5 s", 1.5), ("250ms", 0.25), ("2m", 120), ("1min", 60)],
)
def test_a_budget_is_a_bool_or_a_time(given, seconds):
    assert parse_budget(given) == seconds


@pytest.mark.parametrize("given", [None, 60, 1, "60", "fast", "-1s", "0s", "", b"60s", "1s 2s"])
def test_anything_else_is_an_error(given, model):
    with pytest.raises(neo.ModelError, match=r"^\[compile\] tune must be a bool or a time\. Got .*, expected True"):
        neo.compile(model, tune=given)


def test_a_database_is_a_path(model):
    with pytest.raises(neo.DTypeError, match=r"^\[compile\] database must be a path\. Got int"):
        neo.compile(model, database=3)
