"""Layouts of channels on a device: blocks and channels last through a whole network, without a conversion between."""

import neo
import numpy as np
import onnx
import onnxruntime
import pytest

NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[2, 3, 17, 19] x) => (float[2, 10] y)
  <float[32, 3, 3, 3] first, float[32, 1, 3, 3] deep, float[16, 32, 1, 1] left, float[16, 32, 3, 3] right,
   float[32, 32, 1, 1] last, float[32, 1, 1] scale, float[10, 32] head> {
  a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, first)
  b = Relu (a)
  c = Conv <group = 32, pads = [1, 1, 1, 1]> (b, deep)
  d = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (c)
  e = Conv (d, left)
  f = Conv <pads = [1, 1, 1, 1]> (d, right)
  g = Concat <axis = 1> (e, f)
  h = Mul (g, scale)
  i = Sigmoid (h)
  j = Conv (i, last)
  k = Add (j, d)
  l = GlobalAveragePool (k)
  m = Flatten (l)
  y = Gemm <transB = 1> (m, head)
}
"""


@pytest.fixture(scope="module")
def model():
    parsed = onnx.parser.parse_model(NETWORK)
    random = np.random.default_rng(5)
    for weight in parsed.graph.value_info:
        dims = [d.dim_value for d in weight.type.tensor_type.shape.dim]
        values = random.standard_normal(dims, dtype=np.float32) / np.float32(np.sqrt(np.prod(dims[1:])))
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(values, weight.name))
    del parsed.graph.value_info[:]
    return parsed


@pytest.fixture(scope="module")
def expected(model):
    x = np.random.default_rng(6).standard_normal((2, 3, 17, 19), dtype=np.float32)
    return x, onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("layout", ["nhwc", "nchw16c"])
def test_one_layout_from_the_first_layer_to_the_last(model, expected, layout):
    # Tile sizes of Winograd's algorithm are another test's.
    pins = {"*": ["gpu*" + layout, "gpu/copy", "gpu:float32/gemm"]}
    module = neo.compile(model, target="opencl", routines=pins, accuracy="strict")
    x, right = expected
    np.testing.assert_allclose(module(x), right, rtol=1e-4, atol=1e-4)
    routines = [step.routine.split("{")[0] for step in module.steps if step.routine]
    assert f"gpu:float32/conv_direct_nchw_{layout}" in routines
    for family in ("float32/conv_direct", "float32/conv_depthwise", "float32/pool", "copy", "eltwise", "reduce"):
        assert any(r.endswith(f"{family}_{layout}") for r in routines), family
    conversions = [r for r in routines if r.startswith("opencl:adapt")]
    assert len(conversions) <= 1  # before the matrix product


def test_an_untuned_compile_keeps_the_layout(model, expected):
    module = neo.compile(model, target="opencl")
    x, right = expected
    np.testing.assert_allclose(module(x), right, rtol=1e-3, atol=1e-3)
    assert sum(step.routine.startswith("opencl:adapt") for step in module.steps if step.routine) <= 1
