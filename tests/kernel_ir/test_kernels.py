"""Every kernel, against NumPy: as plain C under AddressSanitizer, and as OpenCL C on PoCL."""

import numpy as np
import pytest

from tests.kernel_ir.kernels import argsort, cases, scale_codes, scan, scan_reference, tf32, whole, with_ties

CASES = cases()
IDS = [f"{name}-{'x'.join(map(str, sizes.values()))}" for name, sizes, *_ in CASES]


@pytest.fixture(params=["plain C", "OpenCL"])
def launch(request):
    """launch(name, sizes, arrays, numbers) changes the arrays that the kernel writes."""
    if request.param == "plain C":
        return request.getfixturevalue("plain_c").launch
    runner = request.getfixturevalue("opencl")
    return lambda name, sizes, arrays, numbers=None: runner.run(name, sizes, numbers or {}, arrays)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_kernel_computes_what_it_should(launch, case):
    name, sizes, numbers, given, expected = case
    arrays = whole(name, sizes, given)
    launch(name, sizes, arrays, numbers)
    for output, right in expected.items():
        if right.dtype.kind in "iu":
            np.testing.assert_array_equal(arrays[output].reshape(right.shape), right)
        else:
            np.testing.assert_allclose(arrays[output].reshape(right.shape), right, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("n", "starting"), [(1, 0.0), (511, 0.1), (513, 0.0), (40_000, 0.002), (2_000, 1.0)])
def test_segmented_scan(launch, n, starting):
    rng = np.random.default_rng(n)
    x, starts = rng.standard_normal(n).astype("f4"), (rng.random(n) < starting).astype("i4")
    np.testing.assert_allclose(scan(launch, x, starts), scan_reference(x, starts), atol=2e-4)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 3000])
def test_argsort_is_numpys_stable_one(launch, n):
    x = with_ties(np.random.default_rng(n), n)
    np.testing.assert_array_equal(argsort(launch, x), np.argsort(x, kind="stable"))


# Kernel and case of CASES by number; the bits of a number in memory.
HALVES = {"float16": 11, "bfloat16": 8}
STORED = [("gemm_6x2x8", 3), ("conv_subgroup", 6), ("softmax_subgroup", 7), ("mirror_vector", 10)]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(("kernel", "number"), STORED)
def test_a_kernel_whose_memory_holds_halves(launch, kernel, number, half):
    name, sizes, numbers, given, expected = CASES[number]
    assert name == kernel
    stored = {parameter: x.astype(half) for parameter, x in given.items()}
    arrays = whole(f"{name}_{half}", sizes, stored)
    launch(f"{name}_{half}", sizes, arrays, numbers)
    rounded = 2.0 ** -HALVES[half]
    for output, right in expected.items():
        assert arrays[output].dtype == half
        # Operands were rounded too: sums of up to 37 products are off by their roots.
        np.testing.assert_allclose(
            arrays[output].astype("f8").reshape(right.shape), right, rtol=2 * rounded, atol=16 * rounded
        )


@pytest.mark.parametrize("half", HALVES)
def test_rounding_to_halves(launch, half):
    rng = np.random.default_rng(4)
    ties = (np.arange(1, 64, dtype="f4") * np.float32(2.0 ** -HALVES[half]) + 1).astype("f4")
    largest = 65504 if half == "float16" else 3.38e38
    odd = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 6e-8, -3e-8, 2e-39, 1.0009766, 65519, 65520, largest], "f4"
    )
    x = np.concatenate([rng.standard_normal(102).astype("f4"), ties, -ties, odd])
    with np.errstate(over="ignore"):
        expected = x.astype(half)
    name = f"round_to_{half}"
    arrays = whole(name, {"n": x.size}, {"x": x})
    launch(name, {"n": x.size}, arrays, {})
    np.testing.assert_array_equal(arrays["y"].astype("f4"), expected.astype("f4"))


def test_rounding_to_tf32(launch):
    rng = np.random.default_rng(3)
    ties = (np.arange(1, 200, 2, dtype="u4") * np.uint32(0x1000) + np.uint32(0x3F800000)).view("f4")
    odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-39, 3.4028235e38, 65504, 1 + 2**-11], "f4")
    x = np.concatenate([rng.standard_normal(101).astype("f4"), ties, -ties, odd])
    arrays = whole("round_to_tf32", {"n": x.size}, {"x": x})
    launch("round_to_tf32", {"n": x.size}, arrays, {})
    np.testing.assert_array_equal(arrays["y"], tf32(x))
    assert np.count_nonzero(arrays["y"] != x) > 200


def test_products_and_sums_are_each_rounded(launch):
    sizes, numbers, given, expected = scale_codes(np.random.default_rng(1), 1000)
    arrays = whole("scale_codes", sizes, given)
    launch("scale_codes", sizes, arrays, numbers)
    np.testing.assert_array_equal(arrays["y"], expected["y"])
