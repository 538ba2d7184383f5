"""Histograms and the grids that are chosen from them."""

import numpy as np
import pytest
from neo.quantize.ranges import Grid, Histogram, choose_grid


def counts_of(*arrays: np.ndarray) -> Histogram:
    counts = Histogram()
    for array in arrays:
        counts.add(np.asarray(array, np.float32))
    return counts


def error_of(grid: Grid, x: np.ndarray) -> float:
    return float(np.mean((grid.rounded(x.astype(np.float64)) - x) ** 2))


def test_doubling_keeps_counts():
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal(1000) * scale for scale in (0.01, 1, 700)]
    counts = counts_of(*parts)
    middles, found = counts.counted()
    assert found.sum() == 3000
    assert counts.reach == 2.0 ** np.ceil(np.log2(counts.reach))
    assert (counts.low, counts.high) == (np.float32(min(map(np.min, parts))), np.float32(max(map(np.max, parts))))
    together = np.concatenate(parts).astype(np.float32)
    for edge in (-300.0, 0.0, 5.0, 900.0):
        assert abs(found[middles < edge].sum() - (together < edge).sum()) <= (np.abs(together - edge) < 0.5).sum()


def test_large_arrays_are_counted_in_part_but_bounded_by_all():
    x = np.zeros((7, 224, 224), np.float32)
    x[3, 100, 100] = 5
    x[:, :, 1::2] = 1
    counts = counts_of(x)
    assert (counts.low, counts.high) == (0, 5)
    _, found = counts.counted()
    assert found.sum() == pytest.approx(counts.zeros, rel=0.05)


def test_merged_counts_are_those_of_everything():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(500), rng.standard_normal(300) * 40
    whole, merged = counts_of(a, b), Histogram.merged([counts_of(a), counts_of(b)])
    assert (merged.low, merged.high, merged.reach, merged.zeros) == (whole.low, whole.high, whole.reach, whole.zeros)
    np.testing.assert_array_equal(merged.counted()[1].sum(), whole.counted()[1].sum())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("spread", ["normal", "heavy tails", "outlier", "positive", "uniform", "negative"])
def test_least_square_error_is_no_worse_than_the_whole_range(spread, symmetric):
    rng = np.random.default_rng(2)
    x = {
        "normal": rng.standard_normal(20000),
        "heavy tails": rng.standard_t(3, 20000),
        "outlier": np.append(rng.standard_normal(20000), 100),
        "positive": np.abs(rng.laplace(size=20000)),
        "uniform": rng.uniform(-1, 3, 20000),
        "negative": -np.abs(rng.standard_normal(20000)) - 1,
    }[spread]
    counts = counts_of(x)
    best, whole = (choose_grid(counts, how, symmetric=symmetric) for how in ("mse", "minmax"))
    assert error_of(best, x) <= 1.02 * error_of(whole, x)
    if spread == "heavy tails":
        assert error_of(best, x) < 0.97 * error_of(whole, x)


def test_zero_is_always_a_code():
    for x in ([3.0, 4.0], [-5.0, -4.0], [-1.0, 2.0]):
        for how in ("mse", "minmax", "percentile"):
            grid = choose_grid(counts_of(np.array(x)), how)
            assert 0 <= grid.zero <= 255
            assert grid.rounded(np.zeros(1))[0] == 0


@pytest.mark.parametrize("x", [np.zeros(5), np.zeros((0, 3)), np.full(4, 1e-38), np.full(4, 1e-44)], ids=str)
def test_nothing_and_next_to_nothing_have_a_grid(x):
    grid = choose_grid(counts_of(x))
    assert 0 < grid.scale <= 1
    assert np.isfinite(np.float32(grid.scale))


def test_one_value_is_kept():
    grid = choose_grid(counts_of(np.full(100, 7.25)))
    assert grid.rounded(np.array([7.25]))[0] == pytest.approx(7.25, rel=1e-6)


def test_percentiles_leave_tails_out():
    x = np.append(np.linspace(0, 1, 200000), 1000.0)
    high = 255 * choose_grid(counts_of(*np.array_split(x, 10)), "percentile", tail=1e-4).scale
    assert 0.7 < high < 2


def test_infinities_are_counted_apart():
    counts = counts_of([1.0, np.inf, -2.0, np.nan])
    assert (counts.not_finite, counts.low, counts.high) == (2, -2, 1)
