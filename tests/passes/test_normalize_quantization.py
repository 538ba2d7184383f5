"""normalize_quantization: quantized operators in float within one step, and rounding that changes nothing goes."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of, ops_of

SCALES = """
  constant sx = float32[] {0.05}
  constant sy = float32[] {0.1}
  constant zx = uint8[] {40}
  constant zy = uint8[] {100}
"""


def text_of(inputs: str, body: str, constants: str = "") -> str:
    return f'graph "g" ({inputs}) -> (y) {{\n{SCALES}{constants}\n{body}\n}}'


CODES = "x: uint8[1,2,4,4]"
TWO = "x: uint8[1,2,4,4], z: uint8[1,2,4,4]"
MATRIX = "x: uint8[3,8]"

WRITTEN = {
    "conv": (
        text_of(
            CODES,
            "y = QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b) {pads=[1, 1, 1, 1]}",
            "constant w = int8[3,2,3,3] splat 7 \n constant sw = float32[3] {0.01, 0.02, 0.03} \n"
            "constant zw = int8[] {2} \n constant b = int32[3] {100, -200, 300}",
        ),
        ["DequantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear"],
    ),
    "matmul": (
        text_of(
            MATRIX,
            "y = QLinearMatMul(x, sx, zx, w, sw, zw, sy, zy)",
            "constant w = int8[8,3] splat 5 \n constant sw = float32[3] {0.01, 0.02, 0.03} \n constant zw = int8[3] {0, 1, 2}",
        ),
        ["DequantizeLinear", "DequantizeLinear", "MatMul", "QuantizeLinear"],
    ),
    "gemm": (
        text_of(
            MATRIX,
            "y = com.microsoft.QGemm(x, sx, zx, w, sw, zw, b, sy, zy) {transB=1, alpha=0.5}",
            "constant w = int8[3,8] splat 5 \n constant sw = float32[] {0.02} \n constant zw = int8[] {1} \n"
            "constant b = int32[3] {100, -200, 300}",
        ),
        ["DequantizeLinear", "DequantizeLinear", "Gemm", "QuantizeLinear"],
    ),
    "add": (
        text_of(TWO, "y = com.microsoft.QLinearAdd(x, sx, zx, z, sy, zy, sy, zy)"),
        ["DequantizeLinear", "DequantizeLinear", "Add", "QuantizeLinear"],
    ),
    "mul": (
        text_of(TWO, "y = com.microsoft.QLinearMul(x, sx, zx, z, sy, zy, sy, zy)"),
        ["DequantizeLinear", "DequantizeLinear", "Mul", "QuantizeLinear"],
    ),
    "sigmoid": (
        text_of(CODES, "y = com.microsoft.QLinearSigmoid(x, sx, zx, sy, zy)"),
        ["DequantizeLinear", "Sigmoid", "QuantizeLinear"],
    ),
    "leaky-relu": (
        text_of(CODES, "y = com.microsoft.QLinearLeakyRelu(x, sx, zx, sy, zy) {alpha=0.3}"),
        ["DequantizeLinear", "LeakyRelu", "QuantizeLinear"],
    ),
    "softmax": (
        text_of(MATRIX, "y = com.microsoft.QLinearSoftmax(x, sx, zx, sy, zy) {axis=1, opset=12}"),
        ["DequantizeLinear", "Softmax", "QuantizeLinear"],
    ),
    "average-pool": (
        text_of(
            CODES,
            "y = com.microsoft.QLinearAveragePool(x, sx, zx, sy, zy) {kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1}",
        ),
        ["DequantizeLinear", "AveragePool", "QuantizeLinear"],
    ),
    "global-average-pool": (
        text_of(CODES, "y = com.microsoft.QLinearGlobalAveragePool(x, sx, zx, sy, zy)"),
        ["DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"],
    ),
    "concat": (
        text_of(TWO, "y = com.microsoft.QLinearConcat(sy, zy, x, sx, zx, z, sy, zy) {axis=1}"),
        ["DequantizeLinear", "QuantizeLinear", "Concat"],
    ),
    "concat-of-one-scale": (
        text_of(TWO, "y = com.microsoft.QLinearConcat(sy, zy, x, sy, zy, z, sy, zy) {axis=1}"),
        ["Concat"],
    ),
    "max-pool": (
        text_of(CODES, "y = MaxPool(x) {kernel_shape=[2, 2]}"),
        ["DequantizeLinear", "MaxPool", "QuantizeLinear"],
    ),
    "matmul-integer": (
        text_of(MATRIX, "y = MatMulInteger(x, w, zx)", "constant w = int8[8,3] splat 5"),
        ["DequantizeLinear", "DequantizeLinear", "MatMul", "Cast"],
    ),
    "matmul-integer-to-float": (
        text_of(MATRIX, "t = MatMulInteger(x, w, zx) \n y = Cast(t) {to=1}", "constant w = int8[8,3] splat 5"),
        ["DequantizeLinear", "DequantizeLinear", "MatMul"],
    ),
    "conv-integer": (
        text_of(CODES, "y = ConvInteger(x, w, zx) {pads=[1, 1, 1, 1]}", "constant w = int8[3,2,3,3] splat -7"),
        ["DequantizeLinear", "DequantizeLinear", "Conv", "Cast"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_runs_in_float(name: str) -> None:
    text, expected = WRITTEN[name]
    exact = "max-pool" in name or "integer" in name or "one-scale" in name
    assert ops_of(after(text, "normalize_quantization", steps=0 if exact else 1)) == expected


def test_matmul_of_integers_to_float() -> None:
    text = text_of(
        "x: uint8[3,8], b: float32[3]",
        "y = com.microsoft.MatMulIntegerToFloat(x, w, sx, sw, zx, zw, b)",
        "constant w = int8[8,3] splat 5 \n constant sw = float32[3] {0.01, 0.02, 0.03} \n constant zw = int8[3] {0, 1, 2}",
    )
    assert ops_of(after(text, "normalize_quantization")) == ["DequantizeLinear", "DequantizeLinear", "MatMul", "Add"]


DYNAMIC = {
    "product": (
        "x: float32[3,8]",
        "y = com.microsoft.DynamicQuantizeMatMul(x, w, sw, zw, b)",
        ["DequantizeLinear", "DynamicQuantizeLinear", "DequantizeLinear", "MatMul", "Add"],
    ),
    "chain": (
        "x: float32[3,8]",
        "c, s, z = DynamicQuantizeLinear(x) \n i = MatMulInteger(c, w, z, zw) \n f = Cast(i) {to=1} \n m = Mul(s, sw) \n y = Mul(f, m)",
        ["DynamicQuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul"],
    ),
    "deep-chain": (
        "x: float32[3,600]",
        "c, s, z = DynamicQuantizeLinear(x) \n i = MatMulInteger(c, v, z) \n f = Cast(i) {to=1} \n m = Mul(s, sx) \n y = Mul(f, m)",
        ["DynamicQuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul"],
    ),
    "convolution": (
        "x: float32[1,2,5,6]",
        "c, s, z = DynamicQuantizeLinear(x) \n i = ConvInteger(c, k, z) \n f = Cast(i) {to=1} \n m = Mul(s, sk) \n y = Mul(f, m)",
        ["DynamicQuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv"],
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_quantization_is_written_with_numbers(name: str) -> None:
    inputs, body, expected = DYNAMIC[name]
    constants = (
        "constant w = int8[8,3] splat 5 \n constant sw = float32[3] {0.01, 0.02, 0.03} \n constant zw = int8[3] {0, 1, 2} \n"
        "constant b = float32[3] {1, 2, 3} \n constant v = int8[600,3] splat 127 \n"
        "constant k = int8[4,2,3,3] splat 7 \n constant sk = float32[4,1,1] {0.01, 0.02, 0.03, 0.04}"
    )
    assert ops_of(after(text_of(inputs, body, constants), "normalize_quantization")) == expected


def test_counts_that_others_read_stay() -> None:
    body = "i = MatMulInteger(x, w, zx) \n f = Cast(i) {to=1} \n m = Mul(s, sx) \n g = Mul(f, m) \n y = Add(g, f)"
    text = text_of("x: uint8[3,8], s: float32[]", body, "constant w = int8[8,3] splat 5")
    assert "Mul" in ops_of(after(text, "normalize_quantization"))


KEPT = {
    "large-sums": text_of("x: uint8[3,600]", "y = MatMulInteger(x, w)", "constant w = int8[600,3] splat 127"),
    "weights-at-run-time": text_of("x: uint8[3,8], w: int8[8,3]", "y = MatMulInteger(x, w)"),
    "scale-at-run-time": text_of("x: uint8[3,8], s: float32[]", "y = com.microsoft.QLinearSigmoid(x, s, zx, sy, zy)"),
    "old-softmax": text_of(CODES, "y = com.microsoft.QLinearSoftmax(x, sx, zx, sy, zy) {axis=1, opset=12}"),
    "float-pool": 'graph "g" (x: float32[1,2,4,4]) -> (y) {\n y = MaxPool(x) {kernel_shape=[2, 2]}\n}',
    "nearest-resize": text_of(CODES, 'y = Resize(x, -, k) {mode="nearest"}', "constant k = float32[4] {1, 1, 2, 2}"),
    "linear-resize": text_of(CODES, 'y = Resize(x, -, k) {mode="linear"}', "constant k = float32[4] {1, 1, 2, 2}"),
    "pool-with-indices": text_of(CODES, "p, y = MaxPool(x) {kernel_shape=[2, 2]}"),
}


@pytest.mark.parametrize("name", KEPT)
def test_keeps(name: str) -> None:
    assert_keeps(KEPT[name], "normalize_quantization")


def test_a_zero_point_left_out_is_written() -> None:
    text = text_of("x: float32[4]", "y = QuantizeLinear(x, sx)")
    assert lines_of(after(text, "normalize_quantization")) == ["y = QuantizeLinear(x, sx, y.zero)"]


@pytest.mark.parametrize("weight", ["int8", "uint4"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_weights_by_microsofts_names_stay_codes(op: str, weight: str) -> None:
    text = f"""graph "g" (x: uint8[1,2,4,4]) -> (y) {{
      constant s = float32[] {{0.1}}
      constant z = uint8[] {{7}}
      constant w = {weight}[2,2,1,1] {{1, 2, 3, 4}}
      constant sw = float32[] {{0.02}}
      constant zw = {weight}[] {{1}}
      d = com.microsoft.DequantizeLinear(x, s, z)
      v = com.microsoft.DequantizeLinear(w, sw, zw)
      c = {op}(d, v)
      y = com.microsoft.QuantizeLinear(c, s, z)
    }}"""
    graph = after(text, "fold_constants", "normalize_quantization", steps=1)
    assert ops_of(graph) == ["DequantizeLinear", "DequantizeLinear", op, "QuantizeLinear"]


def test_a_round_trip_of_codes_goes() -> None:
    text = text_of(
        CODES, "a = DequantizeLinear(x, sx, zx) \n b = QuantizeLinear(a, sx, zx) \n y = DequantizeLinear(b, sy, zy)"
    )
    assert lines_of(after(text, "normalize_quantization")) == ["y = DequantizeLinear(x, sy, zy)"]


def test_rounding_of_what_lies_on_the_grid_goes() -> None:
    text = text_of(
        CODES,
        "a = DequantizeLinear(x, sx, zx) \n r = Tile(a, n) \n b = QuantizeLinear(r, sx, zx) \n"
        "c = DequantizeLinear(b, sx, zx) \n y = Transpose(c)",
        "constant n = int64[4] {1, 1, 2, 1}",
    )
    result = after(text, "normalize_quantization", rtol=0, atol=0)
    assert ops_of(result) == ["Tile", "Transpose", "DequantizeLinear"]


def test_what_moves_numbers_moves_codes() -> None:
    text = text_of(
        TWO,
        "a = DequantizeLinear(x, sx, zx) \n b = DequantizeLinear(z, sx, zx) \n c = Concat(a, b) {axis=1} \n"
        "d = Reshape(c, n) \n y = Relu(d)",
        "constant n = int64[2] {4, -1}",
    )
    result = after(text, "normalize_quantization", "normalize_quantization", rtol=0, atol=0)
    assert ops_of(result) == ["Concat", "Reshape", "DequantizeLinear", "Relu"]


MOVED = {
    "transpose": ("y = Transpose(a) {perm=[0, 2, 3, 1]}", ["Transpose", "DequantizeLinear"]),
    "gather": ("y = Gather(a, i) {axis=1}", ["Gather", "DequantizeLinear"]),
    "split": (
        "p, q = Split(a) {axis=2, num_outputs=2} \n y = Add(p, q)",
        ["Split", "DequantizeLinear", "DequantizeLinear", "Add"],
    ),
    "pad-with-nought": ("y = Pad(a, n)", ["Pad", "DequantizeLinear"]),
    "pad-with-a-code": ("y = Pad(a, n, half)", ["Pad", "DequantizeLinear"]),
    "pad-with-no-code": ("y = Pad(a, n, off)", ["DequantizeLinear", "Pad"]),
    "nearest-resize": ('y = Resize(a, -, twice) {mode="nearest"}', ["Resize", "DequantizeLinear"]),
    "linear-resize": ('y = Resize(a, -, twice) {mode="linear"}', ["DequantizeLinear", "Resize"]),
    "nearest-resize-of-a-region": (
        'y = Resize(a, region, twice) {mode="nearest", coordinate_transformation_mode="tf_crop_and_resize"}',
        ["DequantizeLinear", "Resize"],
    ),
    "pad-with-edges": ('y = Pad(a, n) {mode="edge"}', ["Pad", "DequantizeLinear"]),
    "pad-of-a-convolution": ("p = Pad(a, n) \n y = Conv(p, k)", ["DequantizeLinear", "Pad", "Conv"]),
}


@pytest.mark.parametrize("name", MOVED)
def test_codes_are_moved(name: str) -> None:
    body, expected = MOVED[name]
    text = text_of(
        CODES,
        f"a = DequantizeLinear(x, sx, zx) \n {body}",
        "constant n = int64[8] {0, 0, 1, 0, 0, 0, 0, 2} \n constant i = int64[3] {1, 0, 1} \n "
        "constant half = float32[] {0.5} \n constant twice = float32[4] {1, 1, 2, 2} \n "
        "constant region = float32[8] {0, 0, 0, 0, 1, 1, 1, 1} \n "
        "constant off = float32[] {0.52} \n constant k = float32[1,2,3,3] splat 1",
    )
    result = after(text, "normalize_quantization", "normalize_quantization", rtol=0, atol=0)
    assert ops_of(result) == expected


TABLES = {
    "one-scale": "a = DequantizeLinear(t, sx)",
    "of-rows": "a = DequantizeLinear(t, s5, z5) {axis=0}",
    "of-columns": "a = DequantizeLinear(t, s8, z8) {axis=-1}",
    "of-blocks": "a = DequantizeLinear(t, s5x2) {axis=1, block_size=4}",
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_are_gathered_as_codes(name: str) -> None:
    text = text_of(
        "i: int64[2,3], t: int8[5,8]",
        f"j = Mod(i, five) \n {TABLES[name]} \n y = Gather(a, j)",
        "constant five = int64[] {5} \n constant s5 = float32[5] {1, 2, 3, 4, 5} \n constant z5 = int8[5] {1, 2, 3, 4, 5} \n"
        "constant s8 = float32[8] {1, 2, 3, 4, 5, 6, 7, 8} \n constant z8 = int8[8] {1, 2, 3, 4, 5, 6, 7, 8} \n"
        "constant s5x2 = float32[5,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}",
    )
    result = after(text, "normalize_quantization", "fold_constants", rtol=0, atol=0)
    assert ops_of(result)[-1] == "DequantizeLinear"
    assert list(result.nodes[-1].inputs[0].shape) == [2, 3, 8]


def test_rows_of_blocks_of_the_gathered_axis_stay_numbers() -> None:
    assert_keeps(
        text_of(
            "i: int64[3], t: int8[4,8]",
            "a = DequantizeLinear(t, s) {axis=0, block_size=2} \n y = Gather(a, i)",
            "constant s = float32[2,8] splat 1",
        ).replace("i: int64[3]", "i: int64[0]"),
        "normalize_quantization",
    )


def test_parts_are_rounded_before_they_are_joined() -> None:
    text = text_of(
        TWO,
        "a = DequantizeLinear(x, sx, zx) \n b = DequantizeLinear(z, sy, zx) \n c = Concat(a, b) {axis=1} \n "
        "y = QuantizeLinear(c, sy, zx)",
    )
    result = after(text, "normalize_quantization")
    assert ops_of(result) == ["DequantizeLinear", "QuantizeLinear", "Concat"]


def test_numbers_of_other_scales_are_moved_as_they_are() -> None:
    assert_keeps(
        text_of(
            TWO,
            "a = DequantizeLinear(x, sx, zx) \n b = DequantizeLinear(z, sy, zx) \n y = Concat(a, b) {axis=1}",
        ),
        "normalize_quantization",
    )


ROUNDED = {
    "computed": "a = DequantizeLinear(x, sx, zx) \n r = Sigmoid(a) \n b = QuantizeLinear(r, sx, zx) \n y = DequantizeLinear(b, sx, zx)",
    "other-scale": "a = DequantizeLinear(x, sx, zx) \n r = Relu(a) \n b = QuantizeLinear(r, sy, zx) \n y = DequantizeLinear(b, sy, zx)",
    "other-zero-point": "a = DequantizeLinear(x, sx, zx) \n b = QuantizeLinear(a, sx, zy) \n y = DequantizeLinear(b, sx, zy)",
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_that_changes_something_stays(name: str) -> None:
    assert_keeps(text_of(CODES, ROUNDED[name]), "normalize_quantization")
