"""A module beside ONNX Runtime, or beside stored tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from neo.errors import ModelError
from neo.testing.arrays import (
    FLOAT_FACTOR,
    UNKNOWN_DEPTH,
    assert_arrays_close,
    assert_quantized_close,
    is_float,
)
from neo.testing.graph import longest_reduction, output_steps, quantizes

__all__ = ["assert_close", "seeded_inputs"]


class _Tensor(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Sequence[int | str]: ...


class _Module(Protocol):
    @property
    def inputs(self) -> Sequence[_Tensor]: ...
    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]: ...


def _to_dtype(name: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, str(name)))
    return found


def seeded_inputs(
    module: _Module, seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Return seeded values for every input of ``module``: standard normal floats, and zeros and ones for anything else.

    Parameters
    ----------
    module : neo.Module
        What the inputs are for.
    seed : int
        The same seed gives the same values.
    sizes : mapping, optional
        The size of each symbol in the inputs' shapes.
    """
    rng = np.random.default_rng(seed)
    feeds = {}
    for item in module.inputs:
        if item.shape is None:
            raise ModelError(
                f"[neo.testing] an input without a shape must be given. Got {item.name!r} of {item.dtype}, "
                "expected it in inputs="
            )
        shape = []
        for dim in item.shape:
            if not isinstance(dim, int) and str(dim) not in (sizes or {}):
                raise ModelError(
                    f"[neo.testing] every symbol needs a size. Got shape {list(item.shape)} of input {item.name!r}, "
                    f"expected sizes={{{str(dim)!r}: ...}} or inputs="
                )
            shape.append(dim if isinstance(dim, int) else (sizes or {})[str(dim)])
        dtype = _to_dtype(item.dtype)
        values = rng.standard_normal(shape) if is_float(dtype) else rng.integers(0, 2, shape)
        feeds[item.name] = np.asarray(values).astype(dtype)
    return feeds


def _session(reference: Any) -> Any:
    """Return an onnxruntime session for a path, bytes or a ModelProto; a session is returned as it is."""
    if hasattr(reference, "get_outputs"):
        return reference
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "[neo.testing] comparing with a model needs onnxruntime, which is not installed. Got "
            f"{type(reference).__name__}, expected arrays, or: pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    source = reference.SerializeToString() if hasattr(reference, "SerializeToString") else reference
    return onnxruntime.InferenceSession(
        str(source) if isinstance(source, Path) else source, options, providers=["CPUExecutionProvider"]
    )


def _model_of(reference: Any) -> Any:
    """Return the model that a reference was made from, or None."""
    if isinstance(reference, Mapping):
        return None
    if not hasattr(reference, "get_outputs"):
        return reference
    return getattr(reference, "_model_path", None) or getattr(reference, "_model_bytes", None)


