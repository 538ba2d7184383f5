"""Sizes that a plan fills in have memory of their own, also where a Concat joins them with a step's result."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
sizes (float[n, m] x, int64[1] given) => (wide)
<int64[1] two = {2}, float one = {1}> {
  n = Shape <start = 0, end = 1> (x)
  half = Div (given, two)
  target = Concat <axis = 0> (half, n)
  wide = Expand (one, target)
}""")


def test_a_size_beside_a_computed_element(tmp_path: Path) -> None:
    module = neo.compile(MODEL)
    module.save(tmp_path / "m.neo")
    for m in (module, neo.load(tmp_path / "m.neo")):
        for n in (3, 1):
            wide = m.run({"x": np.zeros((n, 2), np.float32), "given": np.array([4])})["wide"]
            np.testing.assert_array_equal(wide, np.ones((2, n), np.float32), strict=True)
