"""The way of a model: import, passes, candidates, selection, lowering. Each arrow is one call."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from neo import _native
from neo.candidates import Candidates, Selection, build_candidates
from neo.errors import ResourceError
from neo.executors import with_executors
from neo.frontend.source import Source
from neo.limits import Limits
from neo.module import Module
from neo.options import Options, Size
from neo.signature import Signature
from neo.tune.trees import shipped_corrections

if TYPE_CHECKING:
    from neo.tune.measure import Tuning

__all__ = ["Variant", "compile_variant", "estimate_variant"]


@dataclass(frozen=True)
class Variant:
    """A model for one target and one set of sizes, before anything is chosen.

    Attributes
    ----------
    source : Source
    target : str
    shapes : mapping
    signature : Signature
    candidates : Candidates
    name : str
        The graph's.
    """

    source: Source
    target: str
    shapes: Mapping[str, Size]
    signature: Signature
    candidates: Candidates
    name: str

    @classmethod
    def read(cls, source: Source, target: str, shapes: Mapping[str, Size], options: Options) -> Variant:
        """Import, passes and candidates."""
        graph, signature = source.read(shapes)
        graph = _native.run_passes(graph, target=target)
        candidates = build_candidates(graph, target, options, shipped_corrections())
        return cls(
            source, target, shapes, replace(signature, depth=int(graph.reduction_length)), candidates, graph.name
        )

    def lower(self, selection: Selection) -> _native.Module:
        """Lower a selection, after which the graph's constants are let go."""
        return self.candidates.lower(
            selection, remake=lambda: _native.run_passes(self.source.read_again(self.shapes), target=self.target)
        )

    def finish(self, native: _native.Module) -> _native.Module:
        """The module on the executors that the options ask for."""
        if self.candidates.problem.places is not None:  # the steps of a device wait for each other
            return native
        options = self.candidates.options
        sizes = [size for tensor in self.signature.inputs for size in tensor.shape or ()]
        has_open_sizes = any(not isinstance(size, int) for size in sizes)
        return with_executors(native, options.executors, options.threads, has_open_sizes=has_open_sizes)

    def module(self, selection: Selection, native: _native.Module, tuning: Tuning | None = None) -> Module:
        """What the user gets."""
        return Module(
            native,
            self.signature,
            self.candidates.problem.machine,
            selection=selection,
            tuning=tuning,
            provenance=self.source.provenance(self.name),
            chose_executors=native.executors != (1, self.candidates.options.threads),
        )


def compile_variant(source: Source, target: str, shapes: Mapping[str, Size], options: Options) -> Module:
    """Compile a model for one target and one set of sizes."""
    limits = options.limits or Limits()
    tuning = None
    with limits.budget():
        variant = Variant.read(source, target, shapes, options)
        candidates = variant.candidates
        selection = candidates.select()
        if not options.tunes:
            native = variant.finish(variant.lower(selection))
    if options.tunes:
        from neo.tune.choose import tune_selection

        with limits.budget(timed=False):
            selection, native, tuning = tune_selection(
                candidates, selection, variant.signature.inputs, target=target, name=variant.name
            )
    if options.limits_module:
        from neo.requirements import keep_limits

        with limits.budget(timed=False):
            kept = keep_limits(candidates, selection, native, variant.signature.inputs, variant.finish)
            if kept != selection:
                selection, native = kept, variant.finish(variant.lower(kept))
    if options.limits is not None:
        native.limit_calls(limits.memory, float(limits.seconds))
    with contextlib.suppress(ResourceError):  # where there is no such device, a call says so
        native.prepare_device()
    return variant.module(selection, native, tuning)


def estimate_variant(source: Source, target: str, shapes: Mapping[str, Size], options: Options) -> float:
    """Microseconds that selection expects a call of a variant to take; nothing is lowered."""
    return Variant.read(source, target, shapes, options).candidates.select().total_us
