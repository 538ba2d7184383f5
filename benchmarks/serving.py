"""neo and ONNX Runtime behind the server of ``neo serve``: ``python -m benchmarks.serving model.onnx``.

Clients keep a connection each and ask again as soon as they are answered, tensors as bytes. Every answer is compared with
what neo computes without a server: one that is lost, refused or wrong is counted. The server is a process of its own; with
``--kill`` it is killed after a third of the requests and started again, and clients ask anew for what was lost with
it. A line for each engine and number of threads of a call: requests per second, the time of the median and of the 99th
of a hundred, and what the server held after its first hundred requests and in the end. ONNX Runtime's session stands in the same
application in place of a module, with as many calls beside each other as there are cores for their threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import neo
import numpy as np
from neo.module import Module
from neo.serve import Application
from neo.serve.tensors import described

ENGINES = ("neo", "ort")
#: Different requests, which clients take in turns.
CASES = 8
#: Answers after which the server's memory counts as that of its beginning.
WARM = 100
SECONDS_TO_START = 120.0
TOLERANCE = 1e-3

Case = tuple[bytes, dict[str, np.ndarray[Any, Any]]]


class SessionModule(Module):
    """ONNX Runtime's session where the application expects a module."""

    def __init__(self, module: Module, path: Path, threads: int) -> None:
        import onnxruntime

        vars(self).update(vars(module))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._workers = ThreadPoolExecutor(max(1, _cores() // threads))

    def run_async(self, inputs: Any, **_: Any) -> Any:
        """Start a call."""
        names = [t.name for t in self.outputs]

        def call() -> dict[str, Any]:
            return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))

        return asyncio.get_running_loop().run_in_executor(self._workers, call)


