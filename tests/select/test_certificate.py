"""Bounds are proven to a checker that shares no code with the solver, and wrong proofs are refused."""

import dataclasses
import math

import numpy as np
import pytest
from neo.select import InfeasibleError, Problem, solve

from tests.select.certificate import InvalidCertificateError, check
from tests.select.generators import NETWORKS, brute_force, grid, inception, random_problem, residual
from tests.select.test_solver import DISTINCT, FORCED


def check_generated(seeds, work=None, **options):
    searched = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 5])
        problem = random_problem(rng, **options)
        try:
            solution = solve(problem, certify=True, work=work)
        except InfeasibleError:
            continue
        assert solution.certificate.bound == pytest.approx(solution.lower_bound)
        check(problem, solution.certificate)
        searched += solution.certificate.search is not None
        above = solution.total + 1e-6 * max(1.0, abs(solution.total))
        with pytest.raises(InvalidCertificateError):
            check(problem, dataclasses.replace(solution.certificate, bound=above))
    return searched


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("resources", [0, 1, 2])
def test_bounds_of_generated_problems_are_proven(resources, integer):
    searched = check_generated(range(100), resources=resources, integer=integer, variables=6)
    assert (searched > 0) == (resources > 0)


@pytest.mark.parametrize("resources", [0, 1, 2])
def test_bounds_of_searches_are_proven(resources):
    options = {"variables": 7, "density": 0.9, "integer": False}
    assert check_generated(range(60), FORCED, resources=resources, **options) > 0


def test_bounds_by_tables_of_distinct_rows_are_proven():
    options = {"variables": 7, "density": 0.9, "resources": 0}
    assert check_generated(range(60), DISTINCT, **options) == 0, "no search is left"


@pytest.mark.parametrize("name", NETWORKS)
def test_bounds_of_networks_are_proven(name):
    problem = NETWORKS[name]().problem()
    solution = solve(problem, certify=True)
    assert solution.proven
    assert solution.certificate.search is None
    check(problem, solution.certificate)
    with pytest.raises(InvalidCertificateError, match="bound is proven"):
        check(problem, dataclasses.replace(solution.certificate, bound=solution.total * (1 + 1e-6)))


def test_a_limit_s_bound_is_proven():
    problem = residual(4).problem(limits={"packed_bytes": 0.4})
    solution = solve(problem, certify=True)
    assert solution.certificate.limits == ("packed_bytes",)
    assert solution.certificate.search is not None
    check(problem, solution.certificate)


def test_a_limit_that_does_not_bind_is_not_used():
    problem = residual(4).problem(limits={"packed_bytes": 0.999})
    solution = solve(problem, certify=True)
    assert solution.certificate.limits == ()
    check(problem, solution.certificate)


def test_a_bound_that_is_not_the_optimum_is_proven():
    problem = grid(9, 9, 6)
    solution = solve(problem, certify=True, work={"last_width": 64, "largest": 256, "small": 256, "table": 256})
    assert not solution.proven
    check(problem, solution.certificate)
    with pytest.raises(InvalidCertificateError):
        check(problem, dataclasses.replace(solution.certificate, bound=solution.total * 1.001))


def test_a_certificate_is_small_and_only_made_on_demand():
    problem = inception().problem()
    assert solve(problem).certificate is None
    choices = sum(problem.sizes)
    assert solve(problem, certify=True).certificate.numbers < 10 * choices


def test_wrong_steps_are_refused():
    problem = inception(2).problem()
    good = solve(problem, certify=True).certificate
    refused = 0
    for place in range(0, len(good.steps), 5):
        steps = good.steps.copy()
        steps[place] += 1
        try:
            check(problem, dataclasses.replace(good, steps=steps))
        except (InvalidCertificateError, IndexError, KeyError):
            refused += 1
    # The unused fields of a step may be anything, and another order of elimination is a proof too.
    assert refused > len(range(0, len(good.steps), 5)) / 3
    with pytest.raises(InvalidCertificateError):
        check(problem, dataclasses.replace(good, steps=good.steps[:-4]))


def test_wrong_prices_and_shares_are_refused():
    problem = residual(3).problem(limits={"packed_bytes": 0.4})
    certificate = solve(problem, certify=True).certificate
    relaxations = [
        dataclasses.replace(r, prices={n: -p for n, p in r.prices.items()}) for r in certificate.search.relaxations
    ]
    wrong = dataclasses.replace(certificate.search, relaxations=relaxations)
    with pytest.raises(InvalidCertificateError, match="price"):
        check(problem, dataclasses.replace(certificate, search=wrong))


def test_the_checker_agrees_with_brute_force():
    # It refuses any bound above the optimum, whatever the steps.
    problem = Problem([[1.0, 3.0], [2.0, 1.0]], {(0, 1): [[5.0, 9.0], [4.0, 0.0]]})
    best, _ = brute_force(problem)
    good = solve(problem, certify=True).certificate
    assert good.bound == best
    check(problem, good)
    for bound in (best + 0.1, math.inf):
        with pytest.raises(InvalidCertificateError):
            check(problem, dataclasses.replace(good, bound=bound))
