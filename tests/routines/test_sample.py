"""Samples at the points of a grid, against the reference and against the formulas rounded step by step."""

import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, assert_close, compile_pinned, floats, pick, rejections

ROUTINE = "cpu:float32/grid_sample"
CASES = 24

by_tier = pytest.mark.parametrize("tier", TIERS)
by_mode = pytest.mark.parametrize("mode", ["linear", "nearest"])
by_padding = pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
by_corners = pytest.mark.parametrize("corners", [0, 1])


def sample_graph(x, grid, mode, padding, corners, symbols=False):
    graph = _native.Graph()
    a = graph.add_input("x", "float32", [f"x{i}" if symbols else d for i, d in enumerate(x)])
    b = graph.add_input("g", "float32", [f"g{i}" if symbols and i + 1 < len(grid) else d for i, d in enumerate(grid)])
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    graph.outputs = graph.add_node("GridSample", [a, b], ["y"], attrs, "sample").outputs
    return graph


def run(graph, tier, x, grid):
    pinned = compile_pinned(graph, tier, {"sample": ROUTINE})
    assert pinned.routines["sample"] == ROUTINE
    actual = pinned(x, grid)
    for threads in (2, 5):
        np.testing.assert_array_equal(pinned(x, grid, threads=threads), actual)
    return actual


def step_by_step(x, grid, mode, padding, corners):
    """The usual formulas, every operation rounded to float32."""
    f = np.float32
    rows, columns = x.shape[2:]

    def position(n, size):
        n = n + f(1)
        return n / f(2) * f(size - 1) if corners else (n * f(size) - f(1)) / f(2)

    def whole(v, size):
        """The pixel at a whole position, and where there is one."""
        if padding == "zeros":
            exists = (v >= 0) & (v < size)
            return np.where(exists, v, 0).astype(int), exists
        if padding == "reflection":
            low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
            period = max(high - low, 1e-9) * 2
            v = (v.astype(float) - low) % period
            v = low + np.minimum(v, period - v) if size > 1 else np.zeros_like(v)
        return np.clip(v, 0, size - 1).astype(int), np.ones(v.shape, bool)

    y = np.empty([*x.shape[:2], *grid.shape[1:3]], np.float32)
    for n in range(len(x)):
        c, r = position(grid[n, ..., 0], columns), position(grid[n, ..., 1], rows)

        def at(row, column, plane=x[n]):
            (i, rows_exist), (j, columns_exist) = whole(row, rows), whole(column, columns)
            return np.where(rows_exist & columns_exist, plane[:, i, j], f(0))

        if mode == "nearest":
            y[n] = at(np.rint(r), np.rint(c))
            continue
        c1, r1 = np.floor(c), np.floor(r)
        c2, r2 = c1 + f(1), r1 + f(1)
        dx1, dx2, dy1, dy2 = c - c1, c2 - c, r - r1, r2 - r
        if padding == "zeros" and not corners:
            y[n] = dy2 * dx2 * at(r1, c1) + dy2 * dx1 * at(r1, c2) + dy1 * dx2 * at(r2, c1) + dy1 * dx1 * at(r2, c2)
        else:
            upper, lower = dx2 * at(r1, c1) + dx1 * at(r1, c2), dx2 * at(r2, c1) + dx1 * at(r2, c2)
            y[n] = dy2 * upper + dy1 * lower
    return y


def case(random):
    image = [int(random.integers(1, 3)), pick(random, [1, 3, 8]), pick(random, [1, 2, 5, 16]), pick(random, [1, 3, 7])]
    grid = [image[0], pick(random, [1, 3, 17]), pick(random, [1, 2, 4]), 2]
    points = random.uniform(-1.0, 1.0, grid) * pick(random, [1.0, 1.3, 4.0])
    if random.integers(2):  # on the pixels and halfway between them
        points = np.round(points * 8) / 8
    return floats(random, image), points.astype(np.float32)


