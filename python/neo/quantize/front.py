"""Plans of more and more quantized layers."""

from __future__ import annotations

from neo.front import FrontModule
from neo.quantize.choose import best_layers, evaluate
from neo.quantize.gains import price_layers
from neo.quantize.sensitivity import measure_sensitivities
from neo.quantize.study import Study

__all__ = ["candidates_of"]

# The smallest error that is asked for, as a share of that with all layers quantized.
_SMALLEST = 1 / 64


def candidates_of(study: Study, points: int) -> list[FrontModule]:
    """Choose layers for errors from small to large: the float model, then at most so many plans, the last of all layers."""
    every = frozenset(layer.name for layer in study.layers)
    errors = measure_sensitivities(study)
    whole = evaluate(study, every, None)
    _, gains = price_layers(study)
    total = sum(errors.values())
    plans = {}
    for i in range(points - 2, 0, -1):
        kept = best_layers(gains, errors, total * _SMALLEST ** (i / (points - 2)))
        if kept and kept != every and kept not in plans:
            plans[kept] = evaluate(study, kept, None)
    plans[every] = whole
    is_classifier = whole.quality.agreement is not None
    found = [FrontModule(study.float_module, 0.0, {}, 1.0 if is_classifier else None)]
    for kept, plan in plans.items():
        skipped = [layer.name for layer in study.layers if layer.name not in kept]
        quality = plan.quality
        found.append(FrontModule(plan.module, quality.error, {"skip": skipped}, quality.agreement, kept))
    return found
