"""Resize beyond ONNX's own cases."""

import numpy as np
import pytest
from neo.errors import ModelError, ShapeError

from tests.ops.single_node import infer, run


def test_scales_are_the_fractions_an_exporter_meant():
    # float32(0.7) is a little less than 7 / 10.
    scales = np.array([0.7, 1 / 3], np.float32)
    assert infer("Resize", "float32[10,6]", None, scales) == "float32[7,2]"
    assert run("Resize", np.zeros((10, 6), np.float32), None, scales).shape == (7, 2)


def test_symbolic_sizes():
    scales = np.array([1, 2, 0.5, 1.5], np.float32)
    assert infer("Resize", "float32[N,C,H,W]", None, scales) == "float32[N,2*C,floordiv(H, 2),W + floordiv(W, 2)]"


def test_needs_scales_or_sizes():
    with pytest.raises(ModelError, match="one of scales and sizes"):
        infer("Resize", "float32[2]")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_integers_are_rounded_and_saturate(mode):
    x = np.array([0, 255, 0, 255], np.uint8)
    got = run("Resize", x, None, np.array([3], np.float32), mode=mode)
    want = run("Resize", x.astype(np.float64), None, np.array([3], np.float32), mode=mode)
    np.testing.assert_array_equal(got, np.clip(np.round(want), 0, 255))


COORDINATES = {
    "half_pixel": lambda i, scale, size, out: (i + 0.5) / scale - 0.5,
    "half_pixel_symmetric": lambda i, scale, size, out: size / 2 * (1 - out / (scale * size)) + (i + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda i, scale, size, out: (i + 0.5) / scale - 0.5 if out > 1 else 0.0 * i,
    "align_corners": lambda i, scale, size, out: i * (size - 1) / (scale * size - 1) if scale * size != 1 else 0.0 * i,
    "asymmetric": lambda i, scale, size, out: i / scale,
}


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("scale", [0.2, 0.21, 0.4, 0.6, 1.0, 1.3, 2.0, 3.5])
def test_coordinates(coordinates, scale):
    """What a linear image gives is where it was asked, within the image."""
    x = np.arange(5, dtype=np.float64)
    out = int(5 * scale + 1e-9)
    places = COORDINATES[coordinates](np.arange(out), np.float64(np.float32(scale)), 5, out)
    attrs = {"mode": "linear", "coordinate_transformation_mode": coordinates}
    got = run("Resize", x, None, np.array([scale], np.float32), **attrs)
    np.testing.assert_allclose(got, np.clip(places, 0, 4), atol=1e-5)


def test_crop_outside_takes_the_extrapolation_value():
    got = run(
        "Resize",
        np.array([1.0, 2.0, 3.0], np.float32),
        np.array([-1.0, 2.0], np.float32),
        None,
        np.array([5]),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0,
    )
    assert got.tolist() == [9, 9, 2, 9, 9]


def test_antialias_keeps_a_constant_image():
    x = np.full((1, 1, 9, 7), 2.5, np.float32)
    for mode in ("linear", "cubic"):
        got = run("Resize", x, None, None, np.array([1, 1, 4, 3]), mode=mode, antialias=1)
        np.testing.assert_allclose(got, 2.5, rtol=1e-6)


def test_an_empty_axis_cannot_grow():
    with pytest.raises(ShapeError, match="empty axis cannot grow"):
        run("Resize", np.zeros((0,), np.float32), None, None, np.array([3]))


@pytest.mark.parametrize("op", ["Resize", "CenterCropPad"])
def test_axes_are_distinct(op):
    operands = [None, None, np.array([3, 3])] if op == "Resize" else [np.array([3, 3])]
    with pytest.raises(ModelError, match="axes must be distinct. Got 1 twice"):
        run(op, np.zeros((2, 5), np.float32), *operands, axes=[1, -1])


def test_blocks_of_an_image_are_positive():
    with pytest.raises(ShapeError, match="blocks, strides and dilations must be 1 to 2147483647. Got 0"):
        run("Col2Im", np.zeros((1, 4, 9), np.float32), np.array([4, 4]), np.array([2, 2]), strides=[1, 0])


def test_grid_sample_survives_strange_coordinates():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    grid = np.array([np.inf, -np.inf, np.nan, 1e30], np.float32).reshape(1, 2, 1, 2)
    for padding in ("zeros", "border", "reflection"):
        for mode in ("nearest", "linear", "cubic"):
            assert np.isfinite(run("GridSample", x, grid, padding_mode=padding, mode=mode)).all()
