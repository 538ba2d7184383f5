"""Models written back as ONNX: checked, run by ONNX Runtime and by neo again, with the answers they had."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import onnxruntime
import pytest
from neo import cli, testing
from onnx import TensorProto, helper, numpy_helper

from tests.saved.parts import MODELS, feeds_of


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answers(path: Path, feeds: dict[str, Any]) -> dict[str, Any]:
    runtime = session(path)
    names = [o.name for o in runtime.get_outputs()]
    return dict(zip(names, runtime.run(names, feeds), strict=True))


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{text}')


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_a_network_loses_nodes_and_keeps_answers_and_face(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((8, 3, 3, 3)),
        "v": random.standard_normal((8, 8, 1, 1)),
        "scale": random.uniform(0.5, 2, 8),
        "shift": random.standard_normal(8),
        "mean": random.standard_normal(8),
        "variance": random.uniform(0.5, 2, 8),
    }
    model = parsed("""
network (float[batch, 3, height, 8] x) => (float[batch, 8, height, 8] y) {
  a = Conv <pads = [1, 1, 1, 1]> (x, w)
  b = BatchNormalization (a, scale, shift, mean, variance)
  c = Relu (b)
  d = Dropout (c)
  e = Conv (d, v)
  f = BatchNormalization (e, scale, shift, mean, variance)
  y = Add (f, c)
}""")
    model.graph.initializer.extend(numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items())
    written = neo.optimize(model, tmp_path / "o.onnx")
    assert (written.nodes_before, written.nodes, dict(written.opsets)) == (7, 4, {"ai.onnx": 18})
    assert written.size == (tmp_path / "o.onnx").stat().st_size
    assert ops(tmp_path / "o.onnx") == ["Conv", "Relu", "Conv", "Add"]
    made = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert [i.name for i in made.graph.input] == ["x"]
    assert [d.dim_param or d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        3,
        "height",
        8,
    ]
    assert [d.dim_param or d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [
        "batch",
        8,
        "height",
        8,
    ]
    x = random.standard_normal((2, 3, 5, 8)).astype(np.float32)
    expected = neo.compile(model)(x)
    testing.assert_arrays_close(answers(tmp_path / "o.onnx", {"x": x})["y"], expected, depth=72)
    testing.assert_arrays_close(neo.compile(tmp_path / "o.onnx")(x), expected, depth=72)


def test_formulas_of_sizes_are_written_as_their_shapes(tmp_path: Path) -> None:
    model = parsed("""
