"""Where a choice stands among all others."""

import math

import numpy as np
from neo.select import Problem, Resource, greedy, optimality, solve

from tests.select.generators import brute_force, random_problem, residual


def test_the_bound_is_the_best_total():
    for seed in range(60):
        problem = random_problem(np.random.default_rng([seed, 21]), variables=5)
        best, _ = brute_force(problem)
        found = optimality(problem, [0] * 5)
        if math.isinf(best):
            assert found is None
            continue
        assert found is not None
        assert found.total == problem.evaluate([0] * 5)
        assert abs(found.lower_bound - best) < 1e-9
        assert min(found.others.values()) >= best - 1e-9


def test_limits_are_not_looked_at():
    problem = Problem([[1.0, 2.0]], {}, [Resource("bytes", 0.0, [[1, 0]])])
    found = optimality(problem, solve(problem).choice)
    assert found is not None
    assert (found.total, found.lower_bound) == (2.0, 1.0)


def test_a_choice_of_another_problem_has_none():
    assert optimality(Problem([[0.0]]), [0, 0]) is None


def test_greedy_is_allowed_where_groups_tie_nodes():
    problem = residual(6).problem()
    assert problem.evaluate(greedy(problem)) < math.inf
