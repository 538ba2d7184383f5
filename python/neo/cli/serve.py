"""``neo serve``."""

from __future__ import annotations

import argparse
import contextlib
import socket
from pathlib import Path

from neo.cli.arguments import add_shape, add_target, note_fallbacks, sizes_of
from neo.compile import compile as compile_model
from neo.errors import ModelError, ResourceError
from neo.saved import load

HELP = "serve models over HTTP by the Open Inference Protocol (docs/serve.md)"
# Seconds that requests under way have after SIGTERM.
_SECONDS_TO_FINISH = 30
_MAX_PORT = 65535


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    command.add_argument(
        "models", nargs="+", metavar="[NAME=]model", help="ONNX files, or modules that neo compile wrote (.neo)"
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument("--port", type=int, default=8000, help="(default: %(default)s)")
    command.add_argument("--max-bytes", type=int, default=1 << 28, help="of a request (default: 256 MiB)")
    command.add_argument(
        "--max-requests",
        type=int,
        default=256,
        help="under way at once; one more is answered by 503 (default: %(default)s)",
    )
    command.add_argument("--timeout", type=float, metavar="SECONDS", help="of a call (default: none)")
    command.add_argument(
        "--max-batch", type=int, default=1, metavar="ROWS", help="to join requests to (default: each runs by itself)"
    )
    command.add_argument(
        "--batch-delay", type=float, default=2.0, metavar="MS", help="to wait for others (default: %(default)s)"
    )
    add_target(command)
    add_shape(command)


def run(options: argparse.Namespace) -> None:
    """Compile or load the models, and answer until interrupted."""
    from neo.serve import Application

    try:
        import uvicorn
    except ModuleNotFoundError as error:
        msg = "[cli] serve must find uvicorn. Got none\nHint: pip install uvicorn"
        raise ResourceError(msg) from error

    if not 0 < options.port <= _MAX_PORT:
        msg = f"[cli] --port must be 1 to {_MAX_PORT}. Got {options.port}"
        raise ModelError(msg)
    modules = {}
    for item in options.models:
        name, equals, path = item.partition("=")
        name, path = (name, path) if equals else (Path(item).stem, item)
        if not name:
            msg = f"[cli] a model must have a name. Got {item!r}"
            raise ModelError(msg)
        if name in modules:
            msg = f"[cli] names of models must differ. Got {name!r} twice\nHint: NAME=FILE names one"
            raise ModelError(msg)
        if Path(path).suffix == ".neo":
            modules[name] = load(path, threads=options.threads)
        else:
            sizes = sizes_of(options)
            modules[name] = compile_model(path, target=options.target, threads=options.threads, shapes=sizes)
        note_fallbacks(options, modules[name])
    application = Application(
        modules,
        max_bytes=options.max_bytes,
        max_requests=options.max_requests,
        timeout=options.timeout,
        max_batch=options.max_batch,
        batch_delay=options.batch_delay / 1000,
    )
    listener = _listener(options.host, options.port)
    for name in modules:
        print(f"http://{options.host}:{options.port}/v2/models/{name}", flush=True)
    settings = uvicorn.Config(
        application,
        log_level="info" if options.verbose else "warning",
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    with listener, contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    """A socket of the address: uvicorn's own refusal of one comes after it is printed, and as a log line."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        msg = f"[cli] --host and --port must be an address of this machine that is free. Got {error.strerror} - at {host}:{port}"
        raise ResourceError(msg) from error
