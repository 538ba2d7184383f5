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


@pytest.mark.parametrize("shape", [[7, 6], [5, 7], [8, 8]])
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