sizes (float["n.0", m] x, float[k] z) => (y, total, wide)
<int64[1] axis = {0}, int64[1] minus = {-1}, int64 first = {0}, int64 second = {1}, int64[1] two = {2}> {
  s = Shape (x)
  n = Gather (s, first)
  m = Gather (s, second)
  nm = Mul (n, m)
  both = Unsqueeze (nm, axis)
  y = Reshape (x, both)
  k = Shape (z)
  sum = Add (nm, k)
  total = Cast <to = 6> (sum)
  half = Div (k, two)
  rows = Unsqueeze (n, axis)
  target = Concat <axis = 0> (half, rows)
  one = ReduceMax <keepdims = 0> (z)
  wide = Expand (one, target)
}""")
    neo.optimize(model, tmp_path / "o.onnx")
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    module = neo.compile(model)
    for n, m, k in ((2, 3, 5), (1, 7, 2)):
        feeds = {"x": np.arange(n * m, dtype=np.float32).reshape(n, m), "z": np.arange(k, dtype=np.float32)}
        expected = module.run(feeds)
        for got in (answers(tmp_path / "o.onnx", feeds), neo.compile(tmp_path / "o.onnx").run(feeds)):
            for name, value in expected.items():
                np.testing.assert_array_equal(got[name], value, strict=True)


def test_an_identity_of_a_map_has_no_form(tmp_path: Path) -> None:
    with pytest.raises(neo.UnsupportedError, match=r"an opset must have all that the graph needs. Got Identity"):
        neo.optimize(MODELS["maps"], tmp_path / "o.onnx")


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"maps"}))
def test_control_flow_strings_and_sequences(name: str, tmp_path: Path) -> None:
    feeds = feeds_of(name)
    written = neo.optimize(MODELS[name], tmp_path / "o.onnx")
    assert written.nodes <= written.nodes_before
    if name != "words":  # an output of open rank: ONNX's checker wants a shape, of the model too
        onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    expected = neo.compile(MODELS[name]).run(feeds)
    for got in (answers(tmp_path / "o.onnx", feeds), neo.compile(tmp_path / "o.onnx").run(feeds)):
        for key, value in expected.items():
            if value.dtype == object:
                assert got[key].tolist() == value.tolist()
            else:
                np.testing.assert_allclose(got[key], value, rtol=1e-5, atol=1e-6)


def test_recurrent_layers_and_scans(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    model = parsed("""
recurrent (float[steps, batch, 3] x) => (float[steps, 1, batch, 4] y, float[1, batch, 4] last, float[batch, 3] sum, steps_out)
<float[3] start = {0, 0, 0}> {
  y, last = LSTM <hidden_size = 4> (x, w, r)
  zero = Shape <start = 1, end = 2> (x)
  three = Constant <value_ints = [3]> ()
  sizes = Concat <axis = 0> (zero, three)
  state = Expand (start, sizes)
  sum, steps_out = Scan <num_scan_inputs = 1, body = add (float[b, 3] s, float[b, 3] e) => (float[b, 3] t, float[b, 3] o) {
    o = Add (s, e)
    t = Mul (o, start)
  }> (state, x)
}""")
    weights = {"w": random.standard_normal((1, 16, 3)), "r": random.standard_normal((1, 16, 4))}
    model.graph.initializer.extend(numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items())
    model.graph.output[3].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, ["steps", "batch", 3]))
    written = neo.optimize(model, tmp_path / "o.onnx")
    assert written.nodes <= written.nodes_before
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    feeds = {"x": random.standard_normal((5, 2, 3)).astype(np.float32)}
    expected = neo.compile(model).run(feeds)
    for got in (answers(tmp_path / "o.onnx", feeds), neo.compile(tmp_path / "o.onnx").run(feeds)):
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


# Of ONNX's own cases: all of these kinds, and of the others each fifth.
_WHOLE = (
    "_if",
    "_loop",
    "_scan",
    "lstm",
    "gru",
    "_rnn",
    "quantize",
    "qlinear",
    "string",
    "sequence",
    "optional",
    "ml_",
)
# ONNX's function body of it does not pass ONNX's checker in opsets from 18 on.
_UNCHECKED = frozenset({"test_mvn"})


@pytest.mark.slow
def test_cases_of_onnx_give_their_answers_again(tmp_path: Path) -> None:
    # Importing them makes ONNX compute them, which takes seconds.
    from tests.conformance.backend_cases import run_case
    from tests.conformance.exceptions import RANDOM, REFUSED, TOLERANCES
    from tests.conformance.test_backend import cases, is_listed

    plain = [name for name in cases() if not is_listed(name, REFUSED) and not is_listed(name, RANDOM)]
    chosen = [name for i, name in enumerate(plain) if i % 5 == 0 or any(word in name for word in _WHOLE)]
    path = tmp_path / "o.onnx"
    for name in chosen:
        case = cases()[name]

        def rewritten(model: Any, name: str = name) -> neo.Module:
            neo.optimize(model, path)
            if name not in _UNCHECKED:
                onnx.checker.check_model(str(path), full_check=True)
            return neo.compile(path)

        rtol, atol, _ = TOLERANCES.get(name, (case.rtol, case.atol, ""))
        run_case(case, rewritten, rtol=rtol, atol=atol)


def test_quantized_weights_stay_codes(tmp_path: Path) -> None:
    model = parsed("""
