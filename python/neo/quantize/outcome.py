"""The decision between a plan and the float model, and the report of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx

from neo.quantize.choose import Choice
from neo.quantize.gains import benchmark, layer_gains
from neo.quantize.quality import Limit, Quality
from neo.quantize.report import LayerReport, QuantizeReport
from neo.quantize.result import Quantized
from neo.quantize.study import Study

__all__ = ["decide"]

# Below this share of the float model's time a plan is worth its error.
_WORTH = 0.98


def decide(study: Study, choice: Choice | None, limit: Limit | None) -> Quantized:
    """Compare the chosen plan with float, keep the better of the two, and report.

    Parameters
    ----------
    study : Study
    choice : Choice or None
        What was chosen; None where no layer can be quantized.
    limit : Limit or None
        None: the plan is kept however fast it is.
    """
    plan = None if choice is None else choice.plan
    verdict: list[str] = []
    is_slow = False
    times = benchmark([study.float_module, plan.module], study.calls[0]) if plan is not None and plan.kept else None
    if choice is None:
        verdict.append("No layer can be quantized.")
    elif plan is None:
        verdict.append(f"{limit} is kept to by the float model alone: {_distance(choice)}.")
    elif times is None:
        verdict.append("No layer is expected to be faster on codes here: the float model is kept.")
        plan, is_slow = None, True
    elif limit is not None and times[1] > times[0] * _WORTH:
        verdict.append(
            f"Quantizing gains nothing here: {times[1]:.3g} ms beside {times[0]:.3g} ms in float, which is kept."
        )
        plan, times, is_slow = None, None, True
    elif times[1] > times[0]:
        verdict.append("Float is faster here: accuracy= or drop= lets what pays be chosen.")
    if choice is not None and choice.rounds > 1:
        verdict.append(f"{choice.rounds} plans were tried{', until Ctrl-C' if choice.is_interrupted else ''}.")
    if plan is not None and limit is not None:
        verdict += _price(study, choice, plan.kept)
    gains: Mapping[str, float] = {}
    if choice is not None and not is_slow:
        shown = plan or choice.nearest
        gains = choice.gains or layer_gains(study.model, study.layers, study.float_module, shown.module)
    kept = frozenset() if plan is None else plan.kept
    proto = study.model.proto if plan is None else plan.proto
    report = _report(study, kept, proto, verdict, None if plan is None else plan.quality, times, choice, gains)
    return Quantized(proto, report, study.build, study)


def _distance(choice: Choice) -> str:
    quality, count = choice.nearest.quality, len(choice.nearest.kept)
    if quality.metric is not None:
        reached = f"a metric of {quality.metric:.6g}"
    elif quality.agreement is not None:
        reached = f"an agreement of {quality.agreement:.4g}"
    else:
        reached = f"an accuracy of {1 - quality.error:.6g}"
    saved = sum(choice.gains.get(name, 0.0) for name in choice.nearest.kept) / 1e3
    return f"the nearest plan, of {count} layers, has {reached} and would save an estimated {saved:.3g} ms"


def _price(study: Study, choice: Choice | None, kept: frozenset[str]) -> list[str]:
    """The price of the limit: the layer left out that saves most for its error."""
    if choice is None or not choice.errors:
        return []
    left = [layer.name for layer in study.layers if layer.name not in kept and choice.gains[layer.name] > 0]
    if not left:
        return []
    name = max(left, key=lambda n: choice.gains[n] / choice.errors[n])
    relative = 100 * math.sqrt(choice.errors[name])
    return [
        f"The price of the limit: {name!r} would save {choice.gains[name] / 1e3:.3g} ms for a relative error of {relative:.2g} %."
    ]


def _report(
    study: Study,
    kept: frozenset[str],
    proto: onnx.ModelProto,
    verdict: Sequence[str],
    quality: Quality | None,
    times: Sequence[float] | None,
    choice: Choice | None,
    gains: Mapping[str, float],
) -> QuantizeReport:
    layers = {layer.name: layer for layer in study.layers}
    placement = study.placement(kept)
    grids = study.grids(placement)
    rows = []
    for node in study.model.nodes:
        name = node.name
        if name not in layers:
            if name in study.reasons:
                rows.append(LayerReport(name, node.op_type, "float32", study.reasons[name]))
            continue
        error = choice.errors.get(name) if choice is not None else None
        if name not in kept:
            why = "it gains nothing" if gains.get(name, 0.0) <= 0 else "the limit"
            rows.append(LayerReport(name, node.op_type, "float32", why, error=error, gain_us=gains.get(name)))
            continue
        grid = grids[placement.rounded[layers[name].x]]
        low, high = ((code - grid.zero) * grid.scale for code in (grid.low, grid.high))
        rows.append(LayerReport(name, node.op_type, "int8", "", low, high, error, gains.get(name)))
    return QuantizeReport(
        tuple(rows),
        tuple(verdict),
        0.0 if quality is None else quality.error,
        None if quality is None else quality.agreement,
        None if times is None else times[0],
        None if times is None else times[1],
        study.model.proto.ByteSize(),
        proto.ByteSize(),
        study.count,
    )
