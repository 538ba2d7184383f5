"""Convolutions of float64 become products and sums of their taps."""

import pytest

from tests.passes.rewriting import after, ops_of


def graph_text(x: str, weight: str, attributes: str, *, dtype: str = "float64") -> str:
    """A graph of one Conv whose operands all arrive."""
    filters = weight.split(",")[0]
    listed = f" {{{attributes}}}" if attributes else ""
    return f"""graph "g" (x: {dtype}[{x}], w: {dtype}[{weight}], b: {dtype}[{filters}]) -> (y) {{
      y = Conv(x, w, b){listed}
    }}"""


@pytest.mark.parametrize(
    ("x", "weight", "attributes"),
    [
        ("2,3,7,8", "5,3,3,2", "pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2]"),
        ("N,4,9", "2,4,1", "strides=[2]"),
        ("1,2,4,5,6", "3,2,2,2,2", 'auto_pad="SAME_UPPER", strides=[1, 2, 2]'),
    ],
)
def test_one_group_is_a_product_of_what_taps_read(x: str, weight: str, attributes: str) -> None:
    ops = ops_of(after(graph_text(x, weight, attributes), "expand_double_convs"))
    assert "Conv" not in ops
    assert ops.count("MatMul") == 1


@pytest.mark.parametrize(("x", "weight"), [("2,3,7,8", "3,1,3,2"), ("N,4,9", "4,1,5")])
def test_depthwise_ones_are_sums_over_taps(x: str, weight: str) -> None:
    channels = weight.split(",")[0]
    ops = ops_of(after(graph_text(x, weight, f"group={channels}"), "expand_double_convs"))
    assert "Conv" not in ops
    assert ops.count("Mul") == ops.count("Add")


@pytest.mark.parametrize(
    ("x", "weight", "attributes", "dtype"),
    [
        ("2,3,7,8", "5,3,3,2", "", "float32"),
        ("2,3,7,W", "5,3,3,2", "", "float64"),
        ("2,4,7,8", "4,2,3,2", "group=2", "float64"),
        ("2,1,80", "2,1,65", "", "float64"),
        ("2,3,7,8", "5,3,3,2", "clamp_min=0.0", "float64"),
    ],
)
def test_leaves_other_dtypes_open_sizes_groups_and_many_taps(x: str, weight: str, attributes: str, dtype: str) -> None:
    assert ops_of(after(graph_text(x, weight, attributes, dtype=dtype), "expand_double_convs", atol=1e-4)) == ["Conv"]
