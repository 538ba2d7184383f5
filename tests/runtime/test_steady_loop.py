"""Loops whose iterations are all alike, and those that only begin so, beside the reference."""

from __future__ import annotations

import neo
import numpy as np
import onnx
import pytest
from neo.frontend.onnx import import_model
from onnx import TensorProto, helper, parser

WIDTHS = [1, 7, 16]


def scan(nodes: str, width: int, steps: int, scanned: int = 1, **attrs: object) -> onnx.ModelProto:
    """A Scan of two carried and some scanned values; the body gives a2, b2 and what it collects, y."""
    shapes = f"float[{width}] a, float[{width}] b, " + ", ".join(f"float[{width}] x{i}" for i in range(scanned))
    body = parser.parse_graph(
        f"body ({shapes}) => (float[{width}] a2, float[{width}] b2, float[{width}] y) {{ {nodes} }}"
    )
    xs = [f"xs{i}" for i in range(scanned)]
    node = helper.make_node("Scan", ["a0", "b0", *xs], ["a", "b", "ys"], body=body, num_scan_inputs=scanned, **attrs)
    axes = attrs.get("scan_input_axes", [0] * scanned)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [width]) for n in ("a0", "b0")]
    for x, axis in zip(xs, axes, strict=True):
        inputs.append(
            helper.make_tensor_value_info(x, TensorProto.FLOAT, [steps, width] if axis == 0 else [width, steps])
        )
    outputs = [onnx.ValueInfoProto(name=n) for n in ("a", "b", "ys")]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(model: onnx.ModelProto, *, calls: int = 2) -> None:
    """Several calls of one module against the reference, with one thread and with two."""
    reference = import_model(model)
    for threads in (1, 2):
        module = neo.compile(model, threads=threads)
        for call in range(calls):
            random = np.random.default_rng(call)
            feeds = [
                random.uniform(-1, 1, [d.dim_value for d in v.type.tensor_type.shape.dim]).astype(np.float32)
                if v.type.tensor_type.elem_type == TensorProto.FLOAT
                else np.int64(random.integers(0, 9))
                for v in model.graph.input
            ]
            found = module.run({v.name: f for v, f in zip(model.graph.input, feeds, strict=True)})
            for left, right in zip(found.values(), reference.evaluate(feeds), strict=True):
                assert left.shape == right.shape
                np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 20])
@pytest.mark.parametrize(
    "nodes",
    [
        "a2 = Mul(a, x0) b2 = Tanh(b) y = Add(a2, b2)",
        "a2 = Identity(b) b2 = Identity(a) y = Mul(a, x0)",  # crossed
        "t = Tanh(b) a2 = Identity(t) b2 = Identity(t) y = Identity(t)",  # one value in three places
        "a2 = Identity(x0) b2 = Identity(a) y = Identity(b)",  # handed through
        "c = Constant<value_floats=[0.5]>() a2 = Add(a, c) b2 = Sub(b, a2) y = Identity(x0)",
    ],
)
def test_carried_and_collected(nodes: str, width: int, steps: int) -> None:
    check(scan(nodes, width, steps))


@pytest.mark.parametrize("directions", [[0, 1], [1, 0], [1, 1]])
@pytest.mark.parametrize("axes", [[0, 1], [1, 0], [1, -1]])
@pytest.mark.parametrize("out", [(0, 0), (1, 0), (-1, 1), (0, 1)])
def test_axes_and_directions(axes: list[int], directions: list[int], out: tuple[int, int]) -> None:
    for width in WIDTHS:
        check(
            scan(
                "a2 = Add(a, x0) b2 = Mul(b, x1) y = Sub(a2, b2)",
                width,
                5,
                2,
                scan_input_axes=axes,
                scan_input_directions=directions,
                scan_output_axes=[out[0]],
                scan_output_directions=[out[1]],
            ),
            calls=1,
        )


@pytest.mark.parametrize("nodes", ["more = Concat<axis=0>(v, v1)", "more = Slice(v, one, far)"])
def test_values_that_grow_or_shrink(nodes: str) -> None:
    """The second iteration's sizes are others than the first's."""
    body = parser.parse_graph(
        f"""body (int64 i, bool go, float[n] v) => (bool stop, float[m] more, float s) {{
          one = Constant<value_ints=[1]>() far = Constant<value_ints=[99]>() first = Constant<value_ints=[0]>()
          v1 = Constant<value_floats=[1.5]>() {nodes} stop = Identity(go) s = ReduceSum<keepdims=0>(v) }}"""
    )
    node = helper.make_node("Loop", ["M", "", "v0"], ["v", "sums"], body=body)
    inputs = [helper.make_tensor_value_info("M", TensorProto.INT64, [])]
    inputs.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, [6]))
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("v", "sums")])
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), calls=6)


