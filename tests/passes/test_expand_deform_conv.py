"""DeformConv as samples of the image and a product."""

import pytest

from tests.passes.rewriting import after, ops_of


def graph_text(
    *,
    batch: int | str = 2,
    channels: int = 4,
    filters: int = 6,
    kernel: tuple[int, int] = (3, 3),
    image: tuple[int, int] = (7, 8),
    output: tuple[int, int] = (7, 8),
    group: int = 1,
    offset_group: int = 1,
    mask: bool = False,
    bias: bool = False,
    dtype: str = "float32",
    attributes: str = "pads=[1, 1, 1, 1]",
) -> str:
    """A graph of one DeformConv, whose sizes are given and not computed."""
    taps = kernel[0] * kernel[1] * offset_group
    positions = f"{output[0]},{output[1]}"
    inputs = [
        f"x: {dtype}[{batch},{channels},{image[0]},{image[1]}]",
        f"w: {dtype}[{filters},{channels // group},{kernel[0]},{kernel[1]}]",
        f"offset: {dtype}[{batch},{2 * taps},{positions}]",
    ]
    names = ["x", "w", "offset"]
    if bias:
        inputs.append(f"b: {dtype}[{filters}]")
    if mask:
        inputs.append(f"mask: {dtype}[{batch},{taps},{positions}]")
        names += ["b" if bias else "-", "mask"]
    elif bias:
        names.append("b")
    attrs = f"group={group}, offset_group={offset_group}, {attributes}"
    return f'graph "g" ({", ".join(inputs)}) -> (y) {{\n  y = DeformConv({", ".join(names)}) {{{attrs}}}\n}}'


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"bias": True},
        {"mask": True},
        {"mask": True, "bias": True, "offset_group": 2, "group": 2},
        {"offset_group": 4},
        {"group": 2},
        {"batch": "N"},
        {"batch": "N", "offset_group": 2, "mask": True},
        {"batch": 1, "channels": 1, "filters": 1, "kernel": (1, 1), "attributes": "pads=[0, 0, 0, 0]"},
        {"kernel": (2, 3), "output": (3, 4), "attributes": "pads=[0, 1, 0, 1], strides=[2, 2]"},
        {"image": (1, 1), "output": (1, 1)},
        {"output": (5, 2), "attributes": "pads=[1, 0, 1, 0], dilations=[2, 3]"},
        {"output": (7, 6), "attributes": "pads=[2, 0, 0, 0]"},
    ],
)
def test_samples_and_a_product(form: dict) -> None:
    ops = ops_of(after(graph_text(**form), "expand_deform_conv", rtol=1e-4, atol=2e-4))
    assert "DeformConv" not in ops
    assert {"GridSample", "MatMul"} <= set(ops)


@pytest.mark.parametrize("form", [{"dtype": "float64"}, {"batch": 2, "image": ("H", 8), "output": ("H", 8)}])
def test_what_stays(form: dict) -> None:
    assert ops_of(after(graph_text(**form), "expand_deform_conv")) == ["DeformConv"]
