"""What compiling takes: constants are held once, and what is given up comes back where somebody lowers again."""

from __future__ import annotations

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
from neo.select import solve
from onnx import numpy_helper

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
