"""Matrix products of the GPU's programs against NumPy."""

import numpy as np
import pytest

from tests.kernel_ir.kernels import tf32
from tests.routines.gpu.programs import ON, Program


def pack_b(b, panel):
    """[matrix][panel][k][columns of the panel] of matrices [..., k, n]."""
    k, n = b.shape[-2:]
    b = b.reshape(-1, k, n)
    out = np.zeros((len(b), k, -(-n // panel) * panel), "f4")
    out[..., :n] = b
    return np.ascontiguousarray(out.reshape(len(b), k, -1, panel).transpose(0, 2, 1, 3))


def run(on, schedule, a_shape, b_shape, packs_b, transpose_a=0, transpose_b=0, residual=None, **form):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal(a_shape, dtype="f4"), rng.standard_normal(b_shape, dtype="f4")
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    expected = form.get("alpha", 1) * (left.astype("f8") @ right.astype("f8"))
    panel = schedule["lanes"] * schedule["vectors"]
    operands, packed = [a], []
    if packs_b:
        packed.append(form.get("alpha", 1) * pack_b(right, panel))
    else:
        operands.append(b)
    if form.get("bias"):
        bias = rng.standard_normal(right.shape[-1], dtype="f4")
        expected = expected + bias
        packed.append(np.pad(bias, (0, -len(bias) % panel)))
    if residual is not None:
        operands.append(rng.standard_normal(residual, dtype="f4"))
        expected = expected + form.get("beta", 1) * operands[-1]
    if form.get("relu"):
        expected = np.maximum(expected, 0)
    choice = {f"b{i}": d for i, d in enumerate(b_shape)} | schedule | form
    choice |= {"transpose_a": transpose_a, "transpose_b": transpose_b, "packs_b": packs_b}
    choice |= {"a_rank": len(a_shape), "b_rank": len(b_shape), "residual": int(residual is not None)}
    (c,), _ = Program("gemm", **choice).run(operands, [(expected.shape, "f4")], packed, on)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


BLOCK = {"lanes": 8, "vectors": 2, "rows": 3, "inner": 2, "tm": 2, "tn": 2}


@pytest.mark.parametrize("on", ON)
def test_products_of_all_sizes(on):
    for m, k, n in [(1, 1, 1), (7, 13, 17), (12, 32, 64), (5, 3, 33)]:
        run(on, BLOCK, (m, k), (k, n), 1, bias=1, relu=1)


def test_groups_of_many_rows_and_columns():
    """Places in a matrix of 2^24 rows, or columns, are within 32 bits."""
    run("c", {"lanes": 4, "vectors": 1, "rows": 14, "inner": 1, "tm": 16}, (31, 5), (5, 9), 1)
    run("c", {"lanes": 16, "vectors": 4, "rows": 1, "inner": 1, "tm": 1, "tn": 16}, (2, 5), (5, 70), 1)


@pytest.mark.parametrize("on", ON)
def test_both_operands_at_run_time(on):
    schedule = {"lanes": 4, "vectors": 1, "rows": 2, "order": 1}
    run(on, schedule, (2, 1, 5, 6), (3, 6, 7), 0)
    run(on, schedule, (2, 3, 5, 6), (2, 3, 6, 7), 0, residual=None)
    run(on, schedule, (2, 2, 2, 2, 4, 6), (2, 1, 2, 1, 6, 3), 0)
    run(on, schedule, (5, 6), (4, 6, 7), 0)


@pytest.mark.parametrize("on", ON)
def test_transposed_with_a_broadcast_addend(on):
    for residual in [(9,), (5, 1), (5, 9), ()]:
        run(on, {"lanes": 4, "vectors": 2, "rows": 2, "inner": 4}, (11, 5), (9, 11), 0, 1, 1, residual, alpha=2, beta=3)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("split", [8, 32])
def test_a_row_times_a_matrix_is_split_along_the_sum(on, split):
    schedule = {"lanes": 4, "vectors": 2, "rows": 1, "inner": 2, "split": split}
    for k, n in [(301, 10), (64, 33), (3, 8)]:
        run(on, schedule, (1, k), (k, n), 1, bias=1)


def shapes_of_products(rng):
    """Return dims of A and B, and whether each is transposed: one, primes, whole blocks, broadcast batches."""
    sizes = [1, 2, 3, 7, 8, 13, 16, 17, 31, 32, 37, 64, 67]
    batches = [((), ()), ((3,), ()), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((), (2,)), ((2, 2, 1, 2), (1, 2, 2, 1))]
    m, k, n = (int(rng.choice(sizes)) for _ in range(3))
    a_batch, b_batch = batches[rng.integers(len(batches))]
    transpose_a, transpose_b = (int(t) for t in rng.integers(2, size=2))
    a = (*a_batch, k, m) if transpose_a else (*a_batch, m, k)
    b = (*b_batch, n, k) if transpose_b else (*b_batch, k, n)
    return a, b, transpose_a, transpose_b


def rounded(schedule, a, b, transpose_a=0, transpose_b=0, constant=0, residual=None, on="c", **form):
    """Return the result of a product by matrices, and what it is with operands rounded and not."""
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal(a, dtype="f4"), rng.standard_normal(b, dtype="f4")
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    alpha = form.get("alpha", 1)
    expected = [alpha * (f(left).astype("f8") @ f(right).astype("f8")) for f in (tf32, np.asarray)]
    operands, packed = ([a], [b]) if constant else ([a, b], [])
    if form.get("bias"):
        packed.append(rng.standard_normal(1 if b.ndim == 1 else right.shape[-1], dtype="f4"))
        expected = [e + packed[-1] for e in expected]
    if residual is not None:
        operands.append(rng.standard_normal(residual, dtype="f4"))
        expected = [e + form.get("beta", 1) * operands[-1] for e in expected]
    if form.get("relu"):
        expected = [np.maximum(e, 0) for e in expected]
    choice = {f"b{i}": d for i, d in enumerate(b.shape)} | schedule | form
    choice |= {"transpose_a": transpose_a, "transpose_b": transpose_b, "packs_b": constant}
    choice |= {"a_rank": a.ndim, "b_rank": b.ndim, "residual": int(residual is not None)}
    (c,), _ = Program("gemm_tf32", **choice).run(operands, [(expected[0].shape, "f4")], packed, on)
    return c, *expected


MATRICES = [
    {"subgroups": 1, "rows": 16, "columns": 1, "depth": 8},
    {"subgroups": 2, "rows": 32, "columns": 1, "depth": 16},
    {"subgroups": 4, "rows": 16, "columns": 1, "depth": 16, "unroll": 1, "order": 1},
]


@pytest.mark.parametrize(("seed", "on"), [*((seed, "c") for seed in range(12)), (0, "opencl"), (4, "opencl")])
def test_products_by_matrices_of_all_shapes(seed, on):
    rng = np.random.default_rng(seed)
    a, b, transpose_a, transpose_b = shapes_of_products(rng)
    form = {"bias": seed % 2, "relu": seed // 2 % 2, "alpha": 1 + seed % 3}
    c, expected, exact = rounded(MATRICES[seed % 3], a, b, transpose_a, transpose_b, seed // 4 % 2, on=on, **form)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(c, exact, rtol=2e-2, atol=2e-2 * form["alpha"])


@pytest.mark.parametrize("on", ON)
def test_products_by_matrices_round_their_operands(on):
    c, expected, exact = rounded(MATRICES[0], (33, 40), (40, 35), on=on)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(c - exact).max() > 1e-3


@pytest.mark.parametrize("on", ON)
def test_products_by_matrices_with_a_broadcast_addend(on):
    form = {"alpha": 2, "beta": 3, "relu": 1}
    for residual in [(9,), (5, 1), (2, 5, 9), ()]:
        c, expected, _ = rounded(MATRICES[0], (2, 11, 5), (9, 11), 1, 1, residual=residual, on=on, **form)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)


def test_products_by_matrices_of_vectors_and_of_nothing():
    for a, b in [((7,), (7, 5)), ((3, 7), (7,)), ((2, 3, 7), (7,)), ((7,), (2, 7, 5))]:
        c, expected, _ = rounded(MATRICES[0], a, b, constant=int(len(b) == 1), bias=int(len(b) == 1))
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)
    for a, b in [((0, 7), (7, 5)), ((2, 3, 7), (2, 7, 0)), ((0, 3, 7), (7, 5))]:
        assert rounded(MATRICES[0], a, b)[0].size == 0


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_products_by_matrices_compile_for_cuda(capability):
    large = {"subgroups": 8, "rows": 32, "columns": 4, "depth": 16, "unroll": 1}
    for i, schedule in enumerate([*MATRICES, large]):
        form = {"packs_b": 0, "transpose_a": i % 2, "transpose_b": i // 2, "residual": 1}
        program = Program("gemm_tf32", **schedule, **form)
        assert "mma.sync" in program.native.print(0, "cuda", "matrices")
        program.compile_cuda(capability, "matrices")
