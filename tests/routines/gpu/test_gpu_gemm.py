"""Matrix products of the GPU's programs against NumPy."""

import numpy as np
import pytest

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
