"""Which product a device gets: matrix instructions where it has them and the user lets operands be rounded."""

import neo
import numpy as np
import onnx
import pytest
from neo.kernels import write_kernels

# A layer of a transformer: weights, products of two run-time operands over batches, residuals, an activation.
ATTENTION = """
<ir_version: 8, opset_import: ["" : 20]>
attention (float[1, {t}, {c}] x) => (float[1, {t}, {c}] y)
<float[{c}, {c}] wq, float[{c}, {c}] wk, float[{c}, {c}] wv, float[{c}, {c}] wo, float[{c}, {f}] w1, float[{f}] b1,
 float[{f}, {c}] w2, int64[4] heads = {{1, {t}, {h}, {d}}}, int64[3] whole = {{1, {t}, {c}}}> {{
  q0 = MatMul (x, wq)
  q1 = Reshape (q0, heads)
  q = Transpose <perm = [0, 2, 1, 3]> (q1)
  k0 = MatMul (x, wk)
  k1 = Reshape (k0, heads)
  k = Transpose <perm = [0, 2, 3, 1]> (k1)
  v0 = MatMul (x, wv)
  v1 = Reshape (v0, heads)
  v = Transpose <perm = [0, 2, 1, 3]> (v1)
  s0 = MatMul (q, k)
  s = Softmax (s0)
  o0 = MatMul (s, v)
  o1 = Transpose <perm = [0, 2, 1, 3]> (o0)
  o2 = Reshape (o1, whole)
  o = MatMul (o2, wo)
  r = Add (o, x)
  f0 = MatMul (r, w1)
  f1 = Add (f0, b1)
  f2 = Gelu (f1)
  f = MatMul (f2, w2)
  y = Add (f, r)
}}
"""
PRODUCT = """
<ir_version: 8, opset_import: ["" : 20]>
product (float[3, 32, 40] a, float[40, 24] b) => (float[3, 32, 24] y) { y = MatMul (a, b) }
"""
ROUNDED = "gpu:tf32/gemm"


def attention(tokens=256, channels=768, heads=12):
    sizes = {"t": tokens, "c": channels, "h": heads, "d": channels // heads, "f": 4 * channels}
    made = onnx.parser.parse_model(ATTENTION.format(**sizes))
    shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), (channels, channels))
    shapes |= {"w1": (channels, 4 * channels), "b1": (4 * channels,), "w2": (4 * channels, channels)}
    rng = np.random.default_rng(3)
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return made


def products(module):
    """Of each product, its options by routine, the chosen one first."""
    nodes = [n for n in module.explain().nodes if n.op in {"MatMul", "Gemm", "FusedMatMul"}]
    return [{o.routine.split("{")[0]: o for o in n.options} for n in nodes]


def routines(module):
    return {n.options[0].routine.split("{")[0] for n in module.explain().nodes}


@pytest.fixture(scope="module")
def layer():
    return attention()


def test_operands_are_rounded_only_where_the_user_lets_them(layer, tmp_path):
    for accuracy in (None, "default", "strict"):
        assert ROUNDED not in routines(neo.compile(layer, target="cuda", accuracy=accuracy))
    module = neo.compile(layer, target="cuda", accuracy="reduced")
    assert ROUNDED in routines(module)
    assert "gemm_tf32_" in write_kernels(module, tmp_path / "kernels")
    module.save(tmp_path / "m.neo")
    assert neo.load(tmp_path / "m.neo").target == "cuda"


@pytest.mark.parametrize("target", ["mali", "intel_graphics", "opencl"])
def test_devices_without_matrices_refuse_them(target):
    for of_node in products(neo.compile(attention(32, 64, 4), target=target, accuracy="reduced")):
        assert "the device multiplies no matrices" in of_node[ROUNDED].reason


def test_few_rows_belong_to_the_other_routine():
    for of_node in products(neo.compile(attention(1, 64, 4), target="cuda", accuracy="reduced")):
        assert "fewer rows than a matrix has" in of_node[ROUNDED].reason


def test_a_pin_to_rounding_does_not_change_the_accuracy():
    product = onnx.parser.parse_model(PRODUCT)
    pins = {"*": [ROUNDED, "gpu*copy*"]}
    assert ROUNDED in routines(neo.compile(product, target="cuda", accuracy="reduced", routines=pins))
    with pytest.raises(neo.Error):
        neo.compile(product, target="cuda", routines=pins)
