"""Products of two values of codes, neither of which is constant, against the references: equal, on every tier."""

from __future__ import annotations

import numpy as np
import pytest
from neo import _native

from tests.routines.codes import Codes, by_tier, dequantize, pick
from tests.routines.pinning import compile_pinned, rejections

MATMUL = "cpu:int8/matmul"
CASES = 30
#: The axes of matrices of both operands of a product.
MATRICES = [([], []), ([3], [3]), ([2, 3], []), ([], [4]), ([2, 3], [1, 1]), ([1, 3], [1, 3])]


@by_tier
@pytest.mark.parametrize("seed", range(CASES))
def test_product_of_two_values(seed: int, tier: str) -> None:
    case = Codes(seed)
    random = case.random
    rows, depth, columns = (int(random.integers(1, high)) for high in (40, 70, 150))
    of_a, of_b = MATRICES[seed % len(MATRICES)]
    grids, numbers, whole = [], [], []
    for dims in ([*of_a, rows, depth], [*of_b, depth, columns]):
        dtype = pick(random, ["uint8", "int8"])
        x, x_whole = case.input(dtype, dims)
        grids.append(case.grid(dtype, 0.05))
        numbers.append(dequantize(case, x, grids[-1], f"dq{len(grids)}"))
        whole += [x_whole, *(g[1] for g in grids[-1])]
    y_grid = case.grid(pick(random, ["uint8", "int8"]), float(0.05 * 0.05 * 50 * np.sqrt(depth)))
    made = case.add(case.float, "MatMul", numbers, "product")
    expected = case.add(case.whole, "QLinearMatMul", [*whole, *(g[1] for g in y_grid)], "product")
    case.finish(case.add(case.float, "QuantizeLinear", [made, *(g[0] for g in y_grid)], "q"), expected)
    case.check(tier, {"q": MATMUL})


@by_tier
@pytest.mark.parametrize("zeros", ["none", "constant", "dynamic"])
@pytest.mark.parametrize("seed", range(8))
def test_whole_product_of_two_values(seed: int, zeros: str, tier: str) -> None:
    case = Codes(seed)
    random, graph = case.random, case.float
    rows, depth, columns = (int(random.integers(1, high)) for high in (20, 300, 90))
    shapes = [[*dims, *size] for dims, size in zip(MATRICES[seed % 6], ([rows, depth], [depth, columns]), strict=True)]
    kinds = [pick(random, ["uint8", "int8"]) for _ in shapes]
    feeds = [case.codes(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    operands = [graph.add_input(n, kind, shape) for n, kind, shape in zip("ab", kinds, shapes, strict=True)]
    for i, kind in enumerate(kinds if zeros != "none" else []):
        zero = case.codes(kind, [1]).reshape(())
        if zeros == "constant":
            operands.append(graph.add_constant("z", zero))
        else:
            operands.append(graph.add_input(f"z{i}", kind, []))
            feeds.append(zero)
    graph.outputs = graph.add_node("MatMulInteger", operands, ["y"], {}, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": MATMUL})
    assert pinned.routines["q"] == MATMUL
    for threads in (1, 3):
        np.testing.assert_array_equal(pinned(*feeds, threads=threads), graph.evaluate(feeds)[0])


@by_tier
@pytest.mark.parametrize("code", [0, 1, 254, 255])
def test_extremes_of_two_values(code: int, tier: str) -> None:
    graph = _native.Graph()
    depth = 5000
    a, b = graph.add_input("a", "uint8", [2, depth]), graph.add_input("b", "uint8", [depth, 35])
    zeros = [graph.add_constant("z", np.array(z, np.uint8)) for z in (255, 0)]
    graph.outputs = graph.add_node("MatMulInteger", [a, b, *zeros], ["y"], {}, "q").outputs
    graph.infer()
    pinned = compile_pinned(graph, tier, {"q": MATMUL})
    result = pinned(np.full([2, depth], code, np.uint8), np.full([depth, 35], 255, np.uint8))
    np.testing.assert_array_equal(result, np.full([2, 35], depth * (code - 255) * 255))


def test_says_why_two_values_are_not_multiplied() -> None:
    for a, b, reason in [
        (["N", 2, 5, 9], [1, 2, 9, 4], "the matrices are broadcast"),
        (["N", "K"], ["K", 4], "a sum may leave int32"),
        ([9], [9, 4], "an operand has no two axes"),
    ]:
        case = Codes(0)
        graph = case.float
        grid = case.grid("uint8")
        values = [graph.add_input(n, "uint8", dims) for n, dims in (("a", a), ("b", b))]
        graph.outputs = [case.add(graph, "MatMul", [dequantize(case, v, grid, f"dq{v.name}") for v in values], "m")]
        graph.infer()
        assert rejections(graph, "scalar", "m")[MATMUL] == reason
