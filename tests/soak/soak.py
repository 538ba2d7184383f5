"""What the threads of a soak do, what is watched, and what must hold."""

from __future__ import annotations

import concurrent.futures.thread  # first imported while another thread forks, it gives up a lock that it does not hold
import ctypes
import faulthandler
import gc
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import neo
import numpy as np

from tests.saved.parts import MODELS
from tests.saved.same_bits import assert_same

__all__ = ["run"]

_STUCK_SECONDS = 120.0
Feeds = dict[str, Any]


@dataclass
class Network:
    """A model, the module that all threads share, its saved file, and inputs with the bits they must give."""

    model: Any
    module: neo.Module
    path: Path
    cases: list[tuple[Feeds, dict[str, Any]]]

    def check(self, module: neo.Module, rng: random.Random) -> None:
        """Call a module of the model on one of the inputs and compare."""
        feeds, expected = rng.choice(self.cases)
        self.compare(module.run(feeds), expected)

    @staticmethod
    def compare(got: dict[str, Any], expected: dict[str, Any]) -> None:
        """Compare with the bits of one thread."""
        for name, value in expected.items():
            assert_same(got[name], value, name)


@dataclass
class State:
    """What the threads share."""

    networks: list[Network]
    allow_blocks: Callable[[int], None]
    end: float
    counts: Counter[str] = field(default_factory=Counter)
    beats: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def _networks(folder: Path) -> list[Network]:
    draw = np.random.default_rng(0)
    cases: dict[str, list[Feeds]] = {
        "network": [{"x": draw.standard_normal((n, 3, 12, 12)).astype(np.float32)} for n in (1, 2, 3, 5, 8, 13)],
        "control": [
            {
                "x": draw.standard_normal((n, 4)).astype(np.float32),
                "index": draw.integers(0, n, n + 1),
                "flag": np.array(bool(n % 2)),
            }
            for n in (1, 2, 3, 4)
        ],
        "words": [
            {"s": np.array(["x", "yy"] * n, object), "q": [np.arange(n, dtype=np.float32)] * 2} for n in (1, 2, 3)
        ],
    }
    networks = []
    for name, feeds in cases.items():
        alone = neo.compile(MODELS[name], threads=1)
        alone.save(folder / f"{name}.neo")
        answers = [(f, alone.run(f)) for f in feeds]
        networks.append(Network(MODELS[name], alone.with_threads(2), folder / f"{name}.neo", answers))
    return networks


def _call(state: State, rng: random.Random) -> None:
    network = rng.choice(state.networks)
    network.check(network.module, rng)


def _make(state: State, rng: random.Random) -> None:
    network = rng.choice(state.networks)
    kind = rng.randrange(4)
    if kind == 0:
        module = neo.compile(network.model, threads=1)
    elif kind == 1:
        module = neo.load(network.path, threads=2)
    elif kind == 2:
        module = neo.load(network.path.read_bytes(), threads=1)
    else:
        module = network.module.with_threads(rng.randint(1, 3))
    for _ in range(rng.randint(1, 5)):
        network.check(module, rng)


def _cancel(state: State, rng: random.Random) -> None:
    network = rng.choice(state.networks)
    pending = []
    for _ in range(rng.randint(1, 4)):
        feeds, expected = rng.choice(network.cases)
        pending.append((network.module.run_async(feeds), expected))
    if rng.random() < 0.5:
        time.sleep(rng.random() * 1e-3)
    for future, _ in pending:
        if rng.random() < 0.7:
            future.cancel()
    for future, expected in pending:
        try:
            got = future.result(timeout=_STUCK_SECONDS)
        except (concurrent.futures.CancelledError, neo.CancelledError):
            state.counts["cancelled"] += 1
        else:
            network.compare(got, expected)


def _fork(state: State, rng: random.Random) -> None:
    network = rng.choice(state.networks)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(_STUCK_SECONDS / 2, exit=True)
        try:
            network.check(network.module, rng)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        msg = f"a forked child ended with status {status}"
        raise AssertionError(msg)
    time.sleep(0.01)


