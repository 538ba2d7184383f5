"""GridSample as plain C and on a device against the operator's reference."""

import numpy as np
import pytest

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import Program


def workload(images, channels, size, points, **attributes):
    (rows, columns), (high, wide) = size, points
    text = ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in attributes.items())
    return (
        f"y = GridSample(i0, i1) {{{text}}} <- i0: float32[{images},{channels},{rows},{columns}]"
        f", i1: float32[{images},{high},{wide},2]"
    )


def operands(images, channels, size, points):
    rng = np.random.default_rng(channels)
    grid = rng.uniform(-1.6, 1.6, (images, *points, 2)).astype("f4")
    flat = grid.reshape(-1)
    flat[:: max(1, flat.size // 7)] = 1.0
    flat[1 :: max(1, flat.size // 5)] = -1.0
    return [rng.standard_normal((images, channels, *size)).astype("f4"), grid]


@pytest.mark.parametrize(
    ("mode", "align", "padding"),
    [
        ("linear", 0, "zeros"),
        ("linear", 1, "border"),
        ("linear", 0, "reflection"),
        ("nearest", 1, "zeros"),
        ("nearest", 1, "reflection"),
    ],
)
def test_samples_as_the_reference(mode, align, padding):
    sizes = (2, 11, (5, 7), (3, 13))
    text = workload(*sizes, align_corners=align, mode=mode, padding_mode=padding)
    check(text, operands(*sizes), exact=mode == "nearest", rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 1, (1, 1), (1, 1)), (3, 17, (1, 5), (7, 1)), (1, 8, (2, 3), (0, 4))])
def test_sizes_that_are_small_odd_or_empty(sizes):
    check(workload(*sizes, padding_mode="border"), operands(*sizes), rtol=1e-4, atol=1e-5)


def test_compiles_for_cuda():
    text = workload(2, 3, (5, 7), (4, 4), padding_mode="reflection")
    Program("basic", workload=text).compile_cuda(87)
