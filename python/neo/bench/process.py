"""The runner's side of a worker: start it, ask it, hold it still while others are measured, end it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["EngineError", "EngineProcess"]

_WORKER = Path(__file__).with_name("worker.py")
#: The folder that holds the package, which a worker of neo with this interpreter must import too.
_PACKAGES = Path(__file__).resolve().parents[2]


class EngineError(Exception):
    """The engine failed; the message is one line for the table."""


class EngineProcess:
    """A worker process of one engine.

    Parameters
    ----------
    adapter : Path
        The engine's adapter.
    threads : int
        For the engines that take the number from the environment.
    python : str
        The interpreter whose environment holds the engine.
    """

    def __init__(self, adapter: Path, threads: int, python: str = sys.executable) -> None:
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
        # Modules of a checkout are compiled once, as those of a package that is installed.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if python == sys.executable:
            places = [str(_PACKAGES), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(place for place in places if place)
        self._process = subprocess.Popen(
            [python, str(_WORKER), str(adapter)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
        )

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send a request and return the answer; raise ``EngineError`` if it is a failure or does not come in time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise EngineError(self._ending()) from None
        stop = time.monotonic() + timeout
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, stop - time.monotonic()))
            if not ready:
                raise EngineError(f"no answer to {request['do']!r} within {timeout:.0f} s")
            part = os.read(self._process.stdout.fileno(), 1 << 20)
            if not part:
                raise EngineError(self._ending())
            line += part
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise EngineError(answer["error"])
        return answer

    def _ending(self) -> str:
        """Return how the process ended, with the last line that it printed."""
        code = self._process.wait(10)
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().splitlines() if line.strip()]
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"{how}: {lines[-1]}" if lines else how

    def hold(self) -> None:
        """Stop the process until ``release``, so that its waiting threads burn no time of others."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let a held process go on."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()
