"""Operators of com.microsoft that are other operators under another name, or a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register
from neo.frontend.onnx.resize import SAMPLE_MODES

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "com.microsoft"


@register("Range", "Trilu", domain=_DOMAIN)
def _same(call: Call) -> Results:
    return call.finish(call.op, call.inputs, call.attrs)


@register("TransposeMatMul", domain=_DOMAIN)
def _transpose_matmul(call: Call) -> Results:
    return call.finish(f"{_DOMAIN}.FusedMatMul", call.inputs, call.attrs)


@register("ExpandDims", domain=_DOMAIN)
def _expand_dims(call: Call) -> Results:
    axis = call.add("Cast", [call.add("Reshape", [call.need(1), call.array([1])])], {"to": 7})
    return call.finish("Unsqueeze", [call.need(0), axis])


@register("Unique", domain=_DOMAIN)
def _unique(call: Call) -> Results:
    """Elements in order of first appearance, where each element went, how often each is there."""
    made = call.add("Unique", [call.need(0)], {"sorted": 0}, outputs=4)
    results = [made[0], made[2], made[3]]
    return [call.add("Identity", [value]) for value in results[: len(call.outputs)]]


@register("GridSample", domain=_DOMAIN)
def _grid_sample(call: Call) -> Results:
    mode = call.attrs.get("mode", "bilinear")
    return call.finish("GridSample", call.inputs, {**call.attrs, "mode": SAMPLE_MODES.get(mode, mode)})


@register("Pad", domain=_DOMAIN)
def _pad(call: Call) -> Results:
    pads = call.need(1)
    if pads.shape is None or len(pads.shape) != 1:
        pads = call.add("Reshape", [pads, call.array([-1])])
    return call.finish("Pad", [call.need(0), pads, call.input(2)], {"mode": call.attrs.get("mode", "constant")})


@register("ReduceSumInteger", domain=_DOMAIN)
def _reduce_sum_integer(call: Call) -> Results:
    x = call.need(0)
    wide = call.add("Cast", [x], {"to": 12 if x.dtype.startswith("uint") else 6})
    attrs = {"keepdims": int(call.attrs.get("keepdims", 1))}
    return call.finish("ReduceSum", [wide, call.array(call.attrs["axes"])], attrs)


@register("QLinearWhere", domain=_DOMAIN)
def _qlinear_where(call: Call) -> Results:
    def real(first: int) -> _native.Value:
        value: _native.Value = call.add("DequantizeLinear", [call.need(i) for i in range(first, first + 3)])
        return value

    chosen = call.add("Where", [call.need(0), real(1), real(4)])
    return call.finish("QuantizeLinear", [chosen, call.need(7), call.input(8)])
