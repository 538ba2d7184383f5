"""Rows that are small beside others, where an algorithm that mixes rows would leave the others' rounding errors."""

import neo
import numpy as np
import onnx
import pytest
from onnx import parser


def model_of(rest: str) -> onnx.ModelProto:
    """A product of 512 rows that the default offers Strassen's algorithm for, and what reads it."""
    return parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        rows (float[512, 256] x, float[256, 256] w) => (float[512, 256] z) {{
          axes = Constant <value = int64[1] {{-1}}> ()
          tiny = Constant <value = float {{1e-12}}> ()
          {rest}
        }}""")


def with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    weights = np.random.default_rng(1).standard_normal((256, 256)).astype("f") / 16
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.input[1]
    return model


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((512, 256)).astype("f")
    x[::2] = 0
    x[1::4] *= 1e-4
    return x


def test_rows_of_zeros_stay_zeros_where_they_are_normalized(rows):
    model = with_weights(model_of("p = MatMul(x, w) n = ReduceL2(p, axes) c = Clip(n, tiny) z = Div(p, c)"))
    module = neo.compile(model, threads=1)
    z = module(rows)
    assert not z[::2].any()
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype("f8")
    expected = rows[1::2].astype("f8") @ weights
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    np.testing.assert_allclose(z[1::2], expected, rtol=0, atol=2e-6)


def test_a_product_that_nobody_normalizes_may_mix_rows():
    problem = neo.compile(with_weights(model_of("z = MatMul(x, w)")), threads=1).explain()
    assert "gemm_strassen" in str(problem)


@pytest.mark.parametrize("reader", ["LpNormalization <axis = 1> (c)", "Sign (c)"])
def test_pixels_of_zeros_stay_zeros_beside_others(reader):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        pixels (float[1, 32, 40, 40] x) => (float[1, 64, 40, 40] z) <float[64, 32, 3, 3] w> {{
          c = Conv <pads = [1, 1, 1, 1]> (x, w)
          z = {reader}
        }}""")
    random = np.random.default_rng(5)
    weights = random.standard_normal((64, 32, 3, 3)).astype("f")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    x = random.standard_normal((1, 32, 40, 40)).astype("f")
    x[..., 20:] = 0
    z = neo.compile(model, threads=1)(x)
    assert z[..., :20].any()
    assert not z[..., 21:].any()
