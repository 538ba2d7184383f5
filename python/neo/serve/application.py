"""The application: paths of the protocol to modules."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import unquote

from neo.errors import DTypeError, Error, InternalError, ModelError
from neo.module import Module
from neo.serve.batches import Arrays, Batches
from neo.serve.metrics import Metrics
from neo.serve.tensors import described, read_request, write_response
from neo.version import __version__

__all__ = ["Application"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_HEADER = b"inference-header-content-length"


class _HttpError(Exception):
    """An answer with a status of HTTP that is no success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Application:
    """An ASGI application that serves modules by the Open Inference Protocol, version 2.

    Parameters
    ----------
    modules : mapping of str to Module
        By the names under which they are served; each has tensors alone.
    max_bytes : int
        Of the body of a request.
    max_requests : int
        Requests for inference that may be under way at once; one more is answered by 503 before it is read.
    timeout : float, optional
        Seconds from a request's last byte, after which its call is stopped and it is answered by 504; None: no limit.
    max_batch : int
        Rows that requests are joined to; 1 runs each request by itself.
    batch_delay : float
        Seconds that a request waits for others to be joined with.

    Raises
    ------
    neo.DTypeError
        `modules` are no modules by name.
    neo.ModelError
        A number is none of these, or a module has an input or output that is no tensor or, where requests are joined,
        whose first axis is not the batch.
    """

    def __init__(
        self,
        modules: Mapping[str, Module],
        *,
        max_bytes: int = 1 << 28,
        max_requests: int = 256,
        timeout: float | None = None,
        max_batch: int = 1,
        batch_delay: float = 0.002,
    ) -> None:
        if not isinstance(modules, Mapping) or not all(
            isinstance(name, str) and isinstance(module, Module) for name, module in modules.items()
        ):
            msg = (
                f"[serve] modules must be a mapping of names to modules. Got {modules!r:.80}, expected {{name: module}}"
            )
            raise DTypeError(msg)
        for name, value in (("max_bytes", max_bytes), ("max_requests", max_requests), ("max_batch", max_batch)):
            if not isinstance(value, int) or value < 1:
                msg = f"[serve] {name} must be positive. Got {value!r}"
                raise ModelError(msg)
        times = (batch_delay, 1.0 if timeout is None else timeout)
        if not all(isinstance(t, int | float) for t in times) or not (0 <= times[0] < math.inf and times[1] > 0):
            msg = f"[serve] times must be positive. Got batch_delay={batch_delay}, timeout={timeout}"
            raise ModelError(msg)
        self._modules = dict(modules)
        self._max_bytes = max_bytes
        self._max_requests = max_requests
        self._timeout = timeout
        self._metrics = Metrics()
        self._batches = {
            name: Batches(module, max_batch, batch_delay, partial(self._metrics.add_batch, name))
            for name, module in self._modules.items()
        }
        self._told = {
            name: {
                "name": name,
                "versions": ["1"],
                "platform": "neo",
                "inputs": [described(t) for t in module.inputs],
                "outputs": [described(t) for t in module.outputs],
            }
            for name, module in self._modules.items()
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI asks for it."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        header: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json")]
        try:
            body, json_bytes = await self._answer(scope, receive)
            status = 200
            if json_bytes is not None:
                header = [(b"content-type", b"application/octet-stream"), (_HEADER, str(json_bytes).encode())]
            elif scope["path"] == "/metrics":
                header = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
        except _HttpError as error:
            status, body = error.status, json.dumps({"error": str(error)}).encode()
        except Error as error:
            status = _status_of(error)
            body = json.dumps({"error": str(error)}).encode()
        if status == 503:
            header.append((b"retry-after", b"1"))
        header.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": header})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Message, receive: Receive) -> tuple[bytes, int | None]:
        parts = [unquote(part) for part in scope["path"].strip("/").split("/")]
        if parts == ["metrics"]:
            _check_method(scope, "GET")
            return self._metrics.text().encode(), None
        if parts[0] != "v2":
            raise _HttpError(404, f"[serve] a path must begin with /v2. Got {scope['path']!r}")
        match parts[1:]:
            case [] | ["health", "live" | "ready"]:
                _check_method(scope, "GET")
                about = {"name": "neo", "version": __version__, "extensions": ["binary_tensor_data"]}
                state = {parts[-1]: True} if len(parts) > 1 else about
                return json.dumps(state).encode(), None
            case ["models", name, *rest]:
                if rest[:1] == ["versions"] and len(rest) > 1:
                    if rest[1] != "1":
                        raise _HttpError(404, f"[serve] a version must be there. Got {rest[1]!r}, expected '1'")
                    rest = rest[2:]
                if name not in self._modules:
                    expected = ", ".join(map(repr, self._modules))
                    raise _HttpError(404, f"[serve] a model must be served. Got {name!r}, expected {expected}")
                return await self._model(name, rest, scope, receive)
        raise _HttpError(404, f"[serve] a path must be the protocol's. Got {scope['path']!r}")

    async def _model(self, name: str, rest: list[str], scope: Message, receive: Receive) -> tuple[bytes, int | None]:
        if rest == ["infer"]:
            _check_method(scope, "POST")
            return await self._counted(name, scope, receive)
        _check_method(scope, "GET")
        if rest == ["ready"]:
            return json.dumps({"name": name, "ready": True}).encode(), None
        if rest:
            raise _HttpError(404, f"[serve] a path must be the protocol's. Got {scope['path']!r}")
        return json.dumps(self._told[name]).encode(), None

    async def _counted(self, name: str, scope: Message, receive: Receive) -> tuple[bytes, int | None]:
        """Answer a request for inference, or refuse it at once where too many are under way."""
        begin, status = time.perf_counter(), 500
        try:
            if self._metrics.in_progress >= self._max_requests:
                msg = f"[serve] at most {self._max_requests} requests may be under way. Got one more"
                raise _HttpError(503, msg)
            self._metrics.in_progress += 1
            try:
                answer = await self._infer(name, scope, receive)
            finally:
                self._metrics.in_progress -= 1
            status = 200
        except _HttpError as error:
            status = error.status
            raise
        except Error as error:
            status = _status_of(error)
            raise
        finally:
            self._metrics.add_request(name, status, time.perf_counter() - begin)
        return answer

    async def _infer(self, name: str, scope: Message, receive: Receive) -> tuple[bytes, int | None]:
        module = self._modules[name]
        headers = {key.lower(): value for key, value in scope["headers"]}
        length = headers.get(_HEADER)
        if length is not None and not length.isdigit():
            raise _HttpError(400, f"[serve] the length of the JSON must be a number. Got {length!r}")
        body = await self._body(receive)
        request, arrays = read_request(body, None if length is None else int(length))
        specs = {t.name: t for t in module.outputs}
        names, binary = _wanted(request, list(specs))
        outputs = await self._run(name, arrays, receive)
        fields = {"model_name": name, "model_version": "1"}
        if isinstance(request.get("id"), str):
            fields["id"] = request["id"]
        return write_response(fields, {n: outputs[n] for n in names}, specs, binary)

    async def _run(self, name: str, arrays: Arrays, receive: Receive) -> Arrays:
        """Outputs by name; the call ends with its client and with its time."""
        call = asyncio.ensure_future(self._batches[name].run(arrays))
        gone = asyncio.ensure_future(_client_leaves(receive))
        try:
            await asyncio.wait({call, gone}, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
            if gone.done():
                raise _HttpError(499, "[serve] the client must wait for its answer. Got a closed connection")
            raise _HttpError(504, f"[serve] a call must take at most {self._timeout} s. Got a longer one")
        finally:
            call.cancel()
            gone.cancel()

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                raise _HttpError(413, f"[serve] a request must have at most {self._max_bytes} bytes. Got more")
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return bytes(body)


def _status_of(error: Error) -> int:
    """Models and arguments are the client's; what lacks memory or is a bug is not."""
    return 400 if isinstance(error, ModelError) else 500 if isinstance(error, InternalError) else 503


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_method(scope: Message, method: str) -> None:
    if scope["method"] not in (method, "HEAD" if method == "GET" else method):
        raise _HttpError(405, f"[serve] the method must be {method}. Got {scope['method']}")


def _wanted(request: Mapping[str, Any], known: list[str]) -> tuple[list[str], set[str]]:
    """The outputs that are asked for, and those of them that are sent as bytes."""
    parameters = request.get("parameters")
    by_default = isinstance(parameters, dict) and parameters.get("binary_data_output") is True
    given = request.get("outputs")
    if given is None:
        return known, set(known) if by_default else set()
    if not isinstance(given, list) or not all(isinstance(e, dict) and e.get("name") in known for e in given):
        msg = f"[serve] outputs must be the model's. Got {given!r:.80}, expected {', '.join(map(repr, known))}"
        raise ModelError(msg)
    binary = {
        e["name"]
        for e in given
        if (e["parameters"] if isinstance(e.get("parameters"), dict) else {}).get("binary_data", by_default)
    }
    return [e["name"] for e in given], binary


async def _live(receive: Receive, send: Send) -> None:
    """Say that there is nothing to start and to stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
