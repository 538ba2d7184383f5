"""Convolutions of volumes as those of images."""

import pytest
from neo import _native

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import after, ops_of


def graph_text(
    *,
    batch: int | str = 2,
    frames: int | str = 5,
    channels: int = 3,
    multiplier: int = 1,
    groups: int | None = None,
    kernel: tuple[int, int, int] = (3, 3, 3),
    bias: bool = True,
    attributes: str = "pads=[1, 1, 1, 1, 1, 1]",
) -> str:
    """A graph of one Conv over three axes, a group for each channel unless `groups` says otherwise."""
    groups = channels if groups is None else groups
    filters = channels * multiplier
    constants = [weights("w", filters, channels // groups, *kernel), weights("b", filters)]
    names = "x, w, b" if bias else "x, w"
    lines = [*constants[: 1 + bias], f"y = Conv({names}) {{group={groups}, {attributes}}}"]
    return f'graph "g" (x: float32[{batch},{channels},{frames},6,7]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"bias": False},
        {"multiplier": 2},
        {"batch": "N"},
        {"frames": 1},
        {"kernel": (1, 3, 3), "attributes": "pads=[0, 1, 1, 0, 1, 1]"},
        {"kernel": (5, 1, 1), "attributes": "pads=[2, 0, 0, 2, 0, 0], strides=[1, 1, 2]"},
        {"kernel": (3, 2, 3), "attributes": "strides=[2, 1, 2], pads=[1, 0, 1, 0, 1, 2]"},
        {"frames": 7, "attributes": "dilations=[2, 1, 2], pads=[2, 1, 0, 1, 1, 3]"},
        {"attributes": 'auto_pad="SAME_UPPER", strides=[2, 2, 2]'},
    ],
)
def test_images_for_each_tap(form: dict) -> None:
    result = after(graph_text(**form), "split_volumes", atol=2e-5)
    taps = form.get("kernel", (3, 3, 3))[0]
    ops = ops_of(result)
    assert ops.count("Conv") == taps
    assert ops.count("Add") == taps - 1
    assert all(len(node.inputs[0].shape) == 4 for node in result.nodes if node.op == "Conv")


@pytest.mark.parametrize(
    "form",
    [
        {"kernel": (5, 1, 1), "attributes": "pads=[2, 0, 0, 2, 0, 0]"},
        {"kernel": (3, 1, 1), "attributes": "strides=[2, 1, 1], dilations=[2, 1, 1]", "batch": "N", "multiplier": 2},
    ],
)
def test_one_image_of_all_frames(form: dict) -> None:
    assert ops_of(after(graph_text(**form), "split_volumes")).count("Conv") == 1


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"bias": False, "batch": "N"},
        {"channels": 1, "multiplier": 4},
        {"channels": 6, "groups": 2, "multiplier": 3, "batch": "N"},
        {"frames": 1},
        {"kernel": (1, 3, 3), "attributes": "pads=[0, 1, 1, 0, 1, 1], clamp_min=0.0"},
        {"kernel": (1, 3, 2), "attributes": "strides=[2, 2, 1]"},
        {"kernel": (2, 2, 3), "attributes": "pads=[1, 0, 1, 0, 1, 2], strides=[1, 2, 1], clamp_max=0.5"},
        {"kernel": (3, 3, 3), "attributes": "pads=[1, 1, 1, 1, 1, 1], strides=[2, 2, 2]", "batch": "N"},
        {"frames": 7, "attributes": "dilations=[2, 1, 2], pads=[2, 1, 0, 1, 1, 3]"},
        {"attributes": 'auto_pad="SAME_UPPER", strides=[1, 2, 2]'},
    ],
)
def test_channels_of_all_frames_that_a_kernel_reads(form: dict) -> None:
    is_choice = form.get("groups", 1) > 1 or "strides=[2, 2, 2]" in form.get("attributes", "")
    chosen = "gather_frames" if is_choice else "split_volumes"
    result = after(graph_text(**{"groups": 1, **form}), chosen, "fold_constants", atol=2e-5)
    ops = ops_of(result)
    assert ops.count("Conv") == 1
    assert ops.count("Concat") == (form.get("kernel", (3, 3, 3))[0] > 1)
    assert all(len(node.inputs[0].shape) == 4 for node in result.nodes if node.op == "Conv")


@pytest.mark.parametrize(
    "form",
    [
        {"kernel": (3, 1, 1), "attributes": "pads=[1, 0, 0, 1, 0, 0], clamp_min=0.0"},
        {"kernel": (3, 1, 1), "attributes": "strides=[2, 1, 1], dilations=[2, 1, 3]", "batch": "N"},
        {"kernel": (1, 1, 1), "attributes": "dilations=[1, 1, 1]", "channels": 4, "groups": 2},
        {"kernel": (5, 1, 1), "attributes": "pads=[2, 0, 0, 2, 0, 0]", "groups": 3},
    ],
)
def test_pixels_through_all_frames_are_columns(form: dict) -> None:
    assert ops_of(after(graph_text(**{"groups": 1, **form}), "split_volumes")) == [
        "Reshape",
        "Reshape",
        "Conv",
        "Reshape",
    ]


@pytest.mark.parametrize(
    "form",
    [
        {"frames": "T"},
        {"frames": "T", "groups": 1},
        {"groups": 1, "attributes": "strides=[2, 1, 1]"},
        {"attributes": "clamp_min=0.0"},
        {"channels": 6, "groups": 2},
    ],
)
def test_what_stays(form: dict) -> None:
    assert ops_of(after(graph_text(**form), "split_volumes")) == ["Conv"]


def test_volumes_of_codes_stay() -> None:
    text = graph_text(groups=1).replace("x: float32", "codes: uint8")
    text = text.replace("y = Conv(", "constant s = float32[] {0.5}\n  x = DequantizeLinear(codes, s)\n  y = Conv(")
    assert ops_of(after(text, "split_volumes", atol=1e-3)) == ["DequantizeLinear", "Conv"]


def test_frames_that_take_too_much_memory_stay() -> None:
    text = graph_text(frames=64, groups=1, channels=8).replace(",6,7]", ",160,160]")
    graph = _native.parse_graph(text)
    graph.infer()
    assert ops_of(_native.run_passes(graph, ["split_volumes"])) == ["Conv"]
