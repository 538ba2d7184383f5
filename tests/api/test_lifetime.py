"""From warming up to closing: streams, many calls, awaiting, pickles, files, notebooks."""

import asyncio
import copy
import io
import logging
import multiprocessing
import pickle
import re
import threading

import neo
import numpy as np
import pytest
from neo import demo
from onnx import TensorProto, helper

from tests.api.conftest import build, long_loop, two_by_two, value


@pytest.mark.parametrize("send", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy])
def test_a_module_is_pickled_and_copied(digits, images, send):
    sent = send(digits)
    assert sent is not digits
    assert (sent.inputs, sent.outputs, sent.threads) == (digits.inputs, digits.outputs, digits.threads)
    assert sent.provenance == digits.provenance
    np.testing.assert_array_equal(sent(images), digits(images))


def test_variants_and_limits_are_pickled():
    module = neo.compile(two_by_two(), shapes={"N": [2, (3, 5)]}, limits=neo.Limits(memory=1 << 30, seconds=60))
    sent = pickle.loads(pickle.dumps(module))
    assert len(sent.variants) == 2
    a = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(sent(a, a)[0], 2)
    assert sent._native.quota == module._native.quota == (1 << 30, 60)


def _sum_of(module, count):
    return float(module(np.ones((count, 3), np.float32), np.ones((count, 3), np.float32))[0].sum())


def test_a_module_goes_to_other_processes(pair):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(_sum_of, [(pair, 1), (pair, 2)]) == [6, 12]


def test_a_module_goes_to_dask(pair):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert client.submit(_sum_of, pair, 3).result(timeout=60) == 18


def test_a_module_goes_to_joblib(pair):
    joblib = pytest.importorskip("joblib")
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(_sum_of)(pair, n) for n in (1, 2)) == [6, 12]


def test_a_module_is_saved_to_an_open_file(digits, images, tmp_path):
    buffer = io.BytesIO()
    digits.save(buffer)
    digits.save(tmp_path / "digits.neo")
    assert buffer.getvalue() == (tmp_path / "digits.neo").read_bytes()
    buffer.seek(0)
    np.testing.assert_array_equal(neo.load(buffer)(images), digits(images))
    with pytest.raises(neo.DTypeError, match="target must be a path or a binary file. Got int"):
        digits.save(3)


def test_a_call_is_awaited(digits, images):
    async def both():
        return await asyncio.gather(digits.run_async({"image": images[:1]}), digits.run_async({"image": images[:7]}))

    one, seven = asyncio.run(both())
    np.testing.assert_array_equal(one["probabilities"], digits(images[:1]))
    np.testing.assert_array_equal(seven["probabilities"], digits(images[:7]))


def test_an_error_is_awaited(digits, images):
    async def wrong():
        await digits.run_async({"image": images, "other": images})

    with pytest.raises(neo.ModelError, match="Got 'other'"):
        asyncio.run(wrong())


def test_a_task_that_is_cancelled_stops_its_call(loop):
    async def call():
        future = loop.run_async({"trips": np.array(10**9), "x": np.zeros(4, np.float32)})
        task = asyncio.ensure_future(future)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return future

    future = asyncio.run(call())
    with pytest.raises((neo.CancelledError, asyncio.CancelledError)):
        future.result(timeout=60)


@pytest.mark.parametrize("in_flight", [1, 2, 9])
def test_calls_of_different_sizes_come_back_in_order(digits, images, in_flight):
    counts = (1, 7, 64, 0, 3)
    results = list(digits.map(({"image": images[:n]} for n in counts), in_flight=in_flight))
    for n, got in zip(counts, results, strict=True):
        np.testing.assert_array_equal(got["probabilities"], digits(images[:n]))


