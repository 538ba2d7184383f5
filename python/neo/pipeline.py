"""The way of a model: import, passes, candidates, selection, lowering. Each arrow is one call."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from neo import _native
from neo.candidates import build_candidates
from neo.errors import ResourceError
from neo.executors import with_executors
from neo.frontend.source import Source
from neo.limits import Limits
from neo.module import Module
from neo.options import Options, Size
from neo.tune.trees import shipped_corrections

__all__ = ["compile_variant", "estimate_variant"]


def compile_variant(source: Source, target: str, shapes: Mapping[str, Size], options: Options) -> Module:
    """Compile a model for one target and one set of sizes."""
    limits = options.limits or Limits()
    tuning = None
    with limits.budget():
        graph, signature = source.read(shapes)
        graph = _native.run_passes(graph)
        candidates = build_candidates(graph, target, options, shipped_corrections())
        selection = candidates.select()
        if not options.tunes:
            native = candidates.lower(selection, remake=lambda: _native.run_passes(source.read_again(shapes)))
    if options.tunes:
        from neo.tune.choose import tune_selection

        with limits.budget(timed=False):
            selection, native, tuning = tune_selection(
                candidates, selection, signature.inputs, target=target, name=graph.name
            )
    elif candidates.problem.places is None:  # the steps of a device wait for each other
        native = with_executors(native, options.executors, options.threads)
    if options.limits is not None:
        native.limit_calls(limits.memory, float(limits.seconds))
    with contextlib.suppress(ResourceError):  # where there is no such device, a call says so
        native.prepare_device()
    return Module(
        native,
        replace(signature, depth=int(graph.reduction_length)),
        candidates.problem.machine,
        selection=selection,
        tuning=tuning,
        provenance=source.provenance(graph.name),
        chose_executors=native.executors != (1, options.threads),
    )


def estimate_variant(source: Source, target: str, shapes: Mapping[str, Size], options: Options) -> float:
    """Microseconds that selection expects a call of a variant to take; nothing is lowered."""
    graph, _ = source.read(shapes)
    candidates = build_candidates(_native.run_passes(graph), target, options, shipped_corrections())
    return candidates.select().total_us
