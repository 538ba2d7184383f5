"""widen_halves."""

import ml_dtypes
import numpy as np
import pytest
from neo import _native

from tests.passes.rewriting import after, lines_of, parsed

HALVES = ["float16", "bfloat16"]
NUMBER = {"float16": 10, "bfloat16": 16}


@pytest.mark.parametrize("half", HALVES)
def test_computes_in_float32_between_casts(half: str) -> None:
    text = f"""graph "g" (x: {half}[2,3]) -> (y) {{
      "root": r = Sqrt(x)
      "sum": y = Add(r, x)
    }}"""
    graph = after(text, "widen_halves", rtol=1e-2)
    assert lines_of(graph) == [
        "x_wide = Cast(x) {to=1}",
        '"root": r = Sqrt(x_wide)',
        '"sum": y_wide = Add(r, x_wide)',
        f"y = Cast(y_wide) {{to={NUMBER[half]}}}",
    ]
    assert [v.dtype for v in graph.inputs] == [v.dtype for v in graph.outputs] == [half]


def test_casts_and_constants_inside_go() -> None:
    text = """graph "g" (x: float32[2]) -> (y) {
      constant w = float16[2] {1.5, 2.0}
      h = Cast(x) {to=10}
      m = Mul(h, w)
      y = Cast(m) {to=1}
    }"""
    graph = after(text, "widen_halves", "remove_identities", "remove_dead_nodes", rtol=1e-3)
    assert lines_of(graph) == ["y = Mul(x, w)"]
    (product,) = graph.nodes
    assert [v.dtype for v in product.inputs] == ["float32", "float32"]


def test_attributes_that_name_the_type() -> None:
    text = """graph "g" (x: float16[2,2]) -> (y) {
      e = EyeLike(x) {dtype=10}
      y = Add(e, x)
    }"""
    assert "e = EyeLike(x_wide) {dtype=1}" in lines_of(after(text, "widen_halves", rtol=1e-3))


KEPT = {
    "nothing but movement": """graph "g" (x: float16[2,3]) -> (y) {
      y = Transpose(x)
    }""",
    "nearest neighbours": """graph "g" (x: float16[2,3], sizes: int64[2]) -> (y) {
      y = Resize(x, -, -, sizes) {mode="nearest"}
    }""",
    "casts at the border": """graph "g" (x: float16[2,3]) -> (y) {
      a = Cast(x) {to=1}
      b = Relu(a)
      y = Cast(b) {to=10}
    }""",
    "bits that are looked at": """graph "g" (x: float16[2,3]) -> (y) {
      r = Relu(x)
      y = BitCast(r) {to=5}
    }""",
    "a sequence as argument": """graph "g" (x: seq(float16[2,3]), i: int64[]) -> (y) {
      a = SequenceAt(x, i)
      y = Relu(a)
    }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_keeps(text: str) -> None:
    before = parsed(text)
    assert lines_of(_native.run_passes(before, ["widen_halves"])) == lines_of(before)


@pytest.mark.parametrize("half", HALVES)
def test_bodies(half: str) -> None:
    text = f"""graph "g" (c: bool[], x: {half}[3]) -> (y) {{
      y = If(c, x) with {{
        then_branch = graph "then" (a: {half}[3]) -> (r) {{
          r = Exp(a)
        }}
        else_branch = graph "else" (a: {half}[3]) -> (r) {{
          r = Neg(a)
        }}
      }}
    }}"""
    graph = _native.parse_graph(text)
    graph.infer()
    wide = _native.run_passes(graph, ["widen_halves"])
    wide.verify()
    dtype = np.float16 if half == "float16" else ml_dtypes.bfloat16
    x = np.array([0.5, -1.25, 2.0], dtype)
    for chosen, expected in ((True, np.exp(x.astype(np.float32)).astype(dtype)), (False, -x)):
        (result,) = wide.evaluate([np.array(chosen), x])
        np.testing.assert_array_equal(result, expected)
