"""Time against error, memory and file size: the modules that a model can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError
from neo.front import Front, FrontModule, measure_front
from neo.frontend.source import Source
from neo.options import Options, Size
from neo.pipeline import Variant
from neo.requirements import Trial, Trials
from neo.select import InfeasibleError
from neo.tune.compare import synthetic_inputs

if TYPE_CHECKING:
    import onnx

__all__ = ["pareto"]

# Shares of the error of the fastest selection's layers that others are held to.
_ERROR_SHARES = (0.5, 0.1, 0.0)


def pareto(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    data: Any = None,
    *,
    points: int = 16,
    target: str = "cpu",
    threads: int | None = None,
    shapes: Mapping[str, Size] | None = None,
) -> Front:
    """Find modules of a model between the fastest, the smallest and the most exact one, and measure them.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    data : iterable or path, optional
        Samples as for :func:`neo.quantize`. With them modules with quantized layers are among the points.
    points : int
        About so many modules are compiled and measured; those that another one beats in every respect are left out.
    target, threads, shapes
        As for :func:`neo.compile`, one variant.

    Returns
    -------
    Front
        Points with milliseconds of a call, the error of the outputs, bytes of memory and of the saved module, and the
        bound of their selection (docs/targets.md). The float modules' errors are measured on synthetic inputs,
        the others' on `data`.

    Raises
    ------
    neo.ModelError
        An argument is malformed, or there is nothing to quantize.
    neo.UnsupportedError
        neo cannot run the model, or its inputs cannot be synthetic.
    """
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        msg = f"[pareto] points must be a number of 2 or more. Got {points!r}"
        raise ModelError(msg)
    options = Options.of(target, threads, None, False, None, None, None, None, shapes, None)
    if options.variants != 1:
        msg = f"[pareto] there must be one target and one set of sizes. Got {options.variants} variants"
        raise ModelError(msg)
    variant = Variant.read(Source(model, None), options.targets[0], options.shapes[0], options)
    trials = Trials(variant.candidates, variant.signature.inputs, variant.finish)
    steps = points if data is None else max(points // 2, 2)
    found = [
        FrontModule(variant.module(trial.selection, trials.module_of(trial)), error, arguments)
        for trial, error, arguments in _float_trials(trials, steps)
    ]
    call = dict(
        zip((t.name for t in variant.signature.inputs), synthetic_inputs(variant.signature.inputs), strict=True)
    )
    if data is not None:
        found += _quantized(model, data, options, max(points - len(found), 2))
    return measure_front(found, call)


def _float_trials(trials: Trials, steps: int) -> Iterator[tuple[Trial, float, dict[str, Any]]]:
    """The fastest selection, smaller and smaller ones, and some of less error, each once."""
    fastest = trials.solve()
    seen = {fastest.selection.choice}
    yield fastest, trials.error_of(fastest), {}
    erring = fastest.sums["error"] > 0
    count = max(steps - 1 - (len(_ERROR_SHARES) if erring else 0), 1)
    least = trials.least_constants()
    for i in range(1, count + 1):
        most = fastest.sums["constant_bytes"]
        limit = most - (most - least) * i / count
        with suppress(InfeasibleError):
            trial = trials.solve(constant_bytes=limit)
            if trial.selection.choice not in seen:
                seen.add(trial.selection.choice)
                yield trial, trials.error_of(trial), {"memory": trial.bytes}
    for share in _ERROR_SHARES if erring else ():
        trial = trials.solve(error=share)
        if trial.selection.choice not in seen:
            seen.add(trial.selection.choice)
            error = trials.error_of(trial)
            yield trial, error, {"accuracy": 1 - error}


def _quantized(model: Any, data: Any, options: Options, points: int) -> list[FrontModule]:
    from neo.quantize.float_model import prepare
    from neo.quantize.front import candidates_of
    from neo.quantize.samples import read_samples
    from neo.quantize.study import Builder, Settings, Study

    build = Builder(options)
    study = Study.calibrated(prepare(model, options.shapes[0]), read_samples(data), Settings(), build)
    found = candidates_of(study, points + 1)[1:]
    return found + _smallest(study.written(found[-1].kept), found[-1], options, build.shapes)


def _smallest(
    proto: onnx.ModelProto, whole: FrontModule, options: Options, shapes: Mapping[str, Size]
) -> list[FrontModule]:
    """A quantized model by the routines of the least constants, which compute the same codes; none where it is those."""
    variant = Variant.read(Source(proto, None), options.targets[0], shapes, options)
    trials = Trials(variant.candidates, variant.signature.inputs, variant.finish)
    trial = trials.solve(constant_bytes=trials.least_constants())
    if trial.selection.choice == trials.solve().selection.choice:
        return []
    module = variant.module(trial.selection, trials.module_of(trial))
    arguments = {**whole.arguments, "memory": trial.bytes}
    return [FrontModule(module, whole.error, arguments, whole.agreement, whole.kept)]
