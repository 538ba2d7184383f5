"""store_halves: which nodes of a widened model get their halves back, and what stands between them and the others."""

import numpy as np
import pytest
from neo import _native

from tests.passes.rewriting import lines_of, parsed

NUMBER = {"float16": 10, "bfloat16": 16}


def stored(text: str, target: str = "null") -> _native.Graph:
    """Return the graph that the passes make for a device, which must verify and compute the same within a half."""
    graph = parsed(text)
    result = _native.run_passes(graph, target=target)
    result.verify()
    inputs = [
        np.random.default_rng(1).standard_normal([d if isinstance(d, int) else 3 for d in v.shape]).astype(v.dtype)
        for v in graph.inputs
        if v.dtype != "bfloat16"
    ]
    if len(inputs) == len(graph.inputs):
        wide = _native.run_passes(graph).evaluate(inputs)
        for actual, expected in zip(result.evaluate(inputs), wide, strict=True):
            np.testing.assert_allclose(np.asarray(actual, "f8"), np.asarray(expected, "f8"), rtol=1e-2, atol=1e-2)
    return result


@pytest.mark.parametrize("half", NUMBER)
def test_a_model_of_halves_is_one_again(half: str) -> None:
    graph = stored(f"""graph "g" (x: {half}[2,3]) -> (y) {{
      r = Softmax(x)
      y = Mul(r, x)
    }}""")
    assert lines_of(graph) == ["r = Softmax(x)", "y = Mul(r, x)"]
    assert [v.dtype for node in graph.nodes for v in node.outputs] == [half, half]


def test_without_a_device_it_stays_wide() -> None:
    text = 'graph "g" (x: float16[2,3]) -> (y) { y = Softmax(x) }'
    assert lines_of(stored(text, "cpu")) == [
        "x_wide = Cast(x) {to=1}",
        "y_wide = Softmax(x_wide)",
        "y = Cast(y_wide) {to=10}",
    ]


def test_casts_stand_around_what_the_device_does_not_take() -> None:
    graph = stored("""graph "g" (x: float16[2,3,3]) -> (y) {
      a = Softmax(x)
      d = Det(a)
      b = Sigmoid(d)
      y = Sqrt(b)
    }""")
    assert lines_of(graph) == [
        "a = Softmax(x)",
        "a_wide = Cast(a) {to=1}",
        "d = Det(a_wide)",
        "d_half = Cast(d) {to=10}",
        "b = Sigmoid(d_half)",
        "y = Sqrt(b)",
    ]


def test_constants_become_halves_where_they_are_the_same_numbers() -> None:
    text = """graph "g" (x: float16[2,3]) -> (y) {{
      constant a = float16[1] {{{0}}}
      constant b = float16[1] {{{0}}}
      c = Mul(a, b)
      d = Add(x, c)
      e = Sub(d, c)
      y = Sqrt(e)
    }}"""
    small = stored(text.format("0.5"))
    assert all(v.dtype == "float16" for node in small.nodes for v in node.inputs)
    large = _native.run_passes(parsed(text.format("1000.0")), target="null")  # 1e6 is no half
    assert [line.split(" = ")[1].split("(")[0] for line in lines_of(large)][:3] == ["Cast", "Add", "Sub"]


def test_what_the_model_computes_in_float32_stays_wide() -> None:
    graph = stored("""graph "g" (x: float16[2,3]) -> (y) {
      s = Softmax(x)
      w = Cast(s) {to=1}
      a = Exp(w)
      b = Log(a)
      c = Cast(b) {to=10}
      y = Sqrt(c)
    }""")
    types = {v.name: v.dtype for node in graph.nodes for v in node.outputs}
    assert types["s"] == "float16"
    assert types["a"] == "float32"


@pytest.mark.parametrize("half", NUMBER)
def test_sums_stay_float32_where_they_may_leave_the_range(half: str) -> None:
    graph = stored(f"""graph "g" (x: {half}[2,30], w: {half}[2,1]) -> (y) {{
      constant axes = int64[1] {{1}}
      s = Exp(x)
      a = ReduceSum(s, axes)
      b = Sub(a, w)
      c = Mul(b, x)
      y = Sigmoid(c)
    }}""")
    types = {v.name: v.dtype for node in graph.nodes for v in node.outputs}
    assert types["a"] == ("float32" if half == "float16" else half)
    assert (types["s"], types["c"]) == (half, half)


def test_what_only_moves_is_marked_by_its_operands() -> None:
    graph = stored("""graph "g" (x: float16[2,4]) -> (y) {
      a = Exp(x)
      b = Transpose(a) {perm=[1,0]}
      y = Softmax(b)
    }""")
    assert all(v.dtype == "float16" for node in graph.nodes for v in node.outputs)


def test_the_factors_of_a_resize_stay_float32() -> None:
    graph = stored("""graph "g" (x: float16[1,2,3,4]) -> (y) {
      constant f = float32[4] {1.0, 1.0, 2.0, 2.0}
      a = Resize(x, -, f) {mode="linear"}
      y = Sqrt(a)
    }""")
    resize = next(node for node in graph.nodes if node.op == "Resize")
    assert [v.dtype for v in resize.inputs if v is not None] == ["float16", "float32"]
