"""Operators of com.microsoft that are other operators under another name, or a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__ = ["with_zero_points"]

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


def with_zero_points(call: Call, codes: int, *places: int) -> list[_native.Value | None]:
    """The inputs, with a zero point of 0 where one is left out; it is of the type of the codes."""
    inputs = [*call.inputs, *[None] * (max(places) + 1 - len(call.inputs))]
    dtype = call.need(codes).dtype
    for i in places:
        if inputs[i] is None:
            inputs[i] = call.array(0, dtype)
    return inputs


@register("QLinearAdd", "QLinearMul", domain=_DOMAIN)
def _qlinear_binary(call: Call) -> Results:
    return call.finish(f"{_DOMAIN}.{call.op}", with_zero_points(call, 0, 2, 5, 7), call.attrs)


@register("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=_DOMAIN)
def _qlinear_unary(call: Call) -> Results:
    return call.finish(f"{_DOMAIN}.{call.op}", with_zero_points(call, 0, 2, 4), call.attrs)


@register("QLinearWhere", domain=_DOMAIN)
def _qlinear_where(call: Call) -> Results:
    inputs = with_zero_points(call, 1, 3, 6, 8)
    x, y = (call.add("DequantizeLinear", inputs[i : i + 3]) for i in (1, 4))
    return call.finish("QuantizeLinear", [call.add("Where", [inputs[0], x, y]), *inputs[7:9]])