codes (float[1, 4] x) => (float[1, 2] y)
<float s = {0.5}, int8 z = {0}, int8[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  q = QuantizeLinear (x, s, z)
  d = DequantizeLinear (q, s, z)
  v = DequantizeLinear (w, s, z)
  y = MatMul (d, v)
}""")
    neo.optimize(model, tmp_path / "o.onnx")
    assert sorted(ops(tmp_path / "o.onnx")) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"]
    assert TensorProto.INT8 in {t.data_type for t in onnx.load(tmp_path / "o.onnx").graph.initializer if t.dims}


def test_weights_in_blocks_are_written_without_what_onnx_cannot_say(tmp_path: Path) -> None:
    """Rows that may be rounded beside them are no attribute of ONNX's DequantizeLinear."""
    random = np.random.default_rng(0)
    codes, scales = random.integers(0, 256, (8, 2, 8)).astype(np.uint8), np.full((8, 2), 0.1, np.float32)
    attrs = {"K": 32, "N": 8, "bits": 4, "block_size": 16, "accuracy_level": 4}
    product = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **attrs)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, size]) for name, size in (("x", 32), ("y", 8))]
    constants = [numpy_helper.from_array(a, name) for a, name in ((codes, "w"), (scales, "s"))]
    graph = helper.make_graph([product], "g", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    neo.optimize(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "o.onnx")
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    x = random.integers(-9, 9, (3, 32)).astype(np.float32)
    written = answers(tmp_path / "o.onnx", {"x": x})["y"]
    numbers = (np.stack([codes & 15, codes >> 4], axis=-1).reshape(8, 32) - 8.0) * 0.1
    # ONNX Runtime rounds rows of such products as it likes.
    np.testing.assert_allclose(written, x @ numbers.T, rtol=0.02, atol=0.2)


def test_sizes_that_are_given_are_written(tmp_path: Path) -> None:
    neo.optimize(MODELS["network"], tmp_path / "o.onnx", shapes={"N": 3})
    for value in (session(tmp_path / "o.onnx").get_inputs()[0], session(tmp_path / "o.onnx").get_outputs()[0]):
        assert value.shape[0] == 3


def test_large_weights_lie_in_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("neo.onnx_export.write"), "_MAX_INLINE_BYTES", 3000)
    written = neo.optimize(MODELS["network"], tmp_path / "o.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.onnx", "o.onnx.data"]
    assert written.size == sum(p.stat().st_size for p in tmp_path.iterdir())
    onnx.checker.check_model(str(tmp_path / "o.onnx"), full_check=True)
    feeds = feeds_of("network")
    expected = neo.compile(MODELS["network"]).run(feeds)["y"]
    testing.assert_arrays_close(answers(tmp_path / "o.onnx", feeds)["y"], expected, depth=144)
    testing.assert_arrays_close(neo.compile(tmp_path / "o.onnx").run(feeds)["y"], expected, depth=144)


def test_a_constant_of_one_element_stays_small(tmp_path: Path) -> None:
    model = parsed("""
repeated (float[1, 512] x) => (float[1, 512] y) <int64[2] sizes = {512, 512}> {
  w = ConstantOfShape <value: tensor = float[1] {0.5}> (sizes)
  y = MatMul (x, w)
}""")
    assert neo.optimize(model, tmp_path / "o.onnx").size < 2000
    x = np.ones((1, 512), np.float32)
    np.testing.assert_array_equal(answers(tmp_path / "o.onnx", {"x": x})["y"], neo.compile(model)(x))


Break = Callable[[Path], object]


@pytest.mark.parametrize(
    ("call", "error", "rule"),
    [
        (lambda p: neo.optimize(MODELS["network"], 3), neo.DTypeError, "path must be a path"),
        (lambda p: neo.optimize(p / "absent.onnx", p / "o"), neo.ResourceError, "must be readable"),
        (lambda p: neo.optimize(MODELS["network"], p / "no" / "o"), neo.ResourceError, "file must be written"),
        (lambda p: neo.optimize(b"x", p / "o"), neo.ModelError, "do not parse"),
    ],
)
def test_what_cannot_be_written_is_refused(call: Break, error: type[Exception], rule: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=rule):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_nodes_neo_cannot_run_are_listed(tmp_path: Path) -> None:
    node = helper.make_node("Strange", ["x"], ["y"], domain="elsewhere", name="odd")
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy"]
    model = helper.make_model(
        helper.make_graph([node], "g", value[:1], value[1:]), opset_imports=[helper.make_opsetid("elsewhere", 1)]
    )
    with pytest.raises(neo.UnsupportedError, match=r"every node must be supported. Got 1(.|\n)*Strange"):
        neo.optimize(model, tmp_path / "o.onnx")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(MODELS["network"].SerializeToString())
    assert cli.main(["optimize", str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx"), "--shape", "N=2"]) == 0
    assert "nodes became" in capsys.readouterr().out
    assert session(tmp_path / "o.onnx").get_inputs()[0].shape[0] == 2
