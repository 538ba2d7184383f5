"""Many requests at once: joined to batches, refused, stopped and counted."""

import asyncio
import json
import re

import neo
import numpy as np
import pytest
from neo.serve import Application
from onnx import TensorProto, helper

from tests.api.conftest import build, long_loop, value

ENDLESS = {
    "inputs": [
        {"name": "trips", "shape": [], "datatype": "INT64", "data": [1 << 62]},
        {"name": "x", "shape": [4], "datatype": "FP32", "data": [0, 0, 0, 0]},
    ]
}


@pytest.fixture(scope="module")
def rows():
    """Takes rows of a table by their numbers, and adds an axis of its own."""
    model = build(
        [helper.make_node("Gather", ["table", "i"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])],
        [value("i", ["N"], TensorProto.INT64), value("x", ["N", "M"])],
        [value("y", ["N", "M"])],
        {"table": np.arange(5, dtype=np.float32).reshape(5, 1) * 10},
    )
    return neo.compile(model)


@pytest.fixture(scope="module")
def endless():
    return neo.compile(long_loop())


async def post(application, name, request, *, leaves=None):
    """Status and answer; `leaves` is an event at which the client closes the connection."""
    sent, given = [], [json.dumps(request).encode()]

    async def receive():
        if given:
            return {"type": "http.request", "body": given.pop(), "more_body": False}
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": f"/v2/models/{name}/infer", "headers": []}
    await application(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"]), dict(sent[0]["headers"])


async def metrics(application):
    sent = []

    async def send(message):
        sent.append(message)

    await application({"type": "http", "method": "GET", "path": "/metrics", "headers": []}, None, send)
    assert dict(sent[0]["headers"])[b"content-type"].startswith(b"text/plain; version=0.0.4")
    lines = sent[1]["body"].decode().splitlines()
    for line in lines:
        assert re.fullmatch(r'# (HELP|TYPE) neo_\w+ .+|neo_\w+(\{(\w+="[^"]*",?)+\})? [\d.e+-]+', line), line
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def request(numbers, columns=2):
    x = np.arange(len(numbers) * columns, dtype=np.float32).reshape(len(numbers), columns)
    return {
        "inputs": [
            {"name": "i", "shape": [len(numbers)], "datatype": "INT64", "data": numbers},
            {"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()},
        ]
    }


def answer(numbers, columns=2):
    x = np.arange(len(numbers) * columns, dtype=np.float32).reshape(len(numbers), columns)
    return (x + np.array(numbers, np.float32).reshape(-1, 1) * 10).ravel().tolist()


def test_requests_are_joined(rows):
    application = Application({"m": rows}, max_batch=8, batch_delay=0.2)
    given = [[1], [2, 3], [4], [0, 0, 1]]

    async def run():
        answers = await asyncio.gather(*(post(application, "m", request(n)) for n in given))
        return answers, await metrics(application)

    answers, counts = asyncio.run(run())
    for numbers, (status, body, _) in zip(given, answers, strict=True):
        assert status == 200
        assert body["outputs"][0]["shape"] == [len(numbers), 2]
        assert body["outputs"][0]["data"] == answer(numbers)
    assert counts['neo_batches_total{model="m"}'] == "1"
    assert counts['neo_batched_requests_total{model="m"}'] == "4"


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        ([([1], 2), ([2], 3), ([3], 2)], 2),  # of other columns
        ([([1] * 3, 2), ([2] * 2, 2)], 2),  # of more rows than fit
        ([([1] * 4, 2), ([2], 2)], 2),  # a full batch by itself
        ([([], 2), ([2], 2)], 2),  # no rows
        ([([1], 2)] * 5, 2),
        ([([1] * 9, 2)], 1),
    ],
)
def test_requests_that_do_not_fit_go_apart(rows, given, batches):
    application = Application({"m": rows}, max_batch=4, batch_delay=0.05)

    async def run():
        answers = await asyncio.gather(*(post(application, "m", request(*g)) for g in given))
        return answers, await metrics(application)

    answers, counts = asyncio.run(run())
    for g, (status, body, _) in zip(given, answers, strict=True):
        assert status == 200
        assert body["outputs"][0]["data"] == answer(*g)
    assert counts['neo_batches_total{model="m"}'] == str(batches)


def test_a_request_that_is_wrong_spoils_no_other(rows):
    application = Application({"m": rows}, max_batch=4, batch_delay=0.05)

    async def run():
        return await asyncio.gather(*(post(application, "m", request([n])) for n in (1, 99, 2)))

    first, wrong, last = asyncio.run(run())
    assert (first[0], wrong[0], last[0]) == (200, 400, 200)
    assert first[1]["outputs"][0]["data"] == answer([1])
    assert last[1]["outputs"][0]["data"] == answer([2])
    assert "[Gather]" in wrong[1]["error"]


