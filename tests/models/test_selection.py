"""Selection on real models: proven, by a checker that shares no code with the solver, and by the other solvers."""

from __future__ import annotations

import math

from neo import _native
from neo.candidates import selection_arrays
from neo.frontend.onnx import read_model
from neo.select import InfeasibleError, solve

from tests.select.certificate import check

from .conftest import each_model, require
from .engines import source_of
from .zoo import Model

SLICE = (
    *("silero-vad", "yunet-dynamic", "mobilenet-v2-qdq", "light-densenet121", "light-resnet50", "light-inception_v1"),
    *("light-shufflenet", "light-squeezenet", "light-vgg19"),
)


@each_model(lambda model: model.name in SLICE)
def test_the_choice_is_proven(model: Model) -> None:
    graph, _ = read_model(source_of(require(model)))
    native = _native.build_problem(_native.run_passes(graph), "cpu", 2)
    for accuracy in (None, "strict"):
        problem = selection_arrays(native, accuracy)
        solution = solve(problem, certify=True)
        assert solution.proven
        assert solution.certificate is not None
        assert math.isclose(solution.certificate.bound, solution.total, rel_tol=1e-9)
        check(problem, solution.certificate)


@each_model(lambda model: model.name in SLICE)
def test_no_other_solver_finds_less(model: Model) -> None:
    graph, _ = read_model(source_of(require(model)))
    # The methods to compare with know no limits, such as that of operands that are rounded.
    problem = selection_arrays(_native.build_problem(_native.run_passes(graph), "cpu", 2), "reduced")
    best = solve(problem)
    for method in ("greedy", "improve", "pbqp", "dprs", "branch and bound"):
        try:
            other = solve(problem, method=method)
        except InfeasibleError:
            assert method == "dprs", "only what drops partial solutions may find nothing"
            continue
        assert other.total >= best.total * (1 - 1e-9)
        assert other.lower_bound <= best.total * (1 + 1e-9)
    assert solve(problem, method="greedy").total < math.inf
