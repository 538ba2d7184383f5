"""fold_batch_norms, fold_biases and fold_clamps: what goes into the Conv, Gemm or MatMul before it."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of

CONV = """graph "g" (x: float32[2,2,4,4]) -> (y) {{
  constant w = float32[3,2,1,1] {{0.5, 1.0, -0.5, 0.25, 2.0, -1.0}}
  constant v = float32[2,3,1,1] {{0.5, 1.0, -0.5, 0.25, 2.0, -1.0}}
  constant b = float32[3] {{0.1, 0.2, 0.3}}
  constant g = float32[3] {{1.5, 0.5, 2.0}}
  constant m = float32[3] {{0.1, -0.2, 0.4}}
  constant q = float32[3] {{1.0, 2.0, 0.5}}
  constant c = float32[1,3,1,1] {{2.0, -3.0, 0.5}}
  constant n = float32[] {{0.5}}
  constant lo = float32[] {{-1.0}}
  constant hi = float32[] {{1.0}}
  constant p = float32[4] {{1.0, 2.0, 3.0, 4.0}}
  {body}
}}"""

GEMM = """graph "g" (x: float32[2,2]) -> (y) {{
  constant w = float32[2,3] {{0.5, 1.0, -0.5, 0.25, 2.0, -1.0}}
  constant v = float32[3,2] {{0.5, 1.0, -0.5, 0.25, 2.0, -1.0}}
  constant b = float32[3] {{0.1, 0.2, 0.3}}
  constant r = float32[2,1] {{1.0, 2.0}}
  {body}
}}"""


@pytest.mark.parametrize(
    "body",
    [
        "t = Conv(x, w) \n y = BatchNormalization(t, g, b, m, q)",
        "t = Conv(x, w, b) \n y = BatchNormalization(t, g, b, m, q) {epsilon=0.1}",
        "t = ConvTranspose(x, v) \n y = BatchNormalization(t, g, b, m, q)",
    ],
    ids=["conv", "bias", "transposed"],
)
def test_batch_norm_into_conv(body: str) -> None:
    assert len(after(CONV.format(body=body), "fold_batch_norms").nodes) == 1


def test_grouped_transposed_conv() -> None:
    text = """graph "g" (x: float32[1,4,3,3]) -> (y) {
      constant w = float32[4,2,1,1] {0.5, 1.0, -0.5, 0.25, 2.0, -1.0, 3.0, 1.5}
      constant g = float32[4] {1.5, 0.5, 2.0, -1.0}
      constant b = float32[4] {0.1, 0.2, 0.3, 0.4}
      constant q = float32[4] {1.0, 2.0, 0.5, 3.0}
      t = ConvTranspose(x, w) {group=2}
      y = BatchNormalization(t, g, b, b, q)
    }"""
    assert ops_of(after(text, "fold_batch_norms")) == ["ConvTranspose"]


def test_batch_norm_alone_is_a_product_and_a_sum() -> None:
    body = "t = Conv(x, w) \n s = Sigmoid(t) \n y = BatchNormalization(s, g, b, m, q)"
    assert ops_of(after(CONV.format(body=body), "fold_batch_norms")) == ["Conv", "Sigmoid", "Mul", "Add"]


def test_a_sum_that_others_read_keeps_its_weights() -> None:
    body = "t = Conv(x, w) \n s = BatchNormalization(t, g, b, m, q) \n y = Add(s, t)"
    assert ops_of(after(CONV.format(body=body), "fold_batch_norms")) == ["Conv", "Mul", "Add", "Add"]


def test_training_stays() -> None:
    body = "t = Conv(x, w) \n y = BatchNormalization(t, g, b, m, q) {training_mode=1}"
    assert "BatchNormalization" in ops_of(after(CONV.format(body=body), "fold_batch_norms"))


@pytest.mark.parametrize(
    "text",
    [
        CONV.format(body="t = Conv(x, w) \n y = Add(t, c)"),
        CONV.format(body="t = Conv(x, w, b) \n y = Sub(t, c)"),
        CONV.format(body="t = Conv(x, w, b) \n y = Mul(c, t)"),
        CONV.format(body="t = Conv(x, w, b) \n y = Div(t, c)"),
        CONV.format(body="t = Conv(x, w, b) \n u = Mul(t, n) \n y = Add(n, u)"),
        CONV.format(body="t = ConvTranspose(x, v) \n y = Mul(t, c)"),
        GEMM.format(body="t = MatMul(x, w) \n y = Add(b, t)"),
        GEMM.format(body="t = Gemm(x, w) \n y = Mul(t, b)"),
        GEMM.format(body="t = Gemm(x, v, b) {transB=1} \n y = Mul(t, b)"),
        GEMM.format(body="t = Gemm(x, w) {beta=0.0} \n y = Add(t, b)"),
    ],
    ids=["add", "sub", "mul", "div", "numbers", "transposed", "matmul", "gemm", "gemm-transposed", "gemm-beta"],
)
def test_biases(text: str) -> None:
    assert len(after(text, "fold_biases").nodes) == 1


@pytest.mark.parametrize(
    "text",
    [
        CONV.format(body="t = Conv(x, w) \n y = Add(t, p)"),
        CONV.format(body="t = Conv(x, w) \n y = Sub(c, t)"),
        CONV.format(body="t = Conv(x, w) {clamp_min=0.0} \n y = Add(t, c)"),
        GEMM.format(body="t = Gemm(x, w) {alpha=2.0} \n y = Mul(t, b)"),
        GEMM.format(body="t = MatMul(x, w) \n y = Add(t, r)"),
    ],
    ids=["columns", "reversed", "clamped", "alpha", "rows"],
)
def test_sums_that_stay(text: str) -> None:
    assert_keeps(text, "fold_biases")


@pytest.mark.parametrize(
    ("body", "clamp"),
    [
        ("t = Conv(x, w) \n y = Relu(t)", "{clamp_min=0.0}"),
        ("t = Conv(x, w) \n y = Clip(t, lo, hi)", "{clamp_max=1.0, clamp_min=-1.0}"),
        ("t = Conv(x, w) \n u = Clip(t, lo, hi) \n y = Relu(u)", "{clamp_max=1.0, clamp_min=0.0}"),
        ("t = Conv(x, w) \n u = Relu(t) \n y = Clip(u, -, hi)", "{clamp_max=1.0, clamp_min=0.0}"),
    ],
    ids=["relu", "clip", "clip-relu", "relu-clip"],
)
def test_clamps(body: str, clamp: str) -> None:
    assert lines_of(after(CONV.format(body=body), "fold_clamps")) == [f"y = Conv(x, w) {clamp}"]


@pytest.mark.parametrize(
    ("body", "clamp"),
    [
        ("u = Mul(t, n)", "{clamp_max=1.0, clamp_min=-0.5}"),
        ("u = Div(t, n)", "{clamp_max=4.0, clamp_min=-2.0}"),
        ("u = Mul(t, lo)", "{clamp_max=1.0, clamp_min=-2.0}"),
        ("u = Add(n, t)", "{clamp_max=2.5, clamp_min=-0.5}"),
        ("u = Sub(t, n)", "{clamp_max=1.5, clamp_min=-1.5}"),
    ],
    ids=["mul", "div", "turned", "add", "sub"],
)
def test_numbers_move_a_clamp(body: str, clamp: str) -> None:
    text = CONV.format(body=f"t = Conv(x, w, b) {{clamp_max=2.0, clamp_min=-1.0}} \n {body} \n y = Identity(u)")
    (line, _) = lines_of(after(text, "fold_biases"))
    assert line.endswith(clamp)


def test_a_number_that_is_zero_keeps_a_clamp() -> None:
    body = "constant z = float32[] {0.0} \n t = Conv(x, w) {clamp_min=0.5} \n y = Mul(t, z)"
    assert_keeps(CONV.format(body=body), "fold_biases")


@pytest.mark.parametrize(
    "body",
    [
        "t = Conv(x, w) \n u = Relu(t) \n y = Add(u, t)",
        "t = Conv(x, w) \n y = Clip(t, hi, lo)",
        "t = Sigmoid(x) \n y = Relu(t)",
    ],
    ids=["read-twice", "crossed", "no-sum"],
)
def test_clamps_that_stay(body: str) -> None:
    assert_keeps(CONV.format(body=body), "fold_clamps")


CODES = """graph "g" (x: float32[2,4]) -> (y) {{
  constant w = int8[4,3] {{1, -2, 3, 40, 50, -60, 7, 8, 9, 127, -128, 0}}
  constant s = float32[3] {{0.1, 0.2, 0.3}}
  constant one = float32[] {{0.1}}
  constant blocks = float32[2,3] {{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}}
  constant z = int8[3] {{1, 0, -2}}
  constant n = float32[] {{0.5}}
  constant c = float32[3] {{2.0, -3.0, 0.5}}
  v = {weights}
  t = MatMul(x, v)
  y = Mul(t, {scale})
}}"""


@pytest.mark.parametrize("scale", ["n", "c"])
@pytest.mark.parametrize(
    "weights",
    [
        "DequantizeLinear(w, s, z) {axis=1}",
        "DequantizeLinear(w, s) {axis=-1}",
        "DequantizeLinear(w, one)",
        "DequantizeLinear(w, blocks) {axis=0, block_size=2}",
    ],
    ids=["channels", "no-zero", "one", "blocks"],
)
def test_weights_of_codes_stay_codes(weights: str, scale: str) -> None:
    result = after(CODES.format(weights=weights, scale=scale), "fold_constants", "fold_biases", "fold_constants")
    assert ops_of(result) == ["DequantizeLinear", "MatMul"]


def test_weights_of_codes_of_the_other_axis_become_numbers() -> None:
    text = CODES.format(weights="DequantizeLinear(w, rows) {axis=0}", scale="n")
    text = text.replace("constant one", "constant rows = float32[4] {0.1, 0.2, 0.3, 0.4} \n constant one")
    assert ops_of(after(text, "fold_constants", "fold_biases", "remove_dead_nodes")) == ["MatMul"]
