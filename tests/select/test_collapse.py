"""Reductions and exact elimination: what they leave has the same optimum."""

import itertools
import math

import numpy as np
import pytest
from neo.select import InfeasibleError, Problem, Resource, collapse
from neo.select.bound import value_of

from tests.select.generators import brute_force, grid, random_problem

INF = math.inf


def best_by_core(problem):
    """The least total within the limits over all choices of what a collapse leaves."""
    try:
        left = collapse.Collapse(problem, limited=True)
    except InfeasibleError:
        return INF
    core = left.core()
    assert np.prod(core.sizes) <= np.prod(problem.sizes)
    found = INF
    for choice in itertools.product(*(range(n) for n in core.sizes)):
        value = value_of(core.costs, choice) + left.constant
        if math.isinf(value):
            continue
        whole = left.complete(choice)
        assert whole is not None
        assert value == pytest.approx(problem.evaluate(whole))
        within = all(
            value_of(parts, choice) <= limit + 1e-9 for parts, limit in zip(core.usage, core.limits, strict=True)
        )
        assert problem.is_feasible(whole) == within
        if within:
            found = min(found, value)
    return found


@pytest.mark.parametrize("resources", [0, 1, 2])
@pytest.mark.parametrize("largest", [1 << 22, 16, 0])
def test_the_core_keeps_an_optimum(resources, largest, monkeypatch):
    monkeypatch.setattr(collapse, "LARGEST", largest)
    monkeypatch.setattr(collapse, "TABLE_LIMIT", largest)
    for seed in range(120):
        rng = np.random.default_rng([seed, resources])
        problem = random_problem(rng, variables=5, resources=resources, integer=bool(seed % 2))
        best, _ = brute_force(problem)
        assert best_by_core(problem) == pytest.approx(best)


def test_reductions_solve_what_needs_no_search():
    # Dominated choices, a tie, a variable decided by another: nothing is left to eliminate.
    tie = np.where(np.eye(2) > 0, 0.0, INF)
    costs = [[0.0, 1.0], [0.0, 1.0], [5.0, 6.0]]
    left = collapse.Collapse(Problem(costs, {(0, 1): tie, (1, 2): [[1.0, 1.0], [1.0, 1.0]]}), limited=False)
    assert left.solved
    assert not left.eliminated
    assert left.constant == 6.0
    assert left.complete([]) == [0, 0, 0]


def test_a_choice_that_uses_less_is_not_dominated():
    # The dearer choice stays as long as it may be needed to meet the limit.
    problem = Problem([[0.0, 1.0], [0.0, 1.0]], {}, [Resource("bytes", 6.0, [[5, 2], [4, 1]])])
    assert collapse.Collapse(problem, limited=False).solved
    left = collapse.Collapse(problem, limited=True)
    assert not left.solved
    assert left.core().sizes == [2, 2]


def test_a_limit_that_nothing_exceeds_is_forgotten():
    problem = Problem([[0.0, 1.0]], {}, [Resource("bytes", 9.0, [[5, 2]])])
    left = collapse.Collapse(problem, limited=True)
    assert left.solved
    assert left.resources == []


def test_tables_stay_within_the_limit(monkeypatch):
    monkeypatch.setattr(collapse, "LARGEST", 200)
    monkeypatch.setattr(collapse, "TABLE_LIMIT", 200)
    left = collapse.Collapse(grid(6, 6, 5), limited=False)
    assert left.eliminated
    assert not left.solved
    assert max(table.size for _, table in left.core().costs) <= 200


def test_elimination_takes_the_first_of_equals():
    # Ties are broken by index, so the same problem gives the same choice.
    flat = Problem([[1.0, 1.0, 1.0]] * 4, {(v, v + 1): np.zeros((3, 3)) for v in range(3)})
    assert collapse.Collapse(flat, limited=False).complete([]) == [0, 0, 0, 0]
