"""Placement by a list in two passes, against brute force."""

import itertools
import math

import numpy as np
import pytest
from neo.select import InfeasibleError, Problem, optimality, solve
from neo.select.two_pass import tagged

from tests.select.generators import brute_force, random_problem

CPU, DEVICE = 1, 2


def placed_problem(seed, *, forbidden):
    """Nodes whose choices run on the CPU, the device or either; two variables behind them are none."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, variables=6)
    places = [[int(p) for p in rng.choice([CPU, CPU, DEVICE, 0], n)] for n in problem.sizes[:4]]
    for choices in places:
        choices[int(rng.integers(len(choices)))] = CPU
    costs, edges = problem.costs, problem.edges
    if not forbidden:
        costs = [np.where(np.isinf(c), 9.0, c) for c in costs]
        edges = {e: np.where(np.isinf(m), 9.0, m) for e, m in edges.items()}
    return Problem(costs, edges, places=places)


def on_the_list(problem, choice):
    """Whether nodes are on the device exactly where they can be."""
    for places, i in zip(problem.places, choice, strict=False):
        wanted = DEVICE if DEVICE in places else CPU
        if not (places[i] & wanted or (places[i] == 0 and wanted == CPU)):
            return False
    return True


def test_the_best_of_what_the_list_leaves():
    worse = 0
    for seed in range(50):
        problem = placed_problem(seed, forbidden=False)
        if problem.places is None:
            continue
        allowed = [c for c in itertools.product(*map(range, problem.sizes)) if on_the_list(problem, c)]
        best = min(problem.evaluate(c) for c in allowed)
        found = solve(problem, method="two-pass")
        assert on_the_list(problem, found.choice)
        assert found.total == pytest.approx(best)
        worse += found.total > solve(problem).total + 1e-9
    assert worse > 8


def test_what_is_forbidden_takes_the_tag_away():
    found = 0
    for seed in range(50):
        problem = placed_problem([seed, 1], forbidden=True)
        best, _ = brute_force(problem)
        if problem.places is None or math.isinf(best):
            continue
        allowed = tagged(problem)
        assert all(mask.any() for mask in allowed)
        try:
            total = solve(problem, method="two-pass").total
        except InfeasibleError:
            continue
        found += 1
        assert total >= best - 1e-9
    assert found > 15


def test_a_node_whose_neighbour_cannot_follow_stays_on_the_cpu():
    far = np.array([[0.0, math.inf], [math.inf, 0.0]])
    problem = Problem([[1.0, 5.0], [1.0, math.inf]], {(0, 1): far}, places=[[CPU, DEVICE], [CPU, CPU]])
    assert solve(problem, method="two-pass").choice == [0, 0]


def test_a_list_says_what_may_be_on_the_device():
    problem = Problem([[2.0, 1.0], [2.0, 1.0]], places=[[CPU, DEVICE], [CPU, DEVICE]])
    assert [list(mask) for mask in tagged(problem, [True, False])] == [[False, True], [True, False]]


def test_without_devices_everything_is_left():
    for seed in range(40):
        problem = random_problem(np.random.default_rng([seed, 2]), variables=5)
        best, _ = brute_force(problem)
        if math.isfinite(best):
            assert solve(problem, method="two-pass").total == pytest.approx(best)
            assert "two-pass" not in optimality(problem, solve(problem).choice).others


def test_it_stands_beside_the_others_where_there_are_devices():
    copies = np.array([[0.0, 3.0], [3.0, 3.0]])
    problem = Problem([[1.0, 2.0], [1.0, 2.0]], {(0, 1): copies}, places=[[CPU, DEVICE], [CPU, CPU]])
    stands = optimality(problem, [0, 0])
    assert stands.total == 2.0
    assert stands.others["two-pass"] == 6.0