def test_calls_are_read_as_they_are_needed(digits, images):
    taken = []

    def calls():
        for n in range(1, 100):
            taken.append(n)
            yield {"image": images[:n]}

    results = digits.map(calls(), in_flight=2)
    next(results)
    results.close()
    assert len(taken) == 2
    with pytest.raises(neo.ModelError, match="in_flight must be positive. Got 0"):
        next(digits.map([], in_flight=0))


def accumulator(taken="h_in", given="h_out"):
    """The running sum of x, and the state beside it."""
    return build(
        [helper.make_node("Add", [taken, "x"], [given]), helper.make_node("Mul", [given, "two"], ["y"])],
        [value("x", [1, 2]), value(taken, [1, 2])],
        [value("y", [1, 2]), value(given, [1, 2])],
        {"two": np.float32(2)},
    )


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("h_in", "h_out"),
        ("state", "stateN"),
        ("h", "hn"),
        ("past_key_values.0.key", "present.0.key"),
        ("past.key", "present.key"),
        ("input_state", "output_state"),
        ("conv_cache", "conv_cache_out"),
        ("c_0", "c_n"),
    ],
)
def test_a_stream_finds_its_state_by_name(taken, given):
    module = neo.compile(accumulator(taken, given))
    stream = module.stream()
    assert stream.states == {taken: given}
    x = np.array([[1, 10]], np.float32)
    for i in range(1, 4):
        np.testing.assert_array_equal(stream(x), 2 * i * x)
    np.testing.assert_array_equal(stream.state[taken], 3 * x)
    stream.reset()
    np.testing.assert_array_equal(stream(x=x), 2 * x)


def test_inputs_and_outputs_are_no_states():
    model = build(
        [helper.make_node("Add", ["state", "input"], ["stateN"]), helper.make_node("Relu", ["stateN"], ["output"])],
        [value("input", [1, 2]), value("state", [1, 2])],
        [value("output", [1, 2]), value("stateN", [1, 2])],
    )
    assert neo.compile(model).stream().states == {"state": "stateN"}


def test_a_stream_of_named_states_with_initial_values():
    module = neo.compile(accumulator("a", "b"))
    with pytest.raises(neo.ModelError, match=r"must tell the states.*\nHint: module.stream"):
        module.stream()
    stream = module.stream({"a": "b"}, initial={"a": np.full((1, 2), 5, np.float32)})
    np.testing.assert_array_equal(stream({"x": np.ones((1, 2), np.float32)}), 12)
    np.testing.assert_array_equal(stream.run({"x": np.ones((1, 2), np.float32)})["y"], 14)


def test_a_stream_keeps_its_state_when_a_call_fails():
    stream = neo.compile(accumulator()).stream()
    x = np.ones((1, 2), np.float32)
    stream(x)
    with pytest.raises(neo.ShapeError):
        stream(np.ones((1, 3), np.float32))
    np.testing.assert_array_equal(stream(x), 4)


@pytest.mark.parametrize(
    ("states", "initial", "text"),
    [
        ({"x": "nothing"}, None, "Got 'x': 'nothing'"),
        ({"nothing": "y"}, None, "Got 'nothing': 'y'"),
        ({"h_in": "h_out"}, {"x": 1}, "an initial value must be a state's. Got 'x', expected 'h_in'"),
    ],
)
def test_names_of_states_that_are_not_the_models(states, initial, text):
    with pytest.raises(neo.ModelError, match=text):
        neo.compile(accumulator()).stream(states, initial=initial)


def test_a_recurrent_model_streams_as_it_runs_whole():
    random = np.random.default_rng(0)
    hidden, size, steps = 3, 2, 5
    weights = {
        "w": random.standard_normal((1, 3 * hidden, size)).astype(np.float32),
        "r": random.standard_normal((1, 3 * hidden, hidden)).astype(np.float32),
    }
    model = build(
        [helper.make_node("GRU", ["x", "w", "r", "", "", "h0"], ["y", "hn"], hidden_size=hidden)],
        [value("x", ["T", 1, size]), value("h0", [1, 1, hidden])],
        [value("y", ["T", 1, 1, hidden]), value("hn", [1, 1, hidden])],
        weights,
    )
    module = neo.compile(model)
    x = random.standard_normal((steps, 1, size)).astype(np.float32)
    whole = module.run({"x": x, "h0": np.zeros((1, 1, hidden), np.float32)})["y"]
    stream = module.stream()
    pieces = [stream(x[:2]), stream(x[2:3]), stream(x[3:])]
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=1e-5, atol=1e-6)


