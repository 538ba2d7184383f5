"""Loop: which of its two limits end it, and how its body may declare what it is given."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from neo.frontend.onnx import import_model
from onnx import TensorProto, helper, parser

STOPS_AFTER = 3


def counting(trips: str, condition: str, shape: str = "") -> onnx.ModelProto:
    """Count from zero; the body's condition is false from the third iteration on. Collects what the body is given."""
    stop = (
        "stop = Identity(less)" if not shape else "one_axis = Constant<value_ints=[1]>() stop = Reshape(less, one_axis)"
    )
    body = parser.parse_graph(
        f"""body (int64{shape} i, bool{shape} go, int64 n) => (bool{shape} stop, int64 more, int64{shape} at, bool{shape} saw) {{
          one = Constant<value_int=1>()
          limit = Constant<value_int={STOPS_AFTER}>()
          more = Add(n, one)
          less = Less(more, limit)
          {stop}
          at = Identity(i)
          saw = Identity(go)
        }}"""
    )
    node = helper.make_node("Loop", [trips, condition, "zero"], ["count", "numbers", "conditions"], body=body)
    inputs = [helper.make_tensor_value_info("zero", TensorProto.INT64, [])]
    if trips:
        inputs.append(helper.make_tensor_value_info(trips, TensorProto.INT64, []))
    if condition:
        inputs.append(helper.make_tensor_value_info(condition, TensorProto.BOOL, []))
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "loop", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("shape", ["", "[1]"], ids=["scalars", "vectors"])
@pytest.mark.parametrize(
    ("limits", "iterations"),
    [
        ({"M": 5, "cond": True}, STOPS_AFTER),
        ({"M": 2, "cond": True}, 2),
        ({"M": 5, "cond": False}, 0),
        ({"M": 0, "cond": True}, 0),
        ({"cond": True}, STOPS_AFTER),
        ({"cond": False}, 0),
        ({"M": 5}, 5),
        ({"M": 0}, 0),
        ({"M": -1}, 0),
    ],
    ids=str,
)
def test_limits(limits: dict[str, int | bool], iterations: int, shape: str) -> None:
    model = counting("M" if "M" in limits else "", "cond" if "cond" in limits else "", shape)
    feeds = {"zero": np.int64(0), **{name: np.array(limit) for name, limit in limits.items()}}
    expected_shape = (iterations,) if not shape else (iterations, 1)
    seen = [i < STOPS_AFTER for i in range(iterations)]
    graph = import_model(model)
    for results in (
        list(neo.compile(model).run(feeds).values()),
        graph.evaluate([feeds[value.name] for value in graph.inputs]),
        _native.run_passes(graph).evaluate([feeds[value.name] for value in graph.inputs]),
    ):
        count, numbers, conditions = results
        assert count == iterations
        assert numbers.shape == conditions.shape == expected_shape
        assert numbers.ravel().tolist() == list(range(iterations))
        assert conditions.ravel().tolist() == seen


def test_without_limits_the_body_ends_the_loop() -> None:
    count, numbers, _ = neo.compile(counting("", "")).run({"zero": np.int64(0)}).values()
    assert count == STOPS_AFTER
    assert numbers.tolist() == list(range(STOPS_AFTER))


def test_what_no_iteration_gave_has_the_sizes_that_are_known() -> None:
    model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
rows (float[n, 3] x, int64 trips, bool[5] chosen) => (y, z) {
  y, z = Loop (trips, "") <body = rows (int64 i, bool go) => (bool more, row, some) {
    more = Identity (go)
    row = Relu (x)
    some = Compress <axis = 0> (x, chosen)
  }>
}""")
    module = neo.compile(model)
    x, chosen = np.ones((2, 3), np.float32), np.array([1, 0, 0, 0, 0], bool)
    for trips, counted in ((2, 1), (1, 1), (0, 0)):
        y, z = module(x, np.int64(trips), chosen)
        assert y.shape == (trips, 2, 3)
        assert z.shape == (trips, counted, 3)


def test_a_long_loop_runs_until_the_call_is_cancelled() -> None:
    future = neo.compile(counting("M", "")).run_async({"zero": np.int64(0), "M": np.int64(1 << 40)})
    with pytest.raises(TimeoutError):
        future.result(timeout=0.05)
    future.cancel()
    with pytest.raises(neo.CancelledError):
        future.result(timeout=30)
