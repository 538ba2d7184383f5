"""The other solvers against brute force, the default one, and each other."""

import itertools
import math

import numpy as np
import pytest
from neo.errors import ModelError
from neo.select import METHODS, InfeasibleError, Problem, Resource, chain, dprs, is_chain, pbqp, solve, uniform

from tests.select.generators import NETWORKS, brute_force, grid, inception, random_problem
from tests.select.generators import chain as chain_network

INF = math.inf


def random_chain(rng, length=6):
    problem = random_problem(rng, variables=length, density=0.0, integer=bool(rng.integers(2)))
    order = rng.permutation(length)
    edges = {}
    for u, v in itertools.pairwise(order):
        if rng.random() < 0.85:
            matrix = rng.integers(0, 7, (problem.sizes[u], problem.sizes[v])).astype(float)
            matrix[rng.random(matrix.shape) < 0.15] = INF
            edges[int(u), int(v)] = matrix
    return Problem(problem.costs, [(u, v, m) for (u, v), m in edges.items()])


def test_chains_against_brute_force():
    for seed in range(150):
        problem = random_chain(np.random.default_rng(seed))
        assert is_chain(problem)
        best, _ = brute_force(problem)
        assert problem.evaluate(chain(problem)) == pytest.approx(best)


def test_a_chain_has_no_branch_and_no_cycle():
    pair = np.zeros((2, 2))
    star = Problem([[0.0, 1.0]] * 4, {(0, 1): pair, (0, 2): pair, (0, 3): pair})
    ring = Problem([[0.0, 1.0]] * 3, {(0, 1): pair, (1, 2): pair, (0, 2): pair})
    for problem in (star, ring):
        assert not is_chain(problem)
        with pytest.raises(ModelError, match="path"):
            chain(problem)


def test_dprs_against_brute_force():
    for seed in range(500):
        rng = np.random.default_rng([seed, 9])
        problem = random_problem(rng, variables=int(rng.integers(0, 7)), integer=bool(seed % 2))
        best, _ = brute_force(problem)
        choice, exact = dprs(problem)
        assert exact
        assert (INF if choice is None else problem.evaluate(choice)) == pytest.approx(best)


def test_dprs_with_few_states_is_allowed_and_no_better_than_the_best():
    worse = 0
    for seed in range(60):
        problem = random_problem(np.random.default_rng([seed, 10]), variables=6, density=0.6, integer=False)
        best, _ = brute_force(problem)
        choice, exact = dprs(problem, states=2)
        if choice is not None:
            assert problem.evaluate(choice) >= best - 1e-9
            worse += problem.evaluate(choice) > best + 1e-9
            assert not exact or problem.evaluate(choice) == pytest.approx(best)
        elif exact:
            assert best == INF
    assert worse > 0


def test_pbqp_is_exact_where_no_variable_has_more_than_two_neighbours():
    for seed in range(150):
        problem = random_chain(np.random.default_rng([seed, 1]), length=6)
        ends = [(0, 5)] if (0, 5) not in problem.edges else []
        rng = np.random.default_rng(seed)
        around = [sum(v in e for e in problem.edges) for v in range(6)]
        extra = {e: rng.random((problem.sizes[0], problem.sizes[5])) for e in ends if around[0] < 2 and around[5] < 2}
        problem = Problem(problem.costs, dict(problem.edges) | extra)
        best, _ = brute_force(problem)
        assert problem.evaluate(pbqp(problem)) == pytest.approx(best)


def test_branch_and_bound_alone_against_brute_force():
    for seed in range(150):
        problem = random_problem(np.random.default_rng([seed, 11]), variables=6, integer=bool(seed % 2))
        best, _ = brute_force(problem)
        try:
            solution = solve(problem, method="branch and bound")
        except InfeasibleError:
            assert best == INF
            continue
        assert solution.proven
        assert solution.total == pytest.approx(best)


@pytest.mark.parametrize("name", NETWORKS)
def test_methods_agree_on_networks(name):
    problem = NETWORKS[name]().problem()
    best = solve(problem)
    for method in METHODS:
        if method == "chain" and not is_chain(problem):
            continue
        solution = solve(problem, method=method)
        assert solution.method == method
        assert solution.total >= best.total * (1 - 1e-9)
        assert solution.lower_bound <= best.total * (1 + 1e-9)
        if solution.proven:
            assert solution.total == pytest.approx(best.total)
    # A sweep of one order has more open at once than a tree has on these.
    assert solve(problem, method="dprs").proven == (name not in ("inception", "detector"))


def test_a_method_is_known_and_has_no_limits():
    problem = Problem([[0.0, 1.0]])
    with pytest.raises(ModelError, match="expected one of cheapest"):
        solve(problem, method="best")
    with pytest.raises(ModelError, match="certificates"):
        solve(problem, method="greedy", certify=True)
    limited = Problem([[0.0, 1.0]], {}, [Resource("bytes", 0.0, [[1, 0]])])
    with pytest.raises(ModelError, match="limits"):
        solve(limited, method="greedy")


def test_one_group_for_all():
    # In group "b" everything is cheaper, but variable 2 has no choice of it; changing groups costs.
    differ = np.array([[0.0, 9.0], [9.0, 0.0]])
    problem = Problem([[5.0, 2.0], [5.0, 2.0], [1.0]], {(0, 1): differ})
    group, solution = uniform(problem, [["a", "b"], ["a", "b"], ["a"]])
    assert (group, solution.choice, solution.total) == ("a", [0, 0, 0], 11.0)
    group, solution = uniform(problem, [["a", "b"], ["a", "b"], ["a"]], ["a", "b"])
    assert (group, solution.choice, solution.total) == ("b", [1, 1, 0], 5.0)
    # A choice without a group is in each.
    group, solution = uniform(problem, [["a", None], ["a", "b"], [None]], ["a", "b"])
    assert (group, solution.total) == ("b", 5.0)


def test_one_group_is_never_better_than_all():
    for seed in range(100):
        rng = np.random.default_rng([seed, 12])
        problem = random_problem(rng, variables=5)
        groups = [[int(g) for g in rng.integers(0, 3, n)] for n in problem.sizes]
        best, _ = brute_force(problem)
        try:
            _, solution = uniform(problem, groups)
        except InfeasibleError:
            continue
        assert solution.total >= best - 1e-9


@pytest.mark.parametrize("network", [chain_network, inception])
def test_work_grows_with_the_problem_not_its_square(network):
    # Cells that elimination touches, not time.
    small = {"length": 150} if network is chain_network else {"modules": 10}
    large = {k: 8 * n for k, n in small.items()}
    first, second = (solve(network(**size).problem(), certify=True) for size in (small, large))
    assert first.proven
    assert second.proven
    assert second.certificate.numbers < 10 * first.certificate.numbers


def test_a_thousand_variables_around_one():
    # A star: what is shared by many readers must not be joined.
    rng = np.random.default_rng(3)
    costs = [rng.random(4) for _ in range(1500)]
    problem = Problem(costs, {(0, v): rng.random((4, 4)) for v in range(1, 1500)})
    solution = solve(problem)
    best = min(costs[0][i] + sum((costs[v] + problem.edges[0, v][i]).min() for v in range(1, 1500)) for i in range(4))
    assert solution.total == pytest.approx(best)


@pytest.mark.parametrize("make", [lambda: inception().problem(), lambda: grid(8, 8, 5)])
def test_every_method_gives_the_same_choice_again(make):
    for method in [None, *METHODS]:
        if method == "chain":
            continue
        choices = {tuple(solve(make(), method=method).choice) for _ in range(2)}
        assert len(choices) == 1
