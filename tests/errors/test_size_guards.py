"""What an operator asks of sizes that are only known at a call: taken at the limit, refused one beyond it."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'

# By relation: a model, sizes of its inputs that fit, sizes that do not, and the error.
GUARDS = {
    "equal": (
        "sum (float[n, 4] x, float[m, 4] w) => (y) { xt = Transpose <perm = [1, 0]> (x) y = MatMul (xt, w) }",
        [[(3, 4), (3, 4)], [(1, 4), (1, 4)]],
        [[(3, 4), (4, 4)], [(4, 4), (3, 4)], [(3, 4), (1, 4)], [(1, 4), (3, 4)]],
    ),
    "at most": (
        "best (float[n] x) => (y, i) <int64[1] k = {3}> { y, i = TopK (x, k) }",
        [[(3,)], [(4,)]],
        [[(2,)], [(1,)], [(0,)]],
    ),
    "at most, of a window": (
        "conv (float[1, 2, n, 7] x, float[2, 2, 3, 3] w) => (y) { y = Conv (x, w) }",
        [[(1, 2, 3, 7), (2, 2, 3, 3)]],
        [[(1, 2, 1, 7), (2, 2, 3, 3)], [(1, 2, 0, 7), (2, 2, 3, 3)]],
    ),
    "divides": (
        "rows (float[n, 3] x) => (y) <int64[2] s = {-1, 6}> { y = Reshape (x, s) }",
        [[(4, 3)], [(0, 3)]],
        [[(5, 3)], [(1, 3)]],
    ),
    "broadcasts": (
        "sum (float[n, 3] x, float[m, 3] w) => (y) { y = Add (x, w) }",
        [[(4, 3), (4, 3)], [(4, 3), (1, 3)], [(1, 3), (4, 3)]],
        [[(4, 3), (3, 3)], [(3, 3), (4, 3)], [(2, 3), (4, 3)], [(0, 3), (2, 3)]],
    ),
}


def compiled(name: str) -> neo.Module:
    return neo.compile(onnx.parser.parse_model(HEAD + GUARDS[name][0]))


def arrays(sizes: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [np.random.default_rng(1).standard_normal(dims).astype(np.float32) for dims in sizes]


@pytest.mark.parametrize("name", GUARDS)
def test_sizes_at_the_limit_are_taken(name: str) -> None:
    module = compiled(name)
    for sizes in GUARDS[name][1]:
        module(*arrays(sizes))


@pytest.mark.parametrize("name", GUARDS)
def test_sizes_beyond_the_limit_are_refused(name: str) -> None:
    module = compiled(name)
    for sizes in GUARDS[name][2]:
        with pytest.raises(neo.ShapeError, match=r"\[.*\] .*must .*Got "):
            module(*arrays(sizes))
    module(*arrays(GUARDS[name][1][0]))
