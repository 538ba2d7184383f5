"""Calls that run beside the caller: from futures, from many threads, and stopped midway."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import textwrap
import threading

import neo
import numpy as np
import pytest

ENDLESS = {"trips": np.array(1 << 62, np.int64), "x": np.zeros(4, np.float32)}


def short(trips):
    return {"trips": np.array(trips, np.int64), "x": np.zeros(4, np.float32)}


def wait_until_running(future):
    waiting = threading.Event()
    while not future.running():
        waiting.wait(0.001)


def test_a_future_gives_what_run_gives(digits, images):
    futures = [digits.run_async({"image": images[:n]}) for n in (1, 2, 3)]
    for n, future in zip((1, 2, 3), futures, strict=True):
        np.testing.assert_array_equal(future.result()["probabilities"], digits(images[:n]))


def test_a_wrong_call_is_refused_at_once(digits):
    with pytest.raises(neo.ModelError, match="input names must be the model's"):
        digits.run_async({"picture": np.zeros((1, 1, 8, 8), np.float32)})


def test_an_error_of_the_call_comes_out_of_the_future(pair):
    future = pair.run_async({"a": np.zeros((2, 3), np.float32), "b": np.zeros((4, 3), np.float32)})
    with pytest.raises(neo.ShapeError, match="one size has one value"):
        future.result()


def test_cancel_ends_a_call_that_runs(loop):
    future = loop.run_async(ENDLESS)
    wait_until_running(future)
    assert future.cancel()
    with pytest.raises(neo.CancelledError, match="the call was cancelled"):
        future.result(timeout=60)
    np.testing.assert_array_equal(loop.run(short(3))["y"], 3)


def test_cancel_of_a_finished_call_does_nothing_to_the_next(loop):
    future = loop.run_async(short(5))
    np.testing.assert_array_equal(future.result()["y"], 5)
    assert not future.cancel()
    np.testing.assert_array_equal(loop.run(short(7))["y"], 7)


def test_cancel_drops_calls_that_wait(loop):
    running = [loop.run_async(ENDLESS) for _ in range(os.cpu_count() or 1)]
    waiting = [loop.run_async(ENDLESS) for _ in range(3)]
    for future in (*waiting, *running):
        assert future.cancel()
    for future in (*waiting, *running):
        with pytest.raises((neo.CancelledError, concurrent.futures.CancelledError)):
            future.result(timeout=60)


def test_eight_threads_with_shapes_of_their_own_get_their_own_results(digits, images):
    expected = {n: digits(images[:n]) for n in range(1, 17)}
    wrong = []
    start = threading.Barrier(8)

    def work(number):
        random = np.random.default_rng(number)
        start.wait()
        for n in random.integers(1, 17, 40):
            if not np.array_equal(digits(images[:n]), expected[n]):
                wrong.append((number, n))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_modules_of_other_thread_counts_run_at_once(digits, images):
    expected = digits(images)
    modules = [digits, digits.with_threads(1), digits.with_threads(3)]
    with concurrent.futures.ThreadPoolExecutor(6) as executor:
        results = list(executor.map(lambda i: modules[i % 3](images), range(30)))
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_ctrl_c_ends_a_long_call_and_the_process_goes_on(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(
        textwrap.dedent(
            """
            import signal
            import numpy as np
            import neo
            from tests.api.conftest import long_loop

            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            module = neo.compile(long_loop(), threads=2)
            x = np.zeros(4, np.float32)
            module(np.array(1, np.int64), x)
            print("ready", flush=True)
            try:
                module(np.array(1 << 62, np.int64), x)
            except KeyboardInterrupt:
                print("interrupted", module(np.array(2, np.int64), x).tolist(), flush=True)
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out == "interrupted [2.0, 2.0, 2.0, 2.0]\n"
    assert err == ""
    assert process.returncode == 0
