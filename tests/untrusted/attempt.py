"""One damaged model: made from a number, compiled, run once; what came of it."""

from __future__ import annotations

import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import neo
import neo.frontend.onnx as frontend
import numpy as np
import onnx
from neo import _native
from neo.candidates import Candidates
from neo.options import Options
from onnx import numpy_helper

from tests.untrusted.hostile import EXTERNAL_FILE, EXTERNAL_FILE_BYTES
from tests.untrusted.mutate import damage, damage_bytes
from tests.untrusted.seeds import Seed

__all__ = ["LIMITS", "Attempts", "Outcome", "complaint", "synthetic_inputs"]

compiler: Any = import_module("neo.pipeline")

LIMITS = neo.Limits(bytes=1 << 24, nodes=2_000, memory=1 << 28, seconds=3.0)
_MOST_INPUT_BYTES = 1 << 24
_MOST_GROWTH_KIB = 1 << 20
_MOST_TEXT = 4000


class Outcome(NamedTuple):
    """What came of one damaged model; `finding` is empty unless neo broke a promise."""

    seed: int
    stage: str
    result: str
    finding: str
    ms: float
    how: str


class _TimeIsUp(Exception):  # noqa: N818  (not an error: the caller's own end of a call)
    """The call was stopped."""


class Attempts:
    """Makes damaged models from seeds and tries them, in a folder of its own."""

    def __init__(self, seeds: Sequence[Seed], folder: Path, call_seconds: float = 4.0) -> None:
        self._call_seconds = call_seconds
        self._groups = [[s for s in seeds if s.name.startswith(kind)] for kind in ("built-", "node-", "real-") if seeds]
        self._groups = [group for group in self._groups if group]
        self._weights = [{"b": 37, "n": 61, "r": 2}[group[0].name[0]] for group in self._groups]
        self._small = [s.model for s in seeds if s.model.ByteSize() < 1 << 13]
        self._folder = folder
        self._stage = "file"
        self._dropped: set[str] = set()
        self._peak = _peak_kib()
        (folder / EXTERNAL_FILE).write_bytes(np.random.default_rng(0).bytes(EXTERNAL_FILE_BYTES))

    def make(self, number: int) -> tuple[bytes, Seed, list[str], random.Random]:
        """The damaged model of a number, and how it was made."""
        rng = random.Random(number)
        seed = rng.choice(rng.choices(self._groups, self._weights)[0])
        model = onnx.ModelProto()
        model.CopyFrom(seed.model)
        kind = rng.random()
        how = damage(rng, model, self._small) if kind < 0.94 else []
        raw = model.SerializeToString(deterministic=True)
        if kind > 0.88:
            raw = damage_bytes(rng, raw)
            how.append("bytes")
        return raw, seed, how, rng

    def run(self, number: int) -> Outcome:
        """Compile the model of a number and call it once."""
        raw, seed, how, rng = self.make(number)
        stage, result, finding, ms = self.attempt(raw, rng, seed)
        return Outcome(number, stage, result, finding, ms, f"{seed.name}: {', '.join(how)}")

    def attempt(self, raw: bytes, rng: random.Random, seed: Seed | None = None) -> tuple[str, str, str, float]:
        """Compile a file and call what it gives once: stage, result, finding and milliseconds."""
        source: bytes | Path = raw
        if EXTERNAL_FILE.encode() in raw or rng.random() < 0.05:
            source = self._folder / "damaged.onnx"
            source.write_bytes(raw)
        start = time.monotonic()
        self._stage = "file"
        self._dropped = (
            {name for name in _native.routine_names() if rng.random() < 0.5} if rng.random() < 0.5 else set()
        )
        result, finding = "ran", ""
        try:
            with self._watched():
                module = neo.compile(source, threads=1, limits=LIMITS)
                self._stage = "run"
                inputs = synthetic_inputs(rng, module, seed)
                if inputs is None:
                    result = "inputs too large"
                else:
                    with _stopped_after(self._call_seconds):
                        module.run(inputs)
            if inputs is not None:
                self._stage = "ran"
        except _TimeIsUp:
            result = "call stopped"
        except neo.Error as error:
            result = type(error).__name__
            finding = complaint(error)
        except Exception as error:
            result = type(error).__name__
            finding = "not a neo.Error: " + "".join(traceback.format_exception(error))[-_MOST_TEXT:]
        ms = (time.monotonic() - start) * 1e3
        if not finding and self._stage != "run" and ms > 1e3 * (LIMITS.seconds or 0) + 4e3:
            finding = f"slow: {ms:.0f} ms"
        memory, self._peak = self._peak, _peak_kib()
        if not finding and self._peak - memory > _MOST_GROWTH_KIB:
            finding = f"memory: grew by {self._peak - memory} KiB"
        return self._stage, result, finding, round(ms, 1)

    def _keeps(self, routine: str) -> bool:
        name = routine.split("{")[0]
        return name == "cpu/reference" or name not in self._dropped

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Note each stage as the compiler enters it."""
        build, select = compiler.build_candidates, Candidates.select

        # Half of the attempts leave out half of the routines: each is chosen now and then, slow ones too.
        def built(graph: Any, target: str, options: Options, corrections: Any) -> Candidates:
            self._stage = "select"
            if not self._dropped:
                return build(graph, target, options, corrections)
            keeps = self._keeps
            return Candidates(
                _native.build_problem(graph, target, options.threads, lambda _, routine: keeps(routine)), options
            )

        def selected(candidates: Candidates) -> Any:
            selection = select(candidates)
            self._stage = "lower"
            return selection

        convert, passes = frontend.Importer.convert_nodes, _native.run_passes
        load = frontend.load_model

        def loaded(*args: Any, **given: Any) -> Any:
            read = load(*args, **given)
            self._stage = "parse"
            return read

        def converted(*args: Any) -> Any:
            if self._stage == "parse":
                self._stage = "import"
            return convert(*args)

        def passed(*args: Any, **options: Any) -> Any:
            self._stage = "passes"
            return passes(*args, **options)

        frontend.load_model, frontend.Importer.convert_nodes = loaded, converted
        _native.run_passes, compiler.build_candidates, Candidates.select = passed, built, selected
        try:
            yield
        finally:
            frontend.load_model, frontend.Importer.convert_nodes = load, convert
            _native.run_passes, compiler.build_candidates, Candidates.select = passes, build, select


def complaint(error: neo.Error) -> str:
    """What is wrong with an error as an answer to a hostile model; empty where nothing is."""
    text = str(error)
    first, *rest = text.split("\n")
    if isinstance(error, neo.InternalError):
        return f"internal: {text[:_MOST_TEXT]}"
    if not text.startswith("[") or "] " not in first:
        return f"not in the grammar of errors: {text[:500]!r}"
    if len(text) > _MOST_TEXT and not isinstance(error, neo.UnsupportedError):
        return f"too long: {len(text)} characters, {text[:200]!r}"
    if any(not line.startswith(("Hint: ", "  ")) for line in rest) or not text.replace("\n", "").isprintable():
        return f"not one line: {text[:500]!r}"
    return ""


def synthetic_inputs(rng: random.Random, module: neo.Module, seed: Seed | None) -> dict[str, Any] | None:
    """Arrays that a module takes, now and then those of its seed; None where they would be too large."""
    given = {v.name: t for v, t in zip(seed.model.graph.input, seed.inputs, strict=False)} if seed else {}
    sizes: dict[str, int] = {}
    inputs: dict[str, Any] = {}
    total = 0
    for t in module.inputs:
        if "optional" in t.dtype:
            inputs[t.name] = [] if t.dtype.startswith("seq(") else None
            continue
        depth = t.dtype.count("seq(")
        if "map(" in t.dtype:
            synthetic: Any = _entries(rng, t.dtype.split("map(")[1])
            for _ in range(depth):
                synthetic = [synthetic]
            inputs[t.name] = synthetic
            continue
        kind = t.dtype.split("seq(")[-1].split("[")[0].rstrip(")")
        shape = t.shape if t.shape is not None else (2, 3)[: rng.randint(0, 2)]
        dims = [d if isinstance(d, int) else sizes.setdefault(d, rng.choice((0, 1, 2, 3, 5))) for d in shape]
        total += 8 * int(np.prod([float(d) for d in dims]))
        if total > _MOST_INPUT_BYTES:
            return None
        array = _array(rng, kind, dims)
        tensor = given.get(t.name)
        if tensor is not None and rng.random() < 0.7:
            own = numpy_helper.to_array(tensor)
            fits = own.dtype == array.dtype and own.ndim == len(shape)
            if fits and all(not isinstance(d, int) or d == n for d, n in zip(shape, own.shape, strict=True)):
                array = own
        given_array: Any = array
        for _ in range(depth):
            given_array = [given_array]
        inputs[t.name] = given_array
    return inputs


def _entries(rng: random.Random, kind: str) -> dict[Any, Any]:
    """A map; `kind` is that of its keys, then that of its values."""
    key, _, value = kind.partition(",")
    keys: list[Any] = ["a", "b", "", "\u00e9"] if key == "string" else [0, 1, -1, 7]
    values: list[Any] = ["1", "x", ""] if value.startswith("string") else [1, 0, 3]
    return {k: rng.choice(values) for k in rng.sample(keys, rng.randint(0, len(keys)))}


def _array(rng: random.Random, kind: str, dims: list[int]) -> np.ndarray[Any, Any]:
    random_ = np.random.default_rng(rng.getrandbits(32))
    if kind == "string":
        words = np.array(["a b", "", "aab", "é"], object)
        return words[random_.integers(0, 4, dims)] if dims else np.array("a b", object)
    dtype = np.dtype(getattr(ml_dtypes, kind) if hasattr(ml_dtypes, kind) else kind)
    if dtype.kind in "iu" and rng.random() < 0.3:
        info = np.iinfo(dtype)
        return random_.choice(np.array([info.min, info.max, 0, 1], dtype), dims).reshape(dims)
    numbers = random_.standard_normal(dims) * (1 if dtype.kind not in "iub" else 3)
    if rng.random() < 0.1:
        numbers = np.where(random_.random(dims) < 0.3, np.nan, numbers)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(numbers) if dtype.kind == "u" else numbers).astype(dtype)


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TimeIsUp

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
