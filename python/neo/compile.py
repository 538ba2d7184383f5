"""What a user asks for: variants of a model, each of which goes the way of pipeline.py."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neo.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    import torch

    from neo.frontend.source import Model
    from neo.limits import Limits
    from neo.module import Module
    from neo.options import Size

__all__ = ["compile"]


def compile(  # noqa: A001  (the name users expect)
    model: Model | torch.nn.Module,
    *,
    target: str | Sequence[str] = "cpu",
    threads: int | None = None,
    executors: int | tuple[int, int] | str | None = None,
    tune: bool | int | str = False,
    database: str | PathLike[str] | None = None,
    accuracy: str | float | None = None,
    calibration: Any = None,
    memory: int | None = None,
    latency: float | None = None,
    routines: Mapping[str, str | Sequence[str]] | None = None,
    shapes: Mapping[str, Size | list[Size]] | None = None,
    limits: Limits | None = None,
    example_inputs: object = None,
    dynamic_shapes: object = None,
) -> Module:
    """Compile a model for a machine.

    Parameters
    ----------
    model : path, bytes, onnx.ModelProto or torch.nn.Module
        An ONNX model; external data lies beside the file. A module of PyTorch's is exported by PyTorch first, which
        needs the packages torch and onnxscript.
    target : str or list of str
        ``"cpu"`` is this host; ``"cpu:avx2"`` and the like cap the instruction set; ``"opencl"``, ``"mali"``,
        ``"intel_graphics"`` and ``"cuda"`` are a device beside it, which need not be there until the module is called
        (``neo targets`` lists them all). A list of instruction sets makes a variant for each: calls use the strongest,
        and so does a machine that loads the saved module.
    threads : int, optional
        Threads a call may use. The default is the cores this process may really use.
    executors : int, (int, int) or "auto", optional
        How many parts of the model may run beside each other, each on threads of its own: a number, which shares the
        threads out, or a number and the threads of each. ``"auto"`` takes what is fastest by estimates, or with `tune`
        what was measured to be. The default does so where the gain is clear, and keeps a small model to one thread. The
        results are the same bits in any case (docs/executors.md).
    tune : bool, int or str
        Measure on this machine instead of estimating, search the schedules of what is chosen, and keep the times in
        the database: ``True`` until more would not pay, at most a minute; ``"60s"`` for at most that long; a number:
        for at most so many trials. The module is never slower than the default one: both are timed against each other
        (docs/tuning.md).
    database : path, optional
        Where measured times are kept. With `tune` the default is ``neo/tuning.db`` in the user's cache folder. Without,
        the times stored there are used, and nothing is measured or written.
    accuracy : {"default", "strict", "reduced"} or float, optional
        ``"strict"`` keeps to methods whose error is that of the direct one, and keeps denormal numbers, which are zeros
        otherwise. ``"reduced"`` lets operands be rounded to fewer bits than float32 has: those of convolutions and
        products on a device, and rows that meet weights in blocks of 4 or 8 bits (docs/accuracy.md). A number: the least ``1 - e``, where ``e`` is the energy of the outputs' distance from those
        of direct methods over that of the outputs, measured on synthetic inputs; beside `calibration` the limit of
        :func:`neo.quantize`.
    calibration : iterable or path, optional
        Samples as for :func:`neo.quantize`, which the model goes through first: where `accuracy` is a number, the layers
        that pay within it are quantized, else all (docs/quantize.md). For one variant of a model that is trusted.
    memory : int, optional
        Bytes that the module may take: its constants, packed or not, and intermediate values and scratch memory of one
        call, at the largest sizes where `shapes` gives ranges. The fastest module found within it is returned
        (docs/targets.md).
    latency : float, optional
        Milliseconds that a call may take, measured on synthetic inputs.
    routines : mapping of str to str or list of str, optional
        Pins: a node name or pattern to the routines it may use, by name or pattern:
        ``{"conv*": "cpu:float32/direct*"}``. ``"expansion/split_groups"`` and the like name other forms of a node
        (docs/selection.md).
    shapes : mapping of str to int, (int, int) or list of those, optional
        Symbols of the model to a size, or to the range it may take. A list makes a variant for each of its entries, and
        several lists one for each combination; a call runs the first whose sizes fit. What the arguments say goes for
        each variant.
    limits : Limits, optional
        What compiling, and afterwards any one call, may take; for models that nobody has looked at
        (docs/untrusted.md).
    example_inputs : tensor, sequence of tensors or dict of str to tensor, optional
        With a torch.nn.Module: arguments of a call.
    dynamic_shapes : optional
        With a torch.nn.Module: which sizes may differ, as ``torch.export.export`` takes it.

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
        A limit of `limits` was reached.
    neo.select.InfeasibleError
        `memory`, `latency` or `accuracy` cannot be kept to; the message names the nearest value that can. It is a
        ModelError.
    """
    if example_inputs is not None or "torch" in sys.modules:
        from neo.torch_export import is_torch_module, to_onnx

        if example_inputs is not None or is_torch_module(model):
            model = to_onnx(model, example_inputs, dynamic_shapes)
    if calibration is not None:
        quantized = _quantized(model, calibration, accuracy, target, threads, shapes, limits)
        # Sizes that are numbers are written in the quantized model.
        shapes = {name: size for name, size in (shapes or {}).items() if not isinstance(size, int)}
        return compile(
            quantized,
            target=target,
            threads=threads,
            executors=executors,
            tune=tune,
            database=database,
            memory=memory,
            latency=latency,
            routines=routines,
            shapes=shapes,
        )
    from neo import saved  # noqa: F401  (a module can be pickled)
    from neo.frontend.source import Source
    from neo.options import Options
    from neo.pipeline import compile_variant
    from neo.report.fallbacks import fallback_line

    start = time.perf_counter()
    options = Options.of(
        target, threads, executors, tune, database, accuracy, memory, routines, shapes, limits, latency
    )
    is_one = options.variants == 1
    source = Source(model, limits, graphs=options.variants + (not is_one))
    made = [[compile_variant(source, name, sizes, options) for sizes in options.shapes] for name in options.targets]
    best, *others = made
    log = logging.getLogger("neo")
    if log.isEnabledFor(logging.INFO):
        seconds, count = time.perf_counter() - start, len(best[0].steps)
        log.info("[compile] %d steps for %s, %d variants, %.3f s", count, best[0].target, options.variants, seconds)
    if line := fallback_line(best[0].fallbacks):
        log.warning("[compile] %s", line)
    if is_one:
        return best[0]
    from neo.limits import Limits
    from neo.options import hull_of
    from neo.variants import VariantModule

    with (limits or Limits()).budget():
        union = source.read(hull_of(options.shapes)).signature
    others_of_all = [module for modules in others for module in modules]
    return VariantModule(best, replace(union, depth=best[0].reduction_length), others_of_all)


def _quantized(
    model: Model,
    calibration: Any,
    accuracy: str | float | None,
    target: str | Sequence[str],
    threads: int | None,
    shapes: Mapping[str, Size | list[Size]] | None,
    limits: Limits | None,
) -> Model:
    """The model with the layers quantized that pay."""
    from neo.options import Options
    from neo.quantize.face import quantize_for
    from neo.quantize.quality import Limit
    from neo.quantize.study import Settings

    if limits is not None:
        msg = "[compile] calibration must be of a model that is trusted. Got limits beside it"
        raise ModelError(msg)
    options = Options.of(target, threads, None, False, None, None, None, None, shapes, None)
    return quantize_for(model, calibration, Limit.of(accuracy, None, None), Settings(), options).model
