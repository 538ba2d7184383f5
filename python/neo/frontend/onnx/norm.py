"""Normalisations of older opsets."""

from __future__ import annotations

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("BatchNormalization", until=14)
def _batch_normalization(call: Call) -> Results:
    """Below opset 14 a node trains where more than Y is asked for, below 7 where it does not say that it tests."""
    epsilon = float(call.attrs.get("epsilon", 1e-5))
    more = any(call.wants(i) for i in range(1, len(call.outputs)))
    if more or (call.opset < 7 and not call.attrs.get("is_test", 0)):
        return _batch_normalization_that_trains(call, epsilon)
    del call.outputs[1:]
    if call.attrs.get("spatial", 1):
        return call.finish("BatchNormalization", call.inputs, {"epsilon": epsilon})
    # Not spatial: statistics of every element apart, of shape [C, ...].
    x, scale, bias, mean, variance = (call.need(i) for i in range(5))
    deviation = call.add("Sqrt", [call.add("Add", [variance, call.array(epsilon, variance.dtype)])])
    normal = call.add("Div", [call.add("Sub", [x, mean]), deviation])
    return call.finish("Add", [call.add("Mul", [normal, scale]), bias])


def _batch_normalization_that_trains(call: Call, epsilon: float) -> Results:
    """Running statistics, and those of the batch as ONNX Runtime gives them: mean and inverse deviation."""
    if not call.attrs.get("spatial", 1):
        raise call.refuse("BatchNormalization that trains must be spatial. Got spatial = 0")
    x = call.need(0)
    attrs = {"epsilon": epsilon, "momentum": float(call.attrs.get("momentum", 0.9)), "training_mode": 1}
    results = call.add("BatchNormalization", call.inputs, attrs, outputs=3)
    results = [call.add("Identity", [value]) for value in results]
    if any(call.wants(i) for i in (3, 4)):
        axes = call.array([axis for axis in range(call.rank(0)) if axis != 1])
        mean = call.add("ReduceMean", [x, axes], {"keepdims": 1})
        distance = call.add("Sub", [x, mean])
        square = call.add("Mul", [distance, distance])
        variance = call.add("ReduceMean", [square, axes], {"keepdims": 0})
        deviation = call.add("Sqrt", [call.add("Add", [variance, call.array(epsilon, x.dtype)])])
        results += [call.add("Squeeze", [mean, axes]), call.add("Reciprocal", [deviation])]
    return results[: len(call.outputs)]


@register("GroupNormalization", since=18, until=21)
def _group_normalization(call: Call) -> Results:
    """Scale and bias per group, or one for all as ONNX Runtime takes them, become scale and bias per channel."""
    groups = int(call.attrs["num_groups"])
    shape = call.need(0).shape
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        raise call.refuse(f"the number of channels must be a multiple of num_groups. Got {channels} and {groups}")
    if isinstance(channels, int):
        sizes = call.array([groups, channels // groups])
    else:
        width = call.add("Div", [call.add("Shape", [call.need(0)], {"start": 1, "end": 2}), call.array([groups])])
        sizes = call.add("Concat", [call.array([groups]), width], {"axis": 0})
    each = []
    for i in (1, 2):
        column = call.add("Reshape", [call.need(i), call.array([-1, 1])])
        each.append(call.add("Reshape", [call.add("Expand", [column, sizes]), call.array([-1])]))
    return call.finish("GroupNormalization", [call.need(0), *each], call.attrs)


@register("LayerNormalization", until=17)
def _layer_normalization(call: Call) -> Results:
    """ONNX Runtime's optimizer wrote it before ONNX had it."""
    return call.finish("LayerNormalization", call.inputs, call.attrs)
