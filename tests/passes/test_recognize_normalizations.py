"""recognize_normalizations: LayerNormalization, RMSNormalization and InstanceNormalization as exporters write them."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of

CONSTANTS = {
    "last": "int64[1] {-1}",
    "two": "float32[] {2.0}",
    "one": "float32[] {1.0}",
    "half": "float32[] {0.5}",
    "minus": "float32[] {-0.5}",
    "eps": "float32[] {1e-05}",
    "gamma": "float32[4] {0.5, 1.5, -1.0, 2.0}",
    "beta": "float32[4] {0.1, 0.2, -0.3, 0.4}",
    "plane": "int64[2] {2, 3}",
    "channel_gamma": "float32[3,1,1] {0.5, 1.5, -1.0}",
    "channel_beta": "float32[3,1,1] {0.1, 0.2, -0.3}",
    "rows": "int64[1] {1}",
}


def text_of(body: str, shape: str = "[2,3,4]") -> str:
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    constants = "\n".join(f"constant {name} = {value}" for name, value in CONSTANTS.items() if name in words)
    return f'graph "g" (x: float32{shape}) -> (y) {{\n{constants}\n{body}\n}}'


CENTRED = "m = ReduceMean(x, last) \n c = Sub(x, m)\n"
LAYER = ["y = LayerNormalization(x, y.scale, y.bias) {axis=-1, epsilon=9.999999747378752e-06}"]
BARE = ["y = LayerNormalization(x, y.scale) {axis=-1, epsilon=9.999999747378752e-06}"]
RMS = ["y = RMSNormalization(x, y.scale) {axis=-1, epsilon=9.999999747378752e-06}"]

WRITTEN = {
    "torch": (
        CENTRED + "p = Pow(c, two) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n s = Sqrt(e) \n n = Div(c, s) \n"
        "g = Mul(n, gamma) \n y = Add(g, beta)",
        LAYER,
    ),
    "centred-twice": (
        CENTRED + "d = Sub(x, m) \n p = Mul(d, d) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n s = Sqrt(e) \n"
        "n = Div(c, s) \n g = Mul(gamma, n) \n y = Add(beta, g)",
        LAYER,
    ),
    "reciprocal": (
        CENTRED + "p = Mul(c, c) \n v = ReduceMean(p, last) \n e = Add(eps, v) \n s = Sqrt(e) \n i = Reciprocal(s) \n"
        "n = Mul(c, i) \n g = Mul(n, gamma) \n y = Add(g, beta)",
        LAYER,
    ),
    "power": (
        CENTRED + "p = Mul(c, c) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n i = Pow(e, minus) \n"
        "n = Mul(i, gamma) \n g = Mul(c, n) \n y = Add(g, beta)",
        LAYER,
    ),
    "tensorflow": (
        "m = ReduceMean(x, last) \n d = Sub(x, m) \n p = Mul(d, d) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n"
        "s = Sqrt(e) \n i = Reciprocal(s) \n k = Mul(i, gamma) \n a = Mul(x, k) \n b = Mul(m, k) \n t = Sub(beta, b) \n"
        "y = Add(a, t)",
        LAYER,
    ),
    "without-scale": (
        CENTRED + "p = Mul(c, c) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n s = Sqrt(e) \n y = Div(c, s)",
        BARE,
    ),
    "rms": (
        "p = Pow(x, two) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n s = Sqrt(e) \n n = Div(x, s) \n"
        "y = Mul(gamma, n)",
        RMS,
    ),
    "rms-reciprocal": (
        "p = Mul(x, x) \n v = ReduceMean(p, last) \n e = Add(v, eps) \n s = Sqrt(e) \n i = Div(one, s) \n"
        "n = Mul(x, i) \n y = Mul(n, gamma)",
        RMS,
    ),
    "l2": (
        "p = Mul(x, x) \n s = ReduceSum(p, last) {keepdims=0} \n y = Sqrt(s)",
        ["y = ReduceL2(x, last) {keepdims=0}"],
    ),
    "square-sum": ("p = Pow(x, two) \n y = ReduceSum(p, last)", ["y = ReduceSumSquare(x, last)"]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_recognizes(name: str) -> None:
    body, expected = WRITTEN[name]
    assert lines_of(after(text_of(body), "recognize_normalizations")) == expected


INSTANCE = (
    "m = ReduceMean(x, plane) \n c = Sub(x, m) \n p = Mul(c, c) \n v = ReduceMean(p, plane) \n e = Add(v, eps) \n"
    "s = Sqrt(e) \n n = Div(c, s) \n g = Mul(n, channel_gamma) \n y = Add(g, channel_beta)"
)


def test_instance_normalization() -> None:
    result = after(text_of(INSTANCE, "[2,3,4,5]"), "recognize_normalizations")
    assert lines_of(result) == ["y = InstanceNormalization(x, y.scale, y.bias) {epsilon=9.999999747378752e-06}"]


def test_number_among_the_factors() -> None:
    body = (
        CENTRED
        + "p = Mul(c, c) \n v = ReduceMean(p, last) \n s = Sqrt(v) \n n = Div(c, s) \n h = Mul(n, half) \n y = Mul(h, gamma)"
    )
    assert ops_of(after(text_of(body), "recognize_normalizations")) == ["LayerNormalization"]


def test_a_mean_over_other_axes_is_no_part() -> None:
    body = "m = ReduceMean(x, rows) \n c = Sub(x, m) \n p = Mul(c, c) \n v = ReduceMean(p, last) \n s = Sqrt(v) \n y = Div(c, s)"
    assert ops_of(after(text_of(body), "recognize_normalizations")) == ["ReduceMean", "Sub", "RMSNormalization"]


def test_symbolic_rows() -> None:
    body, expected = WRITTEN["torch"]
    assert lines_of(after(text_of(body, "[N,S,4]"), "recognize_normalizations")) == expected


def test_skip_layer_normalization() -> None:
    text = """graph "g" (x: float32[2,3,4], z: float32[2,3,4], g: float32[4], b: float32[4]) -> (y, s) {
      y, -, -, s = com.microsoft.SkipLayerNormalization(x, z, g, b) {epsilon=1e-05}
    }"""
    assert lines_of(after(text, "recognize_normalizations")) == [
        "s = Add(x, z)",
        "y = LayerNormalization(s, g, b) {axis=-1, epsilon=1e-05}",
    ]


@pytest.mark.parametrize("op", ["SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_simplified_layer_normalization(op: str, dtype: str) -> None:
    text = f"""graph "g" (x: {dtype}[2,3,4], g: {dtype}[4], b: {dtype}[4]) -> (y, z) {{
      y = {op}(x, g) {{epsilon=1e-05}}
      z = {op}(x, g, b) {{epsilon=1e-05}}
    }}"""
    tolerance = 1e-5 if dtype == "float32" else 4e-3
    assert lines_of(after(text, "recognize_normalizations", rtol=tolerance, atol=tolerance)) == [
        "y = RMSNormalization(x, g) {epsilon=1e-05}",
        "z_1 = RMSNormalization(x, g) {epsilon=1e-05}",
        "z = Add(z_1, b)",
    ]


def test_half_skip_layer_normalization() -> None:
    text = """graph "g" (x: float16[2,3,4], z: float16[2,3,4], g: float16[4]) -> (y) {
      y = com.microsoft.SkipSimplifiedLayerNormalization(x, z, g) {epsilon=1e-05}
    }"""
    ops = ops_of(after(text, "recognize_normalizations", rtol=4e-3, atol=4e-3))
    assert ops == ["Add", "RMSNormalization"]


def test_a_simplified_normalization_of_two_results_stays() -> None:
    text = """graph "g" (x: float32[2,4], g: float32[4]) -> (y, s) {
      y, s = SimplifiedLayerNormalization(x, g) {epsilon=1e-05}
    }"""
    assert_keeps(text, "recognize_normalizations")


KEPT = {
    "middle-axis": "m = ReduceMean(x, rows) \n c = Sub(x, m) \n p = Mul(c, c) \n v = ReduceMean(p, rows) \n s = Sqrt(v) \n y = Div(c, s)",
    "no-root": CENTRED + "p = Mul(c, c) \n v = ReduceMean(p, last) \n y = Div(c, v)",
    "cube": CENTRED + "q = Mul(c, x) \n v = ReduceMean(q, last) \n s = Sqrt(v) \n y = Div(c, s)",
    "uncentred-numerator": CENTRED + "p = Mul(c, c) \n v = ReduceMean(p, last) \n s = Sqrt(v) \n y = Div(x, s)",
    "squares-read-twice": "p = Mul(x, x) \n s = ReduceSum(p, last) \n y = Div(p, s)",
}


@pytest.mark.parametrize("name", KEPT)
def test_keeps(name: str) -> None:
    assert_keeps(text_of(KEPT[name]), "recognize_normalizations")