def test_a_condition_ends_it() -> None:
    body = parser.parse_graph(
        """body (int64 i, bool go, float[16] v) => (bool less, float[16] more) {
          more = Add(v, v) sum = ReduceSum<keepdims=0>(more) limit = Constant<value_float=100.0>() less = Less(sum, limit) }"""
    )
    node = helper.make_node("Loop", ["", "go", "v0"], ["v"], body=body)
    go = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
    v0 = helper.make_tensor_value_info("v0", TensorProto.FLOAT, [16])
    graph = helper.make_graph([node], "g", [go, v0], [onnx.ValueInfoProto(name="v")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    module = neo.compile(model)
    for first in (0.01, 1.0, 5.0, 50.0):
        expected = np.full(16, first, np.float32)
        while True:
            expected = expected + expected
            if expected.sum() >= 100:
                break
        np.testing.assert_array_equal(
            module.run({"go": np.bool_(True), "v0": np.full(16, first, np.float32)})["v"], expected
        )


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("width", [0, 1, 16, 1024, 1030])
def test_a_condition_ends_what_is_collected(width: int, bounded: bool) -> None:
    """There is room for 1 MiB at first; the state and a copy of it, which is collected, lie in one place."""
    body = parser.parse_graph(
        f"""body (int64 i, bool go, float[{width}] v) => (bool less, float[{width}] more, float[{width}] y, int64 at) {{
          half = Constant<value_float=0.5>() t = Mul(v, half) more = Add(t, half) y = Identity(more)
          at = Identity(i) less = Less(i, last) }}"""
    )
    node = helper.make_node("Loop", ["M" if bounded else "", "go", "v0"], ["v", "ys", "at"], body=body)
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, []) for n in ("M", "last")]
    inputs.append(helper.make_tensor_value_info("go", TensorProto.BOOL, []))
    inputs.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, [width]))
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("v", "ys", "at")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    module = neo.compile(model)
    v0 = np.random.default_rng(0).uniform(-1, 1, width).astype(np.float32)
    half = np.float32(0.5)
    for most, last in ((9999, 0), (9999, 1), (3, 700), (9999, 254), (9999, 255), (9999, 256), (300, 700), (9999, 700)):
        count = min(most, last + 1) if bounded else last + 1
        expected, states = v0, []
        for _ in range(count):
            expected = expected * half + half
            states.append(expected)
        feeds = {"M": np.int64(most), "last": np.int64(last), "go": np.bool_(True), "v0": v0}
        found = module.run(feeds)
        np.testing.assert_array_equal(found["v"], expected)
        np.testing.assert_array_equal(found["ys"], np.stack(states))
        np.testing.assert_array_equal(found["at"].ravel(), np.arange(count))


def test_the_iteration_counts() -> None:
    body = parser.parse_graph(
        """body (int64 i, bool go, float[3] v) => (bool stop, float[3] more, int64 at) {
          f = Cast<to=1>(i) more = Add(v, f) stop = Identity(go) at = Identity(i) }"""
    )
    node = helper.make_node("Loop", ["M", "", "v0"], ["v", "at"], body=body)
    inputs = [helper.make_tensor_value_info("M", TensorProto.INT64, [])]
    inputs.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, [3]))
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("v", "at")])
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), calls=6)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize(
    "nodes",
    [
        "a2 = Add(a, x0) b2 = Gather<axis=0>(b, order) y = Gather<axis=0>(x0, order)",  # carried, collected
        "g = Gather<axis=0>(a, order) a2 = Add(g, x0) h = Gather<axis=0>(g, order) b2 = Sub(h, b) y = Tanh(b2)",
        "a2 = Gather<axis=0>(b, order) b2 = Gather<axis=0>(a, order) y = Identity(a2)",  # crossed
        "a2 = Gather<axis=0>(x0, order) b2 = Identity(a) y = Gather<axis=0>(b2, order)",
    ],
)
def test_steps_that_may_fail(nodes: str, width: int, steps: int) -> None:
    """A Gather runs on the host, which takes tensors and no addresses."""
    chosen = f"many = Constant<value_ints=[{width}]>() values, order = TopK<axis=0>(x0, many)"
    check(scan(f"{chosen} {nodes}", width, steps))


@pytest.mark.parametrize("fails_at", [0, 1, 2, 7, 8])
def test_a_step_fails_in_one_iteration(fails_at: int) -> None:
    """The calls before and after it give what they should."""
    nodes = "at = Cast<to=7>(x0) a2 = Gather<axis=0>(a, at) b2 = Add(a2, b) y = Identity(b2)"
    model = scan(nodes, 3, 8)
    module, reference = neo.compile(model), import_model(model)
    random = np.random.default_rng(0)
    good = [np.arange(3, dtype=np.float32), np.ones(3, np.float32), random.integers(0, 3, (8, 3)).astype(np.float32)]
    bad = [*good[:2], good[2].copy()]
    if fails_at < 8:
        bad[2][fails_at, 1] = 3
    for feeds in (good, bad, good):
        named = dict(zip(("a0", "b0", "xs0"), feeds, strict=True))
        if feeds is bad and fails_at < 8:
            with pytest.raises(neo.Error, match="an index must lie inside its axis"):
                module.run(named)
            continue
        for left, right in zip(module.run(named).values(), reference.evaluate(feeds), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("rows", [0, 2])
def test_a_reference_reads_what_has_no_elements(rows: int) -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        loop (int64 n, float[N, 4] x) => (float[N, 4] y) <bool go = {1}> {
          outer = Relu (x)
          y = Loop (n, go, outer) <body = step (int64 i, bool c, float[N, 4] a) => (bool d, float[N, 4] b) {
            d = Identity (c)
            [sum] b = Add (a, outer)
          }>
        }
        """
    )
    module = neo.compile(model, routines={"sum": "cpu/reference"})
    (found,) = module.run({"n": np.array(3), "x": np.ones((rows, 4), np.float32)}).values()
    np.testing.assert_array_equal(found, np.full((rows, 4), 4, np.float32))
