"""Constants that several nodes read are held in few forms, where that takes hardly more time."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from neo import _native
from neo.frontend.onnx import read_model
from neo.select import Problem, share_forms, solve

MB = 1 << 20


def shared(costs: list[list[float]], forms: list[list[int]], sizes: dict[int, int]) -> tuple[list[int], float]:
    """The choices, and how much longer they take than the fastest."""
    problem = Problem([np.array(c) for c in costs])
    fastest = solve(problem)
    flat = np.array([form for row in forms for form in row])
    found = share_forms(problem, fastest, np.array([sizes.get(f, 0) for f in flat], float), flat)
    assert found.total == pytest.approx(problem.evaluate(found.choice))
    assert found.lower_bound <= found.total
    return found.choice, found.total / fastest.total


def test_a_small_reader_takes_the_form_of_a_large_one() -> None:
    costs = [[1000.0, 1500.0], [10.5, 10.0], [12.0, 9.0]]
    forms = [[0, 1], [0, 1], [0, 1]]
    choice, ratio = shared(costs, forms, {0: 40 * MB, 1: 20 * MB})
    assert choice == [0, 0, 0]
    assert 1 < ratio <= 1.01


def test_time_comes_first() -> None:
    assert shared([[1000.0, 1500.0], [50.0, 10.0]], [[0, 1], [0, 1]], {0: 40 * MB, 1: 20 * MB}) == ([0, 1], 1.0)


def test_few_bytes_and_forms_of_one_reader_stay() -> None:
    costs = [[1000.0, 1500.0], [10.5, 10.0]]
    assert shared(costs, [[0, 1], [0, 1]], {0: MB, 1: MB}) == ([0, 1], 1.0)
    assert shared(costs, [[0, 1], [2, 3]], dict.fromkeys(range(4), 40 * MB)) == ([0, 1], 1.0)
    assert shared(costs, [[-1, -1], [-1, -1]], {}) == ([0, 1], 1.0)


def test_two_readers_do_not_change_places() -> None:
    for sizes in ({0: 40 * MB, 1: 40 * MB}, {0: 30 * MB, 1: 40 * MB}, {0: 40 * MB, 1: 30 * MB}):
        choice, _ = shared([[1000.0, 1001.0], [1001.0, 1000.0]], [[0, 1], [0, 1]], sizes)
        assert choice in ([0, 0], [1, 1])


def test_nodes_that_read_one_constant_have_forms_in_common() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        head (float[1, 64, 40, 40] x0, float[1, 64, 9, 9] x1, float[1, 64, 40, 40] x2) => (y0, y1, y2) {
            y0 = Conv <pads = [1, 1, 1, 1]> (x0, w)
            y1 = Conv <pads = [1, 1, 1, 1]> (x1, w)
            y2 = Conv <pads = [1, 1, 1, 1]> (x2, v)
        }"""
    model = onnx.parser.parse_model(text)
    for seed, name in enumerate("wv"):
        weights = np.random.default_rng(seed).standard_normal((64, 64, 3, 3)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    problem = _native.build_problem(_native.run_passes(read_model(model.SerializeToString())[0]), "cpu", 2)
    sizes = problem.flat[0]
    assert len(problem.packed_forms) == sum(sizes)
    ends = np.cumsum(sizes)
    reads = [
        {int(form) for form in problem.packed_forms[end - size : end]} - {-1}
        for size, end in zip(sizes, ends, strict=True)
    ]
    same, small, other = (reads[i] for i, node in enumerate(problem.nodes) if node["op"] == "Conv")
    assert same & small
    assert not same & other
    assert not small & other
