"""fold_pads."""

import pytest

from tests.passes.rewriting import after, assert_keeps, assert_rewrites, ops_of

CONV = """graph "g" (x: float32[1,2,5,5]) -> (y) {{
  constant p = int64[8] {{{pads}}}
  constant v = float32[] {{{value}}}
  constant w = float32[3,2,3,3] splat 0.5
  t = Pad(x, p, v) {mode}
  y = Conv(t, w) {attrs}
}}"""


def conv(pads: str = "0, 0, 1, 2, 0, 0, 1, 0", value: str = "0.0", mode: str = "", attrs: str = "") -> str:
    return CONV.format(pads=pads, value=value, mode=mode, attrs=attrs)


def test_zeros_before_conv() -> None:
    assert_rewrites(
        conv(attrs="{pads=[1, 0, 0, 1], strides=[2, 1]}"),
        """graph "g" (x: float32[1,2,5,5]) -> (y) {
          constant w = float32[3,2,3,3] splat 0.5
          y = Conv(x, w) {pads=[2, 2, 1, 1], strides=[2, 1]}
        }""",
        "fold_pads",
    )


def test_zeros_before_valid_conv() -> None:
    assert ops_of(after(conv(attrs='{auto_pad="VALID"}'), "fold_pads")) == ["Conv"]


@pytest.mark.parametrize(
    "text",
    [
        conv(value="1.0"),
        conv(mode='{mode="edge"}'),
        conv(pads="0, 0, -1, 0, 0, 0, 0, 0"),
        conv(attrs='{auto_pad="SAME_UPPER"}'),
        """graph "g" (x: float32[1,1,5,5]) -> (y) {
          constant p = int64[8] {0, 1, 0, 0, 0, 0, 0, 0}
          constant w = float32[3,2,3,3] splat 0.5
          t = Pad(x, p)
          y = Conv(t, w)
        }""",
    ],
    ids=["ones", "edge", "crop", "same", "channels"],
)
def test_conv_keeps_its_pad(text: str) -> None:
    assert_keeps(text, "fold_pads")


POOL = """graph "g" (x: float32[1,2,6,6]) -> (y) {{
  constant p = int64[8] {{0, 0, 1, 1, 0, 0, 1, 1}}
  constant v = float32[] {{{value}}}
  r = {first}(x)
  t = Pad(r, p, v)
  y = {pool}(t) {{{attrs}}}
}}"""


def pool(kind: str, value: str, first: str = "Neg", attrs: str = "kernel_shape=[3, 3], strides=[2, 2]") -> str:
    return POOL.format(pool=kind, value=value, first=first, attrs=attrs)


@pytest.mark.parametrize(
    "text",
    [
        pool("AveragePool", "0.0"),
        pool("AveragePool", "0.0", attrs="kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1"),
        pool("MaxPool", "-inf"),
        pool("MaxPool", "0.0", "Relu"),
        pool("MaxPool", "0.0", "Sigmoid"),
    ],
    ids=["average", "average-counting", "lowest", "relu", "sigmoid"],
)
def test_pools_that_take_the_pad(text: str) -> None:
    assert "Pad" not in ops_of(after(text, "fold_pads"))


@pytest.mark.parametrize(
    "text",
    [
        pool("AveragePool", "1.0"),
        pool("AveragePool", "0.0", attrs="kernel_shape=[3, 3], pads=[1, 1, 1, 1]"),
        pool("AveragePool", "0.0", attrs="kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1"),
        pool("AveragePool", "0.0", attrs="kernel_shape=[1, 1]"),
        pool("MaxPool", "0.0"),
        pool("MaxPool", "1.0", "Relu"),
    ],
    ids=["ones", "uncounted", "ceil", "beyond", "negative", "max-ones"],
)
def test_pools_that_keep_their_pad(text: str) -> None:
    assert_keeps(text, "fold_pads")
