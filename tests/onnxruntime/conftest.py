"""The two engines behind one interface: each test holds both to the same behaviour.

ONNX Runtime's interface grows. A test that is marked ``since`` is about what releases from that one on are known to do; with an
older one installed it is collected for neo alone.
"""

import importlib
import importlib.metadata
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

PROVIDERS = ["CPUExecutionProvider"]
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A + 1
W = np.array([1, 2, 3], np.float32)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, constants=None):
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph's name", inputs, outputs, tensors, doc_string="graph's text")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="a test")
    made.domain, made.model_version, made.doc_string = "a.domain", 7, "model's text"
    helper.set_model_props(made, {"labels": "cat,dog"})
    return made.SerializeToString()


def sums():
    """(a + w, (a + w) * b) of a and b [N, 3] and w, an initializer that is an input, too."""
    return model(
        [helper.make_node("Add", ["a", "w"], ["s"]), helper.make_node("Mul", ["s", "b"], ["p"])],
        [value("a", ["N", 3]), value("b", ["N", 3]), value("w", [3])],
        [value("s", ["N", 3]), value("p", ["N", 3])],
        {"w": W},
    )


def kinds():
    """A sequence, a scalar, strings and truth values of x."""
    return model(
        [
            helper.make_node("SequenceConstruct", ["x", "x"], ["seq"]),
            helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
            helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING),
            helper.make_node("Cast", ["x"], ["truth"], to=TensorProto.BOOL),
        ],
        [value("x", ["A", "B"])],
        [
            helper.make_tensor_sequence_value_info("seq", TensorProto.FLOAT, None),
            value("total", []),
            value("text", ["A", "B"], TensorProto.STRING),
            value("truth", [None, ""], TensorProto.BOOL),
        ],
    )


def endless():
    """Adds 1 to x a billion times."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["v", "one"], ["next"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [4])],
        [value("go_on", [], TensorProto.BOOL), value("next", [4])],
    )
    return model(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
        [value("x", [4])],
        [value("y", [4])],
        {"one": np.ones(4, np.float32), "trips": np.array(10**9)},
    )


def pytest_collection_modifyitems(config, items):
    try:
        installed = release(importlib.metadata.version("onnxruntime"))
    except importlib.metadata.PackageNotFoundError:
        return
    newer = [item for item in items if is_of_onnx_runtime(item) and since(item) > installed]
    config.hook.pytest_deselected(items=newer)
    items[:] = [item for item in items if item not in newer]


def release(text):
    """The two first numbers of a version."""
    return tuple(map(int, text.split(".")[:2]))


def is_of_onnx_runtime(item):
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("engine") == "onnxruntime"


def since(item):
    """The oldest release that a test is about."""
    marker = item.get_closest_marker("since")
    return release(marker.args[0]) if marker else (0, 0)


@pytest.fixture(scope="session", params=["onnxruntime", "neo.onnxruntime"])
def engine(request):
    """The engine's module, its errors, and a session of `sums`."""
    if request.param == "onnxruntime":
        pytest.importorskip("onnxruntime", exc_type=ImportError)
    ort = importlib.import_module(request.param)
    errors = importlib.import_module(f"{request.param}.capi.onnxruntime_pybind11_state")
    return SimpleNamespace(ort=ort, errors=errors, session=ort.InferenceSession(sums(), providers=PROVIDERS))


@pytest.fixture
def ort(engine):
    return engine.ort


@pytest.fixture
def errors(engine):
    return engine.errors


@pytest.fixture
def session(engine):
    return engine.session
