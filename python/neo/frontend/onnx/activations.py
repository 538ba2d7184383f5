"""Activations of older opsets: limits as attributes, softmax over flattened axes, dropout with a ratio."""

from __future__ import annotations

import numpy as np

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("Clip", until=11)
def _clip(call: Call) -> Results:
    x = call.need(0)
    limits: list[float | None] = [call.attrs.get("min"), call.attrs.get("max")]
    if call.opset >= 6 and x.dtype in ("float32", "float64"):
        # Version 6 clips to the limits of float32 where it is told nothing.
        largest = float(np.finfo(np.float32).max)
        limits = [-largest if limits[0] is None else limits[0], largest if limits[1] is None else limits[1]]
    return call.finish("Clip", [x, *(None if v is None else call.array(v, x.dtype) for v in limits)])


@register("Selu", until=6)
def _selu(call: Call) -> Results:
    return call.finish("Selu", [call.need(0)], {"alpha": 1.6732, "gamma": 1.0507, **_meaningful(call)})


def _meaningful(call: Call) -> dict[str, object]:
    return {name: value for name, value in call.attrs.items() if name != "consumed_inputs"}


@register("PRelu", until=7)
def _prelu(call: Call) -> Results:
    x, slope = call.need(0), call.need(1)
    if call.shape(1) != (1,) and call.rank(1) == 1 and call.rank(0) > 2:
        slope = call.add("Unsqueeze", [slope, call.array(range(1, call.rank(0) - 1))])
    return call.finish("PRelu", [x, slope])


@register("Softmax", "LogSoftmax", "Hardmax", until=13)
def _softmax(call: Call) -> Results:
    """The axes from `axis` on count as one."""
    x = call.need(0)
    axis = int(call.attrs.get("axis", 1))
    if x.shape is not None:
        rank = len(x.shape)
        start = axis + rank if axis < 0 else axis
        if 0 <= start < rank and all(d == 1 for d in x.shape[start + 1 :]):
            return call.finish(call.op, [x], {"axis": start})
    rows = call.add("Flatten", [x], {"axis": axis})
    result = call.add(call.op, [rows], {"axis": -1})
    return call.finish("Reshape", [result, call.add("Shape", [x])], {"allowzero": 1})


@register("Dropout", until=12)
def _dropout(call: Call) -> Results:
    inputs = [call.need(0)]
    if call.opset < 7 and not call.attrs.get("is_test", 0):
        ratio = call.array(call.attrs.get("ratio", 0.5), "float32")
        inputs += [ratio, call.array(True, "bool")]
    if call.opset >= 10 or not call.wants(1):
        return call.finish("Dropout", inputs)
    kept, mask = call.add("Dropout", inputs, outputs=2)
    first = call.add("Identity", [kept])
    return [first, call.add("CastLike", [mask, inputs[0]])]
