"""fold_constants and fold_shapes."""

import numpy as np
import pytest
from neo import _native

from tests.passes.rewriting import after, assert_keeps, assert_rewrites, lines_of, ops_of


def test_nodes_of_constants_become_constants() -> None:
    assert_rewrites(
        """graph "g" (x: float32[2]) -> (y) {
          constant a = float32[2] {1.0, 2.0}
          constant b = float32[2] {3.0, 4.0}
          c = Mul(a, b)
          y = Add(x, c)
        }""",
        """graph "g" (x: float32[2]) -> (y) {
          constant c = float32[2] {3.0, 8.0}
          y = Add(x, c)
        }""",
        "fold_constants",
    )


def test_random_numbers_are_drawn_at_run_time() -> None:
    text = 'graph "g" () -> (y) {\n y = RandomNormal() {shape=[2, 3], seed=1.0}\n}'
    assert ops_of(after(text, "fold_constants")) == ["RandomNormal"]


def test_a_result_that_would_blow_up_waits() -> None:
    text = """graph "g" () -> (y) {
      constant s = int64[2] {4096, 4096}
      z = ConstantOfShape(s)
      y = ReduceMax(z) {keepdims=0}
    }"""
    assert_keeps(text, "fold_constants")


def test_sizes_of_static_shapes_become_constants() -> None:
    text = """graph "g" (x: float32[2,3,4]) -> (y) {
      s = Shape(x)
      y = Reshape(x, s)
    }"""
    result = after(text, "fold_shapes")
    assert lines_of(result) == ["y = Reshape(x, s)"]
    assert result.nodes[0].inputs[1].constant.tolist() == [2, 3, 4]


def test_sizes_of_symbolic_shapes_are_left_to_the_binding() -> None:
    text = """graph "g" (x: float32[N,4]) -> (y) {
      constant i = int64[] {0}
      constant t = int64[1] {2}
      constant a = int64[1] {0}
      s = Shape(x)
      n = Gather(s, i)
      u = Unsqueeze(n, a)
      y = Concat(u, t) {axis=0}
    }"""
    graph = _without_numbers(text)
    assert lines_of(graph) == ['y = neo.Dims() {dims=dims[N,2], dtype="int64", scalar=0}']


def test_dims_are_no_constants() -> None:
    text = """graph "g" (x: float32[N,4]) -> (y) {
      s = Shape(x)
      y = Reshape(x, s)
    }"""
    graph = _without_numbers(text, "fold_shapes", "fold_constants")
    assert ops_of(graph) == ["neo.Dims", "Reshape"]


def _without_numbers(text: str, *passes: str) -> object:
    """Run passes on a graph that only a binding can evaluate afterwards."""
    from neo import _native

    from tests.passes.rewriting import parsed

    result = _native.run_passes(parsed(text), list(passes or ("fold_shapes",)))
    result.verify()
    return result


def test_folded_numbers_are_those_of_the_reference() -> None:
    text = """graph "g" () -> (y) {
      constant a = float32[3] {0.5, -1.5, 2.0}
      y = Exp(a)
    }"""
    result = after(text, "fold_constants")
    np.testing.assert_allclose(result.evaluate([])[0], np.exp(np.float32([0.5, -1.5, 2.0])), rtol=1e-6)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4", "uint4"])
def test_numbers_of_weights_in_blocks_are_those_of_the_reference(dtype: str, axis: int, zero: bool) -> None:
    random = np.random.default_rng([axis + 1, zero])
    low, high = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}[dtype]

    def codes(*dims: int) -> str:
        return ", ".join(map(str, random.integers(low, high, dims).ravel()))

    scales = [5, 3]
    scales[axis] = -(-scales[axis] // 2)  # the last block of 5 or 3 is not whole
    sizes = ",".join(map(str, scales))
    text = f"""graph "g" (x: float32[4,5]) -> (y) {{
      constant w = {dtype}[5,3] {{{codes(5, 3)}}}
      constant s = float32[{sizes}] {{{", ".join(map(str, random.random(scales).ravel()))}}}
      constant z = {dtype}[{sizes}] {{{codes(*scales)}}}
      v = DequantizeLinear(w, s{", z" if zero else ""}) {{axis={axis}, block_size=2}}
      y = MatMul(x, v)
    }}"""
    folded = _native.run_passes(_native.parse_graph(text), ["fold_constants"])
    weights = folded.nodes[-1].inputs[1].constant
    x = np.eye(4, 5, dtype=np.float32)
    (expected,) = _native.parse_graph(text).evaluate([x])
    assert weights is not None
    np.testing.assert_array_equal(x @ weights, expected)
