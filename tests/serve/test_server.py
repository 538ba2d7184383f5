"""The command as a process of its own, with clients over TCP."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import neo
import numpy as np
import pytest
from neo import demo

pytest.importorskip("uvicorn")

IMAGES = demo.images()[0]


def start(folder, port, *options):
    command = [sys.executable, "-m", "neo", "serve", str(folder / "digits.onnx"), "--port", str(port), *options]
    environment = {**os.environ, "PYTHONPATH": str(Path(neo.__file__).resolve().parents[1])}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server
        except OSError:
            time.sleep(0.02)
    pytest.fail("the server ended")


def ask(connection, i):
    """Status and probabilities of image i."""
    image = IMAGES[i % len(IMAGES)][None]
    entry = {"name": "image", "shape": list(image.shape), "datatype": "FP32", "data": image.ravel().tolist()}
    connection.request("POST", "/v2/models/digits/infer", json.dumps({"inputs": [entry]}))
    response = connection.getresponse()
    body = json.loads(response.read())
    return response.status, np.array(body["outputs"][0]["data"], np.float32) if response.status == 200 else body


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "digits.onnx").write_bytes(demo.model_bytes())
    return tmp_path


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("options", [[], ["--max-batch", "16"]])
def test_clients_beside_each_other_get_their_own_answers(folder, port, options):
    expected = neo.compile(demo.model_bytes())(IMAGES)
    server = start(folder, port, *options)
    wrong = []

    def client(first):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for i in range(first, first + 25):
            status, got = ask(connection, i)
            if status != 200 or np.abs(got - expected[i % len(IMAGES)]).max() > 1e-5:
                wrong.append((i, status, got))

    try:
        clients = [threading.Thread(target=client, args=(7 * n,)) for n in range(8)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        assert wrong == []
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics")
        assert 'neo_requests_total{model="digits",status="200"} 200\n' in connection.getresponse().read().decode()
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode in (0, -signal.SIGTERM)


def test_a_server_that_was_killed_starts_again_on_its_port(folder, port):
    for stop in (signal.SIGKILL, signal.SIGTERM):
        server = start(folder, port)
        try:
            assert ask(http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0)[0] == 200
        finally:
            server.send_signal(stop)
            server.communicate(timeout=60)
