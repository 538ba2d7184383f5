"""recognize_activations: each activation as exporters write it, and what only looks like one."""

import neo
import numpy as np
import onnx
import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of

NUMBERS = """
  constant half = float32[] {0.5}
  constant one = float32[] {1.0}
  constant two = float32[] {2.0}
  constant three = float32[] {3.0}
  constant six = float32[] {6.0}
  constant sixth = float32[] {0.16666667}
  constant fifth = float32[] {0.2}
  constant zero = float32[] {0.0}
  constant root = float32[] {1.4142135}
  constant inverse = float32[] {0.70710677}
  constant cubic = float32[] {0.044715}
  constant scale = float32[] {0.7978846}
  constant quick = float32[] {1.702}
  constant slope = float32[1,2,1] {0.25, -0.5}
"""


def text_of(body: str, numbers: str = NUMBERS) -> str:
    used = [line for line in numbers.splitlines() if line.strip() and f"{line.split()[1]}" in _words(body)]
    return 'graph "g" (x: float32[3,2,4]) -> (y) {\n' + "\n".join(used) + "\n" + body.strip() + "\n}"


def _words(body: str) -> set[str]:
    for mark in "(),=":
        body = body.replace(mark, " ")
    return set(body.split())


WRITTEN = {
    "swish": ("s = Sigmoid(x) \n y = Mul(x, s)", "y = Swish(x)"),
    "swish-turned": ("s = Sigmoid(x) \n y = Mul(s, x)", "y = Swish(x)"),
    "swish-scaled": ("q = Mul(x, quick) \n s = Sigmoid(q) \n y = Mul(x, s)", "y = Swish(x) {alpha=1.7020000219345093}"),
    "swish-by-exp": ("n = Neg(x) \n e = Exp(n) \n d = Add(e, one) \n y = Div(x, d)", "y = Swish(x)"),
    "sigmoid-by-exp": ("n = Neg(x) \n e = Exp(n) \n d = Add(one, e) \n y = Div(one, d)", "y = Sigmoid(x)"),
    "sigmoid-reciprocal": ("n = Neg(x) \n e = Exp(n) \n d = Add(e, one) \n y = Reciprocal(d)", "y = Sigmoid(x)"),
    "hard-swish-mul-div": (
        "a = Add(x, three) \n c = Clip(a, zero, six) \n m = Mul(x, c) \n y = Div(m, six)",
        "y = HardSwish(x)",
    ),
    "hard-swish-div-mul": (
        "a = Add(three, x) \n c = Clip(a, zero, six) \n m = Div(c, six) \n y = Mul(x, m)",
        "y = HardSwish(x)",
    ),
    "hard-swish-min-max": (
        "a = Add(x, three) \n r = Relu(a) \n c = Min(r, six) \n m = Mul(c, sixth) \n y = Mul(m, x)",
        "y = HardSwish(x)",
    ),
    "hard-swish-of-hard-sigmoid": (
        "h = HardSigmoid(x) {alpha=0.16666667, beta=0.5} \n y = Mul(x, h)",
        "y = HardSwish(x)",
    ),
    "hard-sigmoid": (
        "a = Add(x, three) \n c = Clip(a, zero, six) \n y = Div(c, six)",
        "y = HardSigmoid(x) {alpha=0.16666666666666666, beta=0.5}",
    ),
    "hard-sigmoid-affine": (
        "m = Mul(x, fifth) \n a = Add(m, half) \n y = Clip(a, zero, one)",
        "y = HardSigmoid(x) {alpha=0.20000000298023224, beta=0.5}",
    ),
    "gelu-torch": (
        "d = Div(x, root) \n e = Erf(d) \n a = Add(e, one) \n m = Mul(x, a) \n y = Mul(m, half)",
        "y = Gelu(x)",
    ),
    "gelu-half-first": (
        "d = Mul(x, inverse) \n e = Erf(d) \n a = Add(one, e) \n h = Mul(half, x) \n y = Mul(h, a)",
        "y = Gelu(x)",
    ),
    "gelu-half-inside": (
        "d = Mul(x, inverse) \n e = Erf(d) \n a = Add(one, e) \n h = Mul(a, half) \n y = Mul(x, h)",
        "y = Gelu(x)",
    ),
    "gelu-half-spread": (
        "d = Mul(x, inverse) \n e = Erf(d) \n k = Mul(e, half) \n a = Add(k, half) \n y = Mul(x, a)",
        "y = Gelu(x)",
    ),
    "gelu-tanh-pow": (
        "p = Pow(x, three) \n c = Mul(p, cubic) \n s = Add(x, c) \n t = Mul(s, scale) \n h = Tanh(t) \n"
        "a = Add(h, one) \n m = Mul(x, a) \n y = Mul(m, half)",
        'y = Gelu(x) {approximate="tanh"}',
    ),
    "gelu-tanh-products": (
        "q = Mul(x, x) \n p = Mul(x, q) \n c = Mul(cubic, p) \n s = Add(x, c) \n t = Mul(scale, s) \n h = Tanh(t) \n"
        "a = Add(one, h) \n m = Mul(half, a) \n y = Mul(x, m)",
        'y = Gelu(x) {approximate="tanh"}',
    ),
    "gelu-tanh-factored": (
        "q = Mul(x, x) \n c = Mul(q, cubic) \n s = Add(one, c) \n z = Mul(x, scale) \n t = Mul(z, s) \n h = Tanh(t) \n"
        "a = Add(one, h) \n m = Mul(half, x) \n y = Mul(m, a)",
        'y = Gelu(x) {approximate="tanh"}',
    ),
    "mish": ("s = Softplus(x) \n t = Tanh(s) \n y = Mul(x, t)", "y = Mish(x)"),
    "softplus": ("e = Exp(x) \n a = Add(e, one) \n y = Log(a)", "y = Softplus(x)"),
    "leaky-relu-max": ("m = Mul(x, fifth) \n y = Max(x, m)", "y = LeakyRelu(x) {alpha=0.20000000298023224}"),
    "leaky-relu-parts": (
        "r = Relu(x) \n n = Neg(x) \n b = Relu(n) \n m = Mul(b, fifth) \n y = Sub(r, m)",
        "y = LeakyRelu(x) {alpha=0.20000000298023224}",
    ),
    "prelu-keras": (
        "r = Relu(x) \n n = Neg(x) \n b = Relu(n) \n m = Mul(slope, b) \n y = Add(r, m)",
        "y = PRelu(x, y.slope)",
    ),
    "prelu-negated": (
        "r = Relu(x) \n n = Neg(x) \n b = Relu(n) \n c = Neg(b) \n m = Mul(c, slope) \n y = Add(m, r)",
        "y = PRelu(x, y.slope)",
    ),
    "relu-max": ("y = Max(x, zero)", "y = Relu(x)"),
    "relu-clip": ("y = Clip(x, zero)", "y = Relu(x)"),
    "relu6-min-max": ("m = Max(zero, x) \n y = Min(m, six)", "y = Clip(x, y.lo, y.hi)"),
    "clip-of-relu": ("r = Relu(x) \n y = Clip(r, -, six)", "y = Clip(x, y.lo, y.hi)"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_recognizes(name: str) -> None:
    body, expected = WRITTEN[name]
    assert lines_of(after(text_of(body), "recognize_activations")) == [expected]


KEPT = {
    "sigmoid-of-another": "n = Abs(x) \n s = Sigmoid(n) \n y = Mul(x, s)",
    "gate-read-twice": "s = Sigmoid(x) \n m = Mul(x, s) \n y = Add(m, s)",
    "half-swish": "s = Sigmoid(x) \n h = Mul(s, half) \n y = Mul(x, h)",
    "gelu-without-half": "d = Div(x, root) \n e = Erf(d) \n a = Add(e, one) \n y = Mul(x, a)",
    "gelu-wrong-root": "d = Div(x, two) \n e = Erf(d) \n a = Add(e, one) \n m = Mul(x, a) \n y = Mul(m, half)",
    "gelu-plus-two": "d = Div(x, root) \n e = Erf(d) \n a = Add(e, two) \n m = Mul(x, a) \n y = Mul(m, half)",
    "max-of-larger": "m = Mul(x, two) \n y = Max(x, m)",
    "prelu-of-another": "r = Relu(x) \n n = Exp(x) \n b = Relu(n) \n m = Mul(b, slope) \n y = Add(r, m)",
    "softplus-of-two": "e = Exp(x) \n a = Add(e, two) \n y = Log(a)",
    "sigmoid-of-two": "n = Neg(x) \n e = Exp(n) \n d = Add(e, one) \n y = Div(two, d)",
    "clamp-six": "y = Clip(x, zero, six)",
}


@pytest.mark.parametrize("name", KEPT)
def test_keeps(name: str) -> None:
    assert_keeps(text_of(KEPT[name]), "recognize_activations")


def test_a_clamp_that_others_read_stays() -> None:
    result = after(text_of("r = Relu(x) \n c = Clip(r, -, six) \n y = Add(r, c)"), "recognize_activations")
    assert ops_of(result) == ["Relu", "Clip", "Add"]


def test_a_larger_number_changes_the_shape() -> None:
    assert_keeps(
        """graph "g" (x: float32[2,1]) -> (y) {
          constant c = float32[2,5] splat 0.0
          y = Max(x, c)
        }""",
        "recognize_activations",
    )


@pytest.mark.parametrize("op", ["Min", "Max"])
@pytest.mark.parametrize("bound", [-np.inf, np.inf, np.nan, 0.5])
def test_a_bound_may_be_no_finite_number(op: str, bound: float) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[5] x) => (float[5] y) {{ y = {op} (x, b) }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(bound), "b"))
    x = np.array([-np.inf, -2, 0, 3, np.inf], np.float32)
    expected = (np.minimum if op == "Min" else np.maximum)(x, np.float32(bound))
    np.testing.assert_array_equal(neo.compile(model)(x), expected)
