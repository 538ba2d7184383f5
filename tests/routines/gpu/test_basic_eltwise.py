"""Elementwise programs of GPUs: every step, broadcasting, groups, dtypes, blocked channels."""

import numpy as np
import pytest
from neo import _native

from tests.routines.gpu.basic import check
from tests.routines.gpu.programs import ON, Program

SPECIAL = [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e-8, -1e-8, 20, -20, 90, -90, np.inf, -np.inf, np.nan]
UNARY = [
    "Neg",
    "Abs",
    "Exp",
    "Tanh",
    "Sigmoid",
    "Erf",
    "Relu",
    "HardSwish",
    "Softplus",
    "Softsign",
    "Mish",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "ThresholdedRelu",
    "HardSigmoid",
    "Swish",
    "Gelu",
    "Sqrt",
    "Log",
    "Reciprocal",
]
WITH = ["Celu(i0) {alpha=1.5}", "Swish(i0) {alpha=1.7}", 'Gelu(i0) {approximate="tanh"}']


@pytest.fixture
def random():
    return np.random.default_rng(0)


def floats(random, *dims):
    return random.standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("lanes", [1, 8])
def test_one_of_each(random, lanes):
    x = np.concatenate([SPECIAL, random.standard_normal(55) * 3]).astype(np.float32)
    texts = [f"y = {op} <- i0: float32[72]" for op in [f"{name}(i0)" for name in UNARY] + WITH]
    program = Program("eltwise_steps", workloads="".join(t + "\n" for t in texts), lanes=lanes)
    expected = [_native.parse_workload(t)[1].evaluate([x])[0] for t in texts]
    for on in ON:
        (actual,), _ = program.run([x], [((len(texts), 72), np.float32)], on=on)
        for text, a, y in zip(texts, actual, expected, strict=True):
            lossy = any(op in text for op in ("Celu", "HardS", "ThresholdedRelu", "Gelu", "Swish", "Mish"))
            known = np.isfinite(x) if lossy else slice(None)
            np.testing.assert_allclose(a[known], y[known], rtol=2e-5, atol=4e-6, err_msg=f"{text} on {on}")


def test_groups_that_broadcast(random):
    text = "t0 = Mul(i0, i1) t1 = Add(t0, i2) t2 = Relu(t1) y = Add(t2, i3) <- i0: float32[2,6,5,37], i1: float32[6,1,1], i2: float32[37], i3: float32[2,6,5,37]"
    check(text, [floats(random, *d) for d in [(2, 6, 5, 37), (6, 1, 1), (37,), (2, 6, 5, 37)]])
    text = text.replace("37", "3")
    check(text, [floats(random, *d) for d in [(2, 6, 5, 3), (6, 1, 1), (3,), (2, 6, 5, 3)]], on=("opencl",))
    text = "y = Sub(i0, i1) <- i0: float32[4,1,3], i1: float32[2,1]"
    check(text, [floats(random, 4, 1, 3), floats(random, 2, 1)])
    text = "y = Max(i0, i1, i2) <- i0: float32[N,7], i1: float32[1,7], i2: float32[] where N in [1,64] hint 4"
    text = "y = Add(i0, i1) <- i0: float32[2,3,2,3,20], i1: float32[2,1,2,1,20]"
    check(text, [floats(random, 2, 3, 2, 3, 20), floats(random, 2, 1, 2, 1, 20)])
    text = "y = Max(i0, i1, i2) <- i0: float32[N,7], i1: float32[1,7], i2: float32[] where N in [1,64] hint 4"
    x = floats(random, 5, 7)
    x[1, 2] = np.nan
    check(text, [x, floats(random, 1, 7), np.float32(0.25)])


def test_dtypes(random):
    x, y = random.integers(-9, 9, (2, 5, 7)), random.integers(-9, 9, (7,))
    check("y = Mul(i0, i1) <- i0: int64[5,7], i1: int64[7]", [x[0] * 10**10, y])
    small = random.integers(-128, 127, (40,)).astype(np.int8)
    check("y = Add(i0, i1) <- i0: int8[40], i1: int8[40]", [small, small], on=("opencl",))
    check(
        "y = Less(i0, i1) <- i0: int32[5,7], i1: int32[7]", [x[0].astype(np.int32), y.astype(np.int32)], on=("opencl",)
    )
    check(
        "y = Where(i0, i1, i2) <- i0: bool[5,7], i1: float32[5,7], i2: float32[7]",
        [x[0] > 0, floats(random, 5, 7), floats(random, 7)],
    )
    check("y = Cast(i0) {to=7} <- i0: float32[33]", [(floats(random, 33) * 100)])
    check("y = Cast(i0) {to=9} <- i0: float32[33]", [np.round(floats(random, 33))], on=("opencl",))
    check("y = Cast(i0) {to=1} <- i0: uint8[33]", [random.integers(0, 255, 33).astype(np.uint8)])
    check("y = Xor(i0, i1) <- i0: bool[35], i1: bool[35]", [x[0].reshape(-1) > 0, x[1].reshape(-1) > 0], on=("opencl",))
    check(
        "t0 = QuantizeLinear(i0, i1, i2) y = DequantizeLinear(t0, i1, i2) <- i0: float32[67], i1: float32[], i2: uint8[]",
        [floats(random, 67) * 9, np.float32(0.05), np.uint8(128)],
        on=("opencl",),
    )


@pytest.mark.parametrize(("channels", "together"), [(16, 8), (13, 8), (13, 0), (20, 0)])
def test_channels_that_lie_together(random, channels, together):
    x, k = floats(random, 2, channels, 3, 5), floats(random, channels, 1, 1)
    text = f"t0 = Add(i0, i1) t1 = Exp(t0) y = Add(t1, i2) <- i0: float32[2,{channels},3,5], i1: float32[{channels},1,1], i2: float32[2,{channels},3,5]"
    check(text, [x, k, x + 1], together=together)
