"""Operators that ONNX had on trial before opset 10, which exporters of WinML, Core ML and Caffe2 left in models."""

from __future__ import annotations

from typing import Any

from neo import _native
from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register
from neo.frontend.onnx.types import dtype_name

__all__: list[str] = []

_END = 2**63 - 1


def _need(call: Call, name: str) -> Any:
    if name not in call.attrs:
        msg = f"[{call.op}] attribute {name!r} must be given. Got none"
        raise ModelError(msg)
    return call.attrs[name]


def _times(call: Call, x: _native.Value, factor: float) -> _native.Value:
    made: _native.Value = call.add("Mul", [x, call.array(factor, x.dtype)])
    return made


@register("Affine")
def _affine(call: Call) -> Results:
    x = call.need(0)
    product = _times(call, x, call.attrs.get("alpha", 1.0))
    return call.finish("Add", [product, call.array(call.attrs.get("beta", 0.0), x.dtype)])


@register("Scale")
def _scale(call: Call) -> Results:
    x = call.need(0)
    return call.finish("Mul", [x, call.array(call.attrs.get("scale", 1.0), x.dtype)])


@register("ImageScaler")
def _image_scaler(call: Call) -> Results:
    """A factor for all pixels, and a bias per channel."""
    x = call.need(0)
    bias = call.array(_need(call, "bias"), x.dtype)
    column = call.add("Unsqueeze", [bias, call.array([1, 2])])
    return call.finish("Add", [_times(call, x, call.attrs.get("scale", 1.0)), column])


@register("ScaledTanh")
def _scaled_tanh(call: Call) -> Results:
    x = call.need(0)
    curve = call.add("Tanh", [_times(call, x, _need(call, "beta"))])
    return call.finish("Mul", [curve, call.array(_need(call, "alpha"), x.dtype)])


@register("ParametricSoftplus")
def _parametric_softplus(call: Call) -> Results:
    x = call.need(0)
    curve = call.add("Softplus", [_times(call, x, _need(call, "beta"))])
    return call.finish("Mul", [curve, call.array(_need(call, "alpha"), x.dtype)])


@register("Crop")
def _crop(call: Call) -> Results:
    """The border is left, top, right and bottom; `scale` is the height and width of what remains."""
    border = _need(call, "border")
    scale = call.attrs.get("scale", [])
    if len(border) != 4 or len(scale) not in (0, 2):
        msg = f"[Crop] border must have four sizes and scale none or two. Got {len(border)} and {len(scale)}"
        raise ModelError(msg)
    left, top, right, bottom = border
    if call.rank(0) != 4:
        msg = f"[Crop] the input must have rank 4. Got {call.rank(0)}"
        raise ModelError(msg)
    ends = [top + scale[0], left + scale[1]] if scale else [-bottom or _END, -right or _END]
    return call.finish("Slice", [call.need(0), call.array([top, left]), call.array(ends), call.array([2, 3])])


@register("DynamicSlice")
def _dynamic_slice(call: Call) -> Results:
    return call.finish("Slice", [call.need(0), call.need(1), call.need(2), call.input(3)])


@register("GivenTensorFill")
def _given_tensor_fill(call: Call) -> Results:
    """The values of an attribute in the shape of another, of an input or of its elements."""
    values = call.array(call.attrs.get("values", []), "float32")
    return call.finish("Reshape", [values, _filled_shape(call)])


@register("ConstantFill")
def _constant_fill(call: Call) -> Results:
    dtype = dtype_name(int(call.attrs.get("dtype", 1)), "attribute 'dtype'")
    value = call.array([call.attrs.get("value", 0.0)], dtype)
    return call.finish("Expand", [value, _filled_shape(call)])


def _filled_shape(call: Call) -> _native.Value:
    source = call.input(0)
    extra = call.attrs.get("extra_shape", [])
    if source is None:
        return call.array([*call.attrs.get("shape", []), *extra])
    if call.attrs.get("input_as_shape", 0):
        shape = source if source.dtype == "int64" else call.add("Cast", [source], {"to": "int64"})
    else:
        shape = call.add("Shape", [source])
    return call.add("Concat", [shape, call.array(extra)], {"axis": 0}) if extra else shape


@register("MeanVarianceNormalization", until=9)
def _mean_variance_normalization(call: Call) -> Results:
    """Over all images and pixels, of each channel or of all together; the variance may be left as it is."""
    x = call.need(0)
    axes = [i for i in range(call.rank(0)) if i != 1 or call.attrs.get("across_channels", 0)]
    if call.attrs.get("normalize_variance", 1):
        return call.finish("MeanVarianceNormalization", [x], {"axes": axes})
    mean = call.add("ReduceMean", [x, call.array(axes)], {"keepdims": 1})
    return call.finish("Sub", [x, mean])
