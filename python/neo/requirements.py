"""Limits that the finished module keeps, and the search for a selection that does.

Times and constants are sums over a selection, which a solver can limit. A module's memory is not: arenas are shared,
scratch memory is that of the step that wants most, a constant that several steps read lies there once. And how far
the error of one layer reaches only a run can say. So a selection is solved under a limit of sums, lowered and measured;
what the module has beyond the sum corrects the limit, and the problem is solved again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neo import _native
from neo.candidates import Candidates, Selection
from neo.difference import energy_ratio
from neo.errors import UnsupportedError
from neo.memory import module_bytes
from neo.select import Flat, InfeasibleError, Problem, Resource, solve
from neo.signature import Tensor
from neo.tune.compare import synthetic_inputs, time_module

__all__ = ["Trial", "Trials", "keep_limits"]

# How often a limit of sums is corrected, and how often one of errors is.
_ROUNDS = 6
# Shares of the scratch memory of the fastest selection, to which steps are held in turn.
_SCRATCH_SHARES = (1.0, 0.25, 0.0)
# Scratch memory of a smaller share of the limit is not worth looking for less.
_LARGE_SCRATCH = 0.05
# A selection that is expected to take so little more than the fastest one ends the search.
_NEAR = 1.02
# A share of the limit on the error, since other inputs have other errors; and as many sets of inputs that it is measured on.
_ERROR_SHARE = 0.8
_CALLS = 3
# With more layers that err, all count alike.
_MAX_SENSITIVE = 48
# A time that other programs disturbed is measured again.
_TIMINGS = 4

Finish = Callable[[_native.Module], _native.Module]


@dataclass(frozen=True)
class Trial:
    """A selection that was lowered.

    Attributes
    ----------
    selection : Selection
    bytes : int
        What the finished module takes.
    sums : dict of str to float
        What the selection adds up to of a resource.
    """

    selection: Selection
    bytes: int
    sums: Mapping[str, float]


@dataclass
class Trials:
    """Selections of one problem under limits. Only the module of the latest is kept.

    Attributes
    ----------
    candidates : Candidates
    inputs : sequence of Tensor
        The model's.
    finish : callable
        Gives a lowered module its executors.
    """

    candidates: Candidates
    inputs: Sequence[Tensor]
    finish: Finish
    _priced: Problem = field(init=False)
    _made: dict[tuple[int, ...], Trial] = field(init=False, default_factory=dict)
    _latest: tuple[tuple[int, ...], _native.Module] | None = field(init=False, default=None)
    _answers: list[list[object]] | None = field(init=False, default=None)
    _calls: list[list[np.ndarray]] | None = field(init=False, default=None)
    _sensitivities: dict[int, float] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._priced = self.candidates.arrays()

    def resource(self, name: str) -> list[npt.NDArray[np.float64]]:
        """What each choice of each variable takes."""
        return [np.asarray(v, dtype=np.float64) for v in self.candidates.problem.resource(name)]

    def add(self, selection: Selection, native: _native.Module) -> Trial:
        """Take a module that is finished."""
        names = ("constant_bytes", "error")
        sums = {name: _total(self.resource(name), selection.choice) for name in names}
        self._latest = selection.choice, native
        return self._made.setdefault(selection.choice, Trial(selection, module_bytes(native), sums))

    def module_of(self, trial: Trial) -> _native.Module:
        """The module of a trial, lowered again where it is not the latest one."""
        choice = trial.selection.choice
        if self._latest is None or self._latest[0] != choice:
            self._latest = None  # two modules at a time would take twice the memory
            self._latest = choice, self.finish(self.candidates.lower(trial.selection))
        return self._latest[1]

    def solve(
        self,
        *,
        constant_bytes: float = math.inf,
        scratch_bytes: float = math.inf,
        error: float = math.inf,
        erring: Sequence[int] | None = None,
    ) -> Trial:
        """The fastest selection under limits, as a module.

        Parameters
        ----------
        constant_bytes : float
            Of all steps together; a constant counts as often as it is read.
        scratch_bytes : float
            Of each step.
        error : float
            The sum of the layers' shares in the error of the outputs, that of the fastest selection being about 1.
        erring : sequence of int, optional
            The variables that alone may err.

        Raises
        ------
        neo.select.InfeasibleError
            There is none.
        """
        resources = list(self._priced.resources)
        if math.isfinite(constant_bytes):
            resources.append(Resource("constant_bytes", constant_bytes, self.resource("constant_bytes")))
        if error == 0:
            erring = ()
        elif math.isfinite(error):
            resources.append(Resource("error of the outputs", error, self.errors()))
        forbidden = [np.zeros(n, dtype=bool) for n in self._priced.sizes]
        if math.isfinite(scratch_bytes):
            forbidden = [w > scratch_bytes for w in self.resource("workspace_bytes")]
        if erring is not None:
            own = self.resource("error")
            forbidden = [
                f | ((e == 0) if v in erring else (e > 0)) for v, (f, e) in enumerate(zip(forbidden, own, strict=True))
            ]
        flat = self._priced.flat
        mask = np.concatenate(forbidden)
        flat = Flat(flat.sizes, np.where(mask, np.inf, flat.costs), flat.pairs, flat.matrices)
        solution = solve(Problem.from_flat(flat, resources, self._priced.places))
        choice = tuple(solution.choice)
        if choice not in self._made:
            self._latest = None
            selection = self.candidates.selection(choice, float(solution.total), float(solution.lower_bound))
            self.add(selection, self.finish(self.candidates.lower(selection)))
        return self._made[choice]

    def least_constants(self, scratch_bytes: float = math.inf, error: float = math.inf) -> float:
        """The smallest limit on the bytes of constants that some selection keeps to.

        Raises
        ------
        neo.select.InfeasibleError
            The other limits allow none.
        """
        try:
            self.solve(constant_bytes=-1.0, scratch_bytes=scratch_bytes, error=error)
        except InfeasibleError as reached:
            if reached.smallest is None or reached.resource != "constant_bytes":
                raise
            return reached.smallest
        return 0.0

    def error_of(self, trial: Trial) -> float:
        """Energy of the outputs' distance from those of direct methods, over that of the outputs: the worst output's.

        Raises
        ------
        neo.UnsupportedError
            Inputs cannot be synthetic.
        """
        if self._answers is None:
            self._calls = [synthetic_inputs(self.inputs, seed) for seed in range(_CALLS)]
            direct = self.module_of(self.solve(erring=()))
            self._answers = [list(direct.call(call)) for call in self._calls]
        assert self._calls is not None
        native = self.module_of(trial)
        errors = [
            [energy_ratio(y, z) for y, z in zip(native.call(call), answers, strict=True)]
            for call, answers in zip(self._calls, self._answers, strict=True)
        ]
        return max(map(max, errors)) if errors[0] else 0.0

    def errors(self) -> list[npt.NDArray[np.float64]]:
        """What each choice adds to the error of the outputs, as a share of what the fastest selection's layers add."""
        if self._sensitivities is None:
            self._sensitivities = self._measured_sensitivities()
        own = self.resource("error")
        rest = max(self._sensitivities.values(), default=1.0)
        shares = [np.square(e) * self._sensitivities.get(v, rest) for v, e in enumerate(own)]
        whole = _total(shares, self.solve().selection.choice)
        return [e / whole for e in shares] if whole else shares

    def _measured_sensitivities(self) -> dict[int, float]:
        """By variable, the error of the outputs where its layer errs alone, in units of the layer's own error's square."""
        own = self.resource("error")
        choice = self.solve().selection.choice
        erring = [v for v, e in enumerate(own) if e[choice[v]] > 0]
        if len(erring) > _MAX_SENSITIVE:
            return {}
        found = {}
        for v in erring:
            try:
                alone = self.solve(erring=[v])
            except InfeasibleError:
                continue
            found[v] = self.error_of(alone) / float(own[v][alone.selection.choice[v]]) ** 2
        return found