@pytest.mark.parametrize("max_batch", [1, 4])
def test_a_client_that_leaves_ends_its_call(rows, endless, max_batch):
    application = (
        Application({"m": endless}) if max_batch == 1 else Application({"m": rows}, max_batch=4, batch_delay=9)
    )

    async def run():
        leaves = asyncio.Event()
        body = ENDLESS if max_batch == 1 else request([1])
        call = asyncio.ensure_future(post(application, "m", body, leaves=leaves))
        await asyncio.sleep(0.05)
        assert (await metrics(application))["neo_requests_in_progress"] == "1"
        leaves.set()
        await call
        return await metrics(application)

    counts = asyncio.run(run())
    assert counts["neo_requests_in_progress"] == "0"
    assert counts['neo_requests_total{model="m",status="499"}'] == "1"


def test_a_client_that_leaves_takes_nothing_from_a_batch(rows):
    application = Application({"m": rows}, max_batch=4, batch_delay=0.1)

    async def run():
        leaves = asyncio.Event()
        gone = asyncio.ensure_future(post(application, "m", request([1]), leaves=leaves))
        stays = asyncio.ensure_future(post(application, "m", request([2])))
        await asyncio.sleep(0.01)
        leaves.set()
        return await asyncio.gather(gone, stays)

    gone, stays = asyncio.run(run())
    assert (gone[0], stays[0]) == (499, 200)
    assert stays[1]["outputs"][0]["data"] == answer([2])


def test_a_call_that_takes_too_long_is_stopped(endless):
    status, body, _ = asyncio.run(post(Application({"m": endless}, timeout=0.05), "m", ENDLESS))
    assert status == 504
    assert body["error"] == "[serve] a call must take at most 0.05 s. Got a longer one"


def test_too_many_requests_are_refused_at_once(endless):
    application = Application({"m": endless}, max_requests=2)

    async def run():
        leaves = asyncio.Event()
        calls = [asyncio.ensure_future(post(application, "m", ENDLESS, leaves=leaves)) for _ in range(2)]
        await asyncio.sleep(0.05)
        refused = await post(application, "m", ENDLESS)
        leaves.set()
        await asyncio.gather(*calls)
        return refused, await metrics(application)

    (status, body, headers), counts = asyncio.run(run())
    assert status == 503
    assert headers[b"retry-after"] == b"1"
    assert body["error"] == "[serve] at most 2 requests may be under way. Got one more"
    assert counts['neo_requests_total{model="m",status="503"}'] == "1"


def test_times_are_counted(rows):
    application = Application({'a "name"': rows})

    async def run():
        for numbers in ([1], [99], [2]):
            await post(application, 'a "name"', request(numbers))
        sent = []

        async def send(message):
            sent.append(message)

        await application({"type": "http", "method": "GET", "path": "/metrics", "headers": []}, None, send)
        return sent[1]["body"].decode()

    text = asyncio.run(run())
    label = r'model="a \"name\""'
    assert f'neo_requests_total{{{label},status="200"}} 2\n' in text
    assert f'neo_requests_total{{{label},status="400"}} 1\n' in text
    buckets = [int(n) for n in re.findall(r"neo_request_duration_seconds_bucket\{.*\} (\d+)\n", text)]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert f"neo_request_duration_seconds_count{{{label}}} 3\n" in text


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([("x", [2, 3])], [("y", [2, 3])]),
        ([("x", ["N", "N"])], [("y", ["N", "N"])]),
        ([("x", ["M", "N"])], [("y", ["N", "M"])]),
    ],
)
def test_a_model_without_a_batch_is_not_joined(inputs, outputs):
    op = "Transpose" if inputs[0][1] == ["M", "N"] else "Relu"
    module = neo.compile(
        build([helper.make_node(op, ["x"], ["y"])], [value(*i) for i in inputs], [value(*o) for o in outputs])
    )
    with pytest.raises(neo.ModelError, match="the first axis of every input and output must be the batch"):
        Application({"m": module}, max_batch=2)


@pytest.mark.parametrize(
    "options", [{"max_bytes": 0}, {"max_requests": 0}, {"max_batch": 0}, {"timeout": 0}, {"batch_delay": -1}]
)
def test_limits_that_are_wrong(rows, options):
    with pytest.raises(neo.ModelError, match=r"\[serve\] .* must be positive"):
        Application({"m": rows}, **options)
