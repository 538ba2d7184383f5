"""Denormal numbers are zeros for the length of a call, on every thread; ``accuracy="strict"`` keeps them."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import signal
from pathlib import Path

import neo
import numpy as np
import pytest
from onnx import parser

TINY = np.float32(1e-40)
BOTH = pytest.mark.parametrize("accuracy", ["default", "strict"])


def compiled(body, inputs="float[N, 64] x", constants="", accuracy="default", threads=1):
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => (y) <{constants}> {{ {body} }}'
    )
    return neo.compile(model, threads=threads, accuracy=accuracy)


def denormals_are_kept():
    """Whether this thread computes with denormal numbers."""
    return bool(np.float32(0.5) * TINY > 0 and np.float32(1e-30) * np.float32(1e-10) > 0)


@BOTH
@pytest.mark.parametrize("op", ["Mul", "Div", "Add"])
def test_operands_and_results(accuracy, op):
    module = compiled(f"y = {op} (x, z)", "float[N, 64] x, float[N, 64] z", accuracy=accuracy)
    for a, b in [(TINY, 1e30), (1e-30, 1e-10), (TINY, TINY), (1e-10, 1e30), (-TINY, 2.0)]:
        x, z = np.full((3, 64), a, np.float32), np.full((3, 64), b, np.float32)
        exact = {"Mul": np.multiply, "Div": np.divide, "Add": np.add}[op]
        if accuracy == "strict":
            expected = exact(x, z)
        else:
            with np.errstate(all="ignore"):
                expected = flushed(exact(flushed(x), flushed(z)))
        np.testing.assert_array_equal(module(x, z), expected, f"{a} {op} {b}")


def flushed(x):
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)


@BOTH
def test_the_same_bits_on_any_number_of_threads(accuracy):
    random = np.random.default_rng(0)
    x = (random.standard_normal((300, 256)) * 1e-36).astype(np.float32)
    weight = ", ".join(f"{v:g}" for v in random.standard_normal(256 * 32).astype(np.float32) * np.float32(1e-2))
    module = compiled("y = MatMul (x, w)", "float[N, 256] x", f"float[256, 32] w = {{{weight}}}", accuracy)
    found = module(x)
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(module.with_threads(threads)(x), found)
    assert (np.abs(found[found != 0]) < np.finfo(np.float32).tiny).any() == (accuracy == "strict")


@BOTH
def test_constants_too(accuracy):
    module = compiled(
        "y = MatMul (x, w)", "float[N, 2] x", "float[2, 3] w = {1e-40, 2e-40, 1, 3e-40, 1e-40, 2}", accuracy
    )
    found = module(np.full((4, 2), 1e30, np.float32))
    expected = [4e-10, 3e-10, 3e30] if accuracy == "strict" else [0, 0, 3e30]
    np.testing.assert_allclose(found, np.tile(np.float32(expected), (4, 1)), rtol=1e-4)


@BOTH
def test_references_too(accuracy):
    module = compiled("y = Cast <to = 1> (s) s = Mul (x, x)", accuracy=accuracy)
    assert (module(np.full((1, 64), 1e-21, np.float32)) > 0).all() == (accuracy == "strict")


@BOTH
def test_the_caller_computes_as_before(accuracy):
    assert denormals_are_kept()
    compiled("y = Mul (x, x)", accuracy=accuracy)(np.full((2, 64), TINY))
    assert denormals_are_kept()


def test_also_after_an_error():
    module = compiled("y = Gather (x, i)", "float[N, 64] x, int64[K] i")
    with pytest.raises(neo.Error):
        module(np.zeros((2, 64), np.float32), np.array([7]))
    assert denormals_are_kept()


class _TimeIsUpError(Exception):
    pass


def test_a_signal_handler_computes_as_before_and_ends_the_call():
    body = "b (int64 i, bool c, float[64] a) => (bool d, float[64] e) { d = Identity (c) e = Mul (a, a) }"
    module = compiled(f"y = Loop <body = {body}> (n, , x)", "int64 n, float[64] x")
    kept = []

    def handler(*_):
        kept.append(denormals_are_kept())
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(_TimeIsUpError):
            module.run({"n": np.array(2_000_000_000), "x": np.ones(64, np.float32)})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert kept == [True]
    assert denormals_are_kept()


def test_the_rounding_direction_of_the_caller_does_not_matter():
    upward = {"x86_64": 0x800, "aarch64": 0x400000}[platform.machine()]
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    module = compiled("y = Div (x, z)", "float[N, 64] x, float[N, 64] z")
    random = np.random.default_rng(0)
    x, z = (random.uniform(1, 2, (5, 64)).astype(np.float32) for _ in range(2))
    expected = module(x, z)
    nearest = library.fegetround()
    assert library.fesetround(upward) == 0
    try:
        found = module(x, z)
        assert library.fegetround() == upward
    finally:
        library.fesetround(nearest)
    np.testing.assert_array_equal(found, expected)


@BOTH
def test_a_saved_module_does_the_same(accuracy, tmp_path: Path):
    module = compiled("y = Mul (x, x)", accuracy=accuracy)
    module.save(tmp_path / "m.neo")
    x = np.full((2, 64), 1e-20, np.float32)
    found = neo.load(tmp_path / "m.neo")(x)
    np.testing.assert_array_equal(found, module(x))
    assert (found > 0).all() == (accuracy == "strict")


def test_a_move_leaves_every_bit():
    module = compiled("y = Transpose <perm = [1, 0]> (x)")
    x = np.full((2, 64), TINY)
    np.testing.assert_array_equal(module(x).view(np.int32), x.T.view(np.int32))
