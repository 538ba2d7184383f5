"""The time that a layer's codes save, by estimate, and the time of whole modules, measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neo.module import Module
from neo.quantize.float_model import FloatModel
from neo.quantize.place import Layer
from neo.quantize.study import Study
from neo.report.progress import LateProgress

__all__ = ["benchmark", "layer_gains", "price_layers"]

_ROUNDS, _SECONDS = 25, 3.0


def layer_gains(model: FloatModel, layers: Sequence[Layer], real: Module, codes: Module) -> dict[str, float]:
    """Microseconds that each layer takes less in the second module, by estimate: the same each time.

    Layers that one routine computes together, in either module, share what they save by their numbers of products.
    """
    work = {layer.name: _products(model, layer) for layer in layers}
    before, after = _times(real, work), _times(codes, work)
    together = _Together(work)
    for group in (*before, *after):
        together.join(group)
    gains = {}
    for names in together.sets():
        saved = sum(t for g, t in before.items() if g[0] in names) - sum(t for g, t in after.items() if g[0] in names)
        total = sum(work[name] for name in names)
        gains.update({name: saved * (work[name] / total if total else 1 / len(names)) for name in names})
    return gains


class _Together:
    """Sets of layers that grow together."""

    def __init__(self, names: Iterable[str]) -> None:
        self._of = {name: {name} for name in names}

    def join(self, group: Sequence[str]) -> None:
        """Make one set of those that these layers are in."""
        whole = set().union(*(self._of[name] for name in group))
        for name in whole:
            self._of[name] = whole

    def sets(self) -> list[set[str]]:
        """Each set once."""
        return list({id(names): names for names in self._of.values()}.values())


def _products(model: FloatModel, layer: Layer) -> float:
    """Products of a layer, up to sizes that are not known: how the time of a group is shared out."""
    count = 1.0
    for size in model.constants[layer.w].dims:
        count *= size
    pixels = (model.shape(layer.y) or ())[2:] if layer.op == "Conv" else ()
    for size in pixels:
        count *= size if isinstance(size, int) else 1
    return count


def _times(module: Module, work: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    """Estimated microseconds of each step that computes layers, by these."""
    times: dict[tuple[str, ...], float] = {}
    selection = module._selection
    assert selection is not None
    # Behind the nodes the choices have variables of conversions.
    nodes = selection.problem.nodes
    chosen = [node["choices"][at] for node, at in zip(nodes, selection.choice, strict=False)]
    for node, choice in zip(nodes, chosen, strict=True):
        members = tuple(name for name in choice.get("nodes", ()) if name in work)
        if members:
            times[members] = times.get(members, 0.0) + _estimate_us(choice, chosen) * node["trips"]
    return times


def _estimate_us(choice: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]) -> float:
    """Of a candidate, or of what was chosen for the nodes of an inner graph."""
    if "expansion" not in choice:
        return float(choice["estimate_us"])
    return sum(float(chosen[n["variable"]].get("estimate_us", 0.0)) for n in choice["graph"]["nodes"])


def price_layers(study: Study) -> tuple[frozenset[str], dict[str, float]]:
    """The layers whose codes pay, and what each layer saves.

    Runs of half, a quarter and an eighth of the layers are tried before each alone: a float layer between two on codes
    pays for conversions. A run that costs more than it saves stays out from then on.

    Returns
    -------
    frozenset of str, dict of str to float
        Names, and by layer the microseconds that selection expects the module to take more without it: conversions are
        in it, and what a routine for several layers loses.
    """
    order = [layer.name for layer in study.layers]
    runs = [order[at : at + length] for length in _run_lengths(len(order)) for at in range(0, len(order), length)]
    kept = frozenset(order)
    least = study.build.estimate_us(study.written(kept))
    found: dict[str, float] = {}
    with LateProgress("pricing layers", len(runs)) as progress:
        for run in runs:
            progress.advance(1)
            left = kept.intersection(run)
            if not left or (left == kept and len(run) > 1):
                continue
            without = study.build.estimate_us(study.written(kept - left))
            found.update(dict.fromkeys(left, (without - least) / len(left)))
            if without < least:
                kept, least = kept - left, without
    return kept, found


def _run_lengths(count: int) -> list[int]:
    lengths = [length for parts in (2, 4, 8) if (length := -(-count // parts)) > 1]
    return [*dict.fromkeys(lengths), 1]


def benchmark(modules: Sequence[Module], call: Mapping[str, object]) -> list[float]:
    """Milliseconds of one call of each module, measured in turns."""
    from neo import _native

    arrays = [call[spec.name] for spec in modules[0].inputs]
    found = _native.benchmark_modules([m._native for m in modules], arrays, _ROUNDS, _SECONDS)
    return [us / 1e3 for us, _ in found]
