"""Every solver against brute force, on small problems; the parts that only large problems reach are forced here."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neo.errors import Error, ModelError
from neo.select import InfeasibleError, Problem, Resource, Solution, solve

from tests.select.generators import brute_force, inception, random_problem

INF = math.inf


# Tables and levels so small that buckets must be split, and a search must widen.
FORCED = {"enough": 0, "most": 0, "distinct_most": 0, "largest": 12, "small": 10, "table": 10, "first_width": 2}


# Tables of any size have one row for all choices that they do not tell apart.
DISTINCT = {"enough": 0, "most": 0, "distinct": 0}


@pytest.fixture(params=["as it is", "forced search", "distinct rows"])
def solve_both(request):
    """`solve`, where it has to search, and where it looks for equal rows."""
    work = {"as it is": None, "forced search": FORCED, "distinct rows": DISTINCT}[request.param]
    return functools.partial(solve, work=work)


def check(problem: Problem, solution: Solution, best: float) -> None:
    assert problem.is_feasible(solution.choice)
    assert solution.total == problem.evaluate(solution.choice)
    rounding = 1e-9 * max(1.0, abs(best))
    assert solution.lower_bound <= best + rounding
    assert best <= solution.total + rounding
    assert solution.proven
    assert solution.total == solution.lower_bound
    assert solution.total <= best + rounding


def check_against_brute_force(problem: Problem, solve=solve) -> None:
    best, least = brute_force(problem)
    error = None
    try:
        solution = solve(problem)
    except InfeasibleError as caught:
        error = caught
    if error is None:
        check(problem, solution, best)
        return
    assert best == INF
    beyond = {r.name: r.limit for r in problem.resources if INF > least[r.name] > r.limit + 1e-9}
    if not beyond:
        assert error.resource is None
        return
    assert error.limit == beyond[error.resource]
    # A bound where the search for it could not end.
    assert error.limit < error.smallest <= least[error.resource] + 1e-9
    if "or more" not in str(error):
        assert error.smallest == pytest.approx(least[error.resource])


@pytest.mark.parametrize("resources", [0, 1, 2, 3])
@pytest.mark.parametrize("integer", [True, False])
def test_generated_problems(solve_both, resources, integer):
    for seed in range(150):
        rng = np.random.default_rng([seed, resources, integer])
        check_against_brute_force(
            random_problem(rng, variables=int(rng.integers(0, 7)), resources=resources, integer=integer), solve_both
        )


def test_dense_problems_are_searched(solve_both):
    for seed in range(60):
        rng = np.random.default_rng([seed, 77])
        check_against_brute_force(random_problem(rng, variables=6, choices=5, density=1.0, integer=False), solve_both)


numbers = st.integers(-5, 9) | st.just(INF)


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 3), max_size=5))
    costs = [draw(st.lists(numbers, min_size=n, max_size=n)) for n in sizes]
    edges = {}
    for u in range(len(sizes)):
        for v in range(u + 1, len(sizes)):
            if draw(st.booleans()):
                flat = draw(st.lists(numbers, min_size=sizes[u] * sizes[v], max_size=sizes[u] * sizes[v]))
                edges[u, v] = np.reshape(np.array(flat, dtype=float), (sizes[u], sizes[v]))
    resources = []
    for k in range(draw(st.integers(0, 2))):
        vectors = [draw(st.lists(st.integers(-3, 5), min_size=n, max_size=n)) for n in sizes]
        resources.append(Resource(f"r{k}", draw(st.integers(-5, 12)), vectors))
    return Problem(costs, edges, resources)


@settings(max_examples=300, deadline=None)
@given(problems())
def test_any_problem(problem):
    check_against_brute_force(problem)


def test_no_variables():
    solution = solve(Problem([]))
    assert (solution.choice, solution.total, solution.proven) == ([], 0.0, True)


def test_one_variable():
    solution = solve(Problem([[3.0, 1.0, INF]]))
    assert (solution.choice, solution.total, solution.lower_bound, solution.proven) == ([1], 1.0, 1.0, True)


def test_parts_that_do_not_touch():
    pair = np.array([[0.0, 5.0], [5.0, 1.0]])
    problem = Problem([[0.0, 0.0]] * 6, {(0, 3): pair, (1, 4): pair[::-1]})
    solution = solve(problem)
    assert solution.total == 0.0
    check(problem, solution, 0.0)


def test_negative_costs(solve_both):
    problem = Problem([[-1.0, 2.0], [0.0, -5.0]], {(0, 1): [[0.0, 3.0], [0.0, -4.0]]})
    check(problem, solve_both(problem), -7.0)


def test_a_conversion_that_two_readers_share_is_paid_once(solve_both):
    # A producer in layout a; two readers, each 10 slower in a than in b; converting costs 15.
    costs = [[0.0], [10.0, 0.0], [10.0, 0.0], [0.0, 15.0]]
    wants_b = [[0.0, 0.0], [INF, 0.0]]
    problem = Problem(costs, {(1, 3): wants_b, (2, 3): wants_b})
    solution = solve_both(problem)
    assert solution.choice == [0, 1, 1, 1]
    check(problem, solution, 15.0)
    # Paid per edge it would not be worth it.
    apart = Problem([[0.0], [10.0, 15.0], [10.0, 15.0]])
    assert solve_both(apart).total == 20.0


def test_groups_that_overlap_compete(solve_both):
    # Two convolutions, an add. Choices of a convolution: alone, absorbed. Of the add: alone, with the first, with the
    # second. The second is dearer to keep apart.
    costs = [[10.0, 0.0], [14.0, 0.0], [5.0, 11.0, 12.0]]
    first = [[0.0, INF, 0.0], [INF, 0.0, INF]]
    second = [[0.0, 0.0, INF], [INF, INF, 0.0]]
    problem = Problem(costs, {(0, 2): first, (1, 2): second})
    solution = solve_both(problem)
    assert solution.choice == [0, 1, 2]
    check(problem, solution, 22.0)


def test_ties_force_agreement(solve_both):
    tie = np.where(np.eye(3) > 0, 0.0, INF)
    problem = Problem([[0, 1, 5], [5, 1, 0], [5, 1, 5]], {(0, 1): tie, (1, 2): tie})
    solution = solve_both(problem)
    assert solution.choice == [1, 1, 1]
    check(problem, solution, 3.0)


def test_forbidden_pairs_that_leave_nothing(solve_both):
    # Two choices each and three variables that must all differ.
    differ = np.where(np.eye(2) > 0, INF, 0.0)
    with pytest.raises(InfeasibleError, match=r"pairs that leave none|none left of its 2") as caught:
        solve_both(Problem([[0.0, 0.0]] * 3, {(0, 1): differ, (0, 2): differ, (1, 2): differ}))
    assert caught.value.resource is None
    assert isinstance(caught.value, ModelError)
    assert isinstance(caught.value, Error)


def test_a_variable_without_an_allowed_choice_is_named():
    with pytest.raises(InfeasibleError, match="at variable 1"):
        solve(Problem([[0.0], [INF, INF]]))


def test_a_limit_that_cannot_be_met_is_explained(solve_both):
    problem = Problem(
        [[1.0, 2.0, 0.0], [1.0, 2.0]],
        {(0, 1): [[0.0, 0.0], [INF, 0.0], [0.0, 0.0]]},
        [
            Resource("workspace_bytes", 100.0, [[9, 8, 7], [0, 0]]),
            Resource("packed_bytes", 10.0, [[7, 3, 9], [6, 9]]),
        ],
    )
    with pytest.raises(InfeasibleError) as caught:
        solve_both(problem)
    error = caught.value
    assert (error.resource, error.limit, error.smallest) == ("packed_bytes", 10.0, 12.0)
    assert str(error).splitlines() == [
        "[select] the limit on packed_bytes must be reachable. Got 10, the smallest reachable value is 12",
        "Hint: raise the limit to 12.",
    ]
    reachable = Problem(problem.costs, problem.edges, [Resource("packed_bytes", 12.0, [[7, 3, 9], [6, 9]])])
    assert solve_both(reachable).choice == [1, 1]


def test_limits_that_exclude_each_other_are_named(solve_both):
    problem = Problem([[0.0, 0.0]], {}, [Resource("packed_bytes", 1, [[0, 2]]), Resource("error", 1, [[2, 0]])])
    with pytest.raises(InfeasibleError, match="packed_bytes <= 1, error <= 1") as caught:
        solve_both(problem)
    assert caught.value.resource is None


def test_a_limit_of_zero_forbids_what_uses_anything(solve_both):
    # accuracy="strict": only choices without added error.
    rng = np.random.default_rng(0)
    costs = [rng.random(4) for _ in range(12)]
    error = [np.array([0.0, 1e-7, 0.0, 1.0])] * 12
    edges = {(i, i + 1): rng.random((4, 4)) for i in range(11)}
    strict = solve_both(Problem(costs, edges, [Resource("error", 0.0, error)]))
    assert set(strict.choice) <= {0, 2}
    masked = solve_both(Problem([np.where(e > 0, INF, c) for c, e in zip(costs, error, strict=True)], edges))
    assert strict.total == pytest.approx(masked.total)
    assert strict.proven


def test_a_limit_is_met_exactly(solve_both):
    # 0.1 ten times does not sum to 1.0 in every order.
    problem = Problem([[1.0, 0.0]] * 10, {}, [Resource("error", 1.0, [[0.1, 0.3]] * 10)])
    assert solve_both(problem).choice == [0] * 10


def test_an_infinite_limit_limits_nothing():
    problem = Problem([[1.0, 0.0]], {}, [Resource("bytes", INF, [[0, 5]])])
    solution = solve(problem)
    assert solution.choice == [1]
    assert problem.usage(solution.choice) == {"bytes": 5}


def test_the_same_problem_gives_the_same_choice():
    problem = inception(3).problem(limits={"packed_bytes": 0.3})
    choices = {tuple(solve(problem).choice) for _ in range(3)}
    assert len(choices) == 1


def test_limits_of_work_are_known_numbers():
    for work in ({"width": 1}, {"table": -1.0}, {"table": math.nan}):
        with pytest.raises(ModelError, match="a limit of work must be known and at least 0"):
            solve(Problem([[0.0]]), work=work)


def test_a_budget_is_a_time():
    with pytest.raises(ModelError, match="budget"):
        solve(Problem([[0.0]]), budget_s=-1.0)
    with pytest.raises(ModelError, match="budget"):
        solve(Problem([[0.0]]), budget_s=math.nan)
