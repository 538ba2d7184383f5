"""Memory that a plan shares: what a body, a branch or a later part of the plan still reads is nobody else's."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx import import_model

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'

# Each makes a value, then a row of others from it, of which the last is ready before the value is read again.
MODELS = {
    "a loop's body": """captured (float[64] x, int64 n) => (y, z) <bool go = {1}> {
      kept = Exp (x)
      a = Sin (kept)  b = Cumsum (a)  c = Cos (b)  d = Tanh (c)
      y = Loop (n, go, d) <body = body (int64 i, bool more, float[64] d) => (bool more_out, float[64] e) {
        more_out = Identity (more)
        e = Add (d, kept)
      }>
      z = ReduceSum <keepdims = 0> (y)
    }""",
    "what a loop carries": """carried (float[64] x, int64 n) => (y, z) <bool go = {1}> {
      kept = Exp (x)
      a = Sin (kept)  b = Cumsum (a)  c = Cos (b)  d = Tanh (c)
      y, z = Loop (n, go, kept, d) <body = body (int64 i, bool more, float[64] k, float[64] d)
          => (bool more_out, float[64] f, float[64] e) {
        more_out = Identity (more)
        e = Add (d, k)
        f = Neg (k)
      }>
    }""",
    "what a loop scans": """scanned (float[64] x, int64 n) => (y, z) {
      kept = Exp (x)
      a = Sin (kept)  b = Cumsum (a)  c = Cos (b)  d = Tanh (c)
      start = ReduceSum <keepdims = 0> (d)
      y, z = Scan <num_scan_inputs = 2, body = body (float s, float k, float e) => (float t, float u) {
        p = Mul (k, e)
        t = Add (s, p)
        u = Identity (t)
      }> (start, kept, d)
    }""",
    "a branch": """branch (float[64] x, int64 n) => (y, z) {
      kept = Exp (x)
      a = Sin (kept)  b = Cumsum (a)  c = Cos (b)  d = Tanh (c)
      two = Constant <value_int = 2> ()
      less = Less (n, two)
      y = If (less) <then_branch = yes () => (float[64] p) { p = Sub (kept, d) },
                     else_branch = no () => (float[64] q) { q = Add (d, kept) }>
      z = Neg (y)
    }""",
    "a part whose sizes come later": """later (float[64] x, int64 n) => (y, z) {
      kept = Exp (x)
      a = Sin (kept)  b = Cumsum (a)  c = Cos (b)  d = Tanh (c)
      places = NonZero (d)
      y = Gather <axis = 0> (d, places)
      z = Add (y, kept)
    }""",
}


def model(name: str) -> onnx.ModelProto:
    text = MODELS[name].replace("b = Cumsum (a)", "axis = Constant <value_int = 0> () b = CumSum (a, axis)")
    return onnx.parser.parse_model(HEAD + text)


@pytest.mark.parametrize("name", MODELS)
def test_memory_that_is_read_later_is_nobody_elses(name: str) -> None:
    proto = model(name)
    x = np.random.default_rng(5).standard_normal(64).astype(np.float32)
    module = neo.compile(proto)
    for n in (3, 1):
        feeds = {"x": x, "n": np.array(n, np.int64)}
        graph = import_model(proto)
        expected = graph.evaluate([feeds[value.name] for value in graph.inputs])
        for found, right in zip(module.run(feeds).values(), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)
