"""Operators of com.microsoft whose channels come last: transposes around the operator that has them second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.microsoft import with_zero_points
from neo.frontend.onnx.registry import register

if TYPE_CHECKING:
    from neo import _native

__all__: list[str] = []

_DOMAIN = "com.microsoft"


def _channels_second(call: Call, value: _native.Value, rank: int) -> _native.Value:
    result: _native.Value = call.add("Transpose", [value], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    return result


def _channels_last(call: Call, value: _native.Value, rank: int) -> Results:
    return call.finish("Transpose", [value], {"perm": [0, *range(2, rank), 1]})


def _around(call: Call, op: str, inputs: Sequence[_native.Value | None], attrs: dict[str, Any]) -> Results:
    """The operator with its first input's channels brought second, and the result's back."""
    rank = call.rank(0)
    x = _channels_second(call, call.need(0), rank)
    return _channels_last(call, call.add(op, [x, *inputs], attrs), rank)


def _without(call: Call, *names: str) -> dict[str, Any]:
    return {name: value for name, value in call.attrs.items() if name not in names}


@register("NhwcMaxPool", domain=_DOMAIN)
def _nhwc_max_pool(call: Call) -> Results:
    return _around(call, "MaxPool", [], call.attrs)


@register("NhwcConv", domain=_DOMAIN)
def _nhwc_conv(call: Call) -> Results:
    """The channels of the weights come last too, as optimizers write them; weights in ONNX's order are known by their sizes."""
    rank = call.rank(0)
    w, sizes = call.need(1), call.shape(1)
    window = call.attrs.get("kernel_shape")
    channels, groups = call.shape(0)[-1], int(call.attrs.get("group", 1))
    own = isinstance(channels, int) and sizes[1] == channels // max(1, groups) and sizes[-1] != sizes[1]
    if window:
        own = list(sizes[2:]) == list(window) and (own or list(sizes[1:-1]) != list(window))
    if not own:
        w = _channels_second(call, w, rank)
    return _around(call, "Conv", [w, call.input(2)], call.attrs)


@register("QLinearConv", domain=_DOMAIN)
def _qlinear_conv(call: Call) -> Results:
    attrs = _without(call, "channels_last")
    if call.attrs.get("channels_last", 0):
        return _around(call, "QLinearConv", call.inputs[1:], attrs)
    return call.finish("QLinearConv", call.inputs, attrs)


@register("QLinearAveragePool", "QLinearGlobalAveragePool", domain=_DOMAIN)
def _qlinear_average_pool(call: Call) -> Results:
    op = f"{_DOMAIN}.{call.op}"
    attrs = _without(call, "channels_last")
    inputs = with_zero_points(call, 0, 2, 4)
    if call.attrs.get("channels_last", 0):
        return _around(call, op, inputs[1:], attrs)
    return call.finish(op, inputs, attrs)
