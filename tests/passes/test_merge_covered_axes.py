"""Axes that a kernel covers whole become channels."""

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.passes.recurrent_cells import weights
from tests.passes.rewriting import after, ops_of


def graph_text(
    x: str, kernel: tuple[int, ...], *, channels: int = 3, filters: int = 9, bias: bool = True, attributes: str = ""
) -> str:
    """A graph of one Conv over an image of these sizes."""
    constants = [weights("w", filters, channels, *kernel), weights("b", filters)]
    names = "x, w, b" if bias else "x, w"
    listed = f" {{{attributes}}}" if attributes else ""
    lines = [*constants[: 1 + bias], f"y = Conv({names}){listed}"]
    return f'graph "g" (x: float32[{x}]) -> (y) {{\n  ' + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(
    ("x", "kernel", "attributes"),
    [
        ("2,3,7,5", (3, 5), ""),
        ("2,3,7,5", (3, 5), "pads=[1, 0, 2, 0], kernel_shape=[3, 5]"),
        ("N,3,H,5", (2, 5), "strides=[2, 3]"),
        ("1,3,9,5", (3, 5), "dilations=[2, 1], clamp_min=0.0"),
        ("N,3,9,5", (4, 5), 'auto_pad="SAME_UPPER", strides=[2, 5]'),
        ("1,3,4,3,2", (2, 3, 2), "kernel_shape=[2, 3, 2], strides=[1, 2, 1]"),
    ],
)
def test_an_axis_after_others_is_brought_to_the_channels(x: str, kernel: tuple[int, ...], attributes: str) -> None:
    result = after(graph_text(x, kernel, attributes=attributes), "merge_covered_axes", "fold_constants")
    assert ops_of(result) == ["Transpose", "Reshape", "Conv"]
    conv = result.nodes[-1]
    assert conv.inputs[0].shape[1] == 3 * int(np.prod(kernel[1:]))


@pytest.mark.parametrize(
    ("x", "kernel", "attributes"),
    [
        ("2,3,5,7", (5, 3), "pads=[0, 1, 0, 1]"),
        ("N,3,5,W", (5, 1), ""),
        ("N,3,4,H,W", (4, 3, 2), "strides=[1, 2, 1]"),
        ("1,3,2,4,6", (2, 4, 3), 'auto_pad="VALID"'),
    ],
)
@pytest.mark.parametrize("filters", [1, 9])
def test_an_axis_before_others_is_among_the_channels_already(
    x: str, kernel: tuple[int, ...], attributes: str, filters: int
) -> None:
    text = graph_text(x, kernel, attributes=attributes, filters=filters)
    assert ops_of(after(text, "merge_covered_axes", "fold_constants")) == ["Reshape", "Conv"]


@pytest.mark.parametrize(
    ("x", "kernel", "attributes"),
    [
        ("N,3,7", (7,), ""),
        ("2,3,7,7", (7, 7), "strides=[3, 3], clamp_min=0.0, clamp_max=1.5"),
        ("N,3,2,1,4", (2, 1, 4), "kernel_shape=[2, 1, 4]"),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_a_whole_image_is_a_product(x: str, kernel: tuple[int, ...], attributes: str, bias: bool) -> None:
    places = [k for k in kernel if k > 1]
    result = after(graph_text(x, kernel, attributes=attributes, bias=bias), "merge_covered_axes", "fold_constants")
    if len(places) == len(kernel):
        assert ops_of(result) == ["Flatten", "Gemm", "Reshape"]
    else:
        assert "Conv" in ops_of(result)


@pytest.mark.parametrize(
    ("x", "kernel", "options"),
    [
        ("1,3,7,5", (3, 4), {}),
        ("1,3,7,5", (3, 5), {"attributes": "pads=[0, 1, 0, 0]"}),
        ("1,3,7,3", (3, 2), {"attributes": "dilations=[1, 2]"}),
        ("1,3,7,1", (3, 1), {}),
        ("1,3,7,W", (3, 3), {}),
        ("1,6,7,5", (3, 5), {"attributes": "group=2", "filters": 8}),
        ("1,3,7,5", (3, 5), {"filters": 7}),
        ("1,3,H,W,5", (3, 3, 5), {}),
    ],
)
def test_what_stays(x: str, kernel: tuple[int, ...], options: dict) -> None:
    assert ops_of(after(graph_text(x, kernel, **options), "merge_covered_axes")) == ["Conv"]


@pytest.mark.parametrize("kernel", [(3, 5), (4, 5), (9, 5), (9, 2)])
def test_sizes_that_a_call_tells(kernel: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    w = rng.standard_normal((8, 2, *kernel)).astype(np.float32)
    value = helper.make_tensor_value_info
    rows = 9 if kernel[0] == 9 else "T"
    columns = 5 if kernel[1] == 5 else "W"
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])],
        "covered",
        [value("x", TensorProto.FLOAT, ["N", 2, rows, columns])],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    module = neo.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    for batch, steps, width in ((1, 9, 5), (3, 17, 5), (0, 9, 5), (2, 9, 6)):
        x = rng.standard_normal((batch, 2, steps if rows == "T" else 9, width if columns == "W" else 5))
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))
        expected = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0)
        np.testing.assert_allclose(module(x.astype(np.float32)), expected, rtol=1e-4, atol=1e-4)
