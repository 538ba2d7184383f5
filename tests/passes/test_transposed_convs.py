"""flip_transposed_convs and multiply_single_pixels."""

import pytest

from tests.passes.rewriting import after, assert_keeps, assert_rewrites, ops_of

STRIDE_1 = """graph "g" (x: float32[N,4,H,6]) -> (y) {{
  constant w = float32[4,2,3,2] {{{weights}}}
  constant b = float32[{channels}] splat 0.5
  y = ConvTranspose(x, w, b){attrs}
}}"""


def stride_1(attrs: str = "", channels: int = 2) -> str:
    listed = f" {{{attrs}}}" if attrs else ""
    return STRIDE_1.format(weights=", ".join(str(i * 0.25 - 3) for i in range(48)), attrs=listed, channels=channels)


def test_weights_are_turned_round() -> None:
    assert_rewrites(
        """graph "g" (x: float32[1,2,5,5]) -> (y) {
          constant w = float32[2,1,1,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
          y = ConvTranspose(x, w) {clamp_min=0.0, pads=[0, 1, 0, 0]}
        }""",
        """graph "g" (x: float32[1,2,5,5]) -> (y) {
          constant w = float32[1,2,1,3] {3.0, 2.0, 1.0, 6.0, 5.0, 4.0}
          y = Conv(x, w) {clamp_min=0.0, dilations=[1, 1], group=1, pads=[0, 1, 0, 2]}
        }""",
        "flip_transposed_convs",
    )


@pytest.mark.parametrize(
    "attrs",
    [
        "",
        "dilations=[2, 3], pads=[1, 0, 2, 1]",
        "dilations=[2, 3], output_padding=[1, 2]",
        'auto_pad="SAME_UPPER"',
        'auto_pad="SAME_LOWER"',
        'auto_pad="VALID", dilations=[1, 2]',
    ],
)
def test_a_stride_of_one_is_a_convolution(attrs: str) -> None:
    assert ops_of(after(stride_1(attrs), "flip_transposed_convs")) == ["Conv"]


def test_groups_stay_apart() -> None:
    assert ops_of(after(stride_1("group=2", 4), "flip_transposed_convs")) == ["Conv"]


@pytest.mark.parametrize("shape", [[7, 6], [5, 7], [8, 8], [9, 11]])
def test_a_given_shape(shape: list[int]) -> None:
    text = stride_1(f"output_shape={shape}").replace("H", "6")
    assert ops_of(after(text, "flip_transposed_convs")) == ["Conv"]


@pytest.mark.parametrize(
    "text",
    [
        stride_1("strides=[1, 2]"),
        stride_1("pads=[3, 0, 0, 0]"),
        stride_1("output_shape=[7, 6]"),
        """graph "g" (x: float32[1,2,5], w: float32[2,1,3]) -> (y) {
          y = ConvTranspose(x, w)
        }""",
        """graph "g" (x: float32[1,2,1]) -> (y) {
          constant w = float32[2,1,3] splat 0.5
          y = ConvTranspose(x, w)
        }""",
    ],
    ids=["stride", "crop", "symbol", "weights", "pixel"],
)
def test_what_is_left_alone(text: str) -> None:
    assert_keeps(text, "flip_transposed_convs")


def test_one_pixel_is_a_product() -> None:
    assert_rewrites(
        """graph "g" (x: float32[N,1,1,1]) -> (y) {
          constant w = float32[1,2,2,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}
          constant b = float32[2] {0.5, 0.25}
          y = ConvTranspose(x, w, b) {clamp_min=0.0, pads=[0, 1, 0, 0], strides=[3, 1]}
        }""",
        """graph "g" (x: float32[N,1,1,1]) -> (y) {
          constant w = float32[1,4] {2.0, 4.0, 6.0, 8.0}
          constant b = float32[4] {0.5, 0.5, 0.25, 0.25}
          constant y.shape = int64[4] {0, 2, 2, 1}
          y_1 = Flatten(x) {axis=1}
          y.product = Gemm(y_1, w, b) {clamp_min=0.0}
          y = Reshape(y.product, y.shape)
        }""",
        "multiply_single_pixels",
    )


