"""What compiling takes: constants are held once, and what is given up comes back where somebody lowers again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import neo
import numpy as np
import onnx
import pytest
from neo import _native
from neo.candidates import selection_arrays
from neo.frontend import onnx as frontend
from neo.frontend.onnx import read_model
from neo.pins import Pins
from neo.select import solve
from onnx import numpy_helper

from tests.frontend.models import model_of, value_info

TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
dense (float[4, 64] x, bool c) => (y, z, s) {
  a = MatMul (x, packed)
  y = Relu (a)
  z = If (c) <
    then_branch = yes () => (t) { b = MatMul (x, inner)  t = Tanh (b) },
    else_branch = no () => (e) { e = Identity (packed_too) }
  >
  s = Add (shown, shown)
}"""


@pytest.fixture
def model() -> onnx.ModelProto:
    random = np.random.default_rng(3)
    made = onnx.parser.parse_model(TEXT)
    for name, shape in (("packed", (64, 64)), ("inner", (64, 64)), ("packed_too", (4, 64)), ("shown", (64,))):
        values = random.standard_normal(shape, dtype=np.float32)
        made.graph.initializer.append(numpy_helper.from_array(values, name))
    return made


def constants_of(graph: _native.Graph) -> dict[str, _native.Value]:
    """The constants of a graph and of the bodies in it, by name; those of a body under its name."""
    found = {}
    for node in graph.nodes:
        found |= {v.name: v for v in node.inputs if v is not None and v.shape == (64, 64)}
        for body in node.bodies.values():
            found |= constants_of(body)
    return {name: value for name, value in found.items() if name in ("packed", "inner")}


def test_packed_constants_are_given_up_and_taken_back(model: onnx.ModelProto) -> None:
    made = []

    def remake() -> _native.Graph:
        made.append(_native.run_passes(read_model(model)[0]))
        return made[-1]

    graph = _native.run_passes(read_model(model)[0])
    problem = _native.build_problem(graph, "cpu", 1)
    solution = solve(selection_arrays(problem))
    weights = constants_of(graph)
    assert set(weights) == {"packed", "inner"}
    inputs = [np.ones((4, 64), np.float32), np.array(True)]
    first = problem.lower(list(solution.choice), 0.0, 1, remake=remake)
    for value in weights.values():
        with pytest.raises(neo.ModelError):
            _ = value.constant
    assert not made
    again = problem.lower(list(solution.choice), 0.0, 1)
    assert len(made) == 1, "the model is read once more for those who lower again"
    assert all(value.constant is not None for value in weights.values())
    for one, two in zip(first.call(inputs), again.call(inputs), strict=True):
        np.testing.assert_array_equal(one, two)


