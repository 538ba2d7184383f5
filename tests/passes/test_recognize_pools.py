"""recognize_pools."""

import pytest

from tests.passes.rewriting import after, assert_keeps, lines_of


@pytest.mark.parametrize(("mean", "pool"), [("ReduceMean", "GlobalAveragePool"), ("ReduceMax", "GlobalMaxPool")])
def test_reductions_of_the_plane(mean: str, pool: str) -> None:
    text = f"""graph "g" (x: float32[2,3,4,5]) -> (y) {{
      constant a = int64[2] {{-1, 2}}
      y = {mean}(x, a)
    }}"""
    assert lines_of(after(text, "recognize_pools")) == [f"y = {pool}(x)"]


def test_axes_that_go_are_squeezed() -> None:
    text = """graph "g" (x: float32[2,3,4,5]) -> (y) {
      constant a = int64[2] {2, 3}
      y = ReduceMean(x, a) {keepdims=0}
    }"""
    assert lines_of(after(text, "recognize_pools")) == ["y_1 = GlobalAveragePool(x)", "y = Squeeze(y_1, y.axes)"]


@pytest.mark.parametrize(("kind", "pool"), [("AveragePool", "GlobalAveragePool"), ("MaxPool", "GlobalMaxPool")])
def test_windows_as_large_as_the_plane(kind: str, pool: str) -> None:
    text = f"""graph "g" (x: float32[2,3,4,5]) -> (y) {{
      y = {kind}(x) {{kernel_shape=[4, 5]}}
    }}"""
    assert lines_of(after(text, "recognize_pools")) == [f"y = {pool}(x)"]


KEPT = [
    """graph "g" (x: float32[2,3,4,5]) -> (y) {
      constant a = int64[2] {1, 2}
      y = ReduceMean(x, a)
    }""",
    """graph "g" (x: float32[2,3,4]) -> (y) {
      constant a = int64[1] {2}
      y = ReduceMean(x, a)
    }""",
    """graph "g" (x: float32[2,3,4,5]) -> (y) {
      y = AveragePool(x) {kernel_shape=[4, 4]}
    }""",
    """graph "g" (x: float32[2,3,4,4]) -> (y) {
      y = AveragePool(x) {kernel_shape=[4, 4], pads=[1, 1, 1, 1], strides=[4, 4]}
    }""",
    """graph "g" (x: float32[2,3,4,4]) -> (y, i) {
      y, i = MaxPool(x) {kernel_shape=[4, 4]}
    }""",
]


@pytest.mark.parametrize("text", KEPT, ids=["channels", "rows", "window", "pads", "indices"])
def test_keeps(text: str) -> None:
    assert_keeps(text, "recognize_pools")
