"""What a module may take: memory and seconds of loading it and of each call, whatever its plan says."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

import neo
import numpy as np
import onnx
import pytest

from tests.saved.parts import MODELS, Parts

MB = 1 << 20

# A value that doubles with every iteration, of numbers and of text.
DOUBLING = """
<ir_version: 8, opset_import: ["" : 18]>
doubling (int64 trips, float[K] x) => (float[L] y) <bool go = {1}> {
  y = Loop (trips, go, x) <body = step (int64 i, bool c, float[A] v) => (bool d, float[B] w) {
    d = Identity (c)
    w = Concat <axis = 0> (v, v)
  }>
}
"""
DOUBLING_TEXT = """
<ir_version: 9, opset_import: ["" : 20]>
doubling_text (int64 trips, string[1] x) => (string[1] y) <bool go = {1}> {
  y = Loop (trips, go, x) <body = step (int64 i, bool c, string[1] v) => (bool d, string[1] w) {
    d = Identity (c)
    w = StringConcat (v, v)
  }>
}
"""
# Nothing but rounds; nothing but results of no element each.
IDLE = """
<ir_version: 8, opset_import: ["" : 18]>
idle (int64 trips, float[1] x) => (float[1] y) <bool go = {1}> {
  y = Loop (trips, go, x) <body = step (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
    d = Identity (c)
    w = Identity (v)
  }>
}
"""
COLLECTING = """
<ir_version: 8, opset_import: ["" : 18]>
collecting (int64 trips, float[1] x) => (float[1] y, all) <bool go = {1}, float[0] nothing = {}> {
  y, all = Loop (trips, go, x) <body = step (int64 i, bool c, float[1] v) => (bool d, float[1] w, float[0] each) {
    d = Identity (c)
    w = Identity (v)
    each = Identity (nothing)
  }>
}
"""
# A value of any size; a product that takes long in one step.
EXPANDING = """
<ir_version: 8, opset_import: ["" : 18]>
expanding (int64[2] shape, float[1] x) => (float[A, B] y) { t = Expand (x, shape) y = Relu (t) }
"""
HUGE = """
<ir_version: 8, opset_import: ["" : 18]>
huge (float[1] x) => (float y) <int64[2] shape = {1048576, 1048576}> {
  t = Expand (x, shape) u = Sqrt (t) y = ReduceMax <keepdims = 0> (u)
}
"""
LONG = """
<ir_version: 8, opset_import: ["" : 18]>
long (float[N, 1024] x, float[1024, M] w) => (float[N, M] y) { y = MatMul (x, w) }
"""
EINSUM = """
<ir_version: 8, opset_import: ["" : 18]>
einsum (float[N] x) => (float y) {
  m = Einsum <equation = "a,b->ab"> (x, x) y = Einsum <equation = "a,b,cc->"> (x, x, m)
}
"""

Save = Callable[[str], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def saved(text: str) -> Path:
        path = tmp_path / "m.neo"
        neo.compile(onnx.parser.parse_model(text), threads=2).save(path)
        return path

    return saved


ONE = np.ones(1, np.float32)
FOREVER = np.array(10**18)


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (DOUBLING, {"trips": FOREVER, "x": ONE}),
        (DOUBLING_TEXT, {"trips": FOREVER, "x": np.array(["a"], object)}),
        (COLLECTING, {"trips": FOREVER, "x": ONE}),
        (EXPANDING, {"shape": np.array([2**20, 2**20]), "x": ONE}),
        (EXPANDING, {"shape": np.array([2**10, 2**13]), "x": ONE}),
        (HUGE, {"x": ONE}),
    ],
)
def test_a_call_stays_within_its_memory(save: Save, text: str, feeds: dict[str, np.ndarray]) -> None:
    module = neo.load(save(text), limits=neo.Limits(memory=32 * MB))
    for _ in range(2):
        with pytest.raises(neo.OutOfMemoryError, match=r"memory must stay within its limit. Got .*at most 33554432"):
            module.run(feeds)


@pytest.mark.parametrize(
    ("text", "feeds"), [(EXPANDING, {"shape": np.array([2**20, 2**20]), "x": ONE}), (HUGE, {"x": ONE})]
)
def test_without_a_limit_the_system_has_one(save: Save, text: str, feeds: dict[str, np.ndarray]) -> None:
    with pytest.raises(neo.OutOfMemoryError, match="must stay within what the system has free|must fit this machine"):
        neo.load(save(text)).run(feeds)


def test_memory_is_counted_by_call(save: Save) -> None:
    module = neo.load(save(EXPANDING), limits=neo.Limits(memory=32 * MB))
    feeds = {"shape": np.array([1024, 1024]), "x": ONE}
    kept = [module.run(feeds)["y"] for _ in range(20)]
    assert all((y == 1).all() for y in kept)
    assert (module.with_threads(1).run(feeds)["y"] == 1).all()


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (IDLE, {"trips": FOREVER, "x": ONE}),
        (LONG, {"x": np.ones((6144, 1024), np.float32), "w": np.ones((1024, 6144), np.float32)}),
        (EINSUM, {"x": np.ones(5000, np.float32)}),
    ],
)
def test_a_call_ends_in_its_time(save: Save, text: str, feeds: dict[str, np.ndarray]) -> None:
    module = neo.load(save(text), limits=neo.Limits(seconds=0.05))
    for m in (module, module.with_threads(1)):
        with pytest.raises(neo.TimeLimitError, match=r"must end in time. Got longer, expected at most 0.05 s"):
            m.run(feeds)


@pytest.mark.parametrize(
    ("text", "feeds"),
    [(IDLE, {"trips": FOREVER, "x": ONE}), (EINSUM, {"x": np.ones(5000, np.float32)})],
)
def test_a_call_of_any_length_can_be_cancelled(save: Save, text: str, feeds: dict[str, np.ndarray]) -> None:
    future = neo.load(save(text)).run_async(feeds)
    time.sleep(0.05)
    future.cancel()
    with pytest.raises((neo.CancelledError, CancelledError)):
        future.result(timeout=60)


def test_loading_stays_within_its_limits(save: Save, tmp_path: Path) -> None:
    path = save(IDLE)
    with pytest.raises(neo.OutOfMemoryError, match=r"memory must stay within its limit.* - at .*m\.neo"):
        neo.load(path, limits=neo.Limits(memory=1000))
    with pytest.raises(neo.TimeLimitError, match=r"must end in time.* - at .*m\.neo"):
        neo.load(path, limits=neo.Limits(seconds=0))
    parts = Parts.of(path.read_bytes())
    parts.plan["symbols"] = [["x", 0, 1, 0]] * 400_000
    with pytest.raises(neo.OutOfMemoryError, match="must stay within its limit"):
        neo.load(parts.join(), limits=neo.Limits(memory=64 * MB))


def test_a_plan_of_many_pairs_ends_in_time(tmp_path: Path) -> None:
    neo.compile(MODELS["control"], threads=1).save(tmp_path / "m.neo")
    parts = Parts.of((tmp_path / "m.neo").read_bytes())
    for region in parts.plan["blocks"][0]["regions"]:
        region["items"] = (region["items"] * 30_000)[:30_000]
    whole = parts.join()
    with pytest.raises((neo.TimeLimitError, neo.ModelError)):
        neo.load(whole, limits=neo.Limits(seconds=0.2))


def test_a_file_stays_within_its_limit(save: Save) -> None:
    path = save(IDLE)
    size = path.stat().st_size
    for source in (path, path.read_bytes()):
        neo.load(source, limits=neo.Limits(bytes=size))
        with pytest.raises(neo.ModelError, match=rf"a file must stay within its limit. Got {size} bytes"):
            neo.load(source, limits=neo.Limits(bytes=size - 1))


def test_limits_are_limits(save: Save) -> None:
    with pytest.raises(neo.DTypeError, match=r"limits must be neo.Limits. Got dict"):
        neo.load(save(IDLE), limits={"memory": 1})  # type: ignore[arg-type]
