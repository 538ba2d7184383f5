"""Recurrent layers of opsets below 7, which said whether they give the whole sequence."""

from __future__ import annotations

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("RNN", "GRU", "LSTM", until=7)
def _recurrent(call: Call) -> Results:
    attrs = {name: value for name, value in call.attrs.items() if name != "output_sequence"}
    if attrs.get("direction") == "foward":  # the default of version 1, as it is spelled there
        attrs["direction"] = "forward"
    return call.finish(call.op, call.inputs, attrs)
