"""swap_pool_and_pointwise."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of

POOL = "kernel_shape=[2, 2], strides=[2, 2]"


def text_of(pool: str, attrs: str = "", conv: str = "", *, bias: bool = True, weights: str = "6,4,1,1") -> str:
    inputs = "x, w, b" if bias else "x, w"
    attrs, conv = (f" {{{words}}}" if words else "" for words in (attrs, conv))
    return f"""graph "g" (x: float32[2,4,7,8], w: float32[{weights}], b: float32[6]) -> (y) {{
      "conv": s = Conv({inputs}){conv}
      "pool": y = {pool}(s){attrs}
    }}"""


@pytest.mark.parametrize(
    ("pool", "attrs", "bias"),
    [
        ("AveragePool", POOL, True),
        ("AveragePool", "kernel_shape=[3, 2], strides=[1, 2]", True),
        ("AveragePool", f"{POOL}, pads=[1, 1, 1, 1]", True),
        ("AveragePool", f"{POOL}, ceil_mode=1", True),
        ("AveragePool", f"{POOL}, count_include_pad=1", True),
        ("AveragePool", f"{POOL}, count_include_pad=1, pads=[1, 0, 1, 0]", False),
        ("GlobalAveragePool", "", True),
        ("GlobalAveragePool", "", False),
    ],
)
def test_means_of_pointwise_convolutions(pool: str, attrs: str, *, bias: bool) -> None:
    graph = after(text_of(pool, attrs, bias=bias), "swap_pool_and_pointwise")
    first, second = lines_of(graph)
    assert first.startswith(f'"pool": s.pooled = {pool}(x)')
    assert second.startswith(f'"conv": y = Conv(s.pooled, w{", b" if bias else ""})')


def test_of_groups() -> None:
    graph = after(text_of("AveragePool", POOL, "group=2", weights="6,2,1,1"), "swap_pool_and_pointwise")
    assert [line.split(" = ")[1].split("(")[0] for line in lines_of(graph)] == ["AveragePool", "Conv"]


KEPT = {
    "as many windows": text_of("AveragePool", "kernel_shape=[3, 3]"),
    "zeros in the mean of the bias": text_of("AveragePool", f"{POOL}, count_include_pad=1, pads=[1, 0, 1, 0]"),
    "a maximum": text_of("MaxPool", POOL),
    "pads": text_of("AveragePool", POOL, "pads=[1, 1, 1, 1]"),
    "strides": text_of("AveragePool", POOL, "strides=[2, 2]"),
    "a kernel": text_of("AveragePool", POOL, weights="6,4,3,3"),
    "a clamp": text_of("AveragePool", POOL, "clamp_min=0.0"),
    "another reader": """graph "g" (x: float32[2,4,7,8], w: float32[6,4,1,1]) -> (y, s) {
      s = Conv(x, w)
      y = AveragePool(s) {kernel_shape=[2, 2], strides=[2, 2]}
    }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_keeps(text: str) -> None:
    assert_keeps(text, "swap_pool_and_pointwise")
