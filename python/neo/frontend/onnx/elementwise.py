"""Elementwise operators of opsets below 7, which broadcast on request, and Cast with a name for a type."""

from __future__ import annotations

from neo.errors import ModelError
from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register
from neo.frontend.onnx.types import element_number

__all__: list[str] = []


@register("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", until=7)
def _binary(call: Call) -> Results:
    """Where `broadcast` is set, the second operand's axes start at `axis` of the first, else they are its last."""
    a, b = call.need(0), call.need(1)
    axis = call.attrs.get("axis")
    if call.attrs.get("broadcast", 0) and axis is not None:
        start = int(axis) + call.rank(0) if axis < 0 else int(axis)
        behind = call.rank(0) - start - call.rank(1)
        if behind < 0:
            msg = f"[{call.op}] the second operand must fit behind axis {axis}. Got {call.shape(0)} and {call.shape(1)}"
            raise ModelError(msg)
        if behind:
            b = call.add("Unsqueeze", [b, call.array(range(call.rank(1), call.rank(1) + behind))])
    return call.finish(call.op, [a, b])


@register("Cast", until=6)
def _cast(call: Call) -> Results:
    name = str(call.attrs["to"]).upper()
    number = element_number(name)
    if number is None:
        msg = f"[Cast] attribute 'to' must name a type. Got {name!r}"
        raise ModelError(msg)
    return call.finish("Cast", [call.need(0)], {"to": number})


@register("Gemm", until=7)
def _gemm(call: Call) -> Results:
    return call.finish("Gemm", call.inputs, {k: v for k, v in call.attrs.items() if k != "broadcast"})
