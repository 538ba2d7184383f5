"""Sizes that arithmetic or data tell: what ONNX Runtime runs runs, with the same results, also from a saved module."""

from __future__ import annotations

from pathlib import Path

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.runtime.size_graphs import Builder, random_sizes, shifted_windows


def answers(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def assert_agrees(module: neo.Module, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    found = module.run(feeds)
    for name, want in answers(model, feeds).items():
        np.testing.assert_allclose(found[name], want, rtol=1e-3, atol=1e-3, strict=True, err_msg=name)


# Each takes sizes from a value whose elements nobody reads.
FROM_DATA = {
    "Expand, of NonZero": "c = NonZero (x)  n = Shape <start = 1> (c)  y = Expand (one, n)",
    "ConstantOfShape, of NonZero": "c = NonZero (x)  n = Shape <start = 1> (c)  y = ConstantOfShape (n)",
    "Tile, of Unique": "u = Unique (x)  n = Shape (u)  y = Tile (ones, n)",
    "TopK, of Compress": "p = Greater (x, one)  u = Compress (x, p)  n = Shape (u)  y, i = TopK (x, n)",
    "Reshape, of a half of NonZero": (
        "c = NonZero (x)  n = Shape <start = 1> (c)  h = Div (n, two)  t = Mul (h, two)  "
        "e = Expand (one, t)  s = Concat <axis = 0> (h, two)  y = Reshape (e, s)"
    ),
    "Pad, of ArgMax": "a = ArgMax <axis = 0> (x)  p = Concat <axis = 0> (a, two)  y = Pad (x, p)",
    "Slice, of ArgMax, then a shape": (
        "a = ArgMax <axis = 0> (x)  s = Slice (x, a, end)  n = Shape (s)  m = Add (n, two)  y = Expand (one, m)"
    ),
    "Range, of ArgMax": (
        "a = ArgMax <axis = 0, keepdims = 0> (x)  r = Range (zero, a, step)  n = Shape (r)  y = ConstantOfShape (n)"
    ),
    "Resize, of NonZero": (
        'c = NonZero (x)  n = Shape <start = 1> (c)  m = Max (n, two)  y = Resize <mode = "nearest"> (x, , , m)'
    ),
    "a product, of two counts": (
        "c = NonZero (x)  n = Shape <start = 1> (c)  u = Unique (x)  k = Shape (u)  s = Concat <axis = 0> (n, k)  "
        "e = Expand (one, s)  t = Concat <axis = 0> (k, two)  w = ConstantOfShape (t)  y = MatMul (e, w)"
    ),
}


@pytest.mark.parametrize("text", FROM_DATA.values(), ids=FROM_DATA)
def test_sizes_of_values_that_nobody_reads(text: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f"""
<ir_version: 8, opset_import: ["" : 18]>
sizes (float[n] x) => (y)
<int64[1] two = {{2}}, float[1] one = {{1}}, float[1] ones = {{1}}, int64[1] end = {{100}}, int64 zero = {{0}},
 int64 step = {{1}}> {{ {text} }}""")
    module = neo.compile(model)
    module.save(tmp_path / "m.neo")
    for m in (module, neo.load(tmp_path / "m.neo")):
        for x in ([3, 0, 1.5, 3], [0, 2], [1, 2, 3, 4, 5, 0, 0]):
            assert_agrees(m, model, {"x": np.float32(x)})


@pytest.mark.parametrize("seed", range(40))
def test_random_arithmetic(seed: int) -> None:
    model, feeds = random_sizes(seed)
    assert_agrees(neo.compile(model, threads=1), model, feeds)


def test_sizes_that_outgrow_an_expression(tmp_path: Path) -> None:
    model = shifted_windows(12)
    module = neo.compile(model)
    module.save(tmp_path / "m.neo")
    loaded = neo.load(tmp_path / "m.neo")
    random = np.random.default_rng(0)
    for batch, height, width in ((1, 40, 34), (2, 26, 50), (3, 33, 33)):
        x = random.standard_normal((batch, 3, height, width)).astype(np.float32)
        assert_agrees(module, model, {"x": x})
        np.testing.assert_array_equal(loaded(x), module(x))
    # Sizes are computed before a call: only pads and cuts by elements that are not numbers have no faster routine.
    assert set(module.fallbacks) <= {"Pad", "Slice"}


def test_pads_that_constants_compute() -> None:
    b = Builder()
    listed = b.op(
        "Concat",
        b.ints(2, 0),
        b.op("ConstantOfShape", b.ints(4), value=onnx.helper.make_tensor("", 7, [1], [0])),
        axis=0,
    )
    rows = b.op(
        "Slice", b.op("Reshape", listed, b.ints(-1, 2)), b.ints(-1), b.ints(-(2**63) + 1), b.ints(0), b.ints(-1)
    )
    padded = b.op("Pad", "x", b.op("Cast", b.flat(b.op("Transpose", rows, perm=[1, 0])), to=7))
    result = b.op("Relu", b.op("Conv", padded, b.weights(8, 4, 3)))
    half = b.op("Slice", result, b.ints(0), b.op("Div", b.size(result, 1), b.ints(2)), b.ints(1))
    model = b.model({"x": ["batch", 4, "time"]}, [half])
    module = neo.compile(model)
    for time in (20, 7):
        assert_agrees(module, model, {"x": np.random.default_rng(0).standard_normal((2, 4, time)).astype(np.float32)})
    assert not any(step.routine.startswith("cpu/reference") for step in module.steps)


def test_hints_of_many_sizes_at_once() -> None:
    """Each size may be large, and all of them at once make no tensor: estimates must not fail."""
    b = Builder()
    batch, height, width = b.size("x", 0), b.size("x", 2), b.size("x", 3)
    pixels = b.op("Mul", height, width)
    rows = b.op("Reshape", b.op("Transpose", "x", perm=[0, 2, 3, 1]), b.sizes(batch, pixels, 2))
    scores = b.op("MatMul", rows, b.op("Transpose", rows, perm=[0, 2, 1]))
    pairs = b.op("Unsqueeze", b.op("Softmax", scores, axis=-1), b.ints(1, 2))
    wide = b.op("Expand", pairs, b.sizes(1, height, width, pixels, pixels))
    model = b.model({"x": ["b", 2, "h", "w"]}, [b.op("ReduceSum", wide, b.ints(1, 2), keepdims=0)])
    module = neo.compile(model)
    assert_agrees(module, model, {"x": np.random.default_rng(0).standard_normal((2, 2, 3, 4)).astype(np.float32)})


def test_resizing_one_axis() -> None:
    b = Builder()
    out = b.op("Resize", "x", "", b.constant(np.float32([1.601])), mode="nearest")
    model = b.model({"x": ["n"]}, [out])
    assert_agrees(neo.compile(model), model, {"x": np.float32([1, 2, 4, 8, 16])})


def _stages(count: int) -> onnx.ModelProto:
    """Stages that each keep the positive rows, whose number only a call tells, and widen them in between.

    The first and the last stage's rows are read at the end.
    """
    random = np.random.default_rng(7)
    nodes, kept = [], ["x"]
    for i in range(count):
        for op, inputs, outputs, attrs in [
            ("Greater", [kept[-1], "zero"], [f"is{i}"], {}),
            ("Compress", [kept[-1], f"is{i}"], [f"row{i}"], {"axis": 0}),
            ("Unsqueeze", [f"row{i}", "one"], [f"column{i}"], {}),
            ("MatMul", [f"column{i}", "wide"], [f"wide{i}"], {}),
            ("Softmax", [f"wide{i}"], [f"soft{i}"], {}),
            ("MatMul", [f"soft{i}", "narrow"], [f"narrow{i}"], {}),
            ("Squeeze", [f"narrow{i}", "one"], [f"x{i}"], {}),
        ]:
            nodes.append(helper.make_node(op, inputs, outputs, outputs[0], **attrs))
        kept.append(f"x{i}")
    nodes.append(helper.make_node("Concat", ["x0", kept[-1]], ["y"], axis=0))
    constants = {
        "zero": np.zeros(1, np.float32),
        "one": np.array([1]),
        "wide": random.standard_normal((1, 2048), dtype=np.float32),
        "narrow": random.random((2048, 1), dtype=np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "stages",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_ends_with_a_stage_shares_its_memory_with_other_stages() -> None:
    x = np.random.default_rng(3).standard_normal(300, dtype=np.float32)
    bytes_held = []
    for count in (2, 12):
        model = _stages(count)
        module = neo.compile(model, threads=1)
        assert_agrees(module, model, {"x": x})
        bytes_held.append(module.memory.kept)
    assert bytes_held[1] < 1.5 * bytes_held[0], bytes_held


def test_a_counted_value_is_joined_twice_to_a_known_one() -> None:
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
joined (float[2, 1] x) => (y)
<int64[1, 1] two = {2}> { c = NonZero (x)  y = Concat <axis = 0> (c, two, c) }""")
    module = neo.compile(model)
    assert module(np.array([[0], [3]], np.float32)).tolist() == [[1], [0], [2], [1], [0]]
    with pytest.raises(neo.ShapeError):
        module(np.array([[2], [3]], np.float32))


def test_a_part_of_nothing_may_begin_behind_its_whole() -> None:
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
parts (float[n, 4] x) => (y, z)
<int64[2] from = {9, 2}, int64[2] to = {12, 4}, int64[2] axes = {0, 1}, int64[1] row = {4}, int64[1] end = {9}>
{ r = Relu (x)  y = Slice (r, from, to, axes)  s = Slice (r, row, end)  z = Neg (s) }""")
    module = neo.compile(model)
    for rows in (0, 1, 3, 4, 6, 11):
        x = np.arange(4.0 * rows, dtype=np.float32).reshape(rows, 4)
        assert_agrees(module, model, {"x": x})
