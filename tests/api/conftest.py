"""Small models, compiled once for all tests of the Python API."""

import neo
import numpy as np
import onnx
import pytest
from neo import demo
from neo.cli import main
from onnx import TensorProto, helper, numpy_helper


def build(nodes, inputs, outputs, constants=None, name="net"):
    graph = helper.make_graph(
        nodes,
        name,
        inputs,
        outputs,
        [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def two_by_two():
    """(a, b) of [N, 3] to their sum and their difference."""
    return build(
        [
            helper.make_node("Add", ["a", "b"], ["sum"], "adds"),
            helper.make_node("Sub", ["a", "b"], ["rest"], "subtracts"),
        ],
        [value("a", ["N", 3]), value("b", ["N", 3])],
        [value("sum", ["N", 3]), value("rest", ["N", 3])],
    )


def long_loop():
    """Adds 1 to x as often as trips says."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["v", "one"], ["next"], "adds")],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [4])],
        [value("go_on", [], TensorProto.BOOL), value("next", [4])],
    )
    return build(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], "loops", body=body)],
        [value("trips", [], TensorProto.INT64), value("x", [4])],
        [value("y", [4])],
        {"one": np.ones(4, np.float32)},
    )


@pytest.fixture(scope="session")
def digits():
    return neo.compile(demo.model_bytes(), threads=2)


@pytest.fixture(scope="session")
def images():
    return demo.images()[0]


@pytest.fixture(scope="session")
def pair():
    return neo.compile(two_by_two(), threads=2)


@pytest.fixture(scope="session")
def loop():
    return neo.compile(long_loop(), threads=1)


@pytest.fixture(scope="session")
def digits_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    path.write_bytes(demo.model_bytes())
    return path


@pytest.fixture(scope="session")
def unsupported_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "unsupported.onnx"
    model = build(
        [helper.make_node("Nonsense", ["x"], ["y"], "odd", domain="their.domain")], [value("x", [2])], [value("y", [2])]
    )
    model.opset_import.append(helper.make_opsetid("their.domain", 1))
    onnx.save(model, path)
    return path


@pytest.fixture
def neo_command(capfd):
    def run(*arguments):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as end:
            status = end.code
        return status, *capfd.readouterr()

    return run
