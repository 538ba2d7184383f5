"""Which layers are quantized under a limit.

The error of a plan is taken as the sum of what its layers do alone (sensitivity.py). Under that, the layers that save
most are chosen by an exact knapsack. The plan is run, what it measured rescales the prediction, and the choice is made
again: two to five rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from neo.module import Module
from neo.quantize.gains import price_layers
from neo.quantize.quality import Limit, Quality, compare
from neo.quantize.sensitivity import measure_sensitivities
from neo.quantize.study import Study
from neo.report.progress import LateProgress

__all__ = ["Choice", "Plan", "best_layers", "choose", "evaluate"]

_ROUNDS = 5
_STEPS = 4000


@dataclass(frozen=True)
class Plan:
    """A choice of layers, compiled and measured.

    Attributes
    ----------
    kept : frozenset of str
        The layers that are quantized.
    proto : onnx.ModelProto
    module : Module
    quality : Quality
    """

    kept: frozenset[str]
    proto: onnx.ModelProto
    module: Module
    quality: Quality


@dataclass
class Choice:
    """The outcome of choosing.

    Attributes
    ----------
    plan : Plan or None
        The fastest plan that keeps to the limit; None: only the float model does.
    nearest : Plan
        Where there is none, the tried plan that came nearest.
    errors : dict of str to float
        What rounding each layer alone does to the outputs; empty where nobody had to know.
    gains : dict of str to float
        Microseconds that each layer saves, by estimate; empty without a limit.
    rounds : int
        How many plans were tried.
    is_interrupted : bool
        Ctrl-C ended the search early.
    """

    plan: Plan | None
    nearest: Plan
    errors: dict[str, float] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)
    rounds: int = 1
    is_interrupted: bool = False


def evaluate(study: Study, kept: frozenset[str], limit: Limit | None) -> Plan:
    """Write, compile and measure a plan."""
    proto = study.written(kept)
    module = study.build(proto)
    with LateProgress("comparing with float", len(study.calls)) as progress:
        quality = compare(study.float_module, module, study.calls, progress.advance)
    if limit is not None and limit.metric is not None:
        quality = Quality(quality.error, quality.agreement, limit.score(module))
    return Plan(kept, proto, module, quality)


def best_layers(gains: Mapping[str, float], errors: Mapping[str, float], budget: float) -> frozenset[str]:
    """The layers whose gains sum to most while their errors sum to no more than a budget: a knapsack, exact.

    Errors are rounded up to steps of the budget, so that the sum is never beyond it. Layers that gain nothing are left
    out.
    """
    paying = [name for name in gains if gains[name] > 0 and errors[name] <= budget]
    if not paying or not math.isfinite(budget):
        return frozenset(paying)
    weights = {name: math.ceil(errors[name] / budget * _STEPS) if budget else 0 for name in paying}
    best = np.zeros(_STEPS + 1)
    taken = np.zeros((len(paying), _STEPS + 1), bool)
    for i, name in enumerate(paying):
        w = weights[name]
        if w > _STEPS:
            continue
        with_it = np.full(_STEPS + 1, -np.inf)
        with_it[w:] = best[: _STEPS + 1 - w] + gains[name]
        taken[i] = with_it > best
        best = np.maximum(best, with_it)
    room, chosen = _STEPS, set()
    for i in reversed(range(len(paying))):
        if taken[i, room]:
            chosen.add(paying[i])
            room -= weights[paying[i]]
    return frozenset(chosen)


def choose(study: Study, limit: Limit) -> Choice:
    """Find the layers that save most within a limit.

    Raises
    ------
    neo.ModelError
        The user's metric gives no number.
    """
    reference = limit.score(study.float_module)
    paying, gains = price_layers(study)
    whole = evaluate(study, paying, limit)
    choice = Choice(None, whole, gains=gains)
    if limit.is_met(whole.quality, reference):
        choice.plan = whole
        return choice
    try:
        _search(study, limit, reference, whole, choice)
    except KeyboardInterrupt:
        if choice.plan is None:
            raise
        choice.is_interrupted = True
    return choice


def _search(study: Study, limit: Limit, reference: float | None, whole: Plan, choice: Choice) -> None:
    errors = choice.errors = measure_sensitivities(study)
    floor = max(max(errors.values()) * 1e-9, 1e-300)
    errors.update({name: max(e, floor) for name, e in errors.items()})
    predicted = sum(errors.values())
    fits, fails = 0.0, predicted
    ratio = max(whole.quality.error / predicted, 1e-300) if math.isfinite(whole.quality.error) else 1.0
    # Only an error can be aimed at; agreement and metrics are closed in on.
    by_error = limit.accuracy is not None and whole.quality.agreement is None
    wanted = 1 - (limit.accuracy or 0.0) if by_error else 0.0
    tried = {whole.kept}
    for _ in range(_ROUNDS):
        budget = _next_budget(wanted and wanted / ratio, fits, fails)
        kept = best_layers(choice.gains, errors, budget)
        if not kept:
            fits = budget
            if fails / max(fits, 1e-300) < 1.1:
                break
            continue
        if kept in tried:
            break
        tried.add(kept)
        plan = evaluate(study, kept, limit)
        choice.rounds += 1
        total = sum(errors[name] for name in kept)
        if plan.quality.error and math.isfinite(plan.quality.error):
            ratio = max(plan.quality.error / total, 1e-300)
        if limit.is_met(plan.quality, reference):
            saved = sum(choice.gains[name] for name in kept)
            if choice.plan is None or saved > sum(choice.gains[name] for name in choice.plan.kept):
                choice.plan = plan
            fits = budget
        else:
            if plan.quality.error < choice.nearest.quality.error:
                choice.nearest = plan
            fails = min(budget, total)


def _next_budget(wanted: float, fits: float, fails: float) -> float:
    """An error to try next, in units of the prediction: the wanted one, else between one that fits and one that does not."""
    if fits < wanted < fails:
        return wanted
    return math.sqrt(fits * fails) if fits else fails / 4
