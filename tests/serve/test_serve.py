"""The Open Inference Protocol, spoken to the application itself: no server, no port."""

import asyncio
import json

import neo
import numpy as np
import pytest
from neo.serve import Application
from onnx import TensorProto, helper

from tests.api.conftest import build, long_loop, value

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def application():
    sums = build(
        [
            helper.make_node("Add", ["a", "b"], ["sum"]),
            helper.make_node("Sub", ["a", "b"], ["rest"]),
        ],
        [value("a", ["N", 3]), value("b", ["N", 3])],
        [value("sum", ["N", 3]), value("rest", ["N", 3])],
    )
    texts = build(
        [helper.make_node("Identity", ["t"], ["u"])],
        [value("t", ["N"], TensorProto.STRING)],
        [value("u", ["N"], TensorProto.STRING)],
    )
    kinds = {"h": TensorProto.FLOAT16, "w": TensorProto.BFLOAT16, "i": TensorProto.INT8, "o": TensorProto.BOOL}
    mixed = build(
        [helper.make_node("Identity", [k], [f"{k}_out"]) for k in kinds],
        [value(k, [2], d) for k, d in kinds.items()],
        [value(f"{k}_out", [2], d) for k, d in kinds.items()],
    )
    modules = {"sums": sums, "texts": texts, "mixed": mixed, "a model": long_loop()}
    return Application({name: neo.compile(model) for name, model in modules.items()}, max_bytes=100_000)


def ask(application, method, path, body=b"", headers=(), chunk=None):
    """Status, headers and body of an answer."""
    size = chunk or len(body) or 1
    parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    sent = []

    async def receive():
        if not parts:
            await asyncio.Event().wait()  # the client stays until it has its answer
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    asyncio.run(application(scope, receive, send))
    start, end = sent
    assert dict(start["headers"])[b"content-length"] == str(len(end["body"])).encode()
    return start["status"], dict(start["headers"]), end["body"]


def get(application, path):
    status, _, body = ask(application, "GET", path)
    return status, json.loads(body)


def infer(application, request, name="sums", **options):
    body = json.dumps(request).encode() if not isinstance(request, bytes) else request
    status, headers, body = ask(application, "POST", f"/v2/models/{name}/infer", body, **options)
    return status, headers, body


def entry(name, array, datatype="FP32", **more):
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": array.tolist(), **more}


def test_the_server_tells_of_itself(application):
    assert get(application, "/v2") == (
        200,
        {"name": "neo", "version": neo.__version__, "extensions": ["binary_tensor_data"]},
    )
    assert get(application, "/v2/health/live") == (200, {"live": True})
    assert get(application, "/v2/health/ready") == (200, {"ready": True})


def test_a_model_tells_of_itself(application):
    status, told = get(application, "/v2/models/sums")
    assert status == 200
    assert told["inputs"] == [
        {"name": "a", "datatype": "FP32", "shape": [-1, 3]},
        {"name": "b", "datatype": "FP32", "shape": [-1, 3]},
    ]
    assert [t["name"] for t in told["outputs"]] == ["sum", "rest"]
    assert get(application, "/v2/models/sums/versions/1")[1] == told
    assert get(application, "/v2/models/sums/ready") == (200, {"name": "sums", "ready": True})
    assert get(application, "/v2/models/a%20model/ready")[0] == 200


@pytest.mark.parametrize("chunk", [None, 7])
def test_arrays_as_json(application, chunk):
    request = {"id": "42", "inputs": [entry("a", A), entry("b", A[:1].repeat(2, 0))]}
    status, _, body = infer(application, request, chunk=chunk)
    answer = json.loads(body)
    assert status == 200
    assert (answer["id"], answer["model_name"]) == ("42", "sums")
    assert [(t["name"], t["shape"], t["datatype"]) for t in answer["outputs"]] == [
        ("sum", [2, 3], "FP32"),
        ("rest", [2, 3], "FP32"),
    ]
    assert answer["outputs"][0]["data"] == (A + A[:1]).ravel().tolist()


def test_flat_data_and_chosen_outputs(application):
    flat = {"name": "a", "shape": [2, 3], "datatype": "FP32", "data": A.ravel().tolist()}
    status, _, body = infer(application, {"inputs": [flat, entry("b", A)], "outputs": [{"name": "rest"}]})
    assert status == 200
    assert [t["name"] for t in json.loads(body)["outputs"]] == ["rest"]


def binary(request, *arrays):
    text = json.dumps(request).encode()
    return text + b"".join(arrays), [(b"Inference-Header-Content-Length", str(len(text)).encode())]


def test_arrays_as_bytes(application):
    inputs = [
        {"name": n, "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": A.nbytes}} for n in "ab"
    ]
    request = {"inputs": inputs, "outputs": [{"name": "sum", "parameters": {"binary_data": True}}, {"name": "rest"}]}
    body, headers = binary(request, A.tobytes(), A.tobytes())
    status, answered, body = infer(application, body, headers=headers)
    length = int(answered[b"inference-header-content-length"])
    answer = json.loads(body[:length])
    assert status == 200
    assert answer["outputs"][0]["parameters"] == {"binary_data_size": A.nbytes}
    np.testing.assert_array_equal(np.frombuffer(body[length:], np.float32).reshape(2, 3), A + A)
    assert answer["outputs"][1]["data"] == [0.0] * 6


