"""Products by weights of 4 and 8 bits with scales of blocks: against NumPy, on every tier and team."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from neo import _native

from tests.routines.codes import on_vnni
from tests.routines.pinning import TIERS, assert_close, candidates, compile_pinned, floats, rejections

ROUTINE = "cpu:int8/block_weights"

VNNI = "avx512_vnni"
by_tier = pytest.mark.parametrize("tier", TIERS)


def pick(random: np.random.Generator, options: Any) -> Any:
    return options[int(random.integers(len(options)))]


class Case:
    """A product of a random form, and the weights as numbers."""

    def __init__(self, seed: int) -> None:
        random = self.random = np.random.default_rng(seed)
        self.bits = pick(random, [4, 8])
        self.block = pick(random, [16, 32, 128, 5, 0])
        self.depth, self.columns = int(random.integers(1, 150)), int(random.integers(1, 100))
        self.by_columns = bool(random.integers(2))
        dtype = pick(random, ["int8", "uint8"])
        low = {"int8": -128, "uint8": 0}[dtype]
        codes = random.integers(0, 1 << self.bits, (self.depth, self.columns)) + low
        blocks = -(-self.depth // self.block) if self.block else 1
        scale = random.uniform(0.01, 0.1, (blocks, self.columns)).astype(np.float32)
        zero = random.integers(0, 1 << self.bits, (blocks, self.columns)) + low
        if random.random() < 0.4:
            zero[:] = zero[0, 0]
        along = np.arange(self.depth) // self.block if self.block else np.zeros(self.depth, int)
        self.weights = (codes - zero[along]) * scale[along].astype(np.float64)
        self.arrays = [codes.astype(dtype), scale, zero.astype(dtype)]
        if self.by_columns:
            self.arrays = [np.ascontiguousarray(a.T) for a in self.arrays]
        if not self.block:
            self.arrays[1:] = [a.reshape(-1) for a in self.arrays[1:]]
        self.bias = floats(random, [self.columns]) if random.random() < 0.5 else None

    def graph(self, rows: list[int], row_bits: int = 0) -> Any:
        graph = _native.Graph()
        sum_axis = 1 if self.by_columns else 0
        attrs = {"axis": sum_axis, "block_size": self.block} if self.block else {"axis": 1 - sum_axis}
        constants = [graph.add_constant("w", a) for a in self.arrays]
        if row_bits:
            attrs["row_bits"] = row_bits
        weights = graph.add_node("DequantizeLinear", constants, ["w.y"], attrs, "w").outputs[0]
        operands = [graph.add_input("x", "float32", [*rows, self.depth]), weights]
        if self.bias is not None:
            operands.append(graph.add_constant("b", self.bias))
        op, attrs = ("Gemm", {"transB": 1}) if self.by_columns else ("MatMul", {})
        graph.outputs = graph.add_node(op, operands, ["y"], attrs, "p").outputs
        graph.infer()
        return _native.run_passes(graph, ["fold_constants"])


@by_tier
@pytest.mark.parametrize("seed", range(24))
def test_product(seed: int, tier: str) -> None:
    case = Case(seed)
    rows = [pick(case.random, [1, 2, 3, 7, 15, 40])]
    if not case.by_columns and seed % 3 == 0:
        rows = [2, *rows]
    pinned = compile_pinned(case.graph(rows), tier, {"p": ROUTINE})
    assert pinned.routines["p"].split("{")[0] == ROUTINE
    x = floats(case.random, [*rows, case.depth])
    expected = x.astype(np.float64) @ case.weights + (0 if case.bias is None else case.bias)
    result = pinned(x)
    # The codes that are summed are larger than the weights by their zero points.
    largest = float(np.abs(x).max(initial=0) * 255 * 0.1 * np.sqrt(case.depth))
    assert np.abs(result - expected).max(initial=0) <= 4 * np.finfo(np.float32).eps * np.sqrt(case.depth) * largest
    np.testing.assert_array_equal(pinned(x, threads=3), result)


@by_tier
@pytest.mark.parametrize("zeros", [False, True], ids=["one", "many"])
def test_large_product_on_teams(zeros: bool, tier: str) -> None:
    """Several tasks, whose rows lie in one workspace after the other."""
    random = np.random.default_rng(5)
    case = Case(3)
    case.depth, case.columns, case.block, case.by_columns, case.bias = 600, 530, 32, False, None
    codes = random.integers(0, 16, (600, 530)).astype(np.uint8)
    scale = random.uniform(0.01, 0.1, (19, 530)).astype(np.float32)
    zero = random.integers(0, 16, (19, 530)).astype(np.uint8) if zeros else np.full((19, 530), 8, np.uint8)
    case.arrays = [codes, scale, zero]
    along = np.arange(600) // 32
    weights = (codes.astype(np.float64) - zero[along]) * scale[along]
    pinned = compile_pinned(case.graph([75]), tier, {"p": ROUTINE})
    x = floats(random, [75, 600])
    result = pinned(x)
    assert_close(result, (x.astype(np.float64) @ weights).astype(np.float32), 600 * 16)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, threads=threads), result)


def rounded(x: np.ndarray, block: int) -> np.ndarray:
    """Rows whose blocks are codes of 8 bits without a zero point, as numbers."""
    result = np.empty(x.shape)
    for begin in range(0, x.shape[-1], block):
        part = x[..., begin : begin + block]
        most = np.abs(part).max(axis=-1, keepdims=True)
        steps = np.where(most > 0, np.float32(127) / np.where(most > 0, most, 1), 0).astype(np.float32)
        result[..., begin : begin + block] = np.rint(part * steps) * (most / np.float32(127)).astype(np.float64)
    return result


def with_coded_rows(case: Case, rows: list[int]) -> Any:
    graph = case.graph(rows, 8)
    (coded,) = (c["routine"] for c in candidates(graph, VNNI, "p") if "row_bits=8" in c["routine"])
    return compile_pinned(graph, VNNI, {"p": coded})


@on_vnni
@pytest.mark.parametrize("seed", range(24))
def test_rows_as_codes(seed: int) -> None:
    """Where the model lets rows be rounded: the sums of the codes, each block by its scales."""
    case = Case(seed)
    rows = [pick(case.random, [1, 2, 3, 4, 7, 15, 40])]
    pinned = with_coded_rows(case, rows)
    x = floats(case.random, [*rows, case.depth])
    x[0, : case.depth // 2] = 0
    coded = rounded(x, case.block or case.depth)
    expected = coded @ case.weights + (0 if case.bias is None else case.bias)
    result = pinned(x)
    largest = float(np.abs(x).max(initial=0) * 255 * 0.1 * np.sqrt(case.depth))
    assert np.abs(result - expected).max(initial=0) <= 4 * np.finfo(np.float32).eps * np.sqrt(case.depth) * largest
    np.testing.assert_array_equal(pinned(x, threads=3), result)


@on_vnni
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-38, 3e38])
def test_rows_as_codes_of_extremes(value: float) -> None:
    """What is not finite makes its row not-a-number and no other; the smallest and the largest numbers stay finite."""
    case = Case(1)
    case.depth, case.columns, case.block, case.by_columns, case.bias = 64, 20, 32, False, None
    case.arrays = [np.full((64, 20), 9, np.uint8), np.full((2, 20), 2**-7, np.float32), np.full((2, 20), 8, np.uint8)]
    pinned = with_coded_rows(case, [3])
    x = np.zeros([3, 64], np.float32)
    x[1, 40] = value
    result = pinned(x)
    assert not result[[0, 2]].any()
    assert (
        np.isnan(result[1]).all()
        if not np.isfinite(value)
        else np.allclose(result[1], value / 128, rtol=1e-5, atol=1e-30)
    )


def test_rows_are_codes_only_where_that_is_allowed() -> None:
    """By the model, or by the user, who is asked where candidates round and the model does not let them."""
    for tier in _native.host_tiers():
        for row_bits in (0, 8):
            graph = Case(2).graph([5], row_bits)
            assert any("row_bits=8" in c["routine"] for c in candidates(graph, tier, "p")) == (tier == VNNI)
            assert _native.build_problem(graph, f"cpu:{tier}", 1).rounds == (tier == VNNI and row_bits == 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("scale", "the scales are not those of blocks along the sum"),
        ("alpha", "the product is transposed or scaled"),
    ],
)
def test_says_why_not(change: str, reason: str) -> None:
    graph = _native.Graph()
    codes = graph.add_constant("w", np.ones([8, 6], np.uint8))
    axis = 0 if change == "scale" else 1
    scale = graph.add_constant("s", np.ones([8, 6][axis], np.float32))
    weights = graph.add_node("DequantizeLinear", [codes, scale], ["w.y"], {"axis": axis}, "w").outputs[0]
    operands = [graph.add_input("x", "float32", [3, 8]), weights]
    attrs = {"alpha": 0.5} if change == "alpha" else {}
    graph.outputs = graph.add_node("Gemm", operands, ["y"], attrs, "p").outputs
    graph.infer()
    assert rejections(_native.run_passes(graph, ["fold_constants"]), "scalar", "p")[ROUTINE] == reason