@by_tier
@by_mode
@by_padding
@by_corners
def test_rounds_as_the_formulas_do(corners, padding, mode, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        x, grid = case(random)
        graph = sample_graph(x.shape, grid.shape, mode, padding, corners, symbols=bool(random.integers(2)))
        actual = run(graph, tier, x, grid)
        np.testing.assert_array_equal(actual, step_by_step(x, grid, mode, padding, corners))


@by_tier
@by_mode
@by_padding
@by_corners
def test_gives_what_the_reference_gives(corners, padding, mode, tier):
    for seed in range(CASES):
        x, grid = case(np.random.default_rng(100 + seed))
        graph = sample_graph(x.shape, grid.shape, mode, padding, corners)
        actual, expected = run(graph, tier, x, grid), graph.evaluate([x, grid])[0]
        assert_close(actual, expected, 16, (x.shape, grid.shape))


@by_tier
@by_padding
def test_large_enough_for_a_team(padding, tier):
    random = np.random.default_rng(1)
    x = floats(random, [2, 70, 19, 23])
    grid = floats(random, [2, 31, 29, 2]) * np.float32(1.2)
    graph = sample_graph(x.shape, grid.shape, "linear", padding, 0)
    assert_close(run(graph, tier, x, grid), graph.evaluate([x, grid])[0], 16)


@by_tier
@by_mode
@by_padding
def test_points_that_are_no_numbers(padding, mode, tier):
    x = floats(np.random.default_rng(2), [1, 3, 5, 4])
    special = np.array([np.nan, np.inf, -np.inf, 3e38, -1e9, 0.25], np.float32)
    grid = np.stack(np.meshgrid(special, special), axis=-1)[None]
    graph = sample_graph(x.shape, grid.shape, mode, padding, 0)
    actual = run(graph, tier, x, grid)
    if padding == "reflection":  # far away, where a point lands is a matter of rounding
        assert np.isfinite(actual).all()
        assert np.abs(actual).max() <= 1
    else:
        assert_close(actual, graph.evaluate([x, grid])[0], 16)


@by_tier
@pytest.mark.parametrize(
    ("x", "grid"), [([0, 3, 5, 5], [0, 4, 4, 2]), ([2, 0, 5, 5], [2, 4, 4, 2]), ([2, 3, 5, 5], [2, 0, 4, 2])]
)
def test_no_elements(x, grid, tier):
    graph = sample_graph(x, grid, "linear", "zeros", 0, symbols=True)
    actual = run(graph, tier, np.zeros(x, np.float32), np.zeros(grid, np.float32))
    assert actual.shape == (x[0], x[1], *grid[1:3])


def test_planes_without_pixels():
    graph = sample_graph([1, 2, 0, 3], [1, 2, 2, 2], "linear", "zeros", 0, symbols=True)
    pinned = compile_pinned(graph, TIERS[0], {"sample": ROUTINE})
    with pytest.raises(ShapeError, match="a plane must hold pixels"):
        pinned(np.zeros([1, 2, 0, 3], np.float32), np.zeros([1, 2, 2, 2], np.float32))


@by_tier
@by_padding
@by_corners
@pytest.mark.parametrize(
    ("mode", "axes"), [("linear", 1), ("linear", 3), ("nearest", 1), ("nearest", 3), ("cubic", 1), ("cubic", 2)]
)
def test_lines_volumes_and_cubics(mode, axes, corners, padding, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        image = [
            int(random.integers(1, 3)),
            pick(random, [1, 3, 35]),
            *(pick(random, [1, 2, 5, 9]) for _ in range(axes)),
        ]
        grid = [image[0], *(pick(random, [1, 3, 17]) for _ in range(axes)), axes]
        # Eighths: no point lies halfway between two pixels by rounding alone.
        points = np.round(random.uniform(-1.0, 1.0, grid) * pick(random, [1.0, 1.3, 4.0]) * 8) / 8
        x = floats(random, image)
        graph = sample_graph(image, grid, mode, padding, corners, symbols=bool(random.integers(2)))
        actual = run(graph, tier, x, points.astype(np.float32))
        assert_close(actual, graph.evaluate([x, points.astype(np.float32)])[0], 64, (image, grid))


@by_tier
@by_padding
def test_points_of_a_volume_that_are_no_numbers(padding, tier):
    x = floats(np.random.default_rng(2), [1, 3, 5, 4, 3])
    special = np.array([np.nan, np.inf, -np.inf, 3e38, -1e9, 0.25], np.float32)
    grid = np.stack(np.meshgrid(special, special, special), axis=-1)[None]
    actual = run(sample_graph(x.shape, grid.shape, "linear", padding, 0), tier, x, grid)
    assert np.isfinite(actual).all()
    assert np.abs(actual).max() <= 1


def test_says_why_it_declines():
    graph = sample_graph([1, 2, 4, 3, 2], [1, 2, 2, 2, 3], "cubic", "zeros", 0)
    assert rejections(graph, TIERS[0], "sample")[ROUTINE] == "the interpolation is cubic in a volume"