def keep_limits(
    candidates: Candidates, selection: Selection, native: _native.Module, inputs: Sequence[Tensor], finish: Finish
) -> Selection:
    """The fastest selection found whose module keeps to what the user's options limit, measured on the module itself.

    Parameters
    ----------
    candidates : Candidates
        With the costs that selection is by.
    selection, native
        The best selection without these limits, and its module.
    inputs : sequence of Tensor
        The model's.
    finish : callable
        Gives a lowered module its executors.

    Raises
    ------
    neo.select.InfeasibleError
        No module that was tried keeps to a limit; the message names the nearest.
    neo.UnsupportedError
        A limit must be measured, and inputs cannot be synthetic.
    """
    options = candidates.options
    memory = math.inf if options.memory is None else float(options.memory)
    error = 1 - options.accuracy if isinstance(options.accuracy, float) else math.inf
    trials = Trials(candidates, inputs, finish)
    first = trials.add(selection, native)
    best = _within_error(trials, first, memory, error)
    if options.latency is not None:
        _check_latency(trials.module_of(best), inputs, options.latency)
    return best.selection


def _within_error(trials: Trials, first: Trial, memory: float, limit: float) -> Trial:
    """The fastest trial found whose outputs are near enough, and whose bytes are few enough."""
    found = _within_memory(trials, first, memory, math.inf)
    if not math.isfinite(limit):
        return found
    allowed = limit * _ERROR_SHARE
    budget = math.inf
    for _ in range(_ROUNDS):
        measured = trials.error_of(found)
        if measured <= allowed:
            return found
        predicted = _total(trials.errors(), found.selection.choice)
        budget = min(allowed * predicted / measured if math.isfinite(measured) else 0.0, budget / 2)
        found = _within_memory(trials, trials.solve(error=budget), memory, budget)
    found = _within_memory(trials, trials.solve(error=0.0), memory, 0.0)
    measured = trials.error_of(found)
    if measured > allowed:
        nearest = 1 - measured / _ERROR_SHARE
        raise InfeasibleError(
            f"[compile] the limit on accuracy must be reachable. Got {1 - limit!r}, the nearest module has {nearest!r}\n"
            "Hint: lower the limit.",
            resource="accuracy",
            limit=1 - limit,
            smallest=nearest,
        )
    return found