def of_codes(
    kernel: tuple[int, int],
    attrs: str,
    *,
    x: str = "N,4,5,3",
    groups: int = 1,
    weight: str = "int8",
    scales: int = 3,
    between: str = "r = Relu(t)",
    y_codes: str = "uint8",
) -> str:
    """A transposed convolution of 4 channels to 3 for each group, of codes to codes."""
    count = 4 * 3 * kernel[0] * kernel[1]
    low = 0 if weight == "uint8" else -100
    codes = ", ".join(str(low + i * 37 % 200) for i in range(count))
    zeros = ", ".join(str(low + 100 + i) for i in range(scales))
    return f"""graph "g" (x: uint8[{x}]) -> (y) {{
      constant sx = float32[] {{0.05}}
      constant zx = uint8[] {{60}}
      constant w = {weight}[4,3,{kernel[0]},{kernel[1]}] {{{codes}}}
      constant sw = float32[{scales}] {{{", ".join(str(0.01 * (i + 1)) for i in range(scales))}}}
      constant zw = {weight}[{scales}] {{{zeros}}}
      constant b = float32[{3 * groups}] {{{", ".join(str(i - 2.0) for i in range(3 * groups))}}}
      constant sy = float32[] {{0.7}}
      constant zy = {y_codes}[] {{17}}
      d = DequantizeLinear(x, sx, zx)
      v = DequantizeLinear(w, sw, zw) {{axis=1}}
      t = ConvTranspose(d, v, b) {{{attrs}}}
      {between}
      y = QuantizeLinear(r, sy, zy)
    }}"""


CONVOLVED = ["DequantizeLinear", "DequantizeLinear", "Conv", "Relu", "QuantizeLinear"]


@pytest.mark.parametrize(
    ("kernel", "attrs", "moved"),
    [
        ((2, 2), "strides=[2, 2]", ["DepthToSpace"]),
        ((3, 3), "output_padding=[1, 1], pads=[1, 1, 1, 1], strides=[2, 2]", ["DepthToSpace"]),
        ((3, 3), "pads=[1, 1, 1, 1], strides=[2, 2]", ["DepthToSpace", "Slice"]),
        ((4, 4), "pads=[1, 1, 1, 1], strides=[2, 2]", ["DepthToSpace", "Slice"]),
        ((5, 4), "output_padding=[1, 0], pads=[2, 0, 2, 3], strides=[2, 2]", ["DepthToSpace", "Slice"]),
        ((3, 5), "pads=[0, 2, 1, 0], strides=[3, 3]", ["DepthToSpace", "Slice"]),
        ((8, 7), "pads=[2, 1, 2, 2], strides=[4, 4]", ["DepthToSpace", "Slice"]),
        ((3, 2), "pads=[1, 0, 1, 1]", []),
        ((2, 3), 'auto_pad="SAME_UPPER", strides=[2, 2]', ["DepthToSpace"]),
        ((3, 4), 'auto_pad="SAME_LOWER", strides=[2, 2]', ["DepthToSpace", "Slice"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", ["N,4,H,3", "1,4,1,1", "2,4,7,5"])
def test_phases_of_codes_are_a_convolution(kernel: tuple[int, int], attrs: str, moved: list[str], size: str) -> None:
    if "auto_pad" in attrs:
        size = size.replace("H", "6")
    graph = after(of_codes(kernel, attrs, x=size), "flip_transposed_convs", steps=1)
    assert ops_of(graph) == CONVOLVED + moved


@pytest.mark.parametrize("scales", [1, 3])
@pytest.mark.parametrize("weight", ["int8", "uint8"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_and_zero_points_of_codes(groups: int, weight: str, scales: int) -> None:
    attrs = f"group={groups}, pads=[1, 0, 0, 1], strides=[2, 2]"
    text = of_codes((3, 2), attrs, groups=groups, weight=weight, scales=scales, x="1,4,5,3")
    graph = after(text, "flip_transposed_convs", steps=1)
    assert [op for op in ops_of(graph) if op != "Slice"] == [*CONVOLVED, "DepthToSpace"]
    weights = next(node for node in graph.nodes if node.op == "Conv").inputs[1]
    assert tuple(weights.shape[:2]) == (12 * groups, 4 // groups)


@pytest.mark.parametrize(
    ("kernel", "attrs", "changes"),
    [
        ((2, 2), "strides=[2, 1]", {}),
        ((2, 2), "dilations=[2, 2], strides=[2, 2]", {}),
        ((1, 1), "strides=[4, 4]", {}),
        ((2, 2), "strides=[2, 2]", {"between": "r = Tanh(t)"}),
        ((2, 2), "strides=[2, 2]", {"y_codes": "uint16"}),
    ],
    ids=["strides", "dilations", "few taps", "function", "words"],
)
def test_other_codes_are_left_alone(kernel: tuple[int, int], attrs: str, changes: dict[str, str]) -> None:
    assert_keeps(of_codes(kernel, attrs, **changes), "flip_transposed_convs")


@pytest.mark.parametrize(
    ("size", "attrs"),
    [
        ("1, 2", "group=1"),
        ("1, 1", "output_padding=[1, 0], strides=[2, 1]"),
        ("1, 1", "dilations=[2, 1]"),
        ("1, 1", "group=2"),
    ],
)
def test_other_pixels_are_left_alone(size: str, attrs: str) -> None:
    assert_keeps(
        f"""graph "g" (x: float32[1,2,{size}]) -> (y) {{
          constant w = float32[2,1,2,2] splat 0.5
          y = ConvTranspose(x, w) {{{attrs}}}
        }}""",
        "multiply_single_pixels",
    )
