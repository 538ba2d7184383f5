"""Convolutions in groups whose kernels have one tap."""

import pytest

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import after, ops_of


def graph_text(x: str, weight: tuple[int, ...], attributes: str, *, bias: bool = True) -> str:
    """A graph of one Conv."""
    constants = [weights("w", *weight), weights("b", weight[0])]
    names = "x, w, b" if bias else "x, w"
    lines = [*constants[: 1 + bias], f"y = Conv({names}) {{{attributes}}}"]
    return f'graph "g" (x: float32[{x}]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(
    ("x", "attributes", "ops"),
    [
        ("2,6,5,7", "group=6", ["Mul", "Add"]),
        ("N,6,H,W", "group=6, strides=[1, 3]", ["Slice", "Mul", "Add"]),
        ("2,6,9", "group=6, strides=[2], kernel_shape=[1]", ["Slice", "Mul", "Add"]),
        ("1,6,4,5,6", 'group=6, strides=[2, 1, 3], auto_pad="VALID"', ["Slice", "Mul", "Add"]),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_depthwise_ones_are_products_with_numbers(x: str, attributes: str, ops: list[str], bias: bool) -> None:
    text = graph_text(x, (6, 1, *[1] * (x.count(",") - 1)), attributes, bias=bias)
    assert ops_of(after(text, "thin_single_taps", "fold_constants")) == (ops if bias else ops[:-1])


@pytest.mark.parametrize(
    ("weight", "group", "attributes"),
    [((8, 3, 1, 1), 2, ""), ((12, 1, 1, 1), 6, ""), ((6, 1, 1, 1), 6, ", clamp_min=0.0")],
)
def test_others_read_the_pixels_of_the_stride(weight: tuple[int, ...], group: int, attributes: str) -> None:
    text = graph_text("N,6,5,8", weight, f"group={group}, strides=[2, 3]{attributes}")
    result = after(text, "thin_single_taps")
    assert ops_of(result) == ["Slice", "Conv"]
    assert list(result.nodes[-1].inputs[0].shape)[2:] == [3, 3]


@pytest.mark.parametrize(
    ("weight", "attributes"),
    [
        ((6, 1, 1, 1), "group=6, pads=[0, 1, 0, 0]"),
        ((6, 1, 1, 1), 'group=6, auto_pad="SAME_LOWER", strides=[2, 2]'),
        ((6, 1, 1, 2), "group=6"),
        ((4, 6, 1, 1), "group=1, strides=[2, 2]"),
        ((8, 3, 1, 1), "group=2"),
    ],
)
def test_leaves_padding_taps_and_single_groups(weight: tuple[int, ...], attributes: str) -> None:
    assert ops_of(after(graph_text("1,6,5,8", weight, attributes), "thin_single_taps")) == ["Conv"]
