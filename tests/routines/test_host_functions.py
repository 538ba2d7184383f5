"""Functions of cpu/index that generate numbers, place grids, pool regions and read labels, against the reference, bit for bit."""

import numpy as np
import pytest

from tests.routines.pinning import TIERS, floats, pick, rejections
from tests.routines.test_index import CASES, INDEX, by_tier, check, node_graph


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_ranges(dtype, tier):
    limits = [(0, 5, 1), (3, 3, 1), (7, -4, -3), (-5, 1000, 7), (0, 0, -1)]
    if dtype.startswith("float"):
        limits += [(0.1, 97.3, 0.3), (2.5, -1, -0.01)]
    for numbers in limits:
        inputs = [np.array(n, dtype) for n in numbers]
        check(node_graph("Range", inputs), tier, "node", INDEX, inputs)


def test_ranges_of_halves_are_left_to_the_reference():
    graph = node_graph("Range", [np.array(n, np.float16) for n in (0, 5, 1)])
    assert rejections(graph, TIERS[0], "node")[INDEX] == "there is no kernel for its dtype"


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_affine_grids(align_corners, dtype, tier):
    for seed in range(12):
        random = np.random.default_rng(seed)
        rank = 2 + seed % 2
        sizes = np.array([seed % 3, 4, *(pick(random, [0, 1, 2, 5, 17]) for _ in range(rank))])
        inputs = [random.normal(size=[sizes[0], rank, rank + 1]).astype(dtype), sizes]
        check(node_graph("AffineGrid", inputs, {"align_corners": align_corners}), tier, "node", INDEX, inputs)


@by_tier
def test_largest_of_regions(tier):
    """Regions that end before they begin, and some outside the image."""
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [2, pick(random, [1, 3, 17]), pick(random, [1, 9]), pick(random, [1, 7])]
        count = pick(random, [0, 1, 30])
        regions = np.concatenate([random.integers(0, 2, [count, 1]), random.uniform(-4, 14, [count, 4])], 1)
        inputs = [floats(random, dims), regions.astype(np.float32)]
        attrs = {
            "pooled_shape": [pick(random, [1, 2, 7]), pick(random, [1, 3])],
            "spatial_scale": pick(random, [1.0, 0.5]),
        }
        check(node_graph("MaxRoiPool", inputs, attrs), tier, "node", INDEX, inputs)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_labels(reduction, dtype, tier):
    for seed in range(12):
        random = np.random.default_rng(seed)
        classes, space = pick(random, [1, 2, 9]), [3] * (seed % 3)
        inputs = [random.normal(size=[5, classes, *space]).astype(dtype), random.integers(0, classes, [5, *space])]
        if seed % 2:
            inputs.append(random.uniform(0.1, 1, classes).astype(dtype))
        attrs = {"reduction": reduction, **({"ignore_index": 0} if seed % 4 == 1 and classes > 1 else {})}
        check(node_graph("NegativeLogLikelihoodLoss", inputs, attrs), tier, "node", INDEX, inputs)
