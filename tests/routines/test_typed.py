"""Every elementwise operator in every dtype: by a routine of its own, and as its reference computes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from neo import _native
from neo.errors import Error

from tests.routines.elementwise import FLOATS, INTEGERS, OPERATORS, array, attrs_of, operand_dtype
from tests.routines.pinning import TIERS, compile_pinned

TYPED = "cpu/eltwise"
by_tier = pytest.mark.parametrize("tier", TIERS)

#: Operators and dtypes that the reference runs.
BY_REFERENCE = {
    # ONNX allows them, no model has them.
    *(("Erf", dtype) for dtype in INTEGERS),
    *(("Shrink", dtype) for dtype in INTEGERS),
}
#: Dims of the operands: the same, one element, rows, columns, others; one more than a vector, primes, several tiles.
SIZES = [(0, 5), (1, 1), (1, 67), (3, 64), (7, 13), (5, 1031), (2, 20011)]
KINDS = {
    "same": [("r", "c"), ("r", "c"), ("r", "c")],
    "scalar": [("r", "c"), (), (1,)],
    "row": [("r", "c"), ("c",), (1, "c")],
    "column": [("r", "c"), ("r", 1), ("r", "c")],
    "first scalar": [(1, 1), ("r", "c"), ("c",)],
    "general": [("r", 1, "c"), (4, "c"), ("r", 4, 1)],
}
CASES = [(op, dtype) for op, operator in OPERATORS.items() for dtype in operator.dtypes]
RELATIVE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


def graph_of(op: str, dtype: str, dims: list[Any], attrs: dict[str, Any]) -> Any:
    graph = _native.Graph()
    operands = [graph.add_input(f"x{i}", operand_dtype(op, dtype, i), list(d)) for i, d in enumerate(dims)]
    graph.outputs = graph.add_node(op, operands, ["y"], attrs, "node").outputs
    return graph


def kinds_of(op: str) -> list[str]:
    if OPERATORS[op].operands == 1 or op in ("SwiGLU", "CastLike"):
        return ["same"]
    if op == "Clip":
        return ["bounds"]
    if "Gelu" in op:
        return ["same", "scalar", "row", "column"]
    return list(KINDS)


def dims_of(op: str, kind: str) -> list[Any]:
    dims = [("r", "c"), (), (1,)] if kind == "bounds" else KINDS[kind]
    return dims[: OPERATORS[op].operands]


@by_tier
def test_no_operator_is_left_to_the_reference(tier):
    left = {
        (op, dtype)
        for op, dtype in CASES
        for attrs in attrs_of(op, dtype)
        if compile_pinned(
            graph_of(op, dtype, [[64, 300]] * OPERATORS[op].operands if op != "Clip" else [[64, 300], [], []], attrs),
            tier,
            {},
        )
        .routines["node"]
        .startswith("cpu/reference")
    }
    assert left == BY_REFERENCE


def is_elementwise(op: str) -> bool:
    """Whether some node of the operator makes each element from those in its place, and not by handing one on."""
    random = np.random.default_rng(0)
    order = random.permutation(12)
    for count, dtype in itertools.product((1, 2, 3), ("float32", "int32", "bool")):
        for first in dict.fromkeys(("bool", dtype)):
            dtypes = [first, *[dtype] * (count - 1)]
            arrays = [random.permutation(12).reshape(3, 4).astype(d) for d in dtypes]
            graph = _native.Graph()

            def run(order: np.ndarray, graph: Any = graph, arrays: list[np.ndarray] = arrays) -> np.ndarray:
                return graph.evaluate([a.reshape(-1)[order].reshape(3, 4) for a in arrays])[0].reshape(-1)

            try:
                values = [graph.add_input(f"x{i}", a.dtype.name, [3, 4]) for i, a in enumerate(arrays)]
                graph.outputs = graph.add_node(op, values, ["y"], {"to": 6, "direction": "LEFT"}, "node").outputs
                plain, moved, repeated = run(np.arange(12)), run(order), run(np.repeat(order[:6], 2))
            except (Error, AttributeError, TypeError):
                continue
            if plain.shape != (12,) or plain.dtype.kind not in "fiub" or (plain == plain[0]).all():
                continue
            alike = np.array_equal(plain[order], moved) and np.array_equal(plain[np.repeat(order[:6], 2)], repeated)
            if alike and not any(np.array_equal(plain, a.reshape(-1)) for a in arrays):
                return True
    return False


#: A random number for each element, and a threshold of another domain.
OTHERS = {"Bernoulli", "ai.onnx.ml.Binarizer"}


def test_the_operators_are_those_of_the_registry():
    found = {op for op in _native.op_names() if is_elementwise(op)}
    assert found - set(OPERATORS) - OTHERS == set()


def check(op: str, dtype: str, actual: np.ndarray, expected: np.ndarray, where: object) -> None:
    assert actual.dtype == expected.dtype, where
    assert actual.shape == expected.shape, where
    if dtype in FLOATS and OPERATORS[op].kind == "function" and expected.dtype.kind not in "b":
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(
                actual.astype(np.float64),
                expected.astype(np.float64),
                RELATIVE[dtype],
                RELATIVE[dtype],
                err_msg=str(where),
            )
        return
    wide = (lambda x: x.astype(np.float64)) if expected.dtype.kind not in "iub" else (lambda x: x)
    np.testing.assert_array_equal(wide(actual), wide(expected), str(where))


@by_tier
@pytest.mark.parametrize("op", OPERATORS)
def test_against_the_reference(op, tier):
    for dtype in OPERATORS[op].dtypes:
        if (op, dtype) in BY_REFERENCE:
            continue
        for attrs in attrs_of(op, dtype):
            for kind in kinds_of(op):
                dims = dims_of(op, kind)
                graph = graph_of(op, dtype, dims, attrs)
                pinned = compile_pinned(graph, tier, {})
                for sizes in SIZES:
                    named = dict(zip("rc", sizes, strict=True))
                    random = np.random.default_rng(sizes[1])
                    arrays = [
                        array(random, op, operand_dtype(op, dtype, i), i, [named.get(d, d) for d in shape])
                        for i, shape in enumerate(dims)
                    ]
                    expected = graph.evaluate(arrays)[0]
                    where = (op, dtype, attrs, kind, sizes)
                    actual = pinned(*arrays)
                    check(op, dtype, actual, expected, where)
                    np.testing.assert_array_equal(pinned(*arrays, threads=3).tobytes(), actual.tobytes(), str(where))
