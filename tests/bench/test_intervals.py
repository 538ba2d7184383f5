"""Intervals of medians by order statistics."""

import math
import random

import pytest
from neo.bench import Interval, median_interval, ratio_interval


@pytest.mark.parametrize("count", [6, 7, 15, 16, 40, 301])
def test_the_interval_is_the_narrowest_that_covers_95_percent(count):
    found = median_interval([float(i) for i in range(count)])

    def coverage(left_out):
        return 1 - 2 * sum(math.comb(count, i) for i in range(left_out + 1)) / 2**count

    left_out = int(found.low)
    assert found.high == count - 1 - left_out
    assert coverage(left_out) >= 0.95 > coverage(left_out + 1)
    assert found.median == (count - 1) / 2


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_values_give_their_range(count):
    values = [float(i) for i in range(count)]
    random.Random(1).shuffle(values)
    assert median_interval(values) == Interval((count - 1) / 2, 0, count - 1)


def test_ratios_are_taken_round_by_round():
    assert ratio_interval([1, 10, 100], [2, 20, 200]) == Interval(0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="shorter"):
        ratio_interval([1, 2], [1])