def _run_reference(reference: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    names = [output.name for output in reference.get_outputs()]
    return dict(zip(names, reference.run(names, dict(feeds)), strict=True))


def assert_close(
    module: Any,
    reference: Any,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    *,
    rounds: int = 3,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    depth: int | None = None,
    steps: Mapping[str, float] | None = None,
    factor: float = FLOAT_FACTOR,
) -> None:
    """Raise ``AssertionError`` unless ``module`` gives the outputs of ``reference``, by the rules of this package.

    Parameters
    ----------
    module : neo.Module, mapping of arrays, or array
        What is checked: anything with ``inputs`` and ``run``, or outputs that are there already.
    reference : path, bytes, onnx.ModelProto, onnxruntime.InferenceSession, mapping of arrays, or array
        A model, run by ONNX Runtime, whose dtypes must be met too; or the expected outputs by name, or the only one.
        Outputs that a mapping lacks are not compared.
    inputs : mapping of arrays, or sequence of them, optional
        What to feed; must be given with expected outputs as the reference (default: ``rounds`` sets of seeded values).
    rounds : int
        How many sets of seeded values to compare when ``inputs`` is not given.
    seed : int
        Seed of the first round; each round adds one.
    sizes : mapping, optional
        The sizes of symbolic dims, for the seeded values.
    depth : int, optional
        Longest reduction (default: ``longest_reduction`` of the model, else the module's, else ``UNKNOWN_DEPTH``).
    steps : mapping, optional
        Quantization step per output; makes the quantized rule hold for it (default: ``output_steps`` of the model).
    factor : float
        ``k`` of the float rule.

    Examples
    --------
    >>> import neo  # doctest: +SKIP
    >>> neo.testing.assert_close(neo.compile("model.onnx"), "model.onnx")  # doctest: +SKIP
    >>> assert_close({"y": np.float32([1, 2])}, {"y": np.float32([1, 2])})
    """
    __tracebackhide__ = True
    if not hasattr(module, "run"):
        _assert_outputs(module, reference, depth or UNKNOWN_DEPTH, steps or {}, factor)
        return
    stored = isinstance(reference, Mapping | np.ndarray)
    if stored and not isinstance(inputs, Mapping):
        raise ModelError(
            "[neo.testing] expected outputs belong to given inputs. Got "
            f"inputs of type {type(inputs).__name__}, expected one mapping of arrays"
        )
    if inputs is None:
        feeds_of_rounds: list[Mapping[str, Any]] = [seeded_inputs(module, seed + i, sizes) for i in range(rounds)]
    else:
        feeds_of_rounds = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if not feeds_of_rounds:
        raise ModelError("[neo.testing] nothing to compare. Got 0 sets of inputs, expected at least 1")
    if stored:
        terms = depth or int(getattr(module, "reduction_length", UNKNOWN_DEPTH))
        _assert_outputs(module.run(feeds_of_rounds[0]), reference, terms, steps or {}, factor)
        return
    model = _model_of(reference)
    if steps is None:
        steps = output_steps(model) if model is not None and quantizes(model) else {}
        if model is not None and not steps and quantizes(model):
            raise ModelError(
                "[neo.testing] no output of this quantized model lies on a grid. Got steps=None, expected "
                "steps={output: step}, or steps={} for the float rule"
            )
    session = _session(reference)
    for number, feeds in enumerate(feeds_of_rounds):
        if depth is not None:
            terms = depth
        elif model is not None:
            terms = longest_reduction(model, {name: np.shape(value) for name, value in feeds.items()})
        else:
            terms = int(getattr(module, "reduction_length", UNKNOWN_DEPTH))
        where = "" if len(feeds_of_rounds) == 1 else f", round {number}"
        _assert_outputs(module.run(feeds), _run_reference(session, feeds), terms, steps, factor, where, strict=True)


def _assert_outputs(
    actual: Any,
    expected: Any,
    depth: int,
    steps: Mapping[str, float],
    factor: float,
    where: str = "",
    *,
    strict: bool = False,
) -> None:
    """Compare the outputs that are expected, all of them by name or the only one; ``strict`` compares dtypes too."""
    __tracebackhide__ = True
    if not isinstance(expected, Mapping):
        if isinstance(actual, Mapping):
            if len(actual) != 1:
                names = ", ".join(map(repr, actual))
                raise ModelError(
                    f"[neo.testing] one array is expected of one output. Got {len(actual)} outputs ({names}), "
                    "expected a mapping of arrays"
                )
            ((name, actual),) = actual.items()
        else:
            name = "array"
        expected, actual = {name: expected}, {name: actual}
    elif not isinstance(actual, Mapping):
        raise ModelError(
            f"[neo.testing] outputs by name are compared with outputs by name. Got {type(actual).__name__}, "
            "expected a mapping of arrays"
        )
    for name, right in expected.items():
        if name not in actual:
            raise AssertionError(f"[{name}] output is missing. Got {sorted(actual)}, expected {sorted(expected)}")
        left = actual[name]
        if strict and isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.dtype != right.dtype:
            raise AssertionError(f"[{name}{where}] dtypes must agree. Got {left.dtype}, expected {right.dtype}")
        _assert_value(left, right, name + where, depth, steps.get(name), factor)


def _entries(values: Mapping[Any, Any], keys: Mapping[Any, Any]) -> np.ndarray[Any, Any]:
    """The values of a map in the order of `keys`; numbers with a point are those of float32."""
    array = np.array([values[key] for key in keys])
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _assert_value(actual: Any, expected: Any, name: str, depth: int, step: float | None, factor: float) -> None:
    """Compare one output: an array, a sequence of them, a map, or an empty optional."""
    __tracebackhide__ = True
    if expected is None or actual is None:
        if expected is not actual:
            raise AssertionError(f"[{name}] an optional must agree. Got {actual!r}, expected {expected!r}")
    elif isinstance(expected, list):
        if not isinstance(actual, list | tuple) or len(actual) != len(expected):
            raise AssertionError(
                f"[{name}] sequences must agree in length. Got {actual!r:.200}, expected {len(expected)}"
            )
        for index, (left, right) in enumerate(zip(actual, expected, strict=True)):
            _assert_value(left, right, f"{name}[{index}]", depth, step, factor)
    elif isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            raise AssertionError(
                f"[{name}] maps must have the same keys. Got {actual!r:.200}, expected {expected!r:.200}"
            )
        if expected:
            _assert_value(_entries(actual, expected), _entries(expected, expected), name, depth, step, factor)
    elif step is not None:
        assert_quantized_close(actual, expected, step=step, name=name)
    else:
        assert_arrays_close(actual, expected, depth=depth, factor=factor, name=name)
