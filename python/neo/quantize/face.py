"""The function that a user calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from neo.errors import DTypeError, ModelError

if TYPE_CHECKING:
    import onnx

    from neo.module import Module
    from neo.options import Options, Size
    from neo.quantize.quality import Limit
    from neo.quantize.result import Quantized
    from neo.quantize.study import Settings

__all__ = ["quantize", "quantize_for"]


def quantize(
    model: str | PathLike[str] | bytes | onnx.ModelProto,
    data: Any = None,
    *,
    accuracy: float | None = None,
    drop: float | None = None,
    metric: Callable[[Module], float] | None = None,
    skip: Sequence[str] = (),
    ranges: str = "mse",
    symmetric: bool = False,
    per_channel: bool = True,
    weight_bits: int = 8,
    correct_bias: bool = True,
    equalize: bool = False,
    samples: int | None = None,
    seed: int = 0,
    target: str = "cpu",
    threads: int | None = None,
    shapes: Mapping[str, Size] | None = None,
) -> Quantized:
    """Make a float32 model one that computes with 8-bit codes where that pays (docs/quantize.md).

    Weights of Conv, MatMul and Gemm become int8, symmetric around 0, with a scale for each output channel; what they
    read becomes uint8 with a scale and a zero point for each value, from its range on calibration data. Sums, pools,
    concatenations and elementwise functions between them run on codes too; softmax, normalizations and everything else
    stay float32.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        A float32 model.
    data : iterable, path or None
        Calibration samples, each the arguments of one call: an array, a tuple or list in the order of the inputs, or a
        dict by name. They are run through once, in memory that does not grow with their number. A path is a folder of
        .npy or .npz files. None: nothing is calibrated; weights become codes, and MatMul and Gemm compute the scales of
        what they read at run time.
    accuracy : float, optional
        A limit: for a model whose one output is rows of floats, the least share of rows whose largest element stays in
        its place; for others the least ``1 - e``, where ``e`` is the energy of the outputs' error over that of the
        outputs (0.999: a relative error of 3.2 %). It is measured on up to 256 of the samples, without labels.
    drop, metric : float and callable, optional
        Another limit: ``metric(module)`` gives a number for a module, the larger the better, which may be at most `drop`
        below that of the float model. What it raises reaches the caller.
    skip : sequence of str
        Names of nodes, or patterns such as ``"head/*"``, that stay float.
    ranges : {"mse", "minmax", "percentile"}
        How the range of a value is found: least mean square error, all that occurred, or all but 1e-5 at either end.
    symmetric : bool
        int8 with a zero point of 0 for what layers read, in place of uint8 with any.
    per_channel : bool
        Weights with a scale for each output channel, or one for all.
    weight_bits : int
        From 2 to 8: weights with fewer bits, still stored in 8. With 7 no engine's int16 sums saturate on AVX2.
    correct_bias : bool
        Let biases take the mean error that rounded weights make (Nagel et al., 2019, section 4.2).
    equalize : bool
        Even out the channels between two convolutions first (same paper, section 4.1).
    samples : int, optional
        At most so many samples are taken.
    seed : int
        What draws the samples that plans are compared on. The same arguments give the same file.
    target, threads, shapes
        As for :func:`neo.compile`, one variant.

    Returns
    -------
    Quantized
        With ``save``, ``compile``, ``pareto`` and ``report``. Under a limit it is the float model where no plan keeps
        to the limit or none is faster; the report says so.

    Raises
    ------
    neo.ModelError
        An argument is malformed; the model is quantized already, computes in half precision or has nothing to quantize;
        there are no samples, or some that are not finite.
    neo.ShapeError, neo.DTypeError
        A sample does not fit the model.
    neo.ResourceError
        A folder or a file cannot be read.
    """
    from neo.options import Options
    from neo.quantize.quality import Limit
    from neo.quantize.study import Settings

    if isinstance(skip, str) or not isinstance(skip, Sequence):
        msg = f"[quantize] skip must be names or patterns of nodes. Got {skip!r}, expected a list of str"
        raise DTypeError(msg)
    settings = Settings(
        ranges,
        bool(symmetric),
        bool(per_channel),
        weight_bits,
        bool(correct_bias),
        bool(equalize),
        tuple(skip),
        samples,
        seed,
    )
    options = Options.of(target, threads, None, False, None, None, None, None, shapes, None)
    return quantize_for(model, data, Limit.of(accuracy, drop, metric), settings, options)


def quantize_for(model: Any, data: Any, limit: Limit | None, settings: Settings, options: Options) -> Quantized:
    """:func:`quantize` with checked arguments."""
    from neo.quantize.choose import Choice, choose, evaluate
    from neo.quantize.dynamic import quantize_without_data
    from neo.quantize.equalize import equalize
    from neo.quantize.float_model import prepare
    from neo.quantize.outcome import decide
    from neo.quantize.samples import read_samples
    from neo.quantize.study import Builder, Study

    settings.check()
    if options.variants != 1:
        msg = f"[quantize] there must be one target and one set of sizes. Got {options.variants} variants"
        raise ModelError(msg)
    build = Builder(options)
    if data is None:
        if limit is not None:
            msg = "[quantize] a limit must have calibration data to be measured on. Got none"
            raise ModelError(msg)
        return quantize_without_data(prepare(model, options.shapes[0]), settings, build)
    calls = read_samples(data)
    real = prepare(model, options.shapes[0])
    if settings.equalize:
        real = equalize(real)
    study = Study.calibrated(real, calls, settings, build)
    if not study.layers:
        return decide(study, None, limit)
    if limit is not None:
        return decide(study, choose(study, limit), limit)
    whole = evaluate(study, frozenset(layer.name for layer in study.layers), None)
    return decide(study, Choice(whole, whole), None)
