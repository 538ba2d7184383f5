"""The whole pipeline."""

from importlib.resources import files

import numpy as np
import pytest
from neo import _native
from neo.frontend.onnx import import_model

from tests.passes.rewriting import after, lines_of, parsed


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify the graph after every pass."""
    monkeypatch.setenv("NEO_VERIFY", "1")


def test_demo_model() -> None:
    folder = files("neo.demo")
    graph = import_model(str(folder / "digits.onnx"))
    result = _native.run_passes(graph)
    result.verify()
    shape = [d if isinstance(d, int) else 2 for d in graph.inputs[0].shape]
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    for left, right in zip(result.evaluate([x]), graph.evaluate([x]), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    assert len(result.nodes) <= len(graph.nodes)


def test_names_are_those_of_passes() -> None:
    names = _native.pass_names()
    assert len(names) > 15
    assert all(name.replace("_", "").isalpha() for name in names)


def test_a_second_run_changes_nothing() -> None:
    graph = _native.run_passes(import_model(str(files("neo.demo") / "digits.onnx")))
    assert str(_native.run_passes(graph)) == str(graph)


def test_what_one_pass_leaves_is_the_pattern_of_another() -> None:
    # The transposes between Conv and Relu go before the clamp can fold; the pad folds into the second Conv.
    text = """graph "g" (x: float32[1,2,6,6]) -> (y) {
      constant w = float32[3,2,1,1] splat 0.5
      constant v = float32[2,3,3,3] splat 0.25
      constant c = float32[3] {0.5, -0.5, 1.0}
      constant p = int64[8] {0, 1, 1, 0, 0, 1, 1, 0}
      a = Conv(x, w)
      b = Transpose(a) {perm=[0, 2, 3, 1]}
      d = Add(b, c)
      e = Relu(d)
      f = Pad(e, p)
      h = Transpose(f) {perm=[0, 3, 1, 2]}
      y = Conv(h, v)
    }"""
    result = _native.run_passes(parsed(text))
    assert lines_of(result) == [
        "e = Conv(x, w, a.bias) {clamp_min=0.0}",
        "y = Conv(e, v) {pads=[1, 1, 1, 1]}",
    ]


def test_bodies_are_rewritten_too() -> None:
    text = """graph "g" (c: bool[], x: float32[2,3]) -> (y) {
      y = If(c, x) with {
        then_branch = graph "then" (x: float32[2,3]) -> (a) {
          s = Sigmoid(x)
          a = Mul(x, s)
        }
        else_branch = graph "else" (x: float32[2,3]) -> (b) {
          t = Identity(x)
          b = Neg(t)
        }
      }
    }"""
    result = after(text, *_native.pass_names())
    assert "a = Swish(x)" in lines_of(result)
    assert "b = Neg(x)" in lines_of(result)


def test_quantized_chain_rounds_where_the_model_does() -> None:
    text = """graph "g" (x: float32[1,2,4,4]) -> (y) {
      constant s = float32[] {0.05}
      constant z = uint8[] {128}
      constant w = int8[3,2,1,1] {5, -7, 11, 3, -2, 8}
      constant ws = float32[] {0.02}
      constant wz = int8[] {0}
      q = QuantizeLinear(x, s, z)
      c = QLinearConv(q, s, z, w, ws, wz, s, z)
      m = MaxPool(c) {kernel_shape=[2, 2]}
      y = DequantizeLinear(m, s, z)
    }"""
    result = after(text, *_native.pass_names(), atol=0.051)
    assert [n.op for n in result.nodes] == [
        "QuantizeLinear",
        "DequantizeLinear",
        "DequantizeLinear",
        "Conv",
        "QuantizeLinear",
        "DequantizeLinear",
        "MaxPool",
        "QuantizeLinear",
        "DequantizeLinear",
    ]
