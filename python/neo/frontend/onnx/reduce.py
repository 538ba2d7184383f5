"""Reductions and selections from opsets in which axes and counts were attributes."""

from __future__ import annotations

from neo.frontend.onnx.call import Call, Results
from neo.frontend.onnx.registry import register

__all__: list[str] = []


@register("ReduceSum", until=13)
@register(
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
    until=18,
)
def _reduce(call: Call) -> Results:
    axes = call.attrs.get("axes")
    attrs = {"keepdims": int(call.attrs.get("keepdims", 1))}
    return call.finish(call.op, [call.need(0), None if axes is None else call.array(axes)], attrs)


@register("TopK", until=10)
def _top_k(call: Call) -> Results:
    attrs = {"axis": int(call.attrs.get("axis", -1))}
    return call.finish("TopK", [call.need(0), call.array([call.attrs["k"]])], attrs)


@register("DFT", since=17, until=20)
def _dft(call: Call) -> Results:
    attrs = {name: value for name, value in call.attrs.items() if name != "axis"}
    axis = call.array(int(call.attrs.get("axis", 1)))
    return call.finish("DFT", [call.need(0), call.input(1), axis], attrs)


@register("GlobalLpPool", "LpPool", until=2)
def _lp_pool(call: Call) -> Results:
    p = float(call.attrs.get("p", 2.0))
    if p != int(p):
        raise call.refuse(f"the exponent must be whole. Got {p}")
    return call.finish(call.op, [call.need(0)], {**call.attrs, "p": int(p)})
