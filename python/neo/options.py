"""What a user asks of :func:`neo.compile`, checked once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from neo import _native
from neo.budget import Budget, parse_budget
from neo.errors import DTypeError, ModelError, UnsupportedError
from neo.executors import Executors, checked_executors
from neo.limits import Limits, checked_threads, whole

__all__ = ["MAX_VARIANTS", "Options", "Size", "hull_of"]

MAX_VARIANTS = 64

Size = int | tuple[int, int]
Shapes = Mapping[str, Size]


@dataclass(frozen=True)
class Options:
    """The arguments of :func:`neo.compile`.

    Attributes
    ----------
    targets : tuple of str
        The strongest instruction set first.
    shapes : tuple of mapping
        The sizes of each variant of a target.
    threads : int
        Of one executor's team, at whose size costs are taken.
    executors : (int, int), "auto" or None
        Their number and the threads of each; None: as many as are clearly best.
    budget : Budget or None
        How long to measure; None: nothing is measured.
    database : path or None
    accuracy : str, float or None
        A number: the least share of the outputs' energy that is theirs by direct methods.
    memory : int or None
        Bytes of the finished module and a call.
    latency : float or None
        Milliseconds of a call.
    routines : mapping or None
        The pins.
    limits : Limits or None
        None: those of a model that is trusted.
    """

    targets: tuple[str, ...]
    shapes: tuple[Shapes, ...]
    threads: int
    executors: Executors | str | None
    budget: Budget | None
    database: str | PathLike[str] | None
    accuracy: str | float | None
    memory: int | None
    latency: float | None
    routines: Mapping[str, str | Sequence[str]] | None
    limits: Limits | None

    @classmethod
    def of(
        cls,
        target: str | Sequence[str],
        threads: int | None,
        executors: int | Executors | str | None,
        tune: bool | int | str,
        database: str | PathLike[str] | None,
        accuracy: str | float | None,
        memory: int | None,
        routines: Mapping[str, str | Sequence[str]] | None,
        shapes: Mapping[str, Size | list[Size]] | None,
        limits: Limits | None,
        latency: float | None = None,
    ) -> Options:
        """Check the arguments.

        Raises
        ------
        neo.ModelError, neo.DTypeError, neo.UnsupportedError
            One of them is malformed; or this machine cannot run a target.
        """
        targets = _checked_targets(target)
        if threads is not None:
            threads = checked_threads(threads, "compile")
        executors = checked_executors(executors, threads, "compile")
        team = _native.default_threads() if threads is None else threads
        if isinstance(executors, tuple):
            team = executors[1]
        accuracy = _checked_accuracy(accuracy)
        if memory is not None:
            count = whole(memory)
            if count is None or count < 0:
                msg = f"[compile] memory must be a number of bytes. Got {memory!r}, expected an int of 0 or more"
                raise ModelError(msg)
            memory = count
        if latency is not None and not (_is_number(latency) and 0 <= latency < math.inf):
            msg = f"[compile] latency must be milliseconds. Got {latency!r}, expected a number of 0 or more"
            raise ModelError(msg)
        budget = parse_budget(tune)
        if database is not None and not isinstance(database, str | PathLike):
            msg = f"[compile] database must be a path. Got {type(database).__name__}, expected a str or a PathLike"
            raise DTypeError(msg)
        if limits is not None and not isinstance(limits, Limits):
            msg = f"[compile] limits must be neo.Limits. Got {type(limits).__name__}"
            raise DTypeError(msg)
        if routines and not isinstance(routines, Mapping):
            msg = (
                "[compile] routines must be a mapping of nodes to routines. "
                f"Got {type(routines).__name__}, expected a dict"
            )
            raise DTypeError(msg)
        asked = (None if accuracy == "default" else accuracy, memory, None if latency is None else float(latency))
        return cls(*(targets, _spread(shapes), team, executors, budget, database), *asked, *(routines, limits))

    @property
    def tunes(self) -> bool:
        """Whether measured times take the place of estimates: new ones, or those of a database."""
        return self.budget is not None or self.database is not None

    @property
    def limits_module(self) -> bool:
        """Whether the finished module has to keep to a limit that is measured on it."""
        return self.memory is not None or self.latency is not None or isinstance(self.accuracy, float)

    @property
    def variants(self) -> int:
        """How many modules are compiled."""
        return len(self.targets) * len(self.shapes)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked_accuracy(accuracy: str | float | None) -> str | float | None:
    if accuracy is None or accuracy in ("default", "strict", "reduced"):
        return accuracy
    if isinstance(accuracy, int | float) and _is_number(accuracy) and 0 <= accuracy <= 1:
        return float(accuracy)
    msg = f"[compile] accuracy must be known. Got {accuracy!r}, expected 'default', 'strict', 'reduced' or a number from 0 to 1"
    raise ModelError(msg)


def _checked_targets(target: str | Sequence[str]) -> tuple[str, ...]:
    targets = [target] if isinstance(target, str) else target
    if not isinstance(targets, list | tuple) or not targets or not all(isinstance(t, str) for t in targets):
        msg = f"[compile] target must be a name or a list of names. Got {target!r}, expected a str"
        raise DTypeError(msg)
    for name in targets:
        _native.check_target(name)
        _check_runs_here(name)
    # Variants for several targets are of instruction sets, which must differ.
    devices = [t["name"] for t in _native.device_targets()]
    for name in targets if len(targets) > 1 else ():
        if name in devices:
            msg = f"[compile] a list of targets must name instruction sets. Got {name!r}, expected cpu or cpu:..."
            raise ModelError(msg)
    names = [_full_name(t) for t in targets]
    for i, name in enumerate(names):
        if name in names[:i]:
            msg = f"[compile] targets must differ. Got {name!r} twice"
            raise ModelError(msg)
    return tuple(sorted(targets, key=_strength, reverse=True))


def _check_runs_here(target: str) -> None:
    known = {t["name"]: t["runs_here"] for t in _native.targets()}
    if not known.get(target, True):
        fitting = ", ".join(["cpu", *(name for name, runs in known.items() if runs)])
        msg = f"[compile] target must run on this machine. Got {target!r}, expected one of {fitting}"
        raise UnsupportedError(msg)


def _strength(target: str) -> int:
    """Targets of this machine, weaker before stronger."""
    names = [t["name"] for t in (*_native.targets(), *_native.device_targets())]
    return names.index(_full_name(target))


def _full_name(target: str) -> str:
    return f"cpu:{_native.host_isa()}" if target == "cpu" else target


def _spread(shapes: Mapping[str, Size | list[Size]] | None) -> tuple[Shapes, ...]:
    """The sizes of each variant: every combination of what the lists hold, the first list turning slowest."""
    if shapes is None:
        return ({},)
    if not isinstance(shapes, Mapping):
        return (shapes,)  # the importer says what is wrong with it
    for name, size in shapes.items():
        if isinstance(size, list) and not size:
            msg = f"[compile] the variants of a size must be one or more. Got none for {name!r}"
            raise ModelError(msg)
    lists = [size if isinstance(size, list) else [size] for size in shapes.values()]
    count = 1
    for sizes in lists:
        count *= len(sizes)
    if count > MAX_VARIANTS:
        msg = f"[compile] shapes must make at most {MAX_VARIANTS} variants. Got {count}"
        raise ModelError(msg)
    return tuple(dict(zip(shapes, sizes, strict=True)) for sizes in itertools.product(*lists))


def hull_of(variants: Sequence[Shapes]) -> dict[str, Size]:
    """The range of each size over all variants."""
    hull: dict[str, Size] = {}
    for name in variants[0]:
        sizes = [v[name] for v in variants]
        bounds = [(size, size) if isinstance(size, int) else size for size in sizes]
        lo, hi = min(b[0] for b in bounds), max(b[1] for b in bounds)
        hull[name] = sizes[0] if all(size == sizes[0] for size in sizes) else (lo, hi)
    return hull
