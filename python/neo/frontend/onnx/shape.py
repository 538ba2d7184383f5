"""Operators that move or reshape, from opsets in which their arguments were attributes."""

from __future__ import annotations

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("Reshape", until=5)
def _reshape(call: Call) -> Results:
    return call.finish("Reshape", [call.need(0), call.array(call.attrs.get("shape", []))])


@register("Squeeze", "Unsqueeze", until=13)
def _squeeze(call: Call) -> Results:
    axes = call.attrs.get("axes")
    return call.finish(call.op, [call.need(0), None if axes is None else call.array(axes)])


@register("Concat", until=4)
def _concat(call: Call) -> Results:
    return call.finish("Concat", call.inputs, {"axis": int(call.attrs.get("axis", 1))})


@register("Slice", until=10)
def _slice(call: Call) -> Results:
    starts, ends = call.attrs["starts"], call.attrs["ends"]
    axes = call.attrs.get("axes", list(range(len(starts))))
    if not len(starts) == len(ends) == len(axes):
        msg = f"[Slice] starts, ends and axes must be as long. Got {len(starts)}, {len(ends)} and {len(axes)}"
        raise ModelError(msg)
    return call.finish("Slice", [call.need(0), call.array(starts), call.array(ends), call.array(axes)])


@register("Split", until=18)
def _split(call: Call) -> Results:
    sizes = call.input(1)
    if sizes is None and "split" in call.attrs:
        sizes = call.array(call.attrs["split"])
    attrs = {"axis": int(call.attrs.get("axis", 0))}
    if sizes is None:
        attrs["num_outputs"] = len(call.outputs)
    return call.finish("Split", [call.need(0), sizes], attrs)


@register("Pad", until=11)
def _pad(call: Call) -> Results:
    x = call.need(0)
    pads = call.attrs["pads" if call.opset >= 2 else "paddings"]
    value = call.array(call.attrs.get("value", 0.0), x.dtype)
    return call.finish("Pad", [x, call.array(pads), value], {"mode": call.attrs.get("mode", "constant")})


@register("Tile", until=6)
def _tile(call: Call) -> Results:
    repeats = [1] * call.rank(0)
    axis = int(call.need_constant(2, "the axis of Tile").item())
    if not -len(repeats) <= axis < len(repeats):
        msg = f"[Tile] the axis must be one of the input's. Got {axis}, expected {-len(repeats)} to {len(repeats) - 1}"
        raise ModelError(msg)
    repeats[axis] = int(call.need_constant(1, "the tiles of Tile").item())
    return call.finish("Tile", [call.need(0), call.array(repeats)])
