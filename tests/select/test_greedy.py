import math

import numpy as np
import pytest
from neo.select import Problem, cheapest, greedy, improve, pbqp, solve

from tests.select.generators import chain, random_problem


def test_cheapest_ignores_edges():
    assert cheapest(Problem([[1.0, 2.0], [3.0, 0.0]], {(0, 1): [[0, math.inf], [0, 0]]})) == [0, 1]


def test_greedy_looks_at_decided_and_undecided_neighbours():
    problem = Problem([[1.0, 2.0], [3.0, 0.0]], {(0, 1): [[0, math.inf], [0, 0]]})
    assert greedy(problem) == [1, 1]


@pytest.mark.parametrize("seed", range(10))
def test_pbqp_is_exact_where_two_neighbours_at_most_are_left(seed):
    problem = chain(20, seed=seed).problem()
    assert problem.evaluate(pbqp(problem)) == pytest.approx(solve(problem).total)


@pytest.mark.parametrize("method", [cheapest, greedy, pbqp])
@pytest.mark.parametrize("seed", range(20))
def test_improve_never_makes_worse(method, seed):
    problem = random_problem(np.random.default_rng(seed), variables=8, density=0.5)
    start = method(problem)
    assert len(start) == 8
    better = improve(problem, start)
    assert problem.evaluate(better) <= problem.evaluate(start)


def test_improve_changes_two_at_once():
    # Either change alone is forbidden.
    problem = Problem([[1.0, 0.0], [1.0, 0.0]], {(0, 1): [[0, math.inf], [math.inf, 0]]})
    assert improve(problem, [0, 0]) == [1, 1]


def test_no_variables():
    problem = Problem([])
    for method in (cheapest, greedy, pbqp):
        assert method(problem) == []
    assert improve(problem, []) == []