def main() -> None:
    """Print a line for each engine and number of threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", default=f"1,{_cores()}", help="of a call, with commas (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--shape", action="append", default=[], metavar="SYMBOL=SIZE")
    parser.add_argument("--kill", action="store_true", help="the server once, and start it again")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--serve", metavar="ENGINE", help="be the server of one engine")
    options = parser.parse_args()
    sizes = {name: int(size) for name, _, size in (text.partition("=") for text in options.shape)}
    if options.serve:
        serve(options.serve, options.model, int(options.threads), sizes, options.port)
        return
    cases = make_cases(neo.compile(options.model, shapes=sizes), sizes)
    print(f"{options.model.stem}: {options.requests} requests from {options.clients} clients, {_cores()} cores\n")
    print("| engine | threads | requests/s | median, ms | 99th, ms | lost | wrong | asked again | MB | MB in the end |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for engine in options.engines.split(","):
        for threads in options.threads.split(","):
            load = Load(options, engine, threads)
            asyncio.run(load.run(cases))
            print(f"| {engine} | {threads} | {load.row()} |", flush=True)


def serve(engine: str, path: Path, threads: int, sizes: dict[str, int], port: int) -> None:
    """Answer requests until the process is ended."""
    import uvicorn

    module = neo.compile(path, threads=threads, shapes=sizes)
    if engine == "ort":
        module = SessionModule(module, path, threads)
    uvicorn.run(Application({"model": module}), port=port, log_level="error")


def make_cases(module: Module, sizes: dict[str, int]) -> list[Case]:
    """Bodies of requests behind the length of their JSON, and the outputs that they have to get."""
    random = np.random.default_rng(0)
    cases = []
    for _ in range(CASES):
        arrays = {}
        for t in module.inputs:
            shape = tuple(sizes.get(n, 1) if isinstance(n, str) else n for n in t.shape or ())
            is_float = t.dtype.startswith("float")
            arrays[t.name] = (random.standard_normal(shape) if is_float else random.integers(0, 2, shape)).astype(
                t.dtype
            )
        entries = [
            {
                "name": t.name,
                "datatype": described(t)["datatype"],
                "shape": list(arrays[t.name].shape),
                "parameters": {"binary_data_size": arrays[t.name].nbytes},
            }
            for t in module.inputs
        ]
        text = json.dumps({"inputs": entries, "parameters": {"binary_data_output": True}}).encode()
        body = text + b"".join(arrays[t.name].tobytes() for t in module.inputs)
        head = (
            f"POST /v2/models/model/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
            f"inference-header-content-length: {len(text)}\r\n\r\n"
        ).encode()
        cases.append((head + body, module.run(arrays)))
    return cases


class Load:
    """All requests to one server.

    Parameters
    ----------
    options : argparse.Namespace
        Those of the command line.
    engine, threads : str
        What the server runs, and the threads of one of its calls.
    """

    def __init__(self, options: argparse.Namespace, engine: str, threads: str) -> None:
        self._options = options
        words = [sys.executable, "-m", "benchmarks.serving", str(options.model), "--serve", engine]
        words += ["--threads", threads, "--port", str(options.port)]
        self._command = words + [word for text in options.shape for word in ("--shape", text)]
        self._left = options.requests
        self._times: list[float] = []
        self._lost = self._wrong = self._again = 0
        self._bytes = [0, 0]
        self._seconds = 0.0
        self._server: subprocess.Popen[bytes] | None = None

    async def run(self, cases: list[Case]) -> None:
        """Start the server, ask for everything, and end it."""
        await self._start()
        try:
            begin = time.perf_counter()
            await asyncio.gather(*(self._ask(cases, i) for i in range(self._options.clients)))
            self._seconds = time.perf_counter() - begin
            self._bytes[1] = self._memory()
        finally:
            assert self._server is not None
            self._server.kill()
            self._server.wait()

    def row(self) -> str:
        """Say what came of it, as cells of the table."""
        times = np.array(self._times) * 1000
        p50, p99 = np.percentile(times, [50, 99]) if len(times) else (0.0, 0.0)
        cells = [f"{len(times) / self._seconds:.1f}", f"{p50:.1f}", f"{p99:.1f}"]
        cells += [str(n) for n in (self._lost, self._wrong, self._again)]
        return " | ".join(cells + [f"{n / 1e6:.0f}" for n in self._bytes])

    async def _start(self) -> None:
        self._server = subprocess.Popen(self._command)
        until = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self._options.port)
            except OSError as error:
                if self._server.poll() is not None or time.monotonic() > until:
                    msg = "the server must start"
                    raise SystemExit(msg) from error
                await asyncio.sleep(0.1)
                continue
            writer.close()
            return

    async def _ask(self, cases: list[Case], number: int) -> None:
        """One client: requests until none is left."""
        connection = None
        while self._left > 0:
            self._left -= 1
            number += 1
            message, expected = cases[number % len(cases)]
            begin = time.perf_counter()
            for _ in range(3):
                try:
                    if connection is None:
                        connection = await asyncio.open_connection("127.0.0.1", self._options.port)
                    found = await _answer(*connection, message)
                    break
                except OSError:
                    connection = None
                    self._again += 1
                    await self._wait_for_server()
            else:
                self._lost += 1
                continue
            self._times.append(time.perf_counter() - begin)
            self._wrong += not _agrees(found, expected)
            if len(self._times) == WARM:
                self._bytes[0] = self._memory()
            if self._options.kill and len(self._times) == self._options.requests // 3:
                assert self._server is not None
                self._server.send_signal(signal.SIGKILL)
                self._server.wait()
                await self._start()

    async def _wait_for_server(self) -> None:
        until = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < until:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self._options.port)
            except OSError:
                await asyncio.sleep(0.2)
                continue
            writer.close()
            return

    def _memory(self) -> int:
        assert self._server is not None
        status = Path(f"/proc/{self._server.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) * 1024 if found else 0


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes
) -> dict[str, np.ndarray[Any, Any]] | None:
    """Outputs by name; None where the answer is an error."""
    writer.write(message)
    await writer.drain()
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"\r\ncontent-length: (\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError from error
    json_bytes = re.search(r"inference-header-content-length: (\d+)", head)
    if " 200 " not in head.splitlines()[0] or json_bytes is None:
        return None
    text, rest = body[: int(json_bytes[1])], body[int(json_bytes[1]) :]
    outputs = {}
    for entry in json.loads(text)["outputs"]:
        size = entry["parameters"]["binary_data_size"]
        kind = {"FP32": np.float32, "INT64": np.int64}[entry["datatype"]]
        outputs[entry["name"]] = np.frombuffer(rest[:size], kind).reshape(entry["shape"])
        rest = rest[size:]
    return outputs


def _agrees(found: dict[str, np.ndarray[Any, Any]] | None, expected: dict[str, np.ndarray[Any, Any]]) -> bool:
    return found is not None and all(
        found[name].shape == y.shape and np.allclose(found[name], y, TOLERANCE, TOLERANCE * max(1.0, np.abs(y).max()))
        for name, y in expected.items()
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
