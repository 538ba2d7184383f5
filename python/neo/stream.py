"""Recurrent models called piece by piece: the state of one call is an input of the next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from neo.errors import DTypeError, ModelError
from neo.signature import Tensor
from neo.values import Input, Value, zeros_of

__all__ = ["Stream"]

# Words of names that say which end of a state it is; what is left of both names must be equal.
_ENDS = re.compile(
    r"(?:^|(?<=[_.:/]))(?:past_key_values|in|input|inputs|out|output|outputs|past|present|prev|previous|next|new|old|init|initial|"
    r"cache|caches)(?=$|[_.:/\d])"
)
_TAIL = re.compile(r"(?<=[a-z_])(?:N|n|in|out|_0|0|1)$")

# Words that make a name a state's, though nothing else is left of it.
_STATE = re.compile(r"past|present|prev|cache|state")


class Callee(Protocol):
    """What a stream calls: a module."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Name, dtype and shape of each input."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Name, dtype and shape of each output."""

    def run(self, inputs: Mapping[str, Input]) -> dict[str, Value]:
        """Run on arrays by name."""


class Stream:
    """Calls of a module that keep its state; made by :meth:`neo.Module.stream`. Not for several threads at once.

    Attributes
    ----------
    state : dict of str to array
        The states that the next call takes, by the names of inputs.
    """

    def __init__(self, module: Callee, states: Mapping[str, str] | None, initial: Mapping[str, Input] | None) -> None:
        if states is not None and not isinstance(states, Mapping):
            msg = (
                f"[stream] states must be a mapping of inputs to outputs. Got {type(states).__name__}, expected a dict"
            )
            raise DTypeError(msg)
        self._module = module
        self._states = dict(states) if states is not None else _find_states(module)
        inputs = {t.name: t for t in module.inputs}
        outputs = {t.name: t for t in module.outputs}
        for taken, given in self._states.items():
            if taken not in inputs or given not in outputs:
                msg = (
                    f"[stream] states must lead from inputs to outputs. Got {taken!r}: {given!r}, "
                    f"expected names of {_names(module.inputs)} and of {_names(module.outputs)}"
                )
                raise ModelError(msg)
        initial = initial or {}
        for name in initial:
            if name not in self._states:
                expected = ", ".join(map(repr, self._states))
                msg = f"[stream] an initial value must be a state's. Got {name!r}, expected {expected}"
                raise ModelError(msg)
        self._initial = {name: initial[name] if name in initial else zeros_of(inputs[name]) for name in self._states}
        self._rest = [t.name for t in module.outputs if t.name not in self._states.values()]
        self._open = [t.name for t in module.inputs if t.name not in self._states]
        self.state: dict[str, Value] = dict(self._initial)

    @property
    def states(self) -> dict[str, str]:
        """Inputs to the outputs that they take from the call before."""
        return dict(self._states)

    def __call__(self, *args: Input, **kwargs: Input) -> Value:
        """Run on the inputs that are no states, by position or by name, as a module is called.

        Returns
        -------
        array, or tuple of arrays
            The outputs that are no states.
        """
        if len(args) == 1 and not kwargs and isinstance(args[0], Mapping):
            given = dict(args[0])
        elif len(args) > len(self._open):
            msg = f"[stream] every array must have an input. Got {len(args)}, expected at most {len(self._open)}"
            raise ModelError(msg)
        else:
            given = dict(zip(self._open, args, strict=False)) | kwargs
        results = self.run(given)
        values = [results[name] for name in self._rest]
        return values[0] if len(values) == 1 else tuple(values)

    def run(self, inputs: Mapping[str, Input]) -> dict[str, Value]:
        """Run on arrays by name; a state among them takes the place of the kept one.

        Returns
        -------
        dict of str to array
            The outputs that are no states. The state is as before where the call raises.
        """
        results = self._module.run({**self.state, **inputs})
        self.state = {taken: results[given] for taken, given in self._states.items()}
        return {name: results[name] for name in self._rest}

    def reset(self) -> None:
        """Start again from the initial state."""
        self.state = dict(self._initial)

    def __repr__(self) -> str:
        states = ", ".join(f"{given} -> {taken}" for taken, given in self._states.items())
        return f"neo.stream.Stream({states})"


def _names(tensors: tuple[Tensor, ...]) -> str:
    return ", ".join(repr(t.name) for t in tensors)


def _stem(name: str) -> str:
    """A name without the words that say which end of a state it is; empty where it says no more than that."""
    lowered = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name)
    parts = re.sub(r"[_.:/]+", "_", _ENDS.sub("", lowered)).strip("_")
    stem = _TAIL.sub("", parts).strip("_").lower()
    return stem or ("state" if _STATE.search(name.lower()) else "")


def _fits(taken: Tensor, given: Tensor) -> bool:
    """Whether an output may be the next call's input: one dtype, one rank, no two sizes that differ."""
    if taken.dtype != given.dtype or taken.name == given.name:
        return False
    if taken.shape is None or given.shape is None:
        return True
    return len(taken.shape) == len(given.shape) and all(
        a == b or not isinstance(a, int) or not isinstance(b, int)
        for a, b in zip(taken.shape, given.shape, strict=True)
    )


def _find_states(module: Callee) -> dict[str, str]:
    """The states that the names tell: an input and an output of one stem, of which each fits no other."""
    pairs: dict[str, str] = {}
    for taken in module.inputs:
        stem = _stem(taken.name)
        fitting = [t.name for t in module.outputs if stem and _fits(taken, t) and _stem(t.name) == stem]
        if len(fitting) == 1 and fitting[0] not in pairs.values():
            pairs[taken.name] = fitting[0]
    if not pairs:
        msg = (
            f"[stream] the names of inputs and outputs must tell the states. Got {_names(module.inputs)} and "
            f"{_names(module.outputs)}\nHint: module.stream({{input: output}}) names them."
        )
        raise ModelError(msg)
    return pairs