def test_all_outputs_as_bytes(application):
    request = {"inputs": [entry("a", A), entry("b", A)], "parameters": {"binary_data_output": True}}
    _, headers, body = infer(application, request)
    assert len(body) - int(headers[b"inference-header-content-length"]) == 2 * A.nbytes


def test_texts_both_ways(application):
    request = {"inputs": [{"name": "t", "shape": [2], "datatype": "BYTES", "data": ["ä", "bc"]}]}
    assert json.loads(infer(application, request, "texts")[2])["outputs"][0]["data"] == ["ä", "bc"]
    packed = b"".join(len(t).to_bytes(4, "little") + t for t in ("ä".encode(), b""))
    one = {"name": "t", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(packed)}}
    body, headers = binary({"inputs": [one], "parameters": {"binary_data_output": True}}, packed)
    _, headers, body = infer(application, body, "texts", headers=headers)
    assert body[int(headers[b"inference-header-content-length"]) :] == packed


def test_every_dtype(application):
    arrays = {"h": [0.5, 1], "w": [1.5, -2], "i": [-128, 127], "o": [True, False]}
    datatypes = {"h": "FP16", "w": "BF16", "i": "INT8", "o": "BOOL"}
    inputs = [{"name": k, "shape": [2], "datatype": datatypes[k], "data": v} for k, v in arrays.items()]
    status, _, body = infer(application, {"inputs": inputs}, "mixed")
    assert status == 200
    for t in json.loads(body)["outputs"]:
        assert t["data"] == arrays[t["name"].partition("_")[0]]


def test_no_elements(application):
    request = {"inputs": [entry("a", A[:0]), entry("b", A[:0])]}
    status, _, body = infer(application, request)
    assert status == 200
    assert json.loads(body)["outputs"][0]["shape"] == [0, 3]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (b"{", "the request must be JSON"),
        (b"[]", "must be an object with a list of inputs"),
        (b"[" * 100_000, "the request must be JSON"),
        ({"inputs": 3}, "must be an object with a list of inputs"),
        ({"inputs": [3]}, "an input must be an object with a name"),
        ({"inputs": [entry("a", A)]}, "every input must be given"),
        ({"inputs": [entry("a", A), entry("c", A)]}, "Got 'c'"),
        ({"inputs": [entry("a", A, datatype="FP31")]}, "a datatype must be known"),
        ({"inputs": [entry("a", A, shape=[2, -3])]}, "a shape must be a list of sizes"),
        ({"inputs": [entry("a", A, shape=[2, 2])]}, "data must have the shape's size"),
        ({"inputs": [entry("a", A, data=["x"])]}, "data must be a list of numbers"),
        ({"inputs": [entry("a", A, data=[[1], [2, 3]])]}, "data must be a list of numbers"),
        ({"inputs": [entry("a", A, datatype="INT8", data=[1000] * 6)]}, "data must be a list of numbers"),
        ({"inputs": [entry("a", A, datatype="FP64"), entry("b", A)]}, "dtype must be the input's"),
        ({"inputs": [entry("a", A[:, :2]), entry("b", A)]}, "shape must be the input's"),
        ({"inputs": [entry("a", A), entry("b", A)], "outputs": [{"name": "c"}]}, "outputs must be the model's"),
        ({"inputs": [entry("a", A, parameters={"binary_data_size": 24})]}, "binary_data_size must be within the body"),
    ],
)
def test_requests_that_are_wrong(application, request_, text):
    status, _, body = infer(application, request_)
    assert status == 400
    assert text in json.loads(body)["error"]


@pytest.mark.parametrize("length", [b"x", b"-1", b"99999999"])
def test_a_length_that_is_wrong(application, length):
    status, _, body = infer(application, b"{}", headers=[(b"inference-header-content-length", length)])
    assert status == 400
    assert "length of the JSON" in json.loads(body)["error"]


def test_bytes_that_are_wrong(application):
    one = {"name": "a", "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": 20}}
    body, headers = binary({"inputs": [one]}, bytes(20))
    assert "bytes must be those of the shape" in infer(application, body, headers=headers)[2].decode()
    text = {"name": "t", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}
    body, headers = binary({"inputs": [text]}, b"\xff\xff\xff\x0fa")
    assert "a text must end within its bytes" in infer(application, body, "texts", headers=headers)[2].decode()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v2/health/other", 404),
        ("GET", "/v2/models", 404),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/sums/other", 404),
        ("GET", "/v2/models/sums/versions/2", 404),
        ("POST", "/v2", 405),
        ("POST", "/v2/models/sums", 405),
        ("GET", "/v2/models/sums/infer", 405),
    ],
)
def test_paths_and_methods_that_are_wrong(application, method, path, status):
    got, _, body = ask(application, method, path)
    assert got == status
    assert json.loads(body)["error"].startswith("[serve] ")


def test_a_body_that_is_too_large(application):
    assert infer(application, b" " * 100_001)[0] == 413


def test_a_model_of_other_values_is_not_served():
    model = build(
        [helper.make_node("SequenceConstruct", ["x"], ["s"])],
        [value("x", [2])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
    )
    with pytest.raises(neo.ModelError, match="a value must be a tensor of a dtype that the protocol has"):
        Application({"s": neo.compile(model)})


def test_the_command_says_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    assert neo_main("serve", "m.onnx") == 1
    assert "Hint: pip install uvicorn" in capsys.readouterr().err


def neo_main(*arguments):
    from neo.cli import main

    return main(list(arguments))
