"""The way of a model: import, passes, candidates, selection, lowering. Each arrow is one function."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

from neo import _native
from neo.errors import DTypeError, Error, ModelError, OutOfMemoryError, ResourceError, UnsupportedError
from neo.limits import Limits
from neo.module import Module, Tensor
from neo.provenance import Provenance
from neo.report.fallbacks import fallback_line
from neo.select import Flat, Problem, Resource, solve
from neo.signature import Signature
from neo.tune.budget import parse_budget
from neo.tune.trees import shipped_corrections
from neo.variants import Size, VariantModule, hull_of, spread

if TYPE_CHECKING:
    import onnx

    from neo.tune import Budget, Chosen, Tuning

    Model = str | PathLike[str] | bytes | onnx.ModelProto

__all__ = ["compile"]


def compile(  # noqa: A001  (the name users expect)
    model: Model,
    *,
    target: str | Sequence[str] = "cpu",
    threads: int | None = None,
    tune: bool | int | str = False,
    database: str | PathLike[str] | None = None,
    accuracy: str | None = None,
    memory: int | None = None,
    routines: Mapping[str, str | Sequence[str]] | None = None,
    shapes: Mapping[str, Size | list[Size]] | None = None,
    limits: Limits | None = None,
) -> Module:
    """Compile a model for a machine.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        An ONNX model; external data lies beside the file.
    target : str or list of str
        ``"cpu"`` is this host; ``"cpu:avx2"`` and the like cap the instruction set; ``"opencl"``, ``"mali"``,
        ``"intel_graphics"`` and ``"cuda"`` are a device beside it, which need not be there until the module is called
        (``neo targets`` lists them all). A list of instruction sets makes a variant for each: calls use the strongest,
        and so does a machine that loads the saved module.
    threads : int, optional
        Threads a call may use. The default is the cores this process may really use.
    tune : bool, int or str
        Measure on this machine instead of estimating, search the schedules of what is chosen, and keep the times in
        the database: ``True`` until more would not pay, at most a minute; ``"60s"`` for at most that long; a number:
        for at most so many trials. The module is never slower than the default one: both are timed against each other
        (docs/tuning.md).
    database : path, optional
        Where measured times are kept. With `tune` the default is ``neo/tuning.db`` in the user's cache folder. Without,
        the times stored there are used, and nothing is measured or written.
    accuracy : {"default", "strict", "reduced"}, optional
        ``"strict"`` keeps to methods whose error is that of the direct one, and keeps denormal numbers, which are zeros
        otherwise. ``"reduced"`` lets a device round the operands of convolutions to fewer bits than float32 has
        (docs/accuracy.md).
    memory : int, optional
        Bytes that packed weights may take.
    routines : mapping of str to str or list of str, optional
        Pins: a node name or pattern to the routines it may use, by name or pattern:
        ``{"conv*": "cpu:float32/direct*"}``.
    shapes : mapping of str to int, (int, int) or list of those, optional
        Symbols of the model to a size, or to the range it may take. A list makes a variant for each of its entries, and
        several lists one for each combination; a call runs the first whose sizes fit. What the arguments say goes for
        each variant.
    limits : Limits, optional
        What compiling, and afterwards any one call, may take; for models that nobody has looked at
        (docs/untrusted.md).

    Returns
    -------
    Module

    Raises
    ------
    neo.UnsupportedError
        The model has nodes neo cannot run, all of which are listed; or this machine cannot run the target.
    neo.ModelError
        The model or an argument is malformed.
    neo.ResourceError
        The database cannot be used.
    neo.TimeLimitError, neo.OutOfMemoryError
        A limit was reached.
    """
    targets = [target] if isinstance(target, str) else target
    if not isinstance(targets, list | tuple) or not targets or not all(isinstance(t, str) for t in targets):
        msg = f"[compile] target must be a name or a list of names. Got {target!r}, expected a str"
        raise DTypeError(msg)
    for name in targets:
        _native.check_target(name)
        _check_runs_here(name)
    _check_targets_fit(targets)
    if threads is None:
        threads = _native.default_threads()
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        msg = f"[compile] threads must be a positive int. Got {threads!r}, expected 1 or more"
        raise ModelError(msg)
    if accuracy not in (None, "default", "strict", "reduced"):
        msg = f"[compile] accuracy must be known. Got {accuracy!r}, expected 'default', 'strict' or 'reduced'"
        raise ModelError(msg)

    if memory is not None and (not isinstance(memory, int) or isinstance(memory, bool) or memory < 0):
        msg = f"[compile] memory must be a number of bytes. Got {memory!r}, expected an int of 0 or more"
        raise ModelError(msg)
    budget = parse_budget(tune)
    if database is not None and not isinstance(database, str | PathLike):
        msg = f"[compile] database must be a path. Got {type(database).__name__}, expected a str or a PathLike"
        raise DTypeError(msg)

    if limits is not None and not isinstance(limits, Limits):
        msg = f"[compile] limits must be neo.Limits. Got {type(limits).__name__}"
        raise DTypeError(msg)
    wanted = _Wanted(threads, accuracy, memory, routines, limits)
    sizes = spread(shapes)
    made = {
        name: [_compile_one(model, name, budget, database, wanted, one) for one in sizes]
        for name in sorted(targets, key=_strength, reverse=True)
    }
    if line := fallback_line(next(iter(made.values()))[0].fallbacks):
        logging.getLogger("neo").warning("[compile] %s", line)
    if len(targets) == len(sizes) == 1:
        return made[targets[0]][0]
    best, *others = made.values()
    union = _signature(model, hull_of(sizes), best[0].reduction_length, limits)
    return VariantModule(best, union, [m for modules in others for m in modules])


@dataclass(frozen=True)
class _Wanted:
    """What goes for every variant."""

    threads: int
    accuracy: str | None
    memory: int | None
    routines: Mapping[str, str | Sequence[str]] | None
    limits: Limits | None  # None: those of a trusted model


def _signature(model: Model, shapes: Mapping[str, Size], depth: int, limits: Limits | None) -> Signature:
    """Inputs and outputs of a model with these sizes."""
    from neo.frontend.onnx import read_model

    with (limits or Limits()).budget():
        graph, declared = read_model(model, shapes=shapes, limits=limits)
    inputs = [_tensor(v) for v in graph.inputs]
    outputs = _told([_tensor(v) for v in graph.outputs], declared, inputs)
    return Signature(tuple(inputs), tuple(outputs), {v.name: v.kind for v in graph.inputs}, depth)


def _compile_one(
    model: Model,
    target: str,
    budget: Budget | None,
    database: str | PathLike[str] | None,
    wanted: _Wanted,
    shapes: Mapping[str, Size] | None,
) -> Module:
    from neo.frontend.onnx import read_model

    threads, accuracy, memory, routines = wanted.threads, wanted.accuracy, wanted.memory, wanted.routines
    limits = wanted.limits or Limits()

    def remake() -> _native.Graph:
        return _native.run_passes(read_model(model, shapes=shapes, limits=wanted.limits)[0])

    def lower(choice: Sequence[int], total_us: float) -> _native.Module:
        # Tuning lowers many times, each time from the model's constants.
        source = remake if plain else None
        return problem.lower(list(choice), total_us, threads, keeps_denormals=accuracy == "strict", remake=source)

    def tuned() -> Chosen:
        from neo.tune.choose import choose, is_doubtful
        from neo.tune.database import Database, default_path
        from neo.tune.in_plan import ModulePlans
        from neo.tune.machine import Context
        from neo.tune.measure import tune_problem

        arrays = selection_arrays(problem, accuracy, memory)
        with Database(default_path() if database is None else database, read_only=budget is None) as stored:
            bench = _native.make_bench(problem, threads)
            context = Context.here(target, bench.threads, measures=budget is not None)

            def priced() -> Problem:
                return selection_arrays(problem, accuracy, memory)

            def selected() -> list[int]:
                return bench.chosen(list(solve(priced()).choice))

            # A pin to one schedule leaves nothing to search.
            pins = [
                pin
                for allowed in (routines or {}).values()
                for pin in ([allowed] if isinstance(allowed, str) else allowed)
            ]
            selects = None if any("{" in pin for pin in pins) else selected
            # The steps of a device run while the host goes on: their times in a plan are not known.
            plans = ModulePlans(bench, priced, lower, inputs) if arrays.places is None else None

            def measured(doubted: Sequence[int] | None = None) -> Tuning:
                return tune_problem(
                    *(bench, context, stored),
                    budget=budget,
                    selected=selects,
                    plans=plans,
                    doubted=doubted,
                    name=graph.name,
                )

            def best(tuning: Tuning) -> Chosen:
                return choose(
                    *(arrays, priced(), tuning),
                    bench=bench,
                    limits=[accuracy, memory],
                    lower=lower,
                    inputs=inputs,
                    database=stored,
                    context=context,
                )

            first = measured()
            chosen = best(first)
            if budget is None or plans is None or not is_doubtful(chosen):
                return chosen
            again = measured(chosen.choice)
            return best(replace(first, seconds=first.seconds + again.seconds, ratios=again.ratios))

    choice: Sequence[int]
    plain = budget is None and database is None
    try:
        with limits.budget():
            graph, declared = read_model(model, shapes=shapes, limits=wanted.limits)
            inputs = [_tensor(v) for v in graph.inputs]
            outputs = _told([_tensor(v) for v in graph.outputs], declared, inputs)
            kinds = {v.name: v.kind for v in graph.inputs}
            graph = _native.run_passes(graph)
            problem = _build_problem(graph, target, threads, routines)
            if plain:
                solution = solve(selection_arrays(problem, accuracy, memory))
                native, choice, tuning = lower(solution.choice, float(solution.total)), solution.choice, None
        if not plain:
            with limits.budget(timed=False):
                chosen = tuned()
            native, choice, tuning = chosen.native, chosen.choice, chosen.tuning
    except MemoryError as error:
        if isinstance(error, Error):
            raise
        msg = f"[compile] memory must be available. Got {error or 'none'}"
        raise OutOfMemoryError(msg) from error
    if wanted.limits is not None:
        native.limit_calls(limits.memory, float(limits.seconds))
    # Where there is no such device, a call says so.
    with contextlib.suppress(ResourceError):
        native.prepare_device()
    depth = int(graph.reduction_length)
    made = (native, inputs, outputs, problem, choice, problem.machine, depth, kinds, tuning)
    return Module(*made, provenance=Provenance.of(model, graph.name))


def _strength(target: str) -> int:
    """Targets of this machine, weaker before stronger."""
    names = [t["name"] for t in (*_native.targets(), *_native.device_targets())]
    return names.index(_full_name(target))


def _full_name(target: str) -> str:
    return f"cpu:{_native.host_isa()}" if target == "cpu" else target


def _check_targets_fit(targets: Sequence[str]) -> None:
    """Variants for several targets are of instruction sets, which must differ."""
    devices = [t["name"] for t in _native.device_targets()]
    for target in targets if len(targets) > 1 else ():
        if target in devices:
            msg = f"[compile] a list of targets must name instruction sets. Got {target!r}, expected cpu or cpu:..."
            raise ModelError(msg)
    names = [_full_name(t) for t in targets]
    for i, name in enumerate(names):
        if name in names[:i]:
            msg = f"[compile] targets must differ. Got {name!r} twice"
            raise ModelError(msg)


def _check_runs_here(target: str) -> None:
    known = {t["name"]: t["runs_here"] for t in _native.targets()}
    if not known.get(target, True):
        fitting = ", ".join(["cpu", *(name for name, runs in known.items() if runs)])
        msg = f"[compile] target must run on this machine. Got {target!r}, expected one of {fitting}"
        raise UnsupportedError(msg)


def selection_arrays(problem: _native.Problem, accuracy: str | None = None, memory: int | None = None) -> Problem:
    """The arrays of a selection problem, with the limits that the user sets."""
    resources = []
    if memory is not None:
        resources.append(Resource("packed_bytes", float(memory), problem.resource("packed_bytes")))
    if accuracy == "strict":
        resources.append(Resource("error", 0.0, problem.resource("error")))
    if accuracy != "reduced" and problem.rounds:
        resources.append(Resource("rounding", 0.0, problem.resource("rounding")))
    return Problem.from_flat(Flat(*problem.flat), resources, problem.places)


def _build_problem(
    graph: _native.Graph, target: str, threads: int, routines: Mapping[str, str | Sequence[str]] | None
) -> _native.Problem:
    trees = shipped_corrections()
    if not routines:
        return _native.build_problem(graph, target, threads, trees=trees)
    pins = _Pins(routines, list(_node_names(graph)))
    try:
        return _native.build_problem(graph, target, threads, pins.allow, trees)
    except UnsupportedError:
        pins.complain_where_nothing_is_left()
        raise


def _node_names(graph: _native.Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.name
        for body in node.bodies.values():
            yield from _node_names(body)


class _Pins:
    """Which routines the user allows for which nodes; every pattern must mean something."""

    def __init__(self, routines: Mapping[str, str | Sequence[str]], nodes: Sequence[str]) -> None:
        if not isinstance(routines, Mapping):
            msg = (
                "[compile] routines must be a mapping of nodes to routines. "
                f"Got {type(routines).__name__}, expected a dict"
            )
            raise DTypeError(msg)
        self._pins = {node: [r] if isinstance(r, str) else list(r) for node, r in routines.items()}
        self._offered: dict[str, list[str]] = {}
        self._left: set[str] = set()
        known = _native.routine_names()
        for pattern, allowed in self._pins.items():
            if not any(fnmatch.fnmatchcase(node, pattern) for node in nodes):
                listed = ", ".join(repr(n) for n in [n for n in nodes if n][:8])
                msg = (
                    f"[compile] a pin must match a node of the compiled graph. Got {pattern!r}, "
                    f"expected one of {listed}"
                )
                raise ModelError(msg)
            for routine in allowed:
                bare = routine.split("@")[0].split("{")[0]
                if not any(fnmatch.fnmatchcase(name, bare) for name in known):
                    msg = (
                        f"[compile] a pin must match a routine. Got {routine!r} for {pattern!r}, "
                        f"expected one of {', '.join(known)}"
                    )
                    raise ModelError(msg)

    def allow(self, node: str, routine: str) -> bool:
        """Whether a node may be run by a routine, given as its whole text."""
        for pattern, allowed in self._pins.items():
            if fnmatch.fnmatchcase(node, pattern):
                self._offered.setdefault(node, []).append(routine)
                without_schedule = routine.split("{")[0]
                forms = (routine, without_schedule, without_schedule.split("@")[0])
                if any(fnmatch.fnmatchcase(form, a) for form in forms for a in allowed):
                    self._left.add(node)
                    return True
                return False
        return True

    def complain_where_nothing_is_left(self) -> None:
        """Raise for the first pinned node that had routines but keeps none."""
        for node, offered in self._offered.items():
            if node not in self._left:
                names = ", ".join(sorted({o.split("{")[0] for o in offered}))
                msg = f"[compile] a pin must leave the node a routine. Got none for {node!r}, expected one of {names}"
                raise ModelError(msg)


def _tensor(value: _native.Value) -> Tensor:
    if value.kind != "tensor":
        return Tensor(value.name, value.type, None)
    return Tensor(value.name, value.dtype, value.shape, value.hints)


def _told(
    outputs: Sequence[Tensor], declared: Mapping[str, tuple[int | str | None, ...]], inputs: Sequence[Tensor]
) -> list[Tensor]:
    """Outputs of which the model declares more than neo finds out: a rank, or a size that is a number."""
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
