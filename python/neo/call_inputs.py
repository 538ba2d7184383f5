"""The inputs of a call: their names, dtypes and shapes checked, and put in the model's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neo.errors import DTypeError, ModelError
from neo.signature import Signature, last_sizes
from neo.values import Input, Value, check_tensor, numpy_dtype

__all__ = ["CallInputs"]


class CallInputs:
    """Checks what a call is given against a signature.

    Attributes
    ----------
    exact : list of tuple
        Index and name of each input, and the dtype, rank, first known axis and sizes from there of an array that needs
        no further check.
    """

    def __init__(self, signature: Signature) -> None:
        self._inputs = signature.inputs
        self._by_name = {t.name: i for i, t in enumerate(self._inputs)}
        self._kinds = [signature.kinds[t.name] for t in self._inputs]
        self._dtypes = [
            numpy_dtype(t) if kind == "tensor" else None for t, kind in zip(self._inputs, self._kinds, strict=True)
        ]
        self.exact = [
            (i, t.name, dtype, *last_sizes(t))
            for i, (t, dtype) in enumerate(zip(self._inputs, self._dtypes, strict=True))
        ]

    def named(self, args: Sequence[Input], kwargs: Mapping[str, Input]) -> Mapping[str, Input]:
        """The inputs by name."""
        if len(args) == 1 and not kwargs and isinstance(args[0], Mapping) and self._kinds[:1] != ["map"]:
            return args[0]
        if len(args) > len(self._inputs):
            msg = f"[run] every array must have an input. Got {len(args)} arrays, expected at most {len(self._inputs)}"
            raise ModelError(msg)
        named = {self._inputs[i].name: x for i, x in enumerate(args)}
        for name, x in kwargs.items():
            if name in named:
                msg = f"[run] an input must be given once. Got {name!r} by position and by name"
                raise ModelError(msg)
            named[name] = x
        return named

    def arrange(self, inputs: Mapping[str, Input]) -> list[Value]:
        """Check the inputs and put them in the order of the signature.

        Raises
        ------
        neo.DTypeError, neo.ModelError, neo.ShapeError
            They are no mapping, of other names, or not what the model takes.
        """
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            msg = f"[run] inputs must be a mapping of names to arrays. Got {type(inputs).__name__}, expected a dict"
            if self._inputs:
                msg += (
                    f"\nHint: {{{self._inputs[0].name!r}: ...}}; module(...) takes arrays in the order of the inputs."
                )
            raise DTypeError(msg)
        if inputs.keys() != self._by_name.keys():
            self._complain_about_names(inputs)
        return [
            x
            if type(x := inputs.get(name)) is np.ndarray
            and x.dtype is dtype
            and x.ndim == rank
            and x.shape[first:] == sizes
            else self.check(i, x)
            for i, name, dtype, rank, first, sizes in self.exact
        ]

    def _complain_about_names(self, inputs: Mapping[str, Input]) -> None:
        expected = ", ".join(repr(t.name) for t in self._inputs)
        unknown = [name for name in inputs if name not in self._by_name]
        if unknown:
            msg = f"[run] input names must be the model's. Got {', '.join(map(repr, unknown))}, expected {expected}"
            raise ModelError(msg)
        missing = [
            t.name for t in self._inputs if t.name not in inputs and self._kinds[self._by_name[t.name]] != "optional"
        ]
        if missing:
            msg = f"[run] every input must be given. Got none for {', '.join(map(repr, missing))}, expected {expected}"
            raise ModelError(msg)

    def check(self, index: int, x: Input) -> Value:
        """One input as the model takes it."""
        if self._kinds[index] != "tensor":
            return x
        return check_tensor(x, self._inputs[index], self._dtypes[index])
