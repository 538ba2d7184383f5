"""Pools of GPUs, plain and with channels that lie together."""

import numpy as np
import pytest

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import ON

OPENCL = ("opencl",)


def floats(*dims):
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "attrs", "dims", "together", "on"),
    [
        ("MaxPool", "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]", (2, 5, 23, 37), 1, ON),
        ("MaxPool", "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]", (2, 13, 9, 11), 8, ON),
        ("MaxPool", "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]", (2, 20, 9, 11), 0, ON),
        ("AveragePool", "kernel_shape=[3], pads=[1, 1], strides=[2]", (2, 7, 9), 0, OPENCL),
        ("AveragePool", "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]", (1, 3, 9, 37), 1, ON),
        (
            "AveragePool",
            "ceil_mode=1, count_include_pad=1, kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 2]",
            (1, 9, 8, 7),
            8,
            OPENCL,
        ),
        ("AveragePool", "kernel_shape=[5], dilations=[2], strides=[1]", (1, 3, 40), 1, OPENCL),
        ("MaxPool", 'kernel_shape=[2, 2, 2], strides=[2, 2, 2], auto_pad="SAME_UPPER"', (1, 3, 5, 6, 7), 1, OPENCL),
    ],
)
def test_pools(op, attrs, dims, together, on):
    shape = ",".join(str(n) for n in dims)
    check(f"y = {op}(i0) {{{attrs}}} <- i0: float32[{shape}]", [floats(*dims)], together=together, on=on)
