"""What a module takes and gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neo.errors import ModelError

__all__ = ["Signature", "Tensor", "html_table", "last_sizes", "open_sizes"]


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model.

    Attributes
    ----------
    name : str
        The model's own name.
    dtype : str
        NumPy's name of the element type; for sequences, optionals and maps the whole type, ``seq(float32[*])``.
    shape : tuple of (int or str), or None
        A size or a symbol per axis; None where even the rank is open.
    hints : tuple of int, or None
        The sizes that selection assumes: those of the shape, 1 for a symbol of the first axis, 512 for other symbols,
        each within its range.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    hints: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        dims = "*" if self.shape is None else ", ".join(str(d) for d in self.shape)
        return f"{self.name}: {self.dtype}[{dims}]"


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs, the kind of each input by name, and the longest sum behind one element of a compiled graph."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    kinds: Mapping[str, str]
    depth: int = 0

    def to_json(self) -> str:
        """Write it as a saved module keeps it."""
        inputs = [{**_entry(t), "kind": self.kinds[t.name]} for t in self.inputs]
        outputs = [_entry(t) for t in self.outputs]
        return json.dumps({"inputs": inputs, "outputs": outputs, "reduction_length": self.depth})

    @classmethod
    def from_json(cls, text: str, inputs: list[str], outputs: list[str]) -> Signature:
        """Read what :meth:`to_json` wrote for a plan of these inputs and outputs; anything else is a ModelError."""
        try:
            found = json.loads(text)
            ins = [_tensor(entry) for entry in found["inputs"]]
            outs = [_tensor(entry) for entry in found["outputs"]]
            kinds = {t.name: entry["kind"] for t, entry in zip(ins, found["inputs"], strict=True)}
            depth = found["reduction_length"]
            whole = [t.name for t in ins] == inputs and [t.name for t in outs] == outputs and isinstance(depth, int)
            whole = whole and all(kind in ("tensor", "sequence", "optional", "map") for kind in kinds.values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            msg = f"[load] the signature of a saved module must be whole. Got {error}"
            raise ModelError(msg) from error
        if not whole:
            msg = "[load] the signature of a saved module must be that of its plan. Got another"
            raise ModelError(msg)
        return cls(tuple(ins), tuple(outs), kinds, depth)


def _entry(t: Tensor) -> dict[str, Any]:
    return {"name": t.name, "dtype": t.dtype, "shape": t.shape, "hints": t.hints}


def _tensor(entry: Any) -> Tensor:
    name, dtype, shape, hints = (entry[key] for key in ("name", "dtype", "shape", "hints"))
    sizes = () if shape is None else tuple(shape)
    numbers = () if hints is None else tuple(hints)
    whole = isinstance(name, str) and isinstance(dtype, str) and all(type(d) in (int, str) for d in sizes)
    if not whole or any(type(n) is not int for n in numbers):
        msg = f"{entry!r:.80}"
        raise TypeError(msg)
    return Tensor(name, dtype, None if shape is None else sizes, None if hints is None else numbers)


def last_sizes(spec: Tensor) -> tuple[int | None, int, tuple[int | str, ...]]:
    """The rank, and the sizes behind the first ones that may be any.

    An array of just these needs no look at its parts. None has the rank None, which stands for an input that has a size
    of a name behind one of a number.
    """
    if spec.shape is None:
        return None, 0, ()
    first = next((i for i, d in enumerate(spec.shape) if isinstance(d, int)), len(spec.shape))
    sizes = spec.shape[first:]
    return (len(spec.shape) if all(isinstance(d, int) for d in sizes) else None), first, sizes


def open_sizes(spec: Tensor, sizes: Sequence[int]) -> dict[str, int]:
    """The sizes of the symbols in an input's shape."""
    return {d: n for d, n in zip(spec.shape or (), sizes, strict=False) if isinstance(d, str)}


def html_table(signature: Signature, caption: str) -> str:
    """Inputs and outputs as a table of HTML, for notebooks."""
    from html import escape

    rows = "".join(
        f"<tr><td>{role}</td><td>{escape(t.name)}</td><td>{escape(t.dtype)}</td><td>{escape(_dims_text(t))}</td></tr>"
        for role, tensors in (("input", signature.inputs), ("output", signature.outputs))
        for t in tensors
    )
    head = "<tr><th></th><th>name</th><th>dtype</th><th>shape</th></tr>"
    return f"<table><caption>{escape(caption)}</caption>{head}{rows}</table>"


def _dims_text(spec: Tensor) -> str:
    return "" if spec.shape is None else " x ".join(map(str, spec.shape)) or "scalar"
