"""Which node of a compiled model is wrong, why, and what avoids it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neo import _native
from neo.accuracy.cause import Cause, find_cause, first_wrong_step, model_difference
from neo.accuracy.engines import run_onnxruntime, run_onnxruntime_apart
from neo.accuracy.exact import RANDOM, ExactGraph, widen
from neo.accuracy.local import LocalError, local_error, relative_error
from neo.accuracy.names import ModelNode, Owners, model_nodes
from neo.accuracy.observed import Observed, Wrote, observe
from neo.accuracy.report import AccuracyCause, AccuracyReport, NodeAccuracy
from neo.accuracy.subject import Subject
from neo.accuracy.survey import ValueError64, known_values, local_errors, survey
from neo.compile import compile as compile_model
from neo.errors import DTypeError, ModelError
from neo.frontend.onnx import read_model
from neo.module import Module
from neo.report.progress import LateProgress
from neo.testing import seeded_inputs

if TYPE_CHECKING:
    import onnx

__all__ = ["check_accuracy"]

_BENCHMARK_ROUNDS = 15
_BENCHMARK_SECONDS = 3.0
# ONNX Runtime's own approximations may be this many times what rounding explains.
_ENGINE_ROOM = 16.0
# Two runs in double precision of one value differ by less, whatever was folded.
_SAME_VALUE = 0.1


def check_accuracy(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    *,
    against: str | PathLike[str] | bytes | onnx.ModelProto = "float64",
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    samples: int = 1,
    module: Module | None = None,
    measure: bool = False,
    target: str = "cpu",
    threads: int | None = None,
    accuracy: str | None = None,
    routines: Mapping[str, str | Sequence[str]] | None = None,
    shapes: Mapping[str, int | tuple[int, int]] | None = None,
) -> AccuracyReport:
    """Compare every node of a compiled model with double precision and find the first wrong one.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model.
    against : {"float64", "onnxruntime"} or a model
        What is right: the model itself in double precision; that and ONNX Runtime's run of it; or another model, with
        the same names of values, in double precision.
    inputs : mapping of arrays, or sequence of them, optional
        What to feed (default: seeded random values).
    samples : int
        How many sets of random values to run where no inputs are given.
    module : Module, optional
        The model compiled already; else it is compiled as the arguments that follow say.
    measure : bool
        Time the module beside the one with the pin.
    target, threads, accuracy, routines, shapes
        As for :func:`neo.compile`.

    Returns
    -------
    AccuracyReport
        Printing it gives a table of the nodes, the first wrong node, its cause, and the pin that avoids it.

    Raises
    ------
    neo.ModelError
        An argument is malformed.
    neo.ResourceError
        ONNX Runtime is asked for and not installed.

    Examples
    --------
    >>> report = neo.check_accuracy("model.onnx")  # doctest: +SKIP
    >>> assert report.passed, report  # doctest: +SKIP
    """
    start = time.perf_counter()
    trusted = _trusted_model(against)
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        msg = f"[check] samples must be a positive int. Got {samples!r}, expected 1 or more"
        raise ModelError(msg)
    if module is None:
        module = compile_model(
            model, target=target, threads=threads, accuracy=accuracy, routines=routines, shapes=shapes
        )
    subject = Subject(model, module, shapes, accuracy)
    check = _Check(subject, model if trusted is None else trusted, trusted is not None, against == "onnxruntime")
    feeds = _feeds(module, inputs, samples)
    with LateProgress("checking", len(feeds) * len(check.exact.nodes)) as progress:
        for given in feeds:
            check.run(given, progress.advance)
        cause = check.cause(measure)
    label = str(against) if isinstance(against, str | PathLike) else "a model"
    return AccuracyReport(check.rows(), cause, label, len(feeds), time.perf_counter() - start)


def _trusted_model(against: Any) -> Any:
    """The other model that is right; None where the model itself is."""
    if isinstance(against, str) and against in ("float64", "onnxruntime"):
        return None
    if isinstance(against, str) and not Path(against).exists():
        msg = (
            "[check] against must be an engine or a model. "
            f"Got {against!r}, expected 'float64', 'onnxruntime' or the path of an ONNX file"
        )
        raise ModelError(msg)
    return against


def _feeds(
    module: Module, inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, samples: int
) -> list[dict[str, Any]]:
    if inputs is None:
        given: list[Mapping[str, Any]] = [_random(module, seed) for seed in range(samples)]
    else:
        if not isinstance(inputs, Mapping | Iterable):
            msg = (
                f"[check] inputs must be a mapping of arrays, or several. Got {type(inputs).__name__}, expected a dict"
            )
            raise DTypeError(msg)
        given = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if not given:
        msg = "[check] there must be something to run. Got no inputs, expected one set of arrays or more"
        raise ModelError(msg)
    return [{t.name: x for t, x in zip(module.inputs, module._arrange(named), strict=True)} for named in given]


def _random(module: Module, seed: int) -> dict[str, Any]:
    sizes: dict[str, int] = {}
    for spec in module.inputs:
        if spec.shape is None or spec.hints is None or spec.dtype == "string":
            msg = f"[check] an input that cannot be drawn must be given. Got none for {spec.name!r}, expected {spec}"
            raise DTypeError(msg)
        sizes.update((d, h) for d, h in zip(spec.shape, spec.hints, strict=True) if isinstance(d, str))
    ranked: Any = module
    return dict(seeded_inputs(ranked, seed, sizes))


class _Check:
    """One check: the runs, what they say of each value, and the first wrong node."""

    def __init__(self, subject: Subject, trusted: Any, other: bool, engine: bool) -> None:
        self.subject = subject
        self.trusted = trusted
        self.other = other
        self.engine = engine
        graph = read_model(trusted, shapes=subject.shapes)[0] if other else None
        self.exact = subject.own if graph is None else ExactGraph(graph)
        if other and set(self.exact.input_names) != set(subject.own.input_names):
            msg = (
                "[check] the trusted model must have the model's inputs. "
                f"Got {', '.join(self.exact.input_names)}, expected {', '.join(subject.own.input_names)}"
            )
            raise ModelError(msg)
        self.owners = Owners(self.exact, model_nodes(trusted))
        self.worst: dict[str, ValueError64] = {}
        self.beside: dict[str, float] = {}
        self.wrote: dict[str, Wrote] = {}
        self.first: tuple[int, str, Mapping[str, Any], Observed, LocalError, str] | None = None
        self._renamed: set[str] | None = None

    def run(self, feeds: Mapping[str, Any], advance: Callable[[int], None]) -> None:
        """Run one set of inputs and compare."""
        run = observe(self.subject.module._native, feeds)
        run.forget(self._renamed or ())
        found = survey(self.exact, run, advance=advance)
        if self._renamed is None and any(v.local.bad for v in found):
            self._renamed = self._renamed_values(feeds, run)
            run.forget(self._renamed or ())
            found = survey(self.exact, run)
        self.wrote.update(run.wrote)
        for value in found:
            before = self.worst.get(value.name)
            if before is None or value.local.ratio > before.local.ratio:
                self.worst[value.name] = value
        first = next((v for v in found if v.local.bad), None)
        if first is not None:
            self._note(first.name, feeds, run, first.local, "")
        if self.engine:
            self._beside_engine(feeds, run)

    def _note(self, name: str, feeds: Mapping[str, Any], run: Observed, error: LocalError, engine: str) -> None:
        position = self.exact.producer[name]
        if self.first is None or position < self.first[0]:
            self.first = (position, name, feeds, run, error, engine)

    def _renamed_values(self, feeds: Mapping[str, Any], run: Observed) -> set[str]:
        """Names that passes gave to another value: in double precision the graphs before and after disagree on them."""
        before, after = (_all_values(graph, feeds, run.values) for graph in (self.subject.own, self.subject.compiled))
        outputs = set(self.subject.own.output_names)
        return {
            name
            for name in before.keys() & after.keys()
            if name not in outputs and relative_error(after[name], before[name]) > _SAME_VALUE
        }

    def _beside_engine(self, feeds: Mapping[str, Any], run: Observed) -> None:
        known = known_values(self.exact, run.values)
        names = [name for name in known if name in self.exact.producer]
        whole = run_onnxruntime(self.trusted, feeds, names)
        for name in names:
            if isinstance(whole.get(name), np.ndarray) and isinstance(known[name], np.ndarray):
                apart = relative_error(known[name], widen(whole[name]))
                self.beside[name] = max(apart, self.beside.get(name, 0.0))
        for name, value in run_onnxruntime_apart(self.trusted, known).items():
            if name not in self.exact.producer:
                continue
            segment = self.exact.segment(name, known)
            error = local_error(self.exact, name, known[name], widen(value), known, segment)
            steps = isinstance(value, np.ndarray) and value.dtype.kind in "iu" and error.error <= 1.0
            if error.ratio > _ENGINE_ROOM and not steps:
                self._note(name, feeds, run, error, "onnxruntime")

    def cause(self, measure: bool) -> AccuracyCause | None:
        """The first wrong node of all runs, its cause and its pin."""
        if self.first is None:
            return None
        _, name, feeds, run, error, engine = self.first
        known = known_values(self.exact, run.values)
        segment = self.exact.segment(name, known)
        group = self.owners.of_segment(segment)
        wrote = run.wrote.get(name)
        node = next((n for n in group if wrote is not None and n.name == wrote.node), None)
        node = node or self.owners.of(self.exact.producer[name])
        if len(group) > 1:
            inside = self._inside(name, feeds, segment)
            if inside is not None:
                node, group = inside
        label = node.name if node is not None else name
        cause = self._cause(name, run, feeds, node, engine)
        step = first_wrong_step(self.subject, name, run) if cause.kind not in ("model", "rewriting") else None
        if step is not None and step in run.wrote:
            name, wrote = step, run.wrote[step]
            if any(n.name == wrote.node for n in group):
                node = next(n for n in group if n.name == wrote.node)
                label = node.name
        cost = measured = None
        if cause.alternative is not None:
            cost = cause.alternative.added_us / 1e3
            if measure:
                measured = self._benchmark(cause.alternative.native, feeds)
        reason = error.reason if not engine else f"beside {engine}, {error.reason}"
        return AccuracyCause(
            label,
            node.op if node is not None else "",
            name,
            tuple(n.name for n in group),
            wrote.routine if wrote is not None else "",
            reason,
            cause.kind,
            cause.text,
            cause.pin,
            cost,
            measured,
        )

    def _inside(
        self, name: str, feeds: Mapping[str, Any], segment: Sequence[int]
    ) -> tuple[ModelNode | None, list[ModelNode]] | None:
        """The node of a group that is wrong by itself, with the group's own values as outputs."""
        inner = [
            n
            for index in segment
            for n in self.exact.outputs[index]
            if n and n != name and n in self.subject.own.producer
        ]
        if not inner:
            return None
        run = observe(self.subject.tapped(inner), feeds)
        run.forget(self._renamed or ())
        errors = local_errors(self.exact, run.values, [*inner, name])
        wrong = [n for n in (*inner, name) if n in errors and errors[n][0].bad]
        if not wrong:
            return None
        first = min(wrong, key=lambda n: self.exact.producer[n])
        return self.owners.of(self.exact.producer[first]), self.owners.of_segment(errors[first][1])

    def _cause(self, name: str, run: Observed, feeds: Mapping[str, Any], node: ModelNode | None, engine: str) -> Cause:
        if engine:
            return Cause("operator", f"{engine} computes this node otherwise; double precision agrees with neo")
        if self.other and node is not None:
            own = local_errors(self.subject.own, run.values, [name])
            if name in own and not own[name][0].bad:
                return model_difference(self.subject.model, self.trusted, node)
        return find_cause(self.subject, name, run, feeds)

    def _benchmark(self, pinned: _native.Module, feeds: Mapping[str, Any]) -> float:
        mine = self.subject.module._native
        arrays = [feeds[name] for name in mine.input_names]
        (own_us, _), (pinned_us, _) = _native.benchmark_modules(
            [mine, pinned], arrays, _BENCHMARK_ROUNDS, _BENCHMARK_SECONDS
        )
        return (pinned_us - own_us) / 1e3

    def rows(self) -> tuple[NodeAccuracy, ...]:
        """What the runs say of each node of the model; nodes that were folded away are left out."""
        values: dict[str, ValueError64] = {}
        inside: dict[str, str] = {}
        for found in self.worst.values():
            for owner in self.owners.of_segment(found.segment):
                inside.setdefault(owner.name, found.name)
            maker = self.owners.of(self.exact.producer[found.name])
            if maker is not None:
                before = values.get(maker.name)
                if before is None or found.local.ratio > before.local.ratio:
                    values[maker.name] = found
        rows = []
        for node in self.owners.nodes:
            value = values.get(node.name)
            group = inside.get(node.name)
            if value is None and group is None:
                continue
            wrote = self.wrote.get(group or "" if value is None else value.name)
            routine = "" if wrote is None else wrote.routine
            if value is None:
                rows.append(NodeAccuracy(node.name, node.op, "", routine, (), None, None, None))
                continue
            rows.append(
                NodeAccuracy(
                    node.name,
                    node.op,
                    value.name,
                    routine,
                    tuple(n.name for n in self.owners.of_segment(value.segment)),
                    value.local.error,
                    value.local.ratio,
                    value.accumulated,
                    self.beside.get(value.name),
                )
            )
        return tuple(rows)


def _all_values(graph: ExactGraph, feeds: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of a graph in double precision; sizes that only a plan knows are those of a run."""
    values = {name: widen(feeds[name]) for name in graph.input_names}
    for index, node in enumerate(graph.nodes):
        if node.op == "neo.Dims" or node.op in RANDOM:
            values.update({name: widen(run[name]) for name in graph.outputs[index] if name in run})
        elif all(name is None or name in values or graph.is_constant(name) for name in graph.inputs[index]):
            values.update(graph.evaluate(index, graph.operands(index, values)))
    return values
