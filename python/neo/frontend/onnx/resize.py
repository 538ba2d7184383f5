"""Upsample, early Resize and the sampling operators whose modes had other names."""

from __future__ import annotations

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []

_SAMPLE_MODES = {"bilinear": "linear", "bicubic": "cubic"}

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear"}


@register("Upsample")
@register("Resize", since=10, until=11)
def _upsample(call: Call) -> Results:
    """Samples lie at the corners, and the nearest is the one below."""
    mode = call.attrs.get("mode", "nearest")
    if mode not in _MODES:
        msg = f"[{call.op}] attribute 'mode' must be nearest or linear. Got {mode!r}"
        raise ModelError(msg)
    scales = call.input(1)
    if scales is None and "scales" in call.attrs:
        scales = call.array(call.attrs["scales"], "float32")
    elif scales is None:
        scales = call.array([1.0, 1.0, call.attrs["height_scale"], call.attrs["width_scale"]], "float32")
    attrs = {"mode": _MODES[mode], "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return call.finish("Resize", [call.need(0), None, scales], attrs)


@register("GridSample", since=16, until=20)
@register("GridSample", domain="com.microsoft")
def _grid_sample(call: Call) -> Results:
    mode = call.attrs.get("mode", "bilinear")
    return call.finish("GridSample", call.inputs, {**call.attrs, "mode": _SAMPLE_MODES.get(mode, mode)})


@register("RoiAlign", since=10, until=16)
def _roi_align(call: Call) -> Results:
    attrs = {**call.attrs, "coordinate_transformation_mode": "output_half_pixel"}
    return call.finish("RoiAlign", call.inputs, attrs)
