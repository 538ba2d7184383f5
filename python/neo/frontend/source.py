"""A model on its way into graphs, and what it takes and gives."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from neo import _native
from neo.limits import Limits
from neo.provenance import Provenance
from neo.signature import Signature, Tensor

if TYPE_CHECKING:
    import onnx

    from neo.frontend.onnx.load import Loaded

__all__ = ["Imported", "Model", "Source"]

Model: TypeAlias = "str | PathLike[str] | bytes | onnx.ModelProto"


class Imported(NamedTuple):
    """A graph as the model says it, and its inputs and outputs."""

    graph: _native.Graph
    signature: Signature


class Source:
    """A model that is loaded once for all the graphs that are made of it.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    limits : Limits or None
        None: those of a model that is trusted.
    graphs : int
        How many graphs will be made; with the last one the loaded model is let go.
    """

    def __init__(self, model: Model, limits: Limits | None, graphs: int = 1) -> None:
        self.model = model
        self.limits = limits
        self._left = graphs
        self._loaded: Loaded | None = None
        self._provenance: Provenance | None = None

    def read(self, shapes: Mapping[str, int | tuple[int, int]]) -> Imported:
        """Make a graph with these sizes of the model's symbols.

        Raises
        ------
        neo.UnsupportedError
            Lists every node neo cannot run.
        neo.ModelError
            The model is malformed.
        """
        from neo.frontend.onnx import load_model, read_loaded

        loaded = self._loaded or load_model(self.model, limits=self.limits, for_import=True)
        self._left -= 1
        self._loaded = loaded if self._left > 0 else None
        graph, declared = read_loaded(loaded, shapes=shapes, limits=self.limits)
        return Imported(graph, _signature(graph, declared))

    def read_again(self, shapes: Mapping[str, int | tuple[int, int]]) -> _native.Graph:
        """Load the model once more, for a graph that has given up its constants."""
        return Source(self.model, self.limits).read(shapes).graph

    def provenance(self, name: str) -> Provenance:
        """Where modules come from that are compiled from it; `name` is the graph's."""
        self._provenance = self._provenance or Provenance.of(self.model, name)
        return self._provenance


def _signature(graph: _native.Graph, declared: Mapping[str, tuple[int | str | None, ...]]) -> Signature:
    inputs = [_tensor(v) for v in graph.inputs]
    outputs = _with_declared([_tensor(v) for v in graph.outputs], declared, inputs)
    return Signature(tuple(inputs), tuple(outputs), {v.name: v.kind for v in graph.inputs})


def _tensor(value: _native.Value) -> Tensor:
    if value.kind != "tensor":
        return Tensor(value.name, value.type, None)
    return Tensor(value.name, value.dtype, value.shape, value.hints)


def _with_declared(
    outputs: Sequence[Tensor], declared: Mapping[str, tuple[int | str | None, ...]], inputs: Sequence[Tensor]
) -> list[Tensor]:
    """Add what the model declares and neo does not find out: an output's rank, or a size that is a number."""
    used = {d for t in (*inputs, *outputs) for d in t.shape or () if isinstance(d, str)}
    known = {d for t in inputs for d in t.shape or () if isinstance(d, str)}
    told = []
    for tensor in outputs:
        promised = declared.get(tensor.name)
        if promised is None or (tensor.shape is not None and len(tensor.shape) != len(promised)):
            told.append(tensor)
            continue
        found = tensor.shape or (None,) * len(promised)
        shape = []
        for mine, theirs in zip(found, promised, strict=True):
            # A size that the inputs' sizes tell is proven, whatever the model says.
            is_open = isinstance(mine, str) and not known.issuperset(_SYMBOL.findall(mine))
            size = theirs if mine is None or (isinstance(theirs, int) and is_open) else mine
            if size is None:
                size = next(name for name in _names_like(tensor.name) if name not in used)
                used.add(size)
            shape.append(size)
        told.append(Tensor(tensor.name, tensor.dtype, tuple(shape)))
    return told


_SYMBOL = re.compile(r"[A-Za-z_][\w.]*(?!\w*\()")


def _names_like(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{i}" for i in itertools.count(1))
