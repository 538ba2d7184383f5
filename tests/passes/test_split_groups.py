"""Convolutions of a few groups, each by itself: one of the forms that selection chooses among."""

import pytest

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import after, ops_of


def graph_text(
    groups: int,
    inputs: int,
    filters: int,
    *,
    size: str = "5,6",
    kernel: tuple[int, ...] = (3, 3),
    bias: bool = True,
    attributes: str = "pads=[1, 1, 1, 1]",
) -> str:
    """A graph of one Conv whose groups have so many inputs and filters."""
    constants = [weights("w", groups * filters, inputs, *kernel), weights("b", groups * filters)]
    names = "x, w, b" if bias else "x, w"
    lines = [*constants[: 1 + bias], f"y = Conv({names}) {{group={groups}, {attributes}}}"]
    return f'graph "g" (x: float32[N,{groups * inputs},{size}]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(
    ("groups", "inputs", "filters", "options"),
    [
        (2, 3, 4, {}),
        (3, 5, 2, {"bias": False}),
        (4, 1, 3, {"attributes": "strides=[2, 1], clamp_min=0.0"}),
        (2, 16, 3, {"attributes": 'auto_pad="SAME_UPPER", dilations=[2, 2]'}),
        (2, 16, 32, {}),
        (2, 3, 4, {"kernel": (1, 1), "attributes": "strides=[1, 2]"}),
        (16, 2, 1, {"size": "H,W", "attributes": "kernel_shape=[3, 3]"}),
        (2, 3, 2, {"size": "7", "kernel": (5,), "attributes": "pads=[2, 2]"}),
        (2, 3, 2, {"size": "4,3,5", "kernel": (3, 2, 1), "attributes": "strides=[1, 1, 2]"}),
    ],
)
def test_each_group_is_convolved(groups: int, inputs: int, filters: int, options: dict) -> None:
    result = after(graph_text(groups, inputs, filters, **options), "split_groups", "fold_constants")
    ops = ops_of(result)
    assert ops == ["Split", *["Conv"] * groups, "Concat"]
    assert all(node.attrs["group"] == 1 for node in result.nodes if node.op == "Conv")


@pytest.mark.parametrize("attributes", ["pads=[1, 0, 1, 1]", "strides=[2, 3], output_padding=[1, 0]", "clamp_max=0.5"])
@pytest.mark.parametrize("bias", [False, True])
def test_each_group_of_a_transposed_convolution(attributes: str, bias: bool) -> None:
    lines = [weights("w", 6, 4, 3, 2), weights("b", 12)][: 1 + bias]
    lines.append(f"y = ConvTranspose(x, w{', b' if bias else ''}) {{group=3, {attributes}}}")
    text = 'graph "g" (x: float32[N,6,H,5]) -> (y) {\n  ' + "\n  ".join(lines) + "\n}"
    ops = ops_of(after(text, "split_groups", "fold_constants"))
    assert ops == ["Split", *["ConvTranspose"] * 3, "Concat"]


@pytest.mark.parametrize(
    ("groups", "inputs", "filters", "options"),
    [
        (1, 3, 4, {}),
        (5, 1, 1, {}),
        (17, 2, 1, {}),
    ],
)
def test_what_stays(groups: int, inputs: int, filters: int, options: dict) -> None:
    assert ops_of(after(graph_text(groups, inputs, filters, **options), "split_groups")) == ["Conv"]
