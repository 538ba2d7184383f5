import json
import math

import numpy as np
import pytest
from neo.errors import Error, ModelError
from neo.select import Problem, Resource

from tests.select.generators import random_problem

INF = math.inf


def test_evaluate_sums_costs_and_edges():
    problem = Problem([[1, 2], [10, 20, 30]], {(0, 1): [[0, 100, 0], [0, 0, 1000]]})
    assert problem.evaluate([0, 1]) == 121
    assert problem.evaluate([1, 2]) == 1032
    assert problem.sizes == [2, 3]


def test_evaluate_is_exactly_rounded():
    problem = Problem([[1e100], [1.0], [-1e100]])
    assert problem.evaluate([0, 0, 0]) == 1.0


def test_forbidden_choices_and_pairs_are_infinite():
    problem = Problem([[INF, 0], [0, 0]], {(0, 1): [[0, 0], [0, INF]]})
    assert problem.evaluate([0, 0]) == INF
    assert problem.evaluate([1, 1]) == INF
    assert problem.evaluate([1, 0]) == 0
    assert [problem.is_feasible(c) for c in ([0, 0], [1, 1], [1, 0])] == [False, False, True]


def test_parallel_edges_are_summed_and_turned():
    edges = [(0, 1, [[1, 2, 3], [4, 5, 6]]), (1, 0, [[10, 40], [20, 50], [30, 60]]), (0, 1, np.ones((2, 3)))]
    problem = Problem([[0, 0], [0, 0, 0]], edges)
    assert list(problem.edges) == [(0, 1)]
    np.testing.assert_array_equal(problem.edges[0, 1], [[12, 23, 34], [45, 56, 67]])


def test_arrays_given_are_not_changed():
    matrix = np.ones((2, 2))
    Problem([[0, 0], [0, 0]], [(0, 1, matrix), (0, 1, matrix)])
    np.testing.assert_array_equal(matrix, np.ones((2, 2)))


def test_resources_count_vectors_and_matrices():
    resource = Resource("bytes", 7, [[1, 2], [3, 4]], {(1, 0): [[0, 0], [10, 1]]})
    problem = Problem([[0, 0], [0, 0]], {}, [resource])
    assert problem.usage([0, 0]) == {"bytes": 4}
    assert problem.usage([0, 1]) == {"bytes": 15}
    assert problem.usage([1, 1]) == {"bytes": 7}
    assert problem.is_feasible([1, 1])
    assert not problem.is_feasible([0, 1])


def test_limit_holds_up_to_rounding():
    problem = Problem([[0.0]] * 10, {}, [Resource("error", 1.0, [[0.1]] * 10)])
    assert problem.is_feasible([0] * 10)
    over = Problem([[0.0]], {}, [Resource("bytes", 1e9, [[1e9 + 1]])])
    assert not over.is_feasible([0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[]],), ["variable 0", "at least one choice", "(0,)"]),
        (([[[1.0]]],), ["variable 0", "(1, 1)"]),
        (([[math.nan]],), ["variable 0", "nan"]),
        (([[0.0], [-INF]],), ["variable 1", "-inf"]),
        (([[0.0], [0.0]], {(0, 2): [[0.0]]}), ["(0, 2)", "0 to 1"]),
        (([[0.0], [0.0]], {(-1, 1): [[0.0]]}), ["(-1, 1)"]),
        (([[0.0], [0.0]], {(1, 1): [[0.0]]}), ["(1, 1)", "two different"]),
        (([[0.0, 1.0], [0.0]], {(0, 1): [[0.0]]}), ["(0, 1)", "(1, 1)", "(2, 1)"]),
        (([[0.0], [0.0]], {(0, 1): [[math.nan]]}), ["edge (0, 1)", "nan"]),
        (([[0.0]], {}, [Resource("bytes", 1, [])]), ["'bytes'", "sizes [1]"]),
        (([[0.0]], {}, [Resource("bytes", 1, [[1, 2]])]), ["'bytes'", "[2]", "[1]"]),
        (([[0.0]], {}, [Resource("bytes", 1, [[INF]])]), ["'bytes'", "inf", "finite"]),
        (([[0.0]], {}, [Resource("bytes", math.nan, [[0]])]), ["'bytes'", "nan"]),
        (([[0.0]] * 2, {}, [Resource("bytes", 1, [[0]] * 2, {(0, 1): [[1, 2]]})]), ["'bytes'", "(1, 2)", "(1, 1)"]),
        (([[0.0]], {}, [Resource("a", 1, [[0]]), Resource("a", 2, [[0]])]), ["['a', 'a']"]),
    ],
)
def test_malformed_problems_are_refused(arguments, words):
    with pytest.raises(ModelError) as caught:
        Problem(*arguments)
    assert isinstance(caught.value, Error)
    assert str(caught.value).startswith("[select] ")
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("choice", [[], [0, 0], [2], [-1]])
def test_a_choice_must_fit(choice):
    problem = Problem([[0.0, 1.0]])
    for use in (problem.evaluate, problem.usage, problem.is_feasible):
        with pytest.raises(ModelError, match="one choice of every variable"):
            use(choice)


@pytest.mark.parametrize("name", ["problem.json", "problem.npz"])
@pytest.mark.parametrize("seed", range(6))
def test_a_saved_problem_loads_the_same(tmp_path, name, seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, variables=seed, resources=seed % 3, integer=seed % 2 == 0)
    if seed == 4:
        problem = Problem(problem.costs, problem.edges, [Resource("free", INF, problem.resources[0].vectors)])
    problem.save(tmp_path / name)
    loaded = Problem.load(tmp_path / name)
    assert loaded.sizes == problem.sizes
    for ours, theirs in zip(loaded.costs, problem.costs, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert list(loaded.edges) == list(problem.edges)
    for edge, matrix in problem.edges.items():
        np.testing.assert_array_equal(loaded.edges[edge], matrix)
    assert [(r.name, r.limit) for r in loaded.resources] == [(r.name, r.limit) for r in problem.resources]
    for _ in range(5 if problem.costs else 0):
        choice = [int(rng.integers(n)) for n in problem.sizes]
        assert loaded.usage(choice) == problem.usage(choice)
        assert loaded.evaluate(choice) == problem.evaluate(choice)


def test_json_holds_no_infinity(tmp_path):
    path = tmp_path / "problem.json"
    Problem([[INF, 1.0]], {}, [Resource("free", INF, [[1, 2]])]).save(path)

    def refuse(name):
        raise AssertionError(name)

    assert json.loads(path.read_text(), parse_constant=refuse)["costs"] == [[None, 1.0]]


def test_a_file_that_is_no_problem_is_refused(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text('{"costs": 3}')
    with pytest.raises(ModelError, match=r"problem\.json"):
        Problem.load(path)
    path.write_text('{"costs": [[0.0]]')
    with pytest.raises(ModelError, match=r"problem\.json"):
        Problem.load(path)
    path = tmp_path / "problem.npz"
    np.savez(path, sizes=[2, 2], costs=[0.0])
    with pytest.raises(ModelError, match=r"problem\.npz"):
        Problem.load(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(ModelError, match=r"problem\.npz"):
        Problem.load(path)
