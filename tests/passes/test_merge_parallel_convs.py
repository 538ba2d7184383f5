"""merge_parallel_convs."""

import numpy as np
import pytest

from tests.passes.rewriting import after, assert_keeps, assert_rewrites, ops_of

PASS = "merge_parallel_convs"
TWO = """graph "g" (x: float32[N,4,H,7]) -> (y) {{
  constant w = float32[{channels},{depth},3,3] {{{w}}}
  constant v = float32[{channels},{depth},{kernel}] {{{v}}}
  constant b = float32[{channels}] splat 0.5
  c = Conv(x, w) {{group={group}, {first}}}
  d = Conv(x, v, b) {{group={group}, {second}}}
  y = Add({order})
}}"""


def numbers(count: int) -> str:
    return ", ".join(str(round(float(n), 3)) for n in np.random.default_rng(count).uniform(-2, 2, count))


def two(first: str, second: str, kernel: str = "1,1", group: int = 1, order: str = "c, d", channels: int = 4) -> str:
    depth = 4 // group
    size = int(np.prod([int(k) for k in kernel.split(",")]))
    w, v = numbers(channels * depth * 9), numbers(channels * depth * size)
    return TWO.format(
        w=w, v=v, kernel=kernel, group=group, first=first, second=second, order=order, depth=depth, channels=channels
    )


def test_a_smaller_filter_lies_in_the_larger_one() -> None:
    assert_rewrites(
        """graph "g" (x: float32[1,1,5,5]) -> (y) {
          constant w = float32[1,1,1,3] {1.0, 2.0, 3.0}
          constant v = float32[1,1,1,1] {0.5}
          c = Conv(x, w) {pads=[0, 1, 0, 1]}
          d = Conv(x, v)
          y = Add(d, c)
        }""",
        """graph "g" (x: float32[1,1,5,5]) -> (y) {
          constant w = float32[1,1,1,3] {1.0, 2.5, 3.0}
          y = Conv(x, w) {pads=[0, 1, 0, 1]}
        }""",
        PASS,
    )


@pytest.mark.parametrize("order", ["c, d", "d, c"])
@pytest.mark.parametrize(
    ("first", "second", "kernel", "group"),
    [
        ("pads=[1, 1, 1, 1]", "pads=[0, 0, 0, 0]", "1,1", 1),
        ("pads=[1, 1, 1, 1]", "pads=[1, 1, 1, 1]", "3,3", 1),
        ("pads=[1, 1, 1, 1], strides=[2, 2]", "strides=[2, 2]", "1,1", 1),
        ("pads=[1, 1, 1, 1]", "pads=[0, 1, 0, 1]", "1,3", 4),
        ("pads=[2, 2, 2, 2], dilations=[2, 2]", "pads=[2, 0, 2, 0], dilations=[2, 1]", "3,1", 2),
        ("pads=[0, 2, 2, 0]", "pads=[0, 1, 1, 0]", "2,2", 1),
    ],
)
def test_sums_of_two(first: str, second: str, kernel: str, group: int, order: str) -> None:
    assert ops_of(after(two(first, second, kernel, group, order), PASS)) == ["Conv"]


@pytest.mark.parametrize(
    "text",
    [
        two("pads=[2, 2, 2, 2], dilations=[2, 2]", "pads=[1, 1, 0, 0]", "2,2"),  # between taps
        two("pads=[1, 1, 1, 1], clamp_min=0.0", "pads=[0, 0, 0, 0]"),
        two("pads=[1, 1, 1, 1]", 'auto_pad="SAME_UPPER"', "3,3"),
        two("pads=[1, 1, 1, 1]", "pads=[0, 0, 0, 0]").replace("-> (y)", "-> (y, d)"),
        two("pads=[1, 1, 1, 1]", "pads=[0, 0, 0, 0]").replace("d = Conv(x", "z = Neg(x)\n  d = Conv(z"),
    ],
)
def test_what_stays(text: str) -> None:
    assert_keeps(text, PASS)


SCALED = """graph "g" (x: float32[N,4,H,7]) -> (y) {{
  constant w = float32[4,{depth},3,3] {{{w}}}
  constant s = float32[1,4,1,1] {{1.5, -2.0, 0.25, 3.0}}
  constant t = float32[4,1,1] {{1.0, 2.0, 3.0, 4.0}}
  c = Conv(x, w) {{group={group}, pads=[1, 1, 1, 1]}}
  m = Mul(s, x)
  {shift}
  y = Add({branch}, c)
}}"""


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("shift", ["", "a = Add(t, m)"])
def test_numbers_of_channels_are_taps(shift: str, group: int) -> None:
    text = SCALED.format(
        w=numbers(144 // group), depth=4 // group, group=group, shift=shift, branch="a" if shift else "m"
    )
    assert ops_of(after(text, PASS)) == ["Conv"]


def test_a_block_of_four_branches() -> None:
    text = two("pads=[1, 1, 1, 1]", "pads=[0, 0, 0, 0]", group=4).replace(
        "y = Add(c, d)",
        "e = Conv(x, w) {group=4, pads=[1, 1, 1, 1]}\n  s = Add(c, d)\n  u = Add(s, e)\n"
        "  constant k = float32[1,4,1,1] {1.0, 2.0, 3.0, 4.0}\n  m = Mul(x, k)\n  y = Add(u, m)",
    )
    assert ops_of(after(text, PASS)) == ["Conv"]


def test_another_input_or_another_width_stays() -> None:
    text = SCALED.format(w=numbers(144), depth=4, group=1, shift="", branch="m")
    assert_keeps(text.replace("m = Mul(s, x)", "z = Neg(x)\n  m = Mul(s, z)"), PASS)
