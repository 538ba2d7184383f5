"""Gathering and scattering on GPUs, index for index as the reference."""

import numpy as np
import pytest

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import ON

OPENCL = ("opencl",)


def counted(*dims):
    return np.arange(np.prod(dims), dtype=np.float32).reshape(dims)


def picks(*dims, n, seed=0):
    return np.random.default_rng(seed).integers(-n, n, dims)


def test_gathers():
    check("y = Gather(i0, i1) {axis=1} <- i0: float32[3,7,19], i1: int64[2,4]", [counted(3, 7, 19), picks(2, 4, n=7)])
    check(
        "y = Gather(i0, i1) {axis=2} <- i0: int64[3,7,5], i1: int32[4]",
        [counted(3, 7, 5).astype(np.int64), picks(4, n=5).astype(np.int32)],
        on=OPENCL,
    )
    check(
        "y = GatherElements(i0, i1) {axis=1} <- i0: float32[3,7,5], i1: int64[2,4,5]",
        [counted(3, 7, 5), picks(2, 4, 5, n=7)],
    )
    check(
        "y = GatherND(i0, i1) {batch_dims=1} <- i0: float32[3,7,5,4], i1: int64[3,6,2]",
        [counted(3, 7, 5, 4), picks(3, 6, 2, n=5)],
    )


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatters(reduction):
    on = ON if reduction == "add" else OPENCL
    attrs = f'reduction="{reduction}"'
    check(
        f"y = ScatterElements(i0, i1, i2) {{axis=1, {attrs}}} <- i0: float32[3,7,5], i1: int64[3,4,5], i2: float32[3,4,5]",
        [counted(3, 7, 5), picks(3, 4, 5, n=7), 60 + counted(3, 4, 5)],
        on=on,
    )
    rows = np.random.default_rng(0).permutation(12)[:6]
    if reduction != "none":
        rows[3] = rows[1]
    tuples = np.stack([rows // 4, rows % 4 - 4], -1)
    check(
        f"y = ScatterND(i0, i1, i2) {{{attrs}}} <- i0: float32[3,4,5], i1: int64[6,2], i2: float32[6,5]",
        [counted(3, 4, 5), tuples, 30 + counted(6, 5)],
        on=on,
    )