def _within_memory(trials: Trials, first: Trial, memory: float, error: float) -> Trial:
    """The fastest trial found whose bytes are few enough."""
    if first.bytes <= memory:
        return first
    fitting: list[Trial] = []
    smallest = [first]
    workspace = trials.resource("workspace_bytes")
    scratch = max((w[at] for w, at in zip(workspace, first.selection.choice, strict=True)), default=0.0)
    for share in _SCRATCH_SHARES if scratch else _SCRATCH_SHARES[:1]:
        cap = math.inf if share == 1.0 else share * scratch
        try:
            found = _smaller(trials, memory, cap, error)
        except InfeasibleError:
            continue
        (fitting if found.bytes <= memory else smallest).append(found)
        near = fitting and fitting[-1].selection.total_us <= _NEAR * first.selection.total_us
        if near or (fitting and scratch < _LARGE_SCRATCH * memory):
            break
    if fitting:
        return min(fitting, key=lambda t: t.selection.total_us)
    nearest = min(t.bytes for t in smallest)
    raise InfeasibleError(
        f"[compile] the limit on memory must be reachable. Got {int(memory)}, the smallest module found takes {nearest}\n"
        f"Hint: raise the limit to {nearest}.",
        resource="memory",
        limit=memory,
        smallest=float(nearest),
    )


def _smaller(trials: Trials, memory: float, cap: float, error: float) -> Trial:
    """A trial of fewer constants, the fastest that fits; else the one of the fewest."""
    found = trials.solve(scratch_bytes=cap, error=error)
    for _ in range(_ROUNDS):
        if found.bytes <= memory:
            return found
        beyond = found.bytes - found.sums["constant_bytes"]
        try:
            found = trials.solve(constant_bytes=memory - beyond, scratch_bytes=cap, error=error)
        except InfeasibleError:
            break
    if found.bytes <= memory:
        return found
    return trials.solve(constant_bytes=trials.least_constants(cap, error), scratch_bytes=cap, error=error)


def _check_latency(native: _native.Module, inputs: Sequence[Tensor], latency: float) -> None:
    """Refuse a module that takes more than so many milliseconds."""
    least = math.inf
    for _ in range(_TIMINGS):
        us = time_module(native, inputs)
        if not us:
            msg = (
                "[compile] latency must be of a model whose inputs can be synthetic. Got one of strings or unknown rank"
            )
            raise UnsupportedError(msg)
        least = min(least, us / 1e3)
        if least <= latency:
            return
    raise InfeasibleError(
        f"[compile] the limit on latency must be reachable. Got {latency:g} ms, the fastest module found takes "
        f"{least:.4g} ms\nHint: tune=True searches for a faster one.",
        resource="latency",
        limit=latency,
        smallest=least,
    )


def _total(vectors: Sequence[npt.NDArray[np.float64]], choice: Sequence[int]) -> float:
    return math.fsum(float(v[at]) for v, at in zip(vectors, choice, strict=True))