def test_a_module_is_closed(images):
    with neo.compile(demo.model_bytes()) as module:
        module.run_async({"image": images}).result()
        module(images)
    for use in (
        lambda: module(images),
        lambda: module.run({"image": images}),
        lambda: module.save("x"),
        lambda: module.steps,
    ):
        with pytest.raises(neo.ModelError, match="a closed module must not be used"):
            use()
    module.close()
    assert repr(module).endswith("; closed)")
    assert module.inputs[0].name == "image"


def test_closing_waits_for_calls_and_does_not_touch_other_modules(images):
    module = neo.compile(long_loop(), threads=1)
    other = module.with_threads(2)
    future = module.run_async({"trips": np.array(10**5), "x": np.zeros(4, np.float32)})
    module.close()
    assert future.done()
    np.testing.assert_array_equal(other(np.array(3), np.zeros(4, np.float32)), 3)


def test_variants_are_closed():
    module = neo.compile(two_by_two(), shapes={"N": [1, 2]})
    module.close()
    a = np.ones((1, 3), np.float32)
    with pytest.raises(neo.ModelError, match="closed"):
        module(a, a)
    with pytest.raises(neo.ModelError, match="closed"):
        module.variants[0](a, a)


def test_warming_up_leaves_memory_for_calls():
    module = neo.compile(demo.model_bytes())
    assert module.memory.kept == 0
    assert module.warm_up() is module
    assert module.memory.kept > 0
    module.warm_up({"image": demo.images()[0]})


def test_what_cannot_be_synthetic_is_asked_for():
    model = build(
        [helper.make_node("SequenceLength", ["s"], ["n"])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
        [value("n", [], TensorProto.INT64)],
    )
    module = neo.compile(model)
    with pytest.raises(neo.ModelError, match="must be given. Got none for 's'"):
        module.warm_up()
    module.warm_up({"s": [np.zeros(2, np.float32)]})


def test_a_notebook_shows_a_table():
    model = build([helper.make_node("Relu", ["<x>"], ["y"])], [value("<x>", ["N", 2])], [value("y", ["N", 2])])
    html = neo.compile(model)._repr_html_()
    assert "<td>&lt;x&gt;</td><td>float32</td><td>N x 2</td>" in html
    assert "<x>" not in html


def test_compiling_is_logged(caplog):
    with caplog.at_level(logging.INFO, "neo"):
        neo.compile(two_by_two())
    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert re.fullmatch(r"\[compile\] \d+ steps for cpu, 1 variants, \d+\.\d+ s", line)


@pytest.mark.parametrize("name", ["x.onnx", "x.ONNX"])
def test_loading_a_model_says_how_to_compile_it(name):
    with pytest.raises(neo.ModelError, match=r"an ONNX model\nHint: neo.compile\('x.") as error:
        neo.load(name)
    assert name in str(error.value)


def test_compiling_a_module_says_how_to_load_it():
    with pytest.raises(neo.ModelError, match=r"a compiled module\nHint: neo.load\('x.neo'\)"):
        neo.compile("x.neo")


def test_threads_call_one_module_into_memory_of_their_own(digits, images):
    memories = [np.zeros((n, 10), np.float32) for n in (1, 2, 3, 4)]

    def work(memory):
        for _ in range(20):
            digits(images[: len(memory)], out=memory)

    threads = [threading.Thread(target=work, args=(m,)) for m in memories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for memory in memories:
        np.testing.assert_array_equal(memory, digits(images[: len(memory)]))