def test_codes_are_given_up_where_their_numbers_are_packed() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    dense (float[64, 64] x) => (y) { w = DequantizeLinear (codes, scale)  y = MatMul (x, w) }"""
    made = onnx.parser.parse_model(text)
    codes = np.random.default_rng(3).integers(-127, 128, (64, 64), dtype=np.int8)
    made.graph.initializer.append(numpy_helper.from_array(codes, "codes"))
    made.graph.initializer.append(numpy_helper.from_array(np.float32(0.25), "scale"))

    def graph_of_model() -> _native.Graph:
        return _native.run_passes(read_model(made)[0])

    graph = graph_of_model()
    allow = Pins({"*": "cpu:float32/gemm"}, graph).allow
    problem = _native.build_problem(graph, "cpu", 1, allow)
    choice = list(solve(selection_arrays(problem)).choice)
    module = problem.lower(choice, 0.0, 1, remake=graph_of_model)
    held = [v for node in graph.nodes for v in node.inputs if v is not None and v.name == "codes"]
    assert held
    with pytest.raises(neo.ModelError):
        _ = held[0].constant
    x = np.random.default_rng(4).integers(-4, 5, (64, 64)).astype(np.float32)
    np.testing.assert_array_equal(module.call([x])[0], x @ (codes * np.float32(0.25)))


def test_layers_that_share_their_weights_pack_them_once() -> None:
    layers = 6
    random = np.random.default_rng(3)
    weight, bias = random.standard_normal((128, 128), dtype=np.float32) / 11, np.ones(128, np.float32)
    nodes = []
    for i in range(layers):
        nodes.append(onnx.helper.make_node("MatMul", [f"x{i}", "w"], [f"a{i}"]))
        nodes.append(onnx.helper.make_node("Add", [f"a{i}", "b"], [f"x{i + 1}"]))
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    x = np.ones((16, 128), np.float32)
    model = model_of(nodes, [value_info("x0", x)], [f"x{layers}"], initializers=constants)
    module = neo.compile(model, threads=1)
    assert module.memory.constants < 4 * weight.nbytes
    expected = x
    for _ in range(layers):
        expected = expected @ weight + bias
    np.testing.assert_allclose(module(x), expected, rtol=1e-4, atol=1e-4)


def test_dequantized_weights_are_looked_at_and_not_kept(tmp_path: Path) -> None:
    layers, width = 6, 1024
    random = np.random.default_rng(3)
    nodes, constants = [], [numpy_helper.from_array(np.float32(0.01), "s")]
    for i in range(layers):
        codes = random.integers(-127, 128, (width, width), dtype=np.int8)
        constants.append(numpy_helper.from_array(codes, f"c{i}"))
        nodes.append(onnx.helper.make_node("QuantizeLinear", [f"x{i}", "s"], [f"q{i}"]))
        nodes[-1].input.append("z")
        nodes.append(onnx.helper.make_node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]))
        nodes.append(onnx.helper.make_node("DequantizeLinear", [f"c{i}", "s"], [f"w{i}"]))
        nodes.append(onnx.helper.make_node("MatMul", [f"d{i}", f"w{i}"], [f"x{i + 1}"]))
    constants.append(numpy_helper.from_array(np.uint8(128), "z"))
    path = tmp_path / "m.onnx"
    x = np.ones((16, width), np.float32)
    onnx.save(model_of(nodes, [value_info("x0", x)], [f"x{layers}"], initializers=constants, opset=17), path)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.compile_means", "--one", "neo", str(path), "--threads", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "clear_refs" in done.stderr:
        pytest.skip("this system does not let a process forget its peak")
    assert json.loads(done.stdout)["peak_bytes"] < 4 * layers * width * width, "numbers of all layers at once"


def test_another_model_does_not_take_its_place(model: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    module = neo.compile(path, threads=1)
    problem = module._selection.problem
    for tensor in model.graph.initializer:
        if tensor.name == "packed":
            tensor.CopyFrom(numpy_helper.from_array(np.ones((64, 32), np.float32), "packed"))
    del model.graph.node[2:], model.graph.output[1:]
    onnx.save(model, path)
    with pytest.raises(neo.ModelError, match="must still have its"):
        problem.lower(module._selection.choice, 0.0, 1)


def test_a_compile_imports_no_reports() -> None:
    program = (
        "import sys, neo, onnx\n"
        "text = '<ir_version: 8, opset_import: [\"\" : 18]> g (float[4] x) => (y) { y = Relu (x) }'\n"
        "neo.compile(onnx.parser.parse_model(text))\n"
        "print(sorted(name for name in sys.modules if name.startswith('neo.report')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['neo.report', 'neo.report.fallbacks', 'neo.report.memory', 'neo.report.step']"


def test_a_model_is_loaded_once_for_all_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []
    load = frontend.load_model

    def count(*args: Any, **kwargs: Any) -> Any:
        loaded.append(args)
        return load(*args, **kwargs)

    monkeypatch.setattr(frontend, "load_model", count)
    module = neo.compile(symbolic(), shapes={"N": [1, 2, (3, 8)]}, threads=1)
    assert len(module.variants) == 3
    assert len(loaded) == 1
    sums = [float(module(np.ones((n, 4), np.float32)).sum()) for n in (1, 2, 5)]
    assert sums == [4.0, 8.0, 20.0]


def symbolic() -> onnx.ModelProto:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }'
    return onnx.parser.parse_model(text)