def _starve(state: State, rng: random.Random) -> None:
    network = rng.choice(state.networks)
    kind = rng.randrange(3)
    module = network.module if kind == 0 else neo.load(network.path, threads=1)
    state.allow_blocks(rng.randrange(6))
    try:
        if kind == 2:
            module = neo.load(network.path, threads=1) if rng.random() < 0.5 else neo.compile(network.model, threads=1)
        network.check(module, rng)
    except MemoryError as error:
        state.counts["out of memory"] += 1
        if not isinstance(error, neo.Error):
            raise
    finally:
        state.allow_blocks(-1)
    network.check(module, rng)


_WORK: dict[str, Callable[[State, random.Random], None]] = {
    "call": _call,
    "make": _make,
    "cancel": _cancel,
    "fork": _fork,
    "starve": _starve,
}


def _worker(state: State, name: str, work: Callable[[State, random.Random], None], seed: int) -> None:
    rng = random.Random(seed)
    kind = name.split()[0]
    while time.monotonic() < state.end and not state.errors:
        state.beats[name] = time.monotonic()
        try:
            work(state, rng)
        except BaseException:
            state.errors.append(f"{name}:\n{traceback.format_exc()}")
        state.counts[kind] += 1
    state.beats.pop(name, None)


def _usage() -> dict[str, int]:
    """What a leak would make grow."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return {
        "resident MB": resident >> 20,
        "mappings": Path("/proc/self/maps").read_text().count("\n"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
    }


# Between the second quarter and the last: noise of an allocator and of who runs when.
_ALLOWED = {"resident MB": 24, "mappings": 60, "descriptors": 12, "threads": 12}


def _growth(samples: list[dict[str, int]]) -> list[str]:
    quarter = max(1, len(samples) // 4)
    found = []
    for key, allowed in _ALLOWED.items():
        early = statistics.median(s[key] for s in samples[quarter : 2 * quarter] or samples[:1])
        late = statistics.median(s[key] for s in samples[-quarter:])
        print(f"{key}: {early:g} in the second quarter, {late:g} in the last")
        if late > early * 1.05 + allowed:
            found.append(f"{key} grew from {early:g} to {late:g}")
    return found


def _idle_cpu() -> float:
    """The share of one core that the process takes where nothing is asked of it."""
    time.sleep(0.5)
    before, start = time.process_time(), time.monotonic()
    time.sleep(1.0)
    return (time.process_time() - before) / (time.monotonic() - start)


def run(seconds: float, threads: int, seed: int, library: str) -> int:
    """Soak neo; prints what was done and what did not hold. Returns the exit status."""
    faulthandler.enable()
    allow_blocks = ctypes.CDLL(library).allow_blocks
    allow_blocks.argtypes = [ctypes.c_long]
    with tempfile.TemporaryDirectory() as folder:
        state = State(_networks(Path(folder)), allow_blocks, time.monotonic() + seconds)
        for number, (kind, work) in enumerate(_WORK.items()):
            for i in range(1 if kind == "fork" else threads):
                name = f"{kind} {i}"
                arguments = (state, name, work, seed * 1000 + number * 100 + i)
                threading.Thread(target=_worker, name=name, args=arguments, daemon=True).start()
        samples = []
        while time.monotonic() < state.end + _STUCK_SECONDS:
            time.sleep(min(1.0, seconds / 20))
            now = time.monotonic()
            stuck = [name for name, beat in list(state.beats.items()) if now - beat > _STUCK_SECONDS]
            if stuck:
                print(f"stuck: {', '.join(stuck)}", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(2)
            if not state.beats and (now >= state.end or state.errors):
                break
            if now < state.end:
                samples.append(_usage())
        wrong = [*state.errors, *_growth(samples or [_usage()])]  # a busy machine may have left no time for one
        print(", ".join(f"{kind} {count}" for kind, count in sorted(state.counts.items())))
        state.networks.clear()
        gc.collect()
        idle = _idle_cpu()
        print(f"idle: {idle:.1%} of a core")
        if idle > 0.1:
            wrong.append(f"an idle process takes {idle:.1%} of a core")
        missing = {*_WORK, "cancelled", "out of memory"} - set(state.counts)
        if missing and not wrong:
            wrong.append(f"nothing happened of {', '.join(sorted(missing))}")
        print("\n".join(wrong) if wrong else f"held for {seconds:g} s")
        return 1 if wrong else 0
