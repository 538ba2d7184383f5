"""Reductions, softmax and normalisations on GPUs."""

import numpy as np
import pytest

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import ON


def floats(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


OPENCL = ("opencl",)


@pytest.mark.parametrize(
    ("op", "on"), [("Sum", ON), ("Mean", OPENCL), ("Max", OPENCL), ("L2", OPENCL), ("Prod", OPENCL), ("LogSumExp", ON)]
)
def test_rows_and_columns(op, on):
    for axes, few in [("2", 0), ("1", 0), ("1, 2", 64)]:
        if few and op not in ("Sum", "LogSumExp"):
            continue
        n = axes.count(",") + 1
        text = f"y = Reduce{op}(i0, k0) <- i0: float32[3,5,35], k0: int64[{n}] {{{axes}}}"
        check(text, [floats(3, 5, 35)], on=on if axes != "1" else ("opencl",), rtol=1e-5, few_rows=few)


@pytest.mark.parametrize(
    ("op", "dims", "axes", "on"),
    [
        ("Sum", (2, 5, 3, 7), "0, 2, 3", ON),
        ("Mean", (3, 5, 2, 4, 3), "1, 3", OPENCL),
        ("Max", (3, 5, 7), "0, 2", OPENCL),
        ("LogSumExp", (3, 1, 7, 5), "1, 3", ON),
        ("L2", (2, 3, 1, 5), "0, 3", OPENCL),
        ("Sum", (3, 4, 0), "0, 2", ON),
        ("Sum", (0, 4, 3), "0, 2", OPENCL),
    ],
)
@pytest.mark.parametrize("keep", [0, 1])
def test_axes_that_are_no_neighbours(op, dims, axes, keep, on):
    text = f"y = Reduce{op}(i0, k0) {{keepdims={keep}}} <- i0: float32[{','.join(map(str, dims))}]"
    x = floats(*dims)
    if op == "Max":
        x[1, 2, 3] = np.nan
    check(f"{text}, k0: int64[{axes.count(',') + 1}] {{{axes}}}", [x], on=on if keep else OPENCL, rtol=1e-5)


def test_whole_numbers_along_axes_that_are_no_neighbours():
    whole = np.arange(60).reshape(4, 5, 3) * 10**9
    check("y = ReduceSum(i0, k0) <- i0: int64[4,5,3], k0: int64[2] {0, 2}", [whole], on=OPENCL)


def test_reductions_keep_nan_and_integers():
    x = floats(4, 20)
    x[1, 3] = np.nan
    check("y = ReduceMin(i0, k0) <- i0: float32[4,20], k0: int64[1] {1}", [x], on=OPENCL)
    whole = np.arange(40).reshape(4, 10) * 10**9
    check("y = ReduceSum(i0, k0) {keepdims=0} <- i0: int64[4,10], k0: int64[1] {0}", [whole], on=OPENCL)


@pytest.mark.parametrize("last", [0, 1])
def test_arg_of_ties(last):
    x = np.random.default_rng(1).integers(0, 3, (2, 9, 3)).astype(np.float32)
    check(f"y = ArgMax(i0) {{axis=1, select_last_index={last}}} <- i0: float32[2,9,3]", [x], on=ON if last else OPENCL)
    check(f"y = ArgMin(i0) {{axis=2, select_last_index={last}}} <- i0: float32[2,9,3]", [x], on=OPENCL)


def test_global_pools():
    x = floats(2, 13, 5, 7)
    check("y = GlobalAveragePool(i0) <- i0: float32[2,13,5,7]", [x], on=OPENCL)
    check("y = GlobalAveragePool(i0) <- i0: float32[2,13,5,7]", [x], together=8)
    check("y = GlobalMaxPool(i0) <- i0: float32[2,13,5,7]", [x], together=0)


@pytest.mark.parametrize(
    ("text", "few", "on"),
    [
        ("y = Softmax(i0) <- i0: float32[N,6,37] where N in [1,9] hint 2", 0, ON),
        ("y = Softmax(i0) {axis=2} <- i0: float32[3,6,37]", 999, ON),
        ("y = Softmax(i0) {axis=1} <- i0: float32[3,6,37]", 0, ON),
        ("y = LogSoftmax(i0) {axis=0} <- i0: float32[3,6,37]", 0, OPENCL),
    ],
)
def test_softmax(text, few, on):
    check(text, [floats(3, 6, 37) * 9], on=on, few_rows=few)


@pytest.mark.parametrize(
    ("text", "inputs", "few", "on"),
    [
        (
            "y0, y1, y2 = LayerNormalization(i0, i1, i2) {axis=-1} <- i0: float32[3,5,37], i1: float32[37], i2: float32[37]",
            37,
            999,
            ON,
        ),
        ("y = RMSNormalization(i0, i1) {axis=-1} <- i0: float32[3,5,37], i1: float32[37]", 37, 0, OPENCL),
        ("y = InstanceNormalization(i0, i1, i2) <- i0: float32[3,5,37], i1: float32[5], i2: float32[5]", 5, 0, ON),
        (
            "y = GroupNormalization(i0, i1, i2) {num_groups=2} <- i0: float32[3,6,11], i1: float32[6], i2: float32[6]",
            6,
            0,
            OPENCL,
        ),
    ],
)
def test_norms(text, inputs, few, on):
    x = floats(3, 5, 37) if inputs != 6 else floats(3, 6, 11)
    check(
        text,
        [x, *[floats(inputs, seed=i) for i in range(1, text.count("i2") + 1 if "i2" in text else 2)]],
        on=on,
        few_rows=few,
    )


def test_channel_norms():
    check("y = LRN(i0) {size=5, alpha=0.01, bias=2.0} <- i0: float32[2,7,5,5]", [floats(2, 7, 5, 5) * 5])
    check(
        "y = BatchNormalization(i0, i1, i2, i3, i4) <- i0: float32[2,7,5,5], i1: float32[7], i2: float32[7], i3: float32[7], i4: float32[7]",
        [floats(2, 7, 5, 5), *[np.abs(floats(7, seed=i)) for i in range(4)]],
        on=OPENCL,
    )
