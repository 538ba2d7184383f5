"""Matrix products."""

import numpy as np
import pytest
from neo.errors import ShapeError

from tests.ops.single_node import floats, infer, run


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 6)), ((3, 0), (0, 2)),
     ((0, 3), (3, 2)), ((7, 3, 4), (4, 2))],
)  # fmt: skip
def test_matmul_is_numpys(a, b):
    x, y = floats(*a), floats(*b, seed=1)
    np.testing.assert_allclose(run("MatMul", x, y), np.matmul(x, y), atol=1e-12)


def test_integer_products_wrap():
    x = np.array([[2**40, 3], [-(2**40), 5]])
    y = np.array([[2**40, 1], [7, -1]])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run("MatMul", x, y), x @ y)
    small = np.full((1, 3), 2**31 - 1, np.int32)
    np.testing.assert_array_equal(run("MatMul", small, small.T), small @ small.T)


def test_matmul_with_bias_and_clamp():
    x, y, bias = floats(2, 3, 4), floats(4, 5, seed=1), floats(5, seed=2)
    expected = np.clip(x @ y + bias, -0.5, 1)
    np.testing.assert_allclose(run("MatMul", x, y, bias, clamp_min=-0.5, clamp_max=1.0), expected, atol=1e-12)


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("c", [None, (), (5,), (3, 1), (3, 5)])
def test_gemm(trans_a, trans_b, c):
    a, b = floats(3, 4), floats(4, 5, seed=1)
    expected = 0.5 * (a @ b)
    inputs = [a.T if trans_a else a, b.T if trans_b else b]
    if c is not None:
        inputs.append(floats(*c, seed=2))
        expected = expected + 2 * inputs[-1]
    result = run("Gemm", *inputs, alpha=0.5, beta=2.0, transA=trans_a, transB=trans_b)
    np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "attrs", "subscripts"),
    [
        ((2, 3, 4), (2, 5, 4), {"transB": 1}, "bmk,bnk->bmn"),
        ((2, 4, 3), (2, 4, 5), {"transA": 1}, "bkm,bkn->bmn"),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}, "mbk,bkn->bmn"),
        ((2, 3, 4), (4, 2, 5), {"transBatchB": 1}, "bmk,kbn->bmn"),
        ((4, 2, 3), (2, 4, 5), {"transBatchA": 1, "transA": 1}, "kbm,bkn->bmn"),
    ],
)
def test_fused_matmul(a, b, attrs, subscripts):
    x, y = floats(*a), floats(*b, seed=1)
    result = run("com.microsoft.FusedMatMul", x, y, alpha=0.25, **attrs)
    np.testing.assert_allclose(result, 0.25 * np.einsum(subscripts, x, y), atol=1e-12)


def test_sizes_from_symbols():
    assert infer("MatMul", "float32[B,T,64]", "float32[64,10]") == "float32[B,T,10]"
    assert infer("MatMul", "float32[B,1,T,64]", "float32[8,64,S]") == "float32[B,8,T,S]"
    assert infer("Gemm", "float32[N,64]", "float32[10,64]", transB=1) == "float32[N,10]"


def test_sums_must_agree():
    with pytest.raises(ShapeError, match=r"summed sizes must be equal. Got 4 and 5"):
        infer("MatMul", "float32[3,4]", "float32[5,6]")


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("bij, bjk -> bki", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]),
        ("...i->i...", [(2, 3, 4)]),
        ("i,i,i->", [(5,), (5,), (5,)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("aB,Bc->ca", [(2, 3), (3, 4)]),
    ],
)
def test_einsum_is_numpys(equation, shapes):
    operands = [floats(*shape, seed=i) for i, shape in enumerate(shapes)]
    np.testing.assert_allclose(run("Einsum", *operands, equation=equation), np.einsum(equation, *operands), atol=1e-12)


def test_einsum_sizes_from_symbols():
    assert infer("Einsum", "float32[B,H,Q,64]", "float32[B,H,K,64]", equation="bhqd,bhkd->bhqk") == "float32[B,H,Q,K]"
