"""Inner graphs as ways to compute nodes: chosen by cost, inside one selection problem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.select import Flat, Problem, Solution, solve

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import inputs_of, parsed
from tests.select.certificate import check

Allow = Callable[[str, str], bool]

# Few routines, so that every selection can be tried.
FEW = ("cpu:float32/im2col", "cpu:float32/eltwise", "cpu/view", "cpu/copy", "cpu:float32/gemm", "expansion/")


def patches(
    x: str, kernel: tuple[int, ...], attributes: str, *, channels: int = 3, bias: bool = True, tail: Sequence[str] = ()
) -> _native.Graph:
    """A convolution of four filters between a Relu and what `tail` says of its result c, whose last line makes y."""
    lines = [weights("w", 4, channels, *kernel)] + [weights("b", 4)] * bias
    lines += ["r = Relu(x)", f"c = Conv(r, w{', b' if bias else ''}) {{{attributes}}}"]
    lines += tail or ["y = Relu(c)"]
    return parsed(f'graph "g" (x: float32[{x}]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}")


def grouped(groups: int, inputs: int, filters: int, *, op: str = "Conv", attributes: str = "") -> _native.Graph:
    """A convolution of several groups between two Relus."""
    dims = (groups * filters, inputs) if op == "Conv" else (groups * inputs, filters)
    lines = [weights("w", *dims, 3, 3), weights("b", groups * filters), "r = Relu(x)"]
    lines += [f"c = {op}(r, w, b) {{group={groups}{attributes}}}", "y = Relu(c)"]
    return parsed(f'graph "g" (x: float32[N,{groups * inputs},7,5]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}")


def problem_of(graph: _native.Graph, allow: Allow | None = None) -> tuple[_native.Problem, Problem]:
    """The selection problem of a graph, and its arrays."""
    problem = _native.build_problem(graph, "cpu", 1, allow)
    return problem, Problem.from_flat(Flat(*problem.flat))


def expansions(problem: _native.Problem) -> list[tuple[int, int, dict[str, Any]]]:
    """(variable, choice, what it is) of all that inner graphs offer."""
    return [
        (v, i, choice)
        for v, node in enumerate(problem.nodes)
        for i, choice in enumerate(node["choices"])
        if "expansion" in choice
    ]


def forced(arrays: Problem, variable: int, choice: int, *, taken: bool) -> Solution:
    """The best selection with an inner graph, or without it."""
    costs = [np.array(c) for c in arrays.costs]
    costs[variable][[i != choice for i in range(costs[variable].size)] if taken else choice] = math.inf
    return solve(Problem(costs, arrays.edges))


def brute_force(arrays: Problem) -> float:
    """The least cost of all selections."""
    pairs = list(arrays.edges.items())
    best = math.inf
    for choice in itertools.product(*(range(c.size) for c in arrays.costs)):
        total = sum(c[i] for c, i in zip(arrays.costs, choice, strict=True))
        if total < best:
            best = min(best, total + sum(m[choice[u], choice[v]] for (u, v), m in pairs))
    return best


def is_among_few(_: str, routine: str) -> bool:
    return routine.startswith(FEW) and "strassen" not in routine


CASES = {
    "patches": lambda: patches("N,3,8,12", (4, 4), "strides=[4, 4]"),
    "patches without bias": lambda: patches("1,3,14", (7,), "strides=[7], clamp_min=0.0", bias=False),
    "one patch": lambda: patches("2,3,5,5", (5, 5), "strides=[5, 5]"),
    "volumes": lambda: patches("1,3,4,6,2", (2, 3, 1), "strides=[2, 3, 1]"),
    "rows of patches": lambda: patches(
        "N,3,8,12",
        (4, 4),
        "strides=[4, 4]",
        tail=[
            "constant s = int64[3] {0, 4, -1}",
            "t = Reshape(c, s)",
            "u = Transpose(t) {perm=[0, 2, 1]}",
            "y = Relu(u)",
        ],
    ),
    "channels last": lambda: parsed(
        'graph "g" (x: float32[2,5,7,3]) -> (y) {\n  '
        + "\n  ".join(
            [
                weights("w", 4, 3, 1, 1),
                "t = Transpose(x) {perm=[0, 3, 1, 2]}",
                "c = Conv(t, w)",
                "u = Transpose(c) {perm=[0, 2, 3, 1]}",
                "y = Relu(u)",
            ]
        )
        + "\n}"
    ),
    "two readers": lambda: patches(
        "1,3,4,4", (2, 2), "strides=[2, 2]", tail=["a = Relu(c)", "b2 = Sigmoid(c)", "y = Add(a, b2)"]
    ),
    "an output": lambda: parsed(
        'graph "g" (x: float32[1,3,4,4]) -> (y) {\n  '
        + weights("w", 4, 3, 2, 2)
        + "\n  y = Conv(x, w) {strides=[2, 2]}\n}"
    ),
    "groups": lambda: grouped(2, 3, 4, attributes=", pads=[1, 1, 1, 1]"),
    "groups of one channel": lambda: grouped(5, 1, 2, attributes=", strides=[2, 1], clamp_max=0.5"),
    "groups of volumes": lambda: parsed(
        'graph "g" (x: float32[1,4,3,4,5]) -> (y) {\n  '
        + weights("w", 6, 2, 2, 3, 3)
        + "\n  c = Conv(x, w) {group=2, pads=[0, 1, 1, 0, 1, 1]}\n  y = Relu(c)\n}"
    ),
    "frames that are skipped": lambda: parsed(
        'graph "g" (x: float32[1,2,5,4,5]) -> (y) {\n  '
        + weights("w", 6, 2, 3, 3, 3)
        + "\n  c = Conv(x, w) {strides=[2, 2, 2], pads=[1, 1, 1, 1, 1, 1]}\n  y = Relu(c)\n}"
    ),
    "groups of a transposed one": lambda: grouped(3, 2, 1, op="ConvTranspose", attributes=", strides=[2, 2]"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_inner_graph_computes_what_its_nodes_do(name: str) -> None:
    graph = CASES[name]()
    problem, arrays = problem_of(graph)
    offered = expansions(problem)
    assert offered
    feeds = inputs_of(graph)
    expected = graph.evaluate(feeds)
    for variable, choice, _ in offered:
        solution = forced(arrays, variable, choice, taken=True)
        module = problem.lower(list(solution.choice), float(solution.total), 1)
        for left, right in zip(module.call(feeds), expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)
        ran = {step["node"] for step in module.steps}
        assert "c" not in ran
        assert any("/" in node for node in ran)


@pytest.mark.parametrize("name", ["patches", "one patch", "two readers", "an output", "patches without bias"])
def test_the_optimum_is_that_of_every_selection(name: str) -> None:
    problem, arrays = problem_of(CASES[name](), is_among_few)
    assert expansions(problem)
    assert math.prod(c.size for c in arrays.costs) < 1 << 18
    assert solve(arrays).total == pytest.approx(brute_force(arrays))


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_the_better_of_both_forms(name: str) -> None:
    graph = CASES[name]()
    problem, arrays = problem_of(graph)
    _, without = problem_of(graph, lambda _, routine: not routine.startswith("expansion/"))
    best = solve(without).total
    for variable, choice, _ in expansions(problem):
        best = min(best, forced(arrays, variable, choice, taken=True).total)
    assert solve(arrays).total == pytest.approx(best)


def test_the_inner_optimum_is_that_of_the_rewritten_graph() -> None:
    graph = patches("1,3,64,64", (16, 16), "strides=[16, 16]")
    problem, arrays = problem_of(graph)
    ((variable, choice, option),) = expansions(problem)
    rewritten = _native.run_passes(graph, ["multiply_patches", *_native.pass_names()])
    assert [problem.nodes[n["variable"]]["op"] for n in option["graph"]["nodes"]] == [
        node.op for node in rewritten.nodes if node.op != "Relu"
    ]
    assert forced(arrays, variable, choice, taken=True).total == pytest.approx(solve(problem_of(rewritten)[1]).total)


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_covers_inner_graphs(name: str) -> None:
    _, arrays = problem_of(CASES[name]())
    solution = solve(arrays, certify=True)
    assert solution.proven
    check(arrays, solution.certificate)


def test_where_it_is_not_taken_its_nodes_are_not_computed() -> None:
    problem, arrays = problem_of(CASES["patches"]())
    ((variable, choice, option),) = expansions(problem)
    solution = forced(arrays, variable, choice, taken=False)
    for node in option["graph"]["nodes"]:
        entry = problem.nodes[node["variable"]]
        assert entry["inner"]
        assert entry["choices"][solution.choice[node["variable"]]]["left_out"]
    module = problem.lower(list(solution.choice), float(solution.total), 1)
    assert not any("/" in step["node"] for step in module.steps)


def test_bodies_have_inner_graphs_too() -> None:
    kernel = weights("w", 4, 3, 2, 2)
    text = f"""graph "g" (cond: bool[], x: float32[1,3,4,4]) -> (y) {{
      y = If(cond, x) with {{
        then_branch = graph "then" (x: float32[1,3,4,4]) -> (a) {{
          {kernel}
          a = Conv(x, w) {{strides=[2, 2]}}
        }}
        else_branch = graph "else" (x: float32[1,3,4,4]) -> (b) {{
          {kernel}
          n = Neg(x)
          b = Conv(n, w) {{strides=[2, 2]}}
        }}
      }}
    }}"""
    graph = parsed(text)
    problem, arrays = problem_of(graph)
    offered = expansions(problem)
    assert len(offered) == 2
    x = inputs_of(graph)[1]
    for variable, choice, option in offered:
        assert problem.nodes[option["graph"]["nodes"][0]["variable"]]["trips"] == 0.5
        solution = forced(arrays, variable, choice, taken=True)
        module = problem.lower(list(solution.choice), float(solution.total), 1)
        for cond in (False, True):
            feeds = [np.array(cond), x]
            np.testing.assert_allclose(module.call(feeds)[0], graph.evaluate(feeds)[0], rtol=1e-5, atol=1e-5)


def test_constants_that_were_given_up_come_back() -> None:
    graph = CASES["patches"]()
    problem, arrays = problem_of(graph)
    ((variable, choice, _),) = expansions(problem)
    feeds = inputs_of(graph)
    expected = graph.evaluate(feeds)[0]
    for taken in (True, False, True, True):
        solution = forced(arrays, variable, choice, taken=taken)
        module = problem.lower(list(solution.choice), float(solution.total), 1, remake=CASES["patches"])
        np.testing.assert_allclose(module.call(feeds)[0], expected, rtol=1e-5, atol=1e-5)


def test_inner_steps_are_tuned_like_any_others() -> None:
    problem, _ = problem_of(CASES["rows of patches"]())
    bench = _native.make_bench(problem, 1)
    inner = {v for v, node in enumerate(problem.nodes) if node["inner"]}
    trials = [t for t in bench.trials if t["routine"] == "cpu:float32/gemm"]
    assert trials
    assert all(t["unmeasurable"] is None and inner.issuperset(v for v, _ in t["uses"]) for t in trials)
    assert any(space["routine"] == "cpu:float32/gemm" for space in bench.spaces)
    bench.price([1e6 if t["routine"] == "cpu:float32/gemm" else 1.0 for t in bench.trials], [True] * len(bench.trials))
    arrays = Problem.from_flat(Flat(*problem.flat))
    for variable, choice, _ in expansions(problem):
        assert forced(arrays, variable, choice, taken=False).total < 100


def test_a_product_of_pixels_is_offered_only_beside_movements() -> None:
    lines = [weights("w", 4, 3, 1, 1), "c = Conv(x, w)", "y = Relu(c)"]
    graph = parsed('graph "g" (x: float32[1,3,4,4]) -> (y) {\n  ' + "\n  ".join(lines) + "\n}")
    assert not expansions(problem_of(graph)[0])
    assert expansions(problem_of(CASES["channels last"]())[0])


def test_a_convolution_of_codes_has_no_inner_graph() -> None:
    lines = [
        weights("w", 4, 3, 2, 2),
        "constant s = float32[] {0.5}",
        "constant z = uint8[] {3}",
        "r = DequantizeLinear(x, s, z)",
        "y = Conv(r, w) {strides=[2, 2]}",
    ]
    graph = parsed('graph "g" (x: uint8[1,3,4,4]) -> (y) {\n  ' + "\n  ".join(lines) + "\n}")
    assert not expansions(problem_of(graph)[0])
