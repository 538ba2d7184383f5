"""require_exact_sums."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of

HEAD = """graph "g" (x: float32[6,4], v: float32[6,8]) -> (z) {
      constant w = float32[4,8] {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}
      constant b = float32[8] {1, 0, 0, 0, 0, 0, 0, 0}
      constant axes = int64[1] {-1}
      constant tiny = float32[] {1e-12}
      constant large = float32[] {1e-3}
      constant zero = float32[] {0}
      constant half = float32[] {0.5}
      p = MatMul(x, w)
"""

MAGNIFIED = {
    "divided by its norm": "n = ReduceL2(p, axes)  z = Div(p, n)",
    "divided by its norm, which a tiny number bounds": "n = ReduceL2(p, axes)  c = Clip(n, tiny)  z = Div(p, c)",
    "a bias between": "q = Add(p, b)  n = ReduceL2(q, axes)  z = Div(q, n)",
    "the root of the sum of squares": (
        "s = Mul(p, p)  n = ReduceSum(s, axes)  r = Sqrt(n)  m = Max(r, tiny)  i = Reciprocal(m)  z = Mul(p, i)"
    ),
    "a norm that is expanded": "n = ReduceL2(p, axes)  s = Shape(p)  e = Expand(n, s)  z = Div(p, e)",
    "a norm whose zeros are replaced": (
        "n = ReduceL2(p, axes)  e = Equal(n, zero)  s = Where(e, half, n)  z = Div(p, s)"
    ),
    "cosine similarity": (
        "m = Mul(p, v)  d = ReduceSum(m, axes)  a = ReduceL2(p, axes)  o = ReduceL2(v, axes)  n = Mul(a, o)  "
        "c = Max(n, tiny)  z = Div(d, c)"
    ),
    "heads": (
        "constant h = int64[3] {6, 2, 4}  q = Reshape(p, h)  t = Transpose(q) {perm=[1, 0, 2]}  "
        "n = ReduceL2(t, axes)  z = Div(t, n)"
    ),
    "normalized": "z = LpNormalization(p) {axis=-1, p=2}",
    "signs": "z = Sign(p)",
    "compared with zero": "r = Relu(p)  z = Greater(r, zero)",
    "a mask": "z = Cast(p) {to=9}",
}

LEFT = {
    "a result": "z = Relu(p)",
    "a norm that is bounded": "n = ReduceL2(p, axes)  c = Add(n, large)  z = Div(p, c)",
    "a norm that is clipped": "n = ReduceL2(p, axes)  c = Clip(n, large)  z = Div(p, c)",
    "divided by another norm": "n = ReduceL2(x, axes)  z = Div(p, n)",
    "compared with a threshold": "z = Greater(p, half)",
    "a function that keeps no zero": "s = Sigmoid(p)  n = ReduceL2(s, axes)  z = Div(s, n)",
}


def text_of(rest: str) -> str:
    return HEAD + "\n".join("      " + line for line in rest.split("  ")) + "\n    }"


@pytest.mark.parametrize("rest", MAGNIFIED.values(), ids=MAGNIFIED.keys())
def test_marks_products_whose_small_elements_count(rest: str) -> None:
    lines = lines_of(after(text_of(rest), "require_exact_sums"))
    assert "p = MatMul(x, w) {exact=1}" in lines
    assert sum("exact" in line for line in lines) == 1


@pytest.mark.parametrize("rest", LEFT.values(), ids=LEFT.keys())
def test_leaves_other_products_alone(rest: str) -> None:
    assert_keeps(text_of(rest), "require_exact_sums")
