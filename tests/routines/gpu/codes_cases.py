"""Groups on 8-bit codes for the routines of devices: the codes of the operators' references, in every layout.

As a program it runs them on a target, whose library may come first: ``python codes_cases.py fake libfake.so``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from neo import _native

from tests.routines.codes import Codes
from tests.routines.pinning import candidates, compile_pinned
from tests.routines.test_int8 import addend_case, conv_case, pool_case, product_case
from tests.routines.test_int8_linear import FORMS, GATES, elementwise_case, gate_case

TILED = "gpu:int8/conv_tiled"
DEPTHWISE = "gpu:int8/conv_depthwise"
GEMM = "gpu:int8/gemm"
POOL = "gpu:int8/pool"
ELTWISE = "gpu:int8/eltwise"
LINEAR = "gpu:int8/linear"


def cases(seeds: int) -> Iterator[tuple[str, Codes, str, str]]:
    """Names, cases, the node of the group's result, and the routine."""
    for seed in range(seeds):
        function = "HardSwish" if seed % 3 == 0 else None
        end = "f" if function else "q"
        yield f"conv {seed}", conv_case(seed, function=function), end, TILED
        yield f"few channels {seed}", conv_case(seed, few=True), "q", TILED
        yield f"groups {seed}", conv_case(seed, narrow=True), "q", TILED
        yield f"residual {seed}", conv_case(seed, residual="rounded"), "q", TILED
        depthwise = conv_case(seed, depthwise=True, residual="rounded" if seed % 2 else "", function=function)
        yield f"depthwise {seed}", depthwise, end, DEPTHWISE
        yield f"depthwise, tiled {seed}", conv_case(seed, depthwise=True), "q", TILED
        yield f"product {seed}", product_case(seed), "q" if seed % 3 else "f", GEMM
        yield f"addend {seed}", addend_case(seed, convolves=False), "q", GEMM
        yield f"addend of a conv {seed}", addend_case(seed, convolves=True), "q", TILED
        for op in ("MaxPool", "AveragePool", "GlobalAveragePool"):
            yield f"{op} {seed}", pool_case(seed, op), "q", POOL
    for form in FORMS:
        for dims in ([2, 5, 3], [1, 32, 4, 4], [7], []):
            yield f"{form} {dims}", elementwise_case(form, dims), "q", ELTWISE
    for form in GATES:
        for dims in ([2, 5, 3, 7], [1, 32, 9], [2, 40, 4, 3, 2], [2, 0, 3]):
            yield f"{form} by channel {dims}", gate_case(form, dims), "q", ELTWISE


NETWORK = """
<ir_version: 8, opset_import: ["" : 18]>
network (float[N, 3, 21, 17] x) => (float[N, 5] y)
<float s = {0.05}, float t = {0.11}, uint8 z = {117}, uint8 o = {0}, int32 zero = {0}> {
  x0 = QuantizeLinear (x, s, z)
  x1 = DequantizeLinear (x0, s, z)
  w1 = DequantizeLinear <axis = 0> (k1, m1)
  c1 = Conv <pads = [1, 1, 1, 1], strides = [2, 1]> (x1, w1, b1)
  r1 = Relu (c1)
  a0 = QuantizeLinear (r1, t, o)
  a1 = DequantizeLinear (a0, t, o)
  w2 = DequantizeLinear <axis = 0> (k2, m2)
  c2 = Conv <pads = [1, 1, 1, 1], group = 8> (a1, w2, b2)
  h0 = QuantizeLinear (c2, s, z)
  h1 = DequantizeLinear (h0, s, z)
  h2 = HardSwish (h1)
  h3 = QuantizeLinear (h2, s, z)
  h4 = DequantizeLinear (h3, s, z)
  w3 = DequantizeLinear <axis = 0> (k3, m3)
  c3 = Conv (h4, w3, b3)
  d0 = QuantizeLinear (c3, t, z)
  d1 = DequantizeLinear (d0, t, z)
  e0 = Add (d1, a1)
  e1 = QuantizeLinear (e0, t, z)
  e2 = DequantizeLinear (e1, t, z)
  p0 = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (e2)
  p1 = QuantizeLinear (p0, t, z)
  p2 = DequantizeLinear (p1, t, z)
  j0 = Concat <axis = 1> (p2, e2)
  j1 = QuantizeLinear (j0, t, z)
  j2 = DequantizeLinear (j1, t, z)
  g0 = GlobalAveragePool (j2)
  g1 = QuantizeLinear (g0, s, z)
  g2 = DequantizeLinear (g1, s, z)
  f0 = Flatten (g2)
  w4 = DequantizeLinear <axis = 1> (k4, m4)
  f1 = MatMul (f0, w4)
  f2 = QuantizeLinear (f1, s, z)
  y = DequantizeLinear (f2, s, z)
}
"""


def network() -> onnx.ModelProto:
    """A convolution, a depthwise one with a function behind it, a residual, pools, a concatenation and a product."""
    model = onnx.parser.parse_model(NETWORK)
    random = np.random.default_rng(5)
    for i, (shape, channels) in enumerate([([8, 3, 3, 3], 8), ([8, 1, 3, 3], 8), ([8, 8, 1, 1], 8), ([16, 5], 5)], 1):
        arrays: dict[str, np.ndarray[Any, Any]] = {
            f"k{i}": random.integers(-127, 128, shape).astype(np.int8),
            f"m{i}": random.uniform(0.002, 0.01, channels).astype(np.float32),
            f"b{i}": random.standard_normal(channels).astype(np.float32),
        }
        model.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in arrays.items())
    return model


def check(case: Codes, node: str, routine: str, target: str) -> int:
    """Every candidate of the routine gives the codes of the reference; how many there are."""
    graph = _native.run_passes(case.float, ["fold_constants"])
    found = [c["routine"] for c in candidates(graph, target, node) if c["routine"].split("{")[0] == routine]
    assert found, routine
    expected = case.whole.evaluate(case.inputs)[0]
    for one in found:
        pinned = compile_pinned(graph, target, {node: one if "{" in one else one + "{}"})
        assert pinned.routines[node] == one
        np.testing.assert_array_equal(pinned(*case.inputs), expected, err_msg=one)
    return len(found)


if __name__ == "__main__":
    import neo

    if len(sys.argv) > 2:
        neo.load_devices(sys.argv[2])
    count = 0
    for _, one, name, routine in cases(int(sys.argv[3]) if len(sys.argv) > 3 else 4):
        count += check(one, name, routine, sys.argv[1])
    print(f"{count} candidates")
